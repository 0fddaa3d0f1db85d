//! The help texts of the offline demo.

/// The line that marks the first answer of a conversation.
pub(super) const NOTE: &str = "(offline demo, not a language model)";

/// What this is, what it understands, and how to get a real model.
pub(super) const HELP: &str = "\
This is Ostler's offline demo. No language model is behind it, only a few rules, but the tools it uses are real. \
You can say, for instance:

- list the files in src
- read README.md
- write \"hello world\" to notes.txt
- replace hello with goodbye in notes.txt
- search for TODO in src
- run `echo hi`
- run `sleep 5` in the background
- ask me which colour I like: red, green or blue
- ask a subagent to list the files
- list the files, then read README.md

To use a real model, set ANTHROPIC_API_KEY and start again. \
(ANTHROPIC_BASE_URL points it at another server with the same protocol.)";

/// For users who have seen the list already.
pub(super) const SHORT_HELP: &str = "\
This offline demo understands only a few plain sentences; say “help” to see them. \
For a real model, set ANTHROPIC_API_KEY and start again.";
