//! Files that a command mentions as `@path`: their content is added, if it may be read without approval.

use std::path::Path;

use serde_json::json;

use super::expand::run;
use crate::disk::on_disk;
use crate::drive::TurnContext;
use crate::permission::{CallFacts, Effect, Outcome, Policy};

/// Further files are ignored.
const MOST_FILES: usize = 20;

/// The contents of the mentioned files, each with its name.
pub(super) async fn files(context: &TurnContext, text: &str) -> Vec<String> {
    let mut texts = Vec::new();
    for name in mentioned(text).into_iter().take(MOST_FILES) {
        let path = context.cx.resolve(Path::new(name));
        let (policy, file) = (context.permissions.policy(), path.clone());
        if on_disk(move || file.is_file() && may_read(&policy, &file)).await {
            let input = json!({"file_path": path});
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

/// The names after `@`, each once. An `@` inside a word, as in a mail address, mentions nothing.
fn mentioned(text: &str) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for word in text.split_whitespace() {
        let word = word.trim_start_matches(['(', '[', '"', '\'', '`']);
        let Some(name) = word.strip_prefix('@') else { continue };
        let name = name.trim_end_matches(['.', ',', ';', ':', '!', '?', ')', ']', '"', '\'', '`']);
        if !name.is_empty() && !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::mentioned;

    #[test]
    fn names_end_where_the_sentence_continues() {
        assert_eq!(mentioned("See @a.txt, (@b/c.rs) and @a.txt."), ["a.txt", "b/c.rs"]);
        assert_eq!(mentioned("mail me@example.com or @ nobody"), [""; 0]);
    }
}
