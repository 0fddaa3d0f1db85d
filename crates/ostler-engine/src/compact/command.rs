//! `/compact [instructions]`, where a prompt is expected.

use ostler_proto::api::{Content, ContentBlock};
use ostler_proto::message::User;

/// The command, as users type it.
const COMMAND: &str = "/compact";

/// Its name, as hosts know it.
pub(crate) const NAME: &str = "compact";

/// What it does, for hosts that list commands.
pub(crate) const DESCRIPTION: &str = "Replace the conversation so far by a summary of it";

/// What may follow it.
pub(crate) const ARGUMENT_HINT: &str = "[what the summary should keep]";

/// Whether a prompt is the command, and what it asks of the summary: empty when nothing special.
pub(crate) fn read(prompt: &User) -> Option<String> {
    if prompt.is_synthetic == Some(true) {
        return None;
    }
    let text = match prompt.message.content.as_ref()? {
        Content::Text(text) => text,
        Content::Blocks(blocks) => match &blocks[..] {
            [ContentBlock::Text(block)] => &block.text,
            _ => return None,
        },
    };
    let rest = text.trim_start().strip_prefix(COMMAND)?;
    let ends = rest.is_empty() || rest.starts_with(char::is_whitespace);
    ends.then(|| rest.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_word_itself_is_the_command() {
        let read = |text: &str| read(&User::prompt(text));
        assert_eq!(read("/compact").as_deref(), Some(""));
        assert_eq!(read(" /compact \n keep the names ").as_deref(), Some("keep the names"));
        for text in ["/compacted", "/compact-it", "compact", "please /compact", "", "/COMPACT"] {
            assert_eq!(read(text), None, "{text}");
        }
    }

    #[test]
    fn words_of_the_engine_are_no_command() {
        let user = User { is_synthetic: Some(true), ..User::prompt("/compact") };
        assert_eq!(read(&user), None);
        let two = vec![ContentBlock::text("/compact"), ContentBlock::text("b")];
        assert_eq!(read(&User::new(two.into(), None)), None);
    }
}
