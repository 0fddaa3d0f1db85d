//! Commands of the vendor's program that this one does not have. Such a word must not become a prompt: the user means the
//! command, and the prompt would cost money.

use std::ffi::OsString;

/// The commands of the vendor's program 2.1.325, and what to do in place of each.
const COMMANDS: &[(&str, &str)] = &[
    ("agents", "agents are files in .claude/agents, and --agents defines further ones"),
    ("attach", "there are no background sessions; `ostler --resume ID` continues a session"),
    ("auto-mode", "the mode `auto` does not exist here; rules in the settings allow calls"),
    ("gateway", "set ANTHROPIC_BASE_URL to the address of a gateway that runs already"),
    ("import", "sessions and settings of Claude Code are used as they are, without an import"),
    ("install", "install Ostler in the way in which you installed it first"),
    ("kill", "there are no background sessions; end the process itself"),
    ("logs", "there are no background sessions; --debug writes a log of this one"),
    ("plugin", "put the plugin into a folder, and name it with --plugin-dir"),
    ("plugins", "put the plugin into a folder, and name it with --plugin-dir"),
    ("purge", "delete the project's folder in ~/.claude/projects"),
    ("respawn", "there are no background sessions; `ostler --resume ID` continues a session"),
    ("rm", "there are no background sessions; delete a session's file in ~/.claude/projects"),
    ("setup-token", "create the token with Claude Code, and set CLAUDE_CODE_OAUTH_TOKEN"),
    ("stop", "there are no background sessions; end the process itself"),
    ("ultrareview", "ask for a review in a prompt of several words"),
    ("update", "install a newer version in the way in which you installed this one"),
    ("upgrade", "install a newer version in the way in which you installed this one"),
];

/// Why a prompt is refused: it is one word, and the name of such a command. After `--` every word is a prompt.
pub(super) fn refusal(prompt: Option<&str>, arguments: &[OsString]) -> Option<String> {
    let word = prompt?;
    let (word, advice) = COMMANDS.iter().find(|(name, _)| *name == word)?;
    let is_marked = arguments.iter().any(|argument| argument == "--");
    (!is_marked).then(|| {
        format!(
            "`{word}` is a command of Claude Code that Ostler does not have: {advice}. To send the word to the model, write \
             `ostler -- {word}`"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Args;

    fn read(line: &str) -> Result<Args, clap::Error> {
        let words = std::iter::once("ostler").chain(line.split(' ')).map(OsString::from);
        Args::read(words.collect()).map(|(args, _)| args)
    }

    // Mutant: `refusal` returns `None`.
    #[test]
    fn the_name_of_a_command_of_the_vendor_is_refused_and_never_sent_as_a_prompt() {
        for (word, _) in COMMANDS {
            for line in [(*word).to_owned(), format!("-p {word}"), format!("{word} --model x")] {
                let error = read(&line).unwrap_err();
                assert_eq!(error.exit_code(), 2, "{line}");
                assert!(error.to_string().contains("does not have"), "{line}: {error}");
            }
        }
    }

    #[test]
    fn such_a_word_is_a_prompt_after_two_dashes_and_among_other_words() {
        assert_eq!(read("-- update").unwrap().prompt.as_deref(), Some("update"));
        assert_eq!(read("-p -- update").unwrap().prompt.as_deref(), Some("update"));
        let sentence = ["ostler", "update the readme"].map(OsString::from).to_vec();
        assert!(Args::read(sentence).is_ok());
    }
}
