//! Texts of hooks that are too long: the conversation gets the beginning, a file all of it.

use super::Shared;
use super::verdict::Verdict;
use crate::disk::on_disk;
use crate::scratch::Scratch;

/// The most characters of one text that the model or the user reads.
const MAX: usize = 10_000;
/// How many characters are shown of a longer text.
const SHOWN: usize = 2_000;

impl Shared {
    /// Shortens texts that are too long.
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
    let n_chars = text.chars().count();
    let keep = |scratch: &Scratch| scratch.keep_new("hook", ".txt", text.as_bytes());
    let kept = match scratch.map(keep) {
        Some(Ok(path)) => format!("the whole is in {}", path.display()),
        Some(Err(error)) => format!("the rest is lost: {error}"),
        None => "the rest is lost".to_owned(),
    };
    format!("{beginning}\n[cut here: the hook's text has {n_chars} characters; {kept}]")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_stored_completely_in_a_file() {
        let scratch = Scratch::default();
        let text = "ü".repeat(MAX + 1);
        let short = shortened(&text, Some(&scratch));
        assert!(short.chars().count() < SHOWN + 300);
        let path = short.split("the whole is in ").nth(1).unwrap().trim_end_matches(']');
        assert_eq!(std::fs::read_to_string(path).unwrap(), text);
    }
}
