//! What a shell command would run, read and write, told from its syntax tree without running anything.
//!
//! [`parts`] lists every simple command, however deep it is nested; [`look`] and [`change`] know a few commands well
//! enough to say which files they touch and that they do nothing else. What is to be permitted is decided elsewhere.
//!
//! The rule of this crate: it may say "unclear" too often, never too seldom. A grammar is not a shell, so besides the
//! tree itself the text is checked for everything that a shell would expand and the tree does not show.

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

/// Longer commands are not judged.
const LONGEST: usize = 32 * 1024;

/// Everything a command would do, as far as its text tells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Judged {
    /// Every simple command, in the order of the text; a wrapper (`timeout 5 ls`) comes before what it starts.
    pub parts: Vec<Part>,
    /// Files that the shell itself opens.
    pub redirects: Vec<Redirect>,
    /// Variables that are set for the shell itself, not for one command.
    pub assignments: Vec<Assignment>,
    /// Whether something goes on in the background.
    pub background: bool,
    /// What stands between the parts, as far as [`literal`] read them; empty otherwise.
    pub joints: Vec<Joint>,
}

/// What joins a command to the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Joint {
    /// `&&`: the next one runs only if this one succeeded.
    And,
    /// `|`: both run, in shells of their own.
    Pipe,
    /// `||` or `;`: whether this one succeeded is not known.
    Other,
}

impl Judged {
    /// Whether a part changes the working directory, so that relative paths mean something else afterwards.
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
    /// How it is written.
    pub source: String,
    /// Whether it does nothing but start other parts: `timeout`, `xargs`, `bash -c`.
    pub only_starts: bool,
}

impl Part {
    /// The command's name as written, such as `ls` or `/bin/ls`.
    pub fn name(&self) -> &str {
        self.argv.first().map_or("", |word| word.text.as_str())
    }

    /// Whether all its variables are known to change nothing that matters.
    pub fn has_safe_environment(&self) -> bool {
        self.assignments.iter().all(Assignment::is_safe_for_programs)
    }
}

/// A file that the shell opens for a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redirect {
    /// Whether it is written to; else it is read.
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
    /// Whether programs get to see it.
    pub exported: bool,
}

impl Assignment {
    /// Whether programs may see this variable without doing anything else because of it.
    pub fn is_safe_for_programs(&self) -> bool {
        table::is_safe_variable(&self.name)
    }
}

/// A command whose doings cannot be told.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Unclear {
    /// Why not.
    pub reason: String,
    /// What could be told all the same; there may be more.
    pub found: Box<Judged>,
}

/// Lists what a command would do.
///
/// # Errors
/// When some of it cannot be told from the text: a syntax error, a computed command name, a feature that runs text
/// as commands.
pub fn parts(command: &str) -> Result<Judged, Unclear> {
    walk::judge(command, 0)
}

/// The words of a command that is one plain list of literal words.
pub fn words(command: &str) -> Option<Vec<String>> {
    let judged = literal(command).ok()?;
    let [part] = judged.parts.as_slice() else { return None };
    let is_plain = judged.redirects.is_empty() && part.assignments.is_empty();
    let words = part.argv.iter().map(|word| word.as_literal().map(str::to_owned));
    words.collect::<Option<Vec<_>>>().filter(|_| is_plain)
}

/// Whether a part starts other commands, as far as its words tell: `timeout`, `xargs`, `bash -c`.
pub fn starts_others(part: &Part) -> bool {
    !matches!(wrap::starts(&mut part.clone()), wrap::Starts::Nothing)
}
