//! What is usually protected, hidden and needed on a machine of a developer.

use std::path::{Path, PathBuf};

use crate::boundary::{Kind, Protected};

/// The folder in a working directory in which this program itself writes, also while commands run.
const OWN: &str = ".claude";
/// Files and folders in a working directory that affect what runs later, outside the sandbox.
const FILES: [&str; 19] = [
    ".vscode",
    ".idea",
    ".husky",
    ".mcp.json",
    ".env",
    ".envrc",
    ".gitmodules",
    ".gitconfig",
    ".ripgreprc",
    ".npmrc",
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".profile",
    ".zshrc",
    ".zprofile",
    ".zshenv",
    ".zlogin",
    ".claude.json",
];
/// Parts of a repository that make git start programs, or look for such parts elsewhere.
const OF_GIT: [(&str, Kind); 4] = [
    (".git/hooks", Kind::Folder),
    (".git/config", Kind::File),
    (".git/config.worktree", Kind::EMPTY),
    // Git refuses to work if it is empty. With this text it means the same as without it.
    (".git/commondir", Kind::THIS_FOLDER),
];

/// Folders of programs in a home directory.
const PROGRAMS: [&str; 22] = [
    ".cargo/bin",
    ".cargo/registry",
    ".cargo/git",
    ".cargo/config.toml",
    ".cargo/env",
    ".rustup",
    ".nvm",
    ".volta",
    ".asdf",
    ".pyenv",
    ".rbenv",
    ".sdkman",
    ".deno/bin",
    ".bun/bin",
    ".local/bin",
    ".local/lib",
    ".local/share/mise",
    ".local/share/uv",
    "go/pkg",
    "go/bin",
    ".gitconfig",
    ".config/git",
];

/// Files and folders in a home directory that hold secrets.
const SECRETS: [&str; 35] = [
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".docker",
    ".config/gcloud",
    ".config/gh",
    ".config/hub",
    ".config/op",
    ".config/git/credentials",
    ".config/pip",
    ".config/google-chrome",
    ".config/chromium",
    ".mozilla",
    ".netrc",
    ".npmrc",
    ".yarnrc.yml",
    ".pypirc",
    ".pip",
    ".git-credentials",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".gem/credentials",
    ".terraform.d",
    ".vault-token",
    ".password-store",
    ".local/share/keyrings",
    ".claude/.credentials.json",
    ".claude/mcp-oauth",
    ".claude.json",
    ".bash_history",
    ".zsh_history",
    ".python_history",
    ".psql_history",
];

/// The paths in a working directory that must not change.
pub fn protected(root: &Path) -> Vec<Protected> {
    let own = (OWN, Kind::Folder);
    // Also for folders: an empty one takes longer to make and to remove.
    let files = FILES.map(|name| (name, Kind::File));
    let is_link_file = std::fs::symlink_metadata(root.join(".git")).is_ok_and(|git| git.is_file());
    // The file in a worktree names the repository; another name would be another repository.
    let of_git = if is_link_file { vec![(".git", Kind::File)] } else { OF_GIT.to_vec() };
    let all = [own].into_iter().chain(files).chain(of_git);
    all.map(|(name, kind)| Protected { path: root.join(name), kind }).collect()
}

/// Whether one of the paths that [`protected`] lists, or one that keeps its place, has this name.
#[cfg(target_os = "linux")]
pub(crate) fn is_name(name: &std::ffi::OsStr) -> bool {
    let of_git = OF_GIT.iter().flat_map(|(path, _)| path.split('/'));
    [OWN].into_iter().chain(FILES).chain(of_git).any(|known| name == known)
}

/// The folders of programs in a home directory, which can be read.
pub fn programs(home: &Path) -> Vec<PathBuf> {
    PROGRAMS.map(|name| home.join(name)).into()
}

/// The secrets in a home directory.
pub fn secrets(home: &Path) -> Vec<PathBuf> {
    SECRETS.map(|name| home.join(name)).into()
}

/// The home directories of a machine.
pub fn homes() -> Vec<PathBuf> {
    ["/home", "/root", "/Users"]
        .map(PathBuf::from)
        .into_iter()
        .filter(|path| path.is_dir())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worktree_protects_the_file_that_names_its_repository() {
        let folder = tempfile::tempdir().unwrap();
        let paths = || protected(folder.path()).into_iter().map(|it| it.path).collect::<Vec<_>>();
        assert!(paths().contains(&folder.path().join(".git/hooks")));
        std::fs::write(folder.path().join(".git"), "gitdir: /elsewhere").unwrap();
        assert!(paths().contains(&folder.path().join(".git")));
        assert!(!paths().contains(&folder.path().join(".git/hooks")));
    }
}
