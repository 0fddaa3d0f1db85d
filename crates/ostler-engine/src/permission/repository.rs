//! `git` runs programs that the settings of a repository name, even when it only looks. In `.git` those settings are
//! protected. A folder that is a repository by itself (a bare one) keeps them as plain files that anybody may write,
//! so nothing of `git` is harmless there.

use std::path::Path;

use ostler_shell::{Judged, Part, Redirect};

/// Why a `git` command that only looks may run somebody's program all the same.
pub(crate) fn danger(folders: &[&Path]) -> Option<String> {
    let folder = folders.iter().find(|folder| is_bare(folder))?.display();
    Some(format!("{folder} is a bare repository, whose settings can run programs"))
}

/// Why a command that also changes files may do so.
pub(crate) fn could_be_made(judged: &Judged) -> Option<String> {
    makes_one(judged).then(|| {
        "the same command changes files: it could make a repository whose settings run programs"
            .to_owned()
    })
}

/// Whether `git` takes the folder, or one above it, for a repository that is not in `.git`. It looks there first.
fn is_bare(folder: &Path) -> bool {
    let nearest = folder.ancestors().find_map(|folder| {
        let looks_bare = || {
            folder.join("HEAD").symlink_metadata().is_ok()
                && folder.join("objects").is_dir()
                && folder.join("refs").is_dir()
        };
        if folder.join(".git").exists() { Some(false) } else { looks_bare().then_some(true) }
    });
    nearest == Some(true)
}

/// Whether a command could put a repository there before `git` looks for one.
fn makes_one(judged: &Judged) -> bool {
    let is_head = |Redirect { writes, target }: &Redirect| {
        let name = target.text.rsplit('/').next().unwrap_or_default();
        *writes && (target.as_literal().is_none() || name.eq_ignore_ascii_case("head"))
    };
    let changes = |part: &Part| ostler_shell::change(part).is_some();
    judged.redirects.iter().any(is_head) || judged.parts.iter().any(changes)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn git_is_harmless_only_where_its_settings_are_protected() {
        let folder = tempfile::tempdir().unwrap();
        let bare = folder.path().join("bare");
        let ordinary = folder.path().join("ordinary");
        for name in [
            "bare/objects",
            "bare/refs",
            "bare/sub",
            "ordinary/.git",
            "ordinary/objects",
            "ordinary/refs",
        ] {
            fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        fs::write(bare.join("HEAD"), "ref: refs/heads/main\n").unwrap();
        fs::write(ordinary.join("HEAD"), "").unwrap();
        let sub = bare.join("sub");
        assert!(danger(&[&bare]).is_some() && danger(&[&ordinary, &sub]).is_some());
        assert!(danger(&[&ordinary]).is_none());
        let makes = |command: &str| could_be_made(&ostler_shell::parts(command).unwrap()).is_some();
        assert!(!makes("git status") && !makes("git diff > x.patch"));
        for command in [
            "mkdir refs && git log",
            "git log; mv a HEAD",
            "echo x > HEAD; git log",
            "echo > $X; git log",
        ] {
            assert!(makes(command), "{command}");
        }
    }
}
