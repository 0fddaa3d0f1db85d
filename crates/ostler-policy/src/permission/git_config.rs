//! Reads the configuration of a repository and finds keys that may name a program.

/// Keys that start no program and read no file, as `section.key`; for sections with a name in quotes `section.*.key`.
const HARMLESS: &[&str] = &[
    "branch.*.description",
    "branch.*.merge",
    "branch.*.pushremote",
    "branch.*.rebase",
    "branch.*.remote",
    "branch.*.vscode-merge-base",
    "color.ui",
    "core.abbrev",
    "core.autocrlf",
    "core.bare",
    "core.eol",
    "core.filemode",
    "core.ignorecase",
    "core.logallrefupdates",
    "core.precomposeunicode",
    "core.quotepath",
    "core.repositoryformatversion",
    "core.safecrlf",
    "core.symlinks",
    "fetch.prune",
    "gc.auto",
    "init.defaultbranch",
    "lfs.*.access",
    "lfs.repositoryformatversion",
    "merge.conflictstyle",
    "merge.ff",
    "pull.ff",
    "pull.rebase",
    "push.autosetupremote",
    "push.default",
    "rebase.autostash",
    "remote.*.fetch",
    "remote.*.gh-resolved",
    "remote.*.prune",
    "remote.*.pushurl",
    "remote.*.tagopt",
    "remote.*.url",
    "submodule.*.active",
    "submodule.*.url",
    "submodule.active",
    "user.email",
    "user.name",
    "user.signingkey",
];

/// The first key that is not known to be harmless; a line that cannot be parsed counts as one.
pub(crate) fn forbidden_key(text: &str) -> Option<String> {
    let mut section = String::new();
    for line in text.lines() {
        let line = line.trim();
        if line.is_empty() || line.starts_with(['#', ';']) {
            continue;
        }
        // A value that ends with a backslash continues in the next line; quotes may hide such an end.
        if line.contains('\\') {
            return Some(format!("the line {line}"));
        }
        if line.starts_with('[') {
            match header(line) {
                Some(name) => section = name,
                None => return Some(format!("the line {line}")),
            }
            continue;
        }
        let (key, value) = line.split_once('=').unwrap_or((line, "true"));
        let key = format!("{section}.{}", key.trim().to_ascii_lowercase());
        let is_bare = key == "core.bare" && value.trim() != "false";
        if !HARMLESS.contains(&key.as_str()) || is_bare {
            return Some(key);
        }
    }
    None
}

/// `[core]` and `[remote "origin"]`, with nothing after them.
fn header(line: &str) -> Option<String> {
    let inside = line.strip_prefix('[')?.strip_suffix(']')?;
    let is_name = |name: &str| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
    };
    if is_name(inside) {
        return Some(inside.to_ascii_lowercase());
    }
    let (name, quoted) = inside.split_once(" \"")?;
    let quoted = quoted.strip_suffix('"')?;
    let is_plain = is_name(name) && !quoted.contains(['"', ']', '[']);
    is_plain.then(|| format!("{}.*", name.to_ascii_lowercase()))
}

#[cfg(test)]
mod tests {
    use super::*;

    // Mutant: `forbidden_key` returns `None`.
    #[test]
    fn only_keys_that_start_nothing_are_harmless() {
        let plain = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n# x\n\
            [remote \"origin\"]\n\turl = https://example.com/x.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n\
            [branch \"feature/x\"]\n\tremote = origin\n\tmerge = refs/heads/x\n[user]\n\tname = A \"B\" C\n";
        assert_eq!(forbidden_key(plain), None);
        for (text, key) in [
            ("[core]\nfsmonitor = x", "core.fsmonitor"),
            ("[CORE]\nFsMonitor=x", "core.fsmonitor"),
            ("[core]\nbare = true", "core.bare"),
            ("[core]\nbare", "core.bare"),
            ("[core]\nworktree = /", "core.worktree"),
            ("[core]\nhooksPath = x", "core.hookspath"),
            ("[core] fsmonitor = x", "the line [core] fsmonitor = x"),
            ("[core]\nfilemode = a \\\nfsmonitor = x", "the line filemode = a \\"),
            ("[include]\npath = x", "include.path"),
            ("[includeIf \"gitdir:/\"]\npath = x", "includeif.*.path"),
            ("[alias]\nst = !x", "alias.st"),
            ("[diff]\nexternal = x", "diff.external"),
            ("[diff \"x\"]\ntextconv = x", "diff.*.textconv"),
            ("[filter \"x\"]\nclean = x", "filter.*.clean"),
            ("[extensions]\nworktreeConfig = true", "extensions.worktreeconfig"),
            ("[remote \"o\"]\npromisor = true", "remote.*.promisor"),
            ("[remote \"o\"]\nuploadpack = x", "remote.*.uploadpack"),
            ("[core.x]\na = b", "the line [core.x]"),
            ("fsmonitor = x", ".fsmonitor"),
            ("[gpg]\nprogram = x", "gpg.program"),
        ] {
            assert_eq!(forbidden_key(text).as_deref(), Some(key), "{text}");
        }
    }
}
