//! Determines from the syntax tree what a shell command would run, read and write, without running anything.
//!
//! [`parts`] lists every simple command at any nesting depth. [`look`] and [`change`] know a few commands well enough
//! to list all files that they touch and to exclude other effects. Other crates decide what is allowed.
//!
//! The rule of this crate: it may call a command unclear too often, but never too seldom. A grammar is not a shell, so
//! the crate also checks the text for everything that a shell would expand and that the syntax tree does not show.

mod builtin;
mod change;
mod git;
mod heredoc;
mod literal;
mod look;
mod options;
mod programs;
mod reading;
mod special;
mod table;
mod text;
mod walk;
mod word;
mod wrap;

pub use self::change::{Change, change};
pub use self::literal::{NotLiteral, literal};
pub use self::look::{Look, is_builtin, is_harmless, look, may_show_others};
pub use self::word::{Word, WordKind};

/// Longer commands are not analysed.
const LONGEST: usize = 32 * 1024;

/// Everything that a command would do, as far as its text shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Judged {
    /// Every simple command, in the order of the text; a wrapper (`timeout 5 ls`) precedes the command that it starts.
    pub parts: Vec<Part>,
    /// Files that the shell itself opens.
    pub redirects: Vec<Redirect>,
    /// Variables set for the shell itself, not for one command.
    pub assignments: Vec<Assignment>,
    /// Whether a command runs in the background.
    pub background: bool,
    /// The operators between the parts, if [`literal`] parsed them; empty otherwise.
    pub joints: Vec<Joint>,
}

/// The operator between a command and the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Joint {
    /// `&&`: the next command runs only if this one succeeded.
    And,
    /// `|`: both run, each in a separate shell.
    Pipe,
    /// `||` or `;`: when the next command runs, it is unknown whether this one succeeded.
    Other,
}

impl Judged {
    /// Whether a part changes the working directory, which changes the meaning of later relative paths.
    pub fn changes_directory(&self) -> bool {
        self.parts.iter().any(|part| matches!(part.name(), "cd" | "pushd" | "popd"))
    }
}

/// One simple command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its name and arguments; never empty, and the name is literal.
    pub argv: Vec<Word>,
    /// Variables set for it alone: `TZ=UTC date`.
    pub assignments: Vec<Assignment>,
    /// Its source text.
    pub source: String,
    /// Whether it only starts other parts: `timeout`, `xargs`, `bash -c`.
    pub only_starts: bool,
}

impl Part {
    /// The command's name as written, such as `ls` or `/bin/ls`.
    pub fn name(&self) -> &str {
        self.argv.first().map_or("", |word| word.text.as_str())
    }

    /// Whether all its variables are known to be harmless.
    pub fn has_safe_environment(&self) -> bool {
        self.assignments.iter().all(Assignment::is_safe_for_programs)
    }
}

/// A file that the shell opens for a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redirect {
    /// Whether the shell writes to it; otherwise it reads.
    pub writes: bool,
    /// The file.
    pub target: Word,
}

/// `NAME=value`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// The variable.
    pub name: String,
    /// Its value.
    pub value: Word,
    /// Whether programs inherit it.
    pub exported: bool,
}

impl Assignment {
    /// Whether programs may inherit this variable without changing their behaviour.
    pub fn is_safe_for_programs(&self) -> bool {
        table::is_safe_variable(&self.name)
    }
}

/// A command whose effects are unclear.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Unclear {
    /// The reason.
    pub reason: String,
    /// The effects that are known; there may be more.
    pub found: Box<Judged>,
}

/// Lists what a command would do.
///
/// # Errors
/// If the text does not show all effects: it has a syntax error, a command name that is not literal, or a feature that
/// runs text as commands.
pub fn parts(command: &str) -> Result<Judged, Unclear> {
    walk::judge(command, 0)
}

/// The words of a single simple command, if all are literal.
pub fn words(command: &str) -> Option<Vec<String>> {
    let judged = literal(command).ok()?;
    let [part] = judged.parts.as_slice() else { return None };
    let is_plain = judged.redirects.is_empty() && part.assignments.is_empty();
    let words = part.argv.iter().map(|word| word.as_literal().map(str::to_owned));
    words.collect::<Option<Vec<_>>>().filter(|_| is_plain)
}

/// Whether a part starts other commands, as far as its words show: `timeout`, `xargs`, `bash -c`.
pub fn starts_others(part: &Part) -> bool {
    !matches!(wrap::starts(&mut part.clone()), wrap::Starts::Nothing)
}
