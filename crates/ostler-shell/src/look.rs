//! Commands that only look, and what they look at.
//!
//! Conservative on purpose: a command is here when it can neither write, nor start anything, nor reach the network,
//! with the options listed. What is missing is asked about; so is what follows links into folders that are not named
//! (`grep -R`, `rg -L`, `diff -r`).

use crate::Part;
use crate::git;
use crate::word::{Word, WordKind};

/// What a harmless part looks at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// Files and folders it may read. Empty for a command that reads none, or only the working directory.
    pub paths: Vec<Word>,
    /// Whether it shows the contents of files that it finds itself.
    pub searches: bool,
}

/// Whether a part only looks. Which files it looks at is for [`look`] to say and for others to judge.
pub fn is_harmless(part: &Part) -> bool {
    look(part).is_some()
}

/// What a part looks at, if it does nothing else.
pub fn look(part: &Part) -> Option<Look> {
    if !part.has_safe_environment() {
        return None;
    }
    let name = part.name();
    let name =
        name.strip_prefix("/usr/bin/").or_else(|| name.strip_prefix("/bin/")).unwrap_or(name);
    let words = part.argv.get(1..).unwrap_or_default();
    match name {
        "git" => git::look(words),
        "cd" => cd(words),
        "read" => words.iter().all(is_name_or_raw).then(Look::default),
        "printf" => {
            words.first()?.as_literal().filter(|format| !format.starts_with('-')).map(|_| Look::default())
        }
        "command" => matches!(words, [option, name] if matches!(option.as_literal(), Some("-v" | "-V")) && name.kind != WordKind::Unknown)
            .then(Look::default),
        _ => by_table(name, words),
    }
}

/// What the words after the options are.
enum Operands {
    /// Plain text; variables are fine.
    Text,
    /// Files.
    Paths,
    /// A pattern, then files.
    PatternPaths,
}

/// Which options a command may have.
enum Options {
    /// Any: none of them does harm.
    Any,
    /// Only these: single letters, which may be joined and followed by a number, and long words.
    Only { letters: &'static str, words: &'static [&'static str] },
}

/// Whether this is the name of a command that may only look.
pub(crate) fn is_known(name: &str) -> bool {
    matches!(name, "git" | "cd" | "read" | "printf" | "command") || row(name).is_some()
}

fn row(name: &str) -> Option<(Operands, Options)> {
    use Operands::{Paths, PatternPaths, Text};
    let only = |letters, words| Options::Only { letters, words };
    Some(match name {
        "echo" | "true" | "false" | ":" | "pwd" | "whoami" | "uname" | "sleep" | "exit"
        | "return" | "break" | "continue" | "basename" | "dirname" | "seq" | "nproc" | "arch"
        | "groups" => (Text, Options::Any),
        "id" | "which" | "type" | "tr" | "expr" | "uptime" => (Text, only("aAsuGngrdct", &[])),
        "date" => (Text, only("uRI", &["--utc", "--iso-8601", "--rfc-email"])),
        "hostname" => (Text, only("sfiI", &[])),
        "ls" | "cat" | "head" | "wc" | "stat" | "nl" | "tac" | "rev" | "cksum" | "md5sum"
        | "sha1sum" | "sha256sum" | "readlink" | "realpath" | "cmp" | "strings" | "od"
        | "hexdump" => (Paths, Options::Any),
        "tail" => (Paths, only("ncqvz", &["--lines", "--bytes", "--quiet"])),
        "df" | "du" => {
            (Paths, only("hskmaxcd", &["--max-depth", "--human-readable", "--summarize"]))
        }
        "test" => (
            Paths,
            only(
                "fdezrwxsLhnbcpSOGNt",
                &["-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-nt", "-ot", "-ef"],
            ),
        ),
        "file" => (Paths, only("biLhk", &["--brief", "--mime", "--mime-type"])),
        "diff" => (Paths, only("uqswbBiyNac", &["--unified", "--brief", "--color", "--stat"])),
        "cut" => (Paths, only("dfcbsz", &["--delimiter", "--fields", "--complement"])),
        "sort" => (
            Paths,
            only("nrufkhVbdgiMstcCz", &["--numeric-sort", "--reverse", "--unique", "--key"]),
        ),
        "uniq" => (Text, only("cduizfsw", &["--count", "--repeated"])),
        "comm" => (Paths, only("123z", &[])),
        "column" => (Paths, only("tsnc", &["--table"])),
        "tree" => (Paths, only("adfLIPpshuDC", &["--gitignore", "--noreport"])),
        "jq" => {
            (PatternPaths, only("rcseSnjMCa", &["--raw-output", "--compact-output", "--slurp"]))
        }
        "grep" | "egrep" | "fgrep" => (
            PatternPaths,
            only(
                "ivnclLrwxoHhsqaEFGPzAmBCbI",
                &[
                    "--color",
                    "--include",
                    "--exclude",
                    "--exclude-dir",
                    "--line-number",
                    "--recursive",
                    "--count",
                    "--ignore-case",
                    "--files-with-matches",
                    "--only-matching",
                    "--fixed-strings",
                    "--extended-regexp",
                    "--max-count",
                    "--invert-match",
                    "--word-regexp",
                    "--context",
                ],
            ),
        ),
        "rg" => (
            PatternPaths,
            only(
                "ivnclwxoHhqaFPsSuABCmUNgtTejM",
                &[
                    "--color",
                    "--glob",
                    "--type",
                    "--type-not",
                    "--hidden",
                    "--no-ignore",
                    "--files-with-matches",
                    "--count",
                    "--line-number",
                    "--no-heading",
                    "--ignore-case",
                    "--fixed-strings",
                    "--max-count",
                    "--max-depth",
                    "--sort",
                    "--stats",
                    "--json",
                    "--multiline",
                    "--context",
                    "--word-regexp",
                    "--only-matching",
                ],
            ),
        ),
        "find" => (
            Paths,
            only(
                "",
                &[
                    "-name",
                    "-iname",
                    "-path",
                    "-ipath",
                    "-regex",
                    "-iregex",
                    "-type",
                    "-maxdepth",
                    "-mindepth",
                    "-size",
                    "-mtime",
                    "-mmin",
                    "-newer",
                    "-not",
                    "-o",
                    "-a",
                    "-or",
                    "-and",
                    "-print",
                    "-print0",
                    "-prune",
                    "-empty",
                    "-perm",
                    "-user",
                    "-group",
                    "-ls",
                    "-xdev",
                    "-depth",
                    "-printf",
                    "-quit",
                    "-executable",
                    "-readable",
                    "-writable",
                ],
            ),
        ),
        _ => return None,
    })
}

fn by_table(name: &str, words: &[Word]) -> Option<Look> {
    let (operands, options) = row(name)?;
    let mut look = Look::default();
    let mut only_operands = false;
    let mut pattern_is_due = matches!(operands, Operands::PatternPaths);
    for word in words {
        let dashed = word.text.starts_with('-') && word.text.len() > 1 && !only_operands;
        match word.kind {
            WordKind::Unknown
                if matches!((&operands, &options), (Operands::Text, Options::Any)) =>
            {
                continue;
            }
            // In quotes after the options it is a pattern whatever it is; elsewhere it might be an option.
            WordKind::Unknown => return None,
            // A pattern may stand for a file whose name looks like an option.
            WordKind::Glob
                if !matches!(options, Options::Any)
                    && word.text.starts_with(['*', '?', '[', '{'])
                    && !pattern_is_due =>
            {
                return None;
            }
            _ => {}
        }
        if word.text == "--" && !only_operands {
            only_operands = true;
        } else if dashed {
            if !is_permitted(&options, word) {
                return None;
            }
            // The pattern is in the option: what follows are files.
            pattern_is_due &= !(matches!(name, "grep" | "egrep" | "fgrep" | "rg")
                && is_pattern_option(&word.text));
        } else if pattern_is_due {
            if name == "jq" && loads_modules(&word.text) {
                return None;
            }
            pattern_is_due = false;
        } else if !matches!(operands, Operands::Text) || shows_names(word) {
            look.paths.push(word.clone());
        }
    }
    look.searches = match name {
        "rg" => true,
        "grep" | "egrep" | "fgrep" => words.iter().any(|word| is_recursive(&word.text)),
        "diff" => words.iter().any(|word| is_recursive(&word.text)),
        _ => false,
    };
    // Words that only print may still be switches on their own.
    if matches!(name, "hostname" | "date")
        && words.iter().any(|word| !word.text.starts_with(['-', '+']))
    {
        return None;
    }
    // `strings @file` takes options from the file, `wc --files0-from` names.
    if (name == "strings" && words.iter().any(|word| word.text.starts_with('@')))
        || (name == "wc" && words.iter().any(|word| word.text.starts_with("--files0")))
    {
        return None;
    }
    if name == "uniq" && words.iter().filter(|word| !word.text.starts_with('-')).count() > 0 {
        return None; // the second file is written to
    }
    Some(look)
}

/// Whether the shell puts the names of files in for a word.
fn shows_names(word: &Word) -> bool {
    word.kind == WordKind::Glob && word.text.contains(['*', '?', '['])
}

/// Whether a program for `jq` reads files that are not among its arguments.
fn loads_modules(program: &str) -> bool {
    program.contains("import") || program.contains("include")
}

fn is_permitted(options: &Options, word: &Word) -> bool {
    let Options::Only { letters, words } = options else { return !word.text.contains('/') };
    if word.kind > WordKind::Tilde && !word.text.contains('=') {
        return false;
    }
    let text = word.text.as_str();
    let stem = text.split_once('=').map_or(text, |(stem, _)| stem);
    if words.contains(&stem) {
        return true;
    }
    let Some(cluster) = text.strip_prefix('-').filter(|rest| !rest.starts_with('-')) else {
        return false;
    };
    let bare = cluster.trim_end_matches(|c: char| c.is_ascii_digit() || ",.:;-| ".contains(c));
    bare.chars().all(|c| letters.contains(c)) && !letters.is_empty()
}

fn is_pattern_option(text: &str) -> bool {
    !text.starts_with("--") && text.contains('e')
}

fn is_recursive(text: &str) -> bool {
    text == "--recursive"
        || (text.starts_with('-') && !text.starts_with("--") && text.contains(['r', 'R']))
}

/// `cd` changes where later commands look; alone it does nothing.
fn cd(words: &[Word]) -> Option<Look> {
    match words {
        [folder]
            if folder.kind == WordKind::Literal
                && !folder.text.starts_with('-')
                && !folder.text.is_empty() =>
        {
            Some(Look { paths: vec![folder.clone()], searches: false })
        }
        _ => None,
    }
}

fn is_name_or_raw(word: &Word) -> bool {
    word.as_literal().is_some_and(|text| {
        text == "-r"
            || (!crate::table::is_risky(text)
                && text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
                && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'))
    })
}
