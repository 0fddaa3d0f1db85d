//! `git` commands that only read a repository: an allow-list of options per subcommand.
//!
//! Never listed: `--output`, `--ext-diff`, `--textconv`, `--no-index`, `-O`, `--contents`, `--exclude-from`, formats
//! with `%G` (they start gpg). Whether the repository's own configuration starts programs is checked elsewhere.

use crate::options::Value::{self, Number, Pattern};
use crate::options::{Operands, Program, Sorted};
use crate::reading::Look;
use crate::word::{Word, WordKind};

type Long = &'static [(&'static str, Option<Value>)];

const TEXT: Option<Value> = Some(Value::Text);
const NUMBER: Option<Value> = Some(Number);

const fn row(
    name: &'static str,
    flags: &'static str,
    values: &'static [(char, Value)],
    long: Long,
) -> Program {
    Program { name, flags, values, long, operands: Operands::Paths, most_operands: usize::MAX }
}

/// What a `git` command reads, if it only reads.
pub(crate) fn look(words: &[Word]) -> Result<Look, String> {
    let words = after_globals(words);
    let Some((command, rest)) = words.split_first() else {
        return Err("git has no subcommand".to_owned());
    };
    let command = command.text.as_str();
    match command {
        "version" | "--version" if rest.is_empty() => return Ok(Look::default()),
        "config" => return config(rest),
        "stash" | "worktree" => return list(command, rest),
        _ => {}
    }
    let Some(program) = PROGRAMS.iter().find(|program| program.name == command) else {
        return Err(format!("git {command} is not known to only read"));
    };
    // After `--`, an option of one version is an operand for another.
    if matches!(command, "branch" | "tag" | "remote") && rest.iter().any(|word| word.text == "--") {
        return Err(format!("git {command} is not known to only read with --"));
    }
    let sorted = program.sort(rest)?;
    if rest.iter().any(|word| word.text.contains("%G")) {
        return Err("a format with %G starts gpg".to_owned());
    }
    let changes = match command {
        "branch" => {
            let lists = ["--list", "-l", "--merged", "--no-merged"];
            !sorted.operands.is_empty() && !is_first(rest, &lists)
        }
        "tag" => !sorted.operands.is_empty() && !is_first(rest, &["--list", "-l", "-n"]),
        "reflog" => !sorted.operands.is_empty(),
        _ => false,
    };
    if changes {
        return Err(format!("git {command} with these arguments can change the repository"));
    }
    read(command, sorted)
}

fn is_first(words: &[Word], options: &[&str]) -> bool {
    let first = words.first().map(|word| word.text.split('=').next().unwrap_or_default());
    first.is_some_and(|first| options.contains(&first))
}

/// The files among the operands. Names of commits are treated as files too, which is harmless: such files do not exist.
fn read(command: &str, sorted: Sorted) -> Result<Look, String> {
    const PATCH: &[&str] =
        &["-p", "-u", "-U", "--patch", "-S", "-G", "--unified", "--word-diff", "--check"];
    let searches = match command {
        "diff" | "show" | "blame" | "cat-file" | "grep" => true,
        "log" => sorted.has(PATCH),
        "status" => sorted.has(&["-v"]),
        _ => false,
    };
    let skips_pattern = command == "grep" && !sorted.has_pattern;
    let mut operands = sorted.operands;
    if skips_pattern && !operands.is_empty() {
        operands.remove(0);
    }
    let mut paths = Vec::new();
    for word in operands.into_iter().chain(sorted.late).filter(|word| word.text != "--") {
        if word.text.starts_with(':') {
            return Err(format!("{} can stand for any file of the repository", word.text));
        }
        if let Some((_, path)) = word.text.split_once(':') {
            paths.push(Word { text: path.to_owned(), kind: word.kind });
        }
        paths.push(word);
    }
    // `HEAD:` is the whole tree.
    paths.retain(|path| !path.text.is_empty());
    Ok(Look { paths, files_only: false, searches })
}

/// Accepts only the listed forms of `git config`: a word after a name is a value to write.
fn config(words: &[Word]) -> Result<Look, String> {
    let texts: Vec<_> = words.iter().filter_map(Word::as_literal).collect();
    let is_open = |name: &str| {
        let section = name.split('.').next().unwrap_or_default();
        matches!(section, "branch" | "core" | "init" | "pull" | "push" | "remote" | "user")
    };
    let only_reads = match texts.as_slice() {
        ["--get" | "get", name] => is_open(name),
        ["--local", "--list" | "-l"] | ["list", "--local"] => true,
        _ => false,
    };
    if only_reads && texts.len() == words.len() {
        return Ok(Look::default());
    }
    Err("git config with these arguments is not known to only read the repository".to_owned())
}

fn list(command: &str, words: &[Word]) -> Result<Look, String> {
    match words {
        [word] if word.as_literal() == Some("list") => Ok(Look::default()),
        _ => Err(format!("git {command} with these arguments is not known to only read")),
    }
}

/// The words after harmless global options. `-c` can name a program, `-C` changes the directory.
pub(crate) fn after_globals(words: &[Word]) -> &[Word] {
    let is_harmless = |word: &&Word| {
        word.kind == WordKind::Literal && matches!(word.text.as_str(), "--no-pager" | "-P")
    };
    words.get(words.iter().take_while(is_harmless).count()..).unwrap_or_default()
}

/// Options of `log`, `diff` and `show`. A name that ends in `=` takes a joined value only, because git does not take
/// the next word as its value.
const HISTORY: Long = &[
    ("--abbrev-commit", None),
    ("--abbrev=", NUMBER),
    ("--after", TEXT),
    ("--all", None),
    ("--author", TEXT),
    ("--before", TEXT),
    ("--branches", None),
    ("--cached", None),
    ("--check", None),
    ("--color", None),
    ("--color=", TEXT),
    ("--committer", TEXT),
    ("--date-order", None),
    ("--date=", TEXT),
    ("--decorate", None),
    ("--decorate=", TEXT),
    ("--diff-filter=", TEXT),
    ("--exit-code", None),
    ("--first-parent", None),
    ("--follow", None),
    ("--format=", TEXT),
    ("--full-index", None),
    ("--graph", None),
    ("--grep", TEXT),
    ("--histogram", None),
    ("--ignore-all-space", None),
    ("--ignore-space-change", None),
    ("--left-right", None),
    ("--max-count=", NUMBER),
    ("--merges", None),
    ("--minimal", None),
    ("--name-only", None),
    ("--name-status", None),
    ("--no-color", None),
    ("--no-decorate", None),
    ("--no-ext-diff", None),
    ("--no-merges", None),
    ("--no-patch", None),
    ("--no-prefix", None),
    ("--no-renames", None),
    ("--no-textconv", None),
    ("--numstat", None),
    ("--oneline", None),
    ("--patch", None),
    ("--patience", None),
    ("--pretty", None),
    ("--pretty=", TEXT),
    ("--quiet", None),
    ("--raw", None),
    ("--reverse", None),
    ("--shortstat", None),
    ("--since", TEXT),
    ("--skip=", NUMBER),
    ("--staged", None),
    ("--stat", None),
    ("--stat=", TEXT),
    ("--summary", None),
    ("--tags", None),
    ("--topo-order", None),
    ("--unified=", NUMBER),
    ("--until", TEXT),
    ("--word-diff", None),
    ("--word-diff=", TEXT),
];

const HISTORY_VALUES: &[(char, Value)] =
    &[('n', Number), ('U', Number), ('S', Value::Text), ('G', Value::Text)];

static PROGRAMS: &[Program] = &[
    row("log", "pusiwbqzMC#", HISTORY_VALUES, HISTORY),
    row("diff", "puswbqzMCR", &[('U', Number), ('S', Value::Text), ('G', Value::Text)], HISTORY),
    row("show", "puswbqzMC#", HISTORY_VALUES, HISTORY),
    row(
        "status",
        "sbvz",
        &[],
        &[
            ("--short", None),
            ("--branch", None),
            ("--porcelain", None),
            ("--porcelain=", TEXT),
            ("--long", None),
            ("-uno", None),
            ("-uall", None),
            ("-unormal", None),
            ("--untracked-files", None),
            ("--untracked-files=", TEXT),
            ("--ignored", None),
            ("--show-stash", None),
        ],
    ),
    row("shortlog", "sne#", &[], &[("--all", None), ("--no-merges", None), ("--since=", TEXT)]),
    row("blame", "wels", &[('L', Value::Lines)], &[("--porcelain", None), ("--date=", TEXT)]),
    Program { most_operands: 2, ..row("cat-file", "ptse", &[], &[]) },
    row(
        "grep",
        "niIlLcwvhHEFPoqpW#",
        &[('A', Number), ('B', Number), ('C', Number), ('e', Pattern)],
        &[
            ("--count", None),
            ("--files-with-matches", None),
            ("--fixed-strings", None),
            ("--ignore-case", None),
            ("--line-number", None),
            ("--name-only", None),
            ("--word-regexp", None),
            ("--cached", None),
        ],
    ),
    row(
        "ls-files",
        "comdsztv",
        &[],
        &[
            ("--cached", None),
            ("--others", None),
            ("--modified", None),
            ("--deleted", None),
            ("--stage", None),
            ("--exclude-standard", None),
            ("--error-unmatch", None),
            ("--full-name", None),
        ],
    ),
    row(
        "ls-tree",
        "rtdlz",
        &[],
        &[("--name-only", None), ("--long", None), ("--full-name", None), ("--full-tree", None)],
    ),
    row(
        "rev-parse",
        "q",
        &[],
        &[
            ("--abbrev-ref", None),
            ("--short", None),
            ("--short=", NUMBER),
            ("--symbolic-full-name", None),
            ("--show-toplevel", None),
            ("--show-prefix", None),
            ("--show-cdup", None),
            ("--git-dir", None),
            ("--git-common-dir", None),
            ("--is-inside-work-tree", None),
            ("--is-bare-repository", None),
            ("--verify", None),
            ("--quiet", None),
        ],
    ),
    row(
        "rev-list",
        "#",
        &[('n', Number)],
        &[("--count", None), ("--all", None), ("--oneline", None), ("--max-count=", NUMBER)],
    ),
    row(
        "merge-base",
        "a",
        &[],
        &[("--all", None), ("--is-ancestor", None), ("--fork-point", None)],
    ),
    row(
        "describe",
        "",
        &[],
        &[
            ("--tags", None),
            ("--always", None),
            ("--all", None),
            ("--long", None),
            ("--abbrev=", NUMBER),
        ],
    ),
    row(
        "branch",
        "larvi",
        &[],
        &[
            ("--list", None),
            ("--all", None),
            ("--remotes", None),
            ("--verbose", None),
            ("--show-current", None),
            ("--contains=", TEXT),
            ("--merged", None),
            ("--merged=", TEXT),
            ("--no-merged", None),
            ("--no-merged=", TEXT),
            ("--sort=", TEXT),
            ("--format=", TEXT),
            ("--color=", TEXT),
            ("--no-color", None),
        ],
    ),
    row("tag", "ln", &[], &[("--list", None), ("--sort=", TEXT)]),
    Program { most_operands: 0, ..row("remote", "v", &[], &[("--verbose", None)]) },
    row("reflog", "#", &[], &[]),
];
