//! Commands that only read, and which files they read. `programs.rs` and `git.rs` have the tables.

use crate::options::{Operands, Sorted};
use crate::programs::program;
pub use crate::reading::Look;
use crate::word::{Word, WordKind};
use crate::{Part, git, special};

/// Whether a part only reads. [`look`] lists which files.
pub fn is_harmless(part: &Part) -> bool {
    look(part).is_ok()
}

/// The files that a part reads, if it only reads.
///
/// # Errors
/// The reason, for people, why it is not certain that the part only reads.
pub fn look(part: &Part) -> Result<Look, String> {
    if let Some(assignment) = part.assignments.first() {
        return Err(format!("it sets the variable {}", assignment.name));
    }
    if let Some(word) = part.argv.iter().find(|word| word.kind > WordKind::Glob) {
        return Err(format!("{} depends on a variable or on the output of a command", word.text));
    }
    if let Some(word) = part.argv.iter().find(|word| word.kind == WordKind::Tilde) {
        return Err(format!("{} is in a home directory", word.text));
    }
    let words = part.argv.get(1..).unwrap_or_default();
    match base_name(part.name()) {
        Some("git") => git::look(words),
        Some("cd") => special::cd(words),
        Some("command") => special::command(words),
        Some("echo") => special::echo(words),
        Some("date") => special::date(words),
        Some("find") => special::find(words),
        Some("jq") => special::jq(words),
        Some("printf") => special::printf(words),
        Some("sed") => special::sed(words),
        Some("sleep") => special::sleep(words),
        Some("test") => special::test(words),
        Some(name) => by_table(name, words),
        None => Err(format!("{} is not a program of the system", part.name())),
    }
}

/// Whether this name is a shell builtin.
pub fn is_builtin(name: &str) -> bool {
    matches!(
        name,
        ":" | "cd" | "command" | "echo" | "false" | "printf" | "pwd" | "test" | "true" | "type"
    )
}

/// Whether a part that [`look`] does not know may show files that its arguments do not name: it searches folders,
/// copies them, or reads names from a list.
pub fn may_show_others(part: &Part) -> bool {
    match part.name().rsplit('/').next().unwrap_or_default() {
        "ack" | "ag" | "cksum" | "cp" | "diff" | "du" | "egrep" | "fgrep" | "file" | "find"
        | "grep" | "hexdump" | "md5sum" | "rg" | "rgrep" | "rsync" | "scp" | "sha1sum"
        | "sha256sum" | "sha512sum" | "sort" | "strings" | "tar" | "wc" | "zgrep" | "zip" => true,
        "git" => part.argv.iter().skip(1).any(|word| {
            matches!(
                word.text.as_str(),
                "annotate"
                    | "archive"
                    | "blame"
                    | "bundle"
                    | "cat-file"
                    | "diff"
                    | "diff-files"
                    | "diff-index"
                    | "diff-tree"
                    | "difftool"
                    | "fast-export"
                    | "format-patch"
                    | "grep"
                    | "log"
                    | "range-diff"
                    | "reflog"
                    | "show"
                    | "stash"
                    | "whatchanged"
            )
        }),
        _ => false,
    }
}

/// The name of a program in a system folder; `None` for one in another folder.
fn base_name(name: &str) -> Option<&str> {
    let base = name.strip_prefix("/usr/bin/").or_else(|| name.strip_prefix("/bin/"));
    let base = base.unwrap_or(name);
    (!base.contains('/')).then_some(base)
}

fn by_table(name: &str, words: &[Word]) -> Result<Look, String> {
    let Some(program) = program(name) else {
        return Err(format!("{name} is not known to only read"));
    };
    let sorted = program.sort(words)?;
    let searches = match name {
        "rg" => !sorted.has(&["--files"]),
        "grep" | "egrep" | "fgrep" => sorted.has(&["-r", "--recursive"]),
        _ => false,
    };
    let has_pattern = sorted.has_pattern || sorted.has(&["--files"]);
    let files_only = program.operands == Operands::Files;
    let paths = paths(program.operands, has_pattern, sorted)?;
    Ok(Look { paths, files_only, searches })
}

/// The words that are paths.
fn paths(operands: Operands, has_pattern: bool, sorted: Sorted) -> Result<Vec<Word>, String> {
    let Sorted { operands: words, late, .. } = sorted;
    let is_pattern = |word: &Word| word.kind == WordKind::Glob;
    let mut words = words.into_iter();
    let mut paths: Vec<Word> = match operands {
        // The shell replaces a pattern with file names, which are shown.
        Operands::Text => words.filter(is_pattern).collect(),
        Operands::Paths | Operands::Files => words.collect(),
        Operands::PatternPaths if has_pattern => words.collect(),
        Operands::PatternPaths => match words.next() {
            Some(word) if is_pattern(&word) => {
                return Err(format!("the pattern {} is not quoted", word.text));
            }
            _ => words.collect(),
        },
    };
    if operands != Operands::Text {
        paths.extend(late);
    }
    Ok(paths)
}
