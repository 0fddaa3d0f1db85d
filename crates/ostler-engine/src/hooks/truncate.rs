//! What hooks say at too great a length: the conversation gets the beginning, a file the whole.

use super::Shared;
use super::verdict::Verdict;
use crate::disk::on_disk;
use crate::scratch::Scratch;

/// The most characters of one text that the model or the user reads.
const MAX: usize = 10_000;
/// How many of a longer one.
const SHOWN: usize = 2_000;

impl Shared {
    /// Makes texts shorter that are too long.
    pub(super) async fn shorten(&self, verdict: &mut Verdict) {
        let scratch = self.helpers.get().map(|helpers| &helpers.scratch);
        for text in verdict.context.iter_mut().chain(&mut verdict.warnings) {
            if text.chars().count() > MAX {
                let (whole, scratch) = (std::mem::take(text), scratch.cloned());
                *text = on_disk(move || shortened(&whole, scratch.as_ref())).await;
            }
        }
    }
}

fn shortened(text: &str, scratch: Option<&Scratch>) -> String {
    let beginning: String = text.chars().take(SHOWN).collect();
    let n_letters = text.chars().count();
    let keep = |scratch: &Scratch| scratch.keep_new("hook", ".txt", text.as_bytes());
    let kept = match scratch.map(keep) {
        Some(Ok(path)) => format!("the whole is in {}", path.display()),
        Some(Err(error)) => format!("the rest is lost: {error}"),
        None => "the rest is lost".to_owned(),
    };
    format!("{beginning}\n[cut here: a hook said {n_letters} letters; {kept}]")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_of_a_long_text_is_in_a_file() {
        let scratch = Scratch::default();
        let text = "ü".repeat(MAX + 1);
        let short = shortened(&text, Some(&scratch));
        assert!(short.chars().count() < SHOWN + 300);
        let path = short.split("the whole is in ").nth(1).unwrap().trim_end_matches(']');
        assert_eq!(std::fs::read_to_string(path).unwrap(), text);
    }
}
