//! Whether a deny or ask rule matches a part of a command, on every reading of that part.

use ostler_shell::{Part, WordKind};

use super::covers::{prefix_of, split};
use super::matching::Match;

/// Whether a deny or ask rule matches a part: also with another path of the program, after options of `git`, and after
/// a program that may start others.
pub(crate) fn narrows_part(content: &str, part: &Part) -> Match {
    if part.source.trim() == content.trim() {
        return Match::Yes;
    }
    let prefix = prefix_of(content);
    let pattern = split(prefix.unwrap_or(content)).join(" ");
    let n_words = pattern.split(' ').count();
    let unknown = part.argv.iter().position(|word| word.kind == WordKind::Unknown);
    for argv in spellings(part) {
        let text = argv.join(" ");
        let hit = match prefix {
            // `rm -r:*` means `rm -rf` too, but `rm:*` does not mean `rmdir`.
            Some(_) if n_words > 1 => wild(&format!("{pattern}*"), &text),
            Some(_) => argv.first().is_some_and(|name| wild(&pattern, name)),
            None => wild(&pattern, &text),
        };
        if hit {
            return Match::Yes;
        }
        // The words before the first unknown one match: the rest may match too.
        if let Some(at) = unknown.filter(|at| *at < n_words || prefix.is_none()) {
            let known = argv.get(..at.min(argv.len())).unwrap_or_default();
            let beginning = pattern.split(' ').take(known.len()).collect::<Vec<_>>().join(" ");
            if !known.is_empty() && wild(&beginning, &known.join(" ")) && n_words > known.len() {
                return Match::Maybe(format!("a word of {} is not known beforehand", part.source));
            }
        }
    }
    let may = |reason: &str| Match::Maybe(format!("{} {reason}", part.source));
    if base(part.name()) == "git" && pattern.split(' ').next().is_some_and(|word| wild(word, "git"))
    {
        match Git::of(part) {
            Git { has_doubt: true, .. } => return may("may be another command of git"),
            Git { subcommand: Some(name), .. } if !SUBCOMMANDS.contains(&name) => {
                return may("may be an alias of git");
            }
            Git { .. } => {}
        }
    }
    if base(part.name()) == "find"
        && wild(pattern.split(' ').next().unwrap_or_default(), "rm")
        && part.argv.iter().any(|word| word.text == "-delete")
    {
        return may("removes files, as rm does");
    }
    if hides(&pattern, part) { may("may start it") } else { Match::No }
}

/// Whether the words of a rule are among the arguments of a program that may start them: `strace rm x`,
/// `ssh host 'rm x'`.
fn hides(pattern: &str, part: &Part) -> bool {
    let wanted: Vec<_> = pattern.split(' ').collect();
    if wanted.first().is_none_or(|word| word.is_empty() || word.contains('*'))
        || starts_nothing(part)
    {
        return false;
    }
    let is_between = |c: char| c.is_whitespace() || ";&|()'\"`$!=,{}<>".contains(c);
    let words: Vec<_> = part
        .argv
        .iter()
        .skip(1)
        .flat_map(|word| word.text.split(is_between))
        .filter(|word| !word.is_empty())
        .collect();
    words.windows(wanted.len()).any(|words| {
        let mut pairs = wanted.iter().zip(words);
        pairs.next().is_some_and(|(wanted, word)| *wanted == base(word))
            && pairs.all(|(wanted, word)| wild(wanted, word))
    })
}

/// Whether a part certainly starts no program that its arguments name.
fn starts_nothing(part: &Part) -> bool {
    // Subcommands without an option that names a program.
    const PLAIN: &[&str] = &[
        "add",
        "branch",
        "checkout",
        "cherry-pick",
        "commit",
        "diff",
        "init",
        "log",
        "merge",
        "mv",
        "remote",
        "reset",
        "restore",
        "revert",
        "rm",
        "show",
        "stash",
        "status",
        "switch",
        "tag",
    ];
    if matches!(part.name(), "echo" | "printf" | "cd" | "export" | "read" | "set") {
        return true;
    }
    if base(part.name()) == "git" {
        let git = Git::of(part);
        return !git.has_doubt && git.subcommand.is_some_and(|name| PLAIN.contains(&name));
    }
    ostler_shell::is_harmless(part) || ostler_shell::change(part).is_some()
}

fn base(name: &str) -> &str {
    name.rsplit('/').next().unwrap_or(name)
}

/// The options of `git` before its subcommand.
struct Git<'p> {
    subcommand: Option<&'p str>,
    /// The index of the subcommand.
    at: usize,
    /// Whether an option may change the subcommand.
    has_doubt: bool,
}

impl<'p> Git<'p> {
    fn of(part: &'p Part) -> Self {
        const FLAGS: &[&str] = &[
            "-P",
            "--no-pager",
            "-p",
            "--paginate",
            "--bare",
            "--no-replace-objects",
            "--no-lazy-fetch",
            "--no-optional-locks",
            "--no-advice",
            "--literal-pathspecs",
            "--glob-pathspecs",
            "--noglob-pathspecs",
            "--icase-pathspecs",
            "--html-path",
            "--man-path",
            "--info-path",
            "--version",
            "-v",
            "--help",
            "-h",
            "--exec-path",
        ];
        const VALUED: &[&str] =
            &["-C", "--git-dir", "--work-tree", "--namespace", "--super-prefix", "--attr-source"];
        let mut has_doubt = false;
        let mut at = 1;
        while let Some(word) = part.argv.get(at) {
            let text = word.text.as_str();
            let name = text.split('=').next().unwrap_or(text);
            if !text.starts_with('-') {
                return Self { subcommand: Some(text), at, has_doubt };
            }
            if VALUED.contains(&text) {
                at += 1;
            } else if matches!(text, "-c" | "--config-env") {
                // Configuration can make any name a command.
                has_doubt |=
                    !is_plain_setting(part.argv.get(at + 1).map(|word| word.text.as_str()));
                at += 1;
            } else if !FLAGS.contains(&text) && !VALUED.contains(&name) || name == "--exec-path" {
                has_doubt = true;
            }
            at += 1;
        }
        Self { subcommand: None, at, has_doubt }
    }
}

/// `-c user.name=x` names no program.
fn is_plain_setting(setting: Option<&str>) -> bool {
    let name = setting.unwrap_or_default().split('=').next().unwrap_or_default().to_lowercase();
    ["user.", "color.", "advice.", "init."].iter().any(|beginning| name.starts_with(beginning))
}

fn spellings(part: &Part) -> Vec<Vec<String>> {
    let written: Vec<String> = part.argv.iter().map(|word| word.text.clone()).collect();
    let mut spellings = vec![written.clone()];
    let Some((name, rest)) = written.split_first() else { return spellings };
    if base(name) != name {
        spellings.push([&[base(name).to_owned()], rest].concat());
    }
    if base(name) == "git" {
        let rest = written.get(Git::of(part).at..).unwrap_or_default();
        spellings.push([&["git".to_owned()], rest].concat());
    }
    spellings
}

/// Whether text matches a pattern in which `*` matches anything.
fn wild(pattern: &str, text: &str) -> bool {
    let mut pieces = pattern.split('*');
    let first = pieces.next().unwrap_or_default();
    let Some(mut rest) = text.strip_prefix(first) else { return false };
    let mut last = None;
    for piece in pieces {
        if let Some(piece) = last.replace(piece) {
            match rest.find(piece) {
                Some(at) => rest = &rest[at + piece.len()..],
                None => return false,
            }
        }
    }
    last.map_or(rest.is_empty(), |last: &str| rest.ends_with(last))
}

/// The commands of git 2.47 that people use, and a few older ones. Any other name may be an alias.
const SUBCOMMANDS: &[&str] = &[
    "add",
    "am",
    "annotate",
    "apply",
    "archive",
    "bisect",
    "blame",
    "branch",
    "bundle",
    "cat-file",
    "check-attr",
    "check-ignore",
    "check-mailmap",
    "check-ref-format",
    "checkout",
    "checkout-index",
    "cherry",
    "cherry-pick",
    "clean",
    "clone",
    "column",
    "commit",
    "commit-graph",
    "commit-tree",
    "config",
    "count-objects",
    "credential",
    "daemon",
    "describe",
    "diff",
    "diff-files",
    "diff-index",
    "diff-tree",
    "difftool",
    "fast-export",
    "fast-import",
    "fetch",
    "fetch-pack",
    "filter-branch",
    "fmt-merge-msg",
    "for-each-ref",
    "for-each-repo",
    "format-patch",
    "fsck",
    "gc",
    "grep",
    "gui",
    "hash-object",
    "help",
    "hook",
    "init",
    "interpret-trailers",
    "log",
    "ls-files",
    "ls-remote",
    "ls-tree",
    "mailinfo",
    "maintenance",
    "merge",
    "merge-base",
    "merge-file",
    "merge-index",
    "merge-tree",
    "mergetool",
    "mktag",
    "mktree",
    "multi-pack-index",
    "mv",
    "name-rev",
    "notes",
    "pack-objects",
    "pack-refs",
    "patch-id",
    "prune",
    "pull",
    "push",
    "range-diff",
    "read-tree",
    "rebase",
    "reflog",
    "remote",
    "repack",
    "replace",
    "request-pull",
    "rerere",
    "reset",
    "restore",
    "rev-list",
    "rev-parse",
    "revert",
    "rm",
    "send-email",
    "shortlog",
    "show",
    "show-branch",
    "show-index",
    "show-ref",
    "sparse-checkout",
    "stash",
    "status",
    "stripspace",
    "submodule",
    "switch",
    "symbolic-ref",
    "tag",
    "unpack-file",
    "unpack-objects",
    "update-index",
    "update-ref",
    "var",
    "verify-commit",
    "verify-pack",
    "verify-tag",
    "version",
    "whatchanged",
    "worktree",
    "write-tree",
];
