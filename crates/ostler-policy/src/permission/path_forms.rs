//! Paths: as written and with links followed, whether they are inside the working directories, and protected paths.

use std::path::{Component, Path, PathBuf};

use super::disk::OnDisk as _;

/// A path in both its forms. A decision holds only when it holds for both.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PathForms {
    /// As written, made absolute, with `..` removed by name.
    pub(crate) written: PathBuf,
    /// With links followed; `None` when that is unknown.
    pub(crate) resolved: Option<PathBuf>,
}

impl PathForms {
    /// Resolves a path. Accesses the disk only to follow links.
    pub(crate) fn of(path: &Path) -> Self {
        Self { written: folded(path), resolved: resolved(path) }
    }

    /// The known forms.
    pub(crate) fn forms(&self) -> impl Iterator<Item = &Path> {
        [Some(self.written.as_path()), self.resolved.as_deref()].into_iter().flatten()
    }

    /// Whether the path lies inside a folder, in both forms.
    pub(crate) fn is_inside(&self, folder: &Path) -> bool {
        let (Some(path), Some(real)) = (&self.resolved, resolved(folder)) else { return false };
        let by_name = self.written.starts_with(folder) || self.written.starts_with(&real);
        by_name && path.starts_with(real)
    }

    /// Whether the path may lie inside a folder: in one of its forms, or because it is unknown where it leads. For
    /// checks that must not miss a file of the folder.
    pub(crate) fn may_be_inside(&self, folder: &Path) -> bool {
        let (Some(_), Some(real)) = (&self.resolved, resolved(folder)) else { return true };
        self.forms().any(|path| path.starts_with(folder) || path.starts_with(&real))
    }

    /// The protected file or folder that the path leads to, if any.
    pub(crate) fn protected(&self, home: Option<&Path>) -> Option<&'static str> {
        self.forms().find_map(|path| protected(path, home))
    }
}

/// Folders whose contents affect what runs later.
const FOLDERS: &[&str] =
    &[".git", ".claude", ".ssh", ".vscode", ".idea", ".husky", ".gnupg", ".aws"];
/// Folders in `.claude` that are not protected.
const OPEN_FOLDERS: &[&str] = &["commands", "agents", "skills", "worktrees"];
/// Files that affect what runs later.
const FILES: &[&str] = &[
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".zshrc",
    ".zprofile",
    ".zshenv",
    ".zlogin",
    ".profile",
    ".gitconfig",
    ".gitmodules",
    ".ripgreprc",
    ".mcp.json",
    ".claude.json",
    ".envrc",
    ".npmrc",
    ".netrc",
];

fn protected(path: &Path, home: Option<&Path>) -> Option<&'static str> {
    let mut names = path.components().filter_map(|part| match part {
        Component::Normal(name) => name.to_str(),
        _ => None,
    });
    let mut found = None;
    while let Some(name) = names.next() {
        let same = |known: &&&str| known.eq_ignore_ascii_case(name);
        if let Some(folder) = FOLDERS.iter().find(same) {
            let next = names.clone().next();
            let is_open =
                *folder == ".claude" && next.is_some_and(|next| OPEN_FOLDERS.contains(&next));
            if !is_open {
                found = Some(*folder);
            }
        }
        if let Some(file) = FILES.iter().find(same) {
            found = Some(*file);
        }
    }
    // Programs are started from there.
    let config = home.map(|home| home.join(".config"));
    found.or_else(|| config.filter(|config| path.starts_with(config)).map(|_| ".config"))
}

/// Removes `.` and `..` from a path without access to the disk.
pub(crate) fn folded(path: &Path) -> PathBuf {
    let mut folded = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                folded.pop();
            }
            part => folded.push(part),
        }
    }
    folded
}

/// The path with links followed. Of a path that does not exist yet, the existing part is resolved.
fn resolved(path: &Path) -> Option<PathBuf> {
    let mut rest = Vec::new();
    let mut existing = path;
    loop {
        match existing.look() {
            // A dangling link exists, does not resolve, and could point anywhere.
            Ok(_) => break,
            Err(_) => {
                rest.push(existing.file_name()?);
                existing = existing.parent()?;
            }
        }
    }
    let mut path = existing.with_links_followed().ok()?;
    path.extend(rest.into_iter().rev());
    // `..` after a part that does not exist cannot be judged.
    path.components().all(|part| part != Component::ParentDir).then_some(path)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    // Seen to fail when only the name counts, and not the target of a link.
    #[test]
    fn a_path_is_decided_with_links_followed() {
        let cwd = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        fs::create_dir(cwd.path().join("sub")).unwrap();
        symlink(elsewhere.path(), cwd.path().join("out")).unwrap();
        symlink(cwd.path().join("sub"), cwd.path().join("in")).unwrap();
        symlink("/nowhere/at/all", cwd.path().join("dangling")).unwrap();
        for (path, inside) in [
            ("sub/new/file", true),
            ("in/file", true),
            ("sub/../file", true),
            ("out/file", false),
            ("out/../file", false),
            ("dangling", false),
            ("../file", false),
            ("sub/missing/../../../file", false),
        ] {
            assert_eq!(
                PathForms::of(&cwd.path().join(path)).is_inside(cwd.path()),
                inside,
                "{path}"
            );
        }
        let sibling = PathBuf::from(format!("{}-evil/x", cwd.path().display()));
        assert!(!PathForms::of(&sibling).is_inside(cwd.path()));
    }

    // Seen to fail when upper and lower case are compared as different.
    #[test]
    fn files_that_affect_later_runs_are_protected() {
        for (path, expected) in [
            ("/w/src/main.rs", None),
            ("/w/.git/hooks/pre-commit", Some(".git")),
            ("/w/.GIT/config", Some(".git")),
            ("/w/.gitignore", None),
            ("/w/.claude/settings.json", Some(".claude")),
            ("/w/.claude/settings.local.json", Some(".claude")),
            ("/w/.claude/skills/x/SKILL.md", None),
            ("/w/.claude", Some(".claude")),
            ("/h/u/.bashrc", Some(".bashrc")),
            ("/h/u/.ssh/config", Some(".ssh")),
            ("/h/u/.config/x", Some(".config")),
            ("/w/.mcp.json", Some(".mcp.json")),
        ] {
            assert_eq!(protected(Path::new(path), Some(Path::new("/h/u"))), expected, "{path}");
        }
    }
}
