//! `git` where it only looks at a repository.

use crate::look::Look;
use crate::word::{Word, WordKind};

/// What a `git` command looks at, if it does nothing else.
pub(crate) fn look(words: &[Word]) -> Option<Look> {
    let words = after_globals(words)?;
    let (command, rest) = words.split_first()?;
    let command = command.as_literal()?;
    // Quoted or not, an unknown word could be an option.
    if rest.iter().any(|word| word.kind == WordKind::Unknown) {
        return None;
    }
    let has = |wanted: &[&str]| rest.iter().any(|word| wanted.contains(&word.text.as_str()));
    let dashed =
        rest.iter().take_while(|word| word.text != "--").filter(|word| word.text.starts_with('-'));
    let all = |permitted: &[&str]| {
        dashed.clone().all(|word| {
            let stem = word.text.split_once('=').map_or(word.text.as_str(), |(stem, _)| stem);
            permitted.contains(&stem) || is_number(stem)
        })
    };
    let starts_with_pattern = rest
        .iter()
        .any(|word| word.kind == WordKind::Glob && word.text.starts_with(['*', '?', '[', '{']));
    let n_plain = rest.iter().filter(|word| !word.text.starts_with('-')).count();
    let harmless = match command {
        "status" => all(STATUS),
        "log" | "diff" | "show" | "shortlog" => all(HISTORY),
        "blame" => all(&["-L", "-w", "-e", "-l", "-s"]),
        "ls-files" | "ls-tree" | "describe" | "rev-parse" | "rev-list" | "merge-base"
        | "cat-file" | "name-rev" => all(PLUMBING),
        "branch" => all(BRANCH) && (n_plain == 0 || has(&["--list", "--contains"])),
        "tag" => {
            (rest.is_empty() || has(&["-l", "--list"])) && all(&["-l", "--list", "-n", "--sort"])
        }
        "remote" => rest.is_empty() || (n_plain == 0 && all(&["-v", "--verbose"])),
        "stash" => rest.first().is_some_and(|word| word.text == "list") && rest.len() == 1,
        "worktree" => rest.first().is_some_and(|word| word.text == "list") && rest.len() == 1,
        "config" => {
            has(&["--get", "--list", "-l"])
                && all(&["--get", "--list", "-l", "--global", "--local"])
        }
        "reflog" => rest.is_empty(),
        "version" | "--version" => rest.is_empty(),
        _ => false,
    };
    if !harmless || starts_with_pattern || has(&["--no-index"]) {
        return None;
    }
    // Names of branches among them do no harm: they are judged as files that are not there.
    let operands = rest.iter().filter(|word| !word.text.starts_with('-'));
    let paths = operands.map(|word| match word.text.rsplit_once(':') {
        Some((_, path)) => Word { text: path.to_owned(), kind: word.kind },
        None => word.clone(),
    });
    Some(Look { paths: paths.collect(), searches: false })
}

/// The words after options that come before the subcommand. `-c` can name a program to run, `-C` leads elsewhere.
pub(crate) fn after_globals(words: &[Word]) -> Option<&[Word]> {
    let n_globals = words
        .iter()
        .take_while(|word| matches!(word.as_literal(), Some("--no-pager" | "-P")))
        .count();
    words.get(n_globals..)
}

fn is_number(text: &str) -> bool {
    text.strip_prefix('-')
        .is_some_and(|rest| !rest.is_empty() && rest.chars().all(|c| c.is_ascii_digit()))
}

const STATUS: &[&str] = &[
    "-s",
    "--short",
    "-b",
    "--branch",
    "-sb",
    "--porcelain",
    "--long",
    "-u",
    "-uno",
    "-uall",
    "--untracked-files",
    "--ignored",
    "-v",
];

const HISTORY: &[&str] = &[
    "--oneline",
    "--stat",
    "--shortstat",
    "--numstat",
    "--name-only",
    "--name-status",
    "--graph",
    "--all",
    "--decorate",
    "-n",
    "-p",
    "--patch",
    "-u",
    "--no-patch",
    "-s",
    "--cached",
    "--staged",
    "--pretty",
    "--format",
    "--author",
    "--since",
    "--until",
    "--after",
    "--before",
    "--grep",
    "-i",
    "--follow",
    "--reverse",
    "--merges",
    "--no-merges",
    "--first-parent",
    "--abbrev-commit",
    "--date",
    "--color",
    "--no-color",
    "-w",
    "-b",
    "-M",
    "-C",
    "--word-diff",
    "--unified",
    "-U",
    "--summary",
    "--check",
    "--exit-code",
    "--quiet",
    "-q",
    "--max-count",
    "--topo-order",
    "--date-order",
    "--left-right",
    "--minimal",
    "--diff-filter",
    "-S",
    "-G",
    "--no-ext-diff",
    "--no-textconv",
    "--relative",
    "-z",
    "--raw",
    "-L",
    "--tags",
    "--branches",
    "-1",
    "--skip",
    "-sn",
    "-sne",
];

const PLUMBING: &[&str] = &[
    "-r",
    "-t",
    "-p",
    "-e",
    "-s",
    "-l",
    "-z",
    "-o",
    "-m",
    "-d",
    "-c",
    "--cached",
    "--others",
    "--modified",
    "--deleted",
    "--exclude-standard",
    "--name-only",
    "--long",
    "--abbrev",
    "--always",
    "--dirty",
    "--tags",
    "--short",
    "--abbrev-ref",
    "--symbolic-full-name",
    "--show-toplevel",
    "--show-prefix",
    "--git-dir",
    "--is-inside-work-tree",
    "--verify",
    "--quiet",
    "-q",
    "--count",
    "--all",
    "--max-count",
    "--error-unmatch",
    "--match",
    "--is-ancestor",
    "--full-name",
];

const BRANCH: &[&str] = &[
    "--list",
    "-l",
    "-a",
    "--all",
    "-r",
    "--remotes",
    "-v",
    "-vv",
    "--verbose",
    "--show-current",
    "--contains",
    "--merged",
    "--no-merged",
    "--sort",
    "--format",
    "--color",
    "--no-color",
];
