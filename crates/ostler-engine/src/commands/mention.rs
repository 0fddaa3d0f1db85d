//! Files that a prompt or a command mentions as `@path`, `@"path with spaces"` or `@path#L10-20`: their content is added, if
//! it may be read without approval.

use std::path::Path;

use serde_json::json;

use super::expand::run;
use crate::disk::on_disk;
use crate::drive::TurnContext;
use crate::permission::{CallFacts, Effect, Outcome, Policy};

/// Further files are ignored.
const MOST_FILES: usize = 20;

/// The contents of the mentioned files, each with its name.
pub(crate) async fn files(context: &TurnContext, text: &str) -> Vec<String> {
    let mut texts = Vec::new();
    for Mention { name, lines } in mentioned(text).into_iter().take(MOST_FILES) {
        let path = context.cx.resolve(Path::new(name));
        let (policy, file) = (context.permissions.policy(), path.clone());
        if on_disk(move || file.is_file() && may_read(&policy, &file)).await {
            let mut input = json!({"file_path": path});
            if let Some((first, last)) = lines {
                input["offset"] = json!(first);
                input["limit"] = json!(last.saturating_sub(first).saturating_add(1));
            }
            let (content, denied) = run(context, "Read", input).await;
            if !denied {
                texts.push(format!("Content of {}:\n{content}", path.display()));
            }
        }
    }
    texts
}

fn may_read(policy: &Policy, path: &Path) -> bool {
    let (effect, input) = (Effect::Read(path.to_owned()), json!({"file_path": path}));
    let facts = CallFacts { tool: "Read", input: &input, effect: &effect };
    policy.decide(&facts).outcome == Outcome::Allow
}

/// A file that a text mentions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mention<'t> {
    name: &'t str,
    /// The first and the last line, if only some are wanted.
    lines: Option<(u64, u64)>,
}

impl<'t> Mention<'t> {
    fn new(text: &'t str) -> Self {
        let whole = Self { name: text, lines: None };
        let Some((name, place)) = text.rsplit_once("#L") else { return whole };
        let (first, last) = place.split_once('-').unwrap_or((place, place));
        let last = last.strip_prefix('L').unwrap_or(last);
        match (first.parse(), last.parse()) {
            (Ok(first), Ok(last)) if 0 < first && first <= last => {
                Self { name, lines: Some((first, last)) }
            }
            _ => whole,
        }
    }
}

/// The files after `@`, each once. An `@` inside a word, as in a mail address, mentions nothing.
fn mentioned(text: &str) -> Vec<Mention<'_>> {
    const BEFORE: [char; 5] = ['(', '[', '"', '\'', '`'];
    const AFTER: [char; 11] = ['.', ',', ';', ':', '!', '?', ')', ']', '"', '\'', '`'];
    let mut found: Vec<Mention<'_>> = Vec::new();
    for (at, _) in text.match_indices('@') {
        let before = text[..at].chars().next_back();
        if before.is_some_and(|c| !c.is_whitespace() && !BEFORE.contains(&c)) {
            continue;
        }
        let rest = &text[at + 1..];
        let name = match rest.strip_prefix('"') {
            Some(quoted) => quoted.split(['"', '\n']).next().unwrap_or_default(),
            None => {
                rest.split(char::is_whitespace).next().unwrap_or_default().trim_end_matches(AFTER)
            }
        };
        let mention = Mention::new(name);
        let is_name = !mention.name.is_empty() && !mention.name.starts_with('@');
        if is_name && !found.contains(&mention) {
            found.push(mention);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_end_where_the_sentence_continues() {
        let names = |text| mentioned(text).iter().map(|it| it.name).collect::<Vec<_>>();
        assert_eq!(names("See @a.txt, (@b/c.rs) and @a.txt."), ["a.txt", "b/c.rs"]);
        assert_eq!(names("@\"my file.txt\" and `@x`"), ["my file.txt", "x"]);
        assert_eq!(names("mail me@example.com or @ home, @@"), [""; 0]);
    }

    #[test]
    fn lines_follow_the_name() {
        let lines = |text| mentioned(text)[0];
        let some = |name, first, last| Mention { name, lines: Some((first, last)) };
        assert_eq!(lines("see @a.rs#L3-7."), some("a.rs", 3, 7));
        assert_eq!(lines("@a.rs#L3-L7"), some("a.rs", 3, 7));
        assert_eq!(lines("@a.rs#L3"), some("a.rs", 3, 3));
        for odd in ["@a#Lx", "@a#L7-3", "@a#L0"] {
            assert_eq!(lines(odd), Mention { name: &odd[1..], lines: None }, "{odd}");
        }
    }
}
