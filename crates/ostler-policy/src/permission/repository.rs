//! `git` starts programs that the configuration of a repository names, even when it only reads. This module finds the
//! repository as git does, and checks it for everything that could start a program.

use std::path::{Path, PathBuf};

use ostler_shell::{Judged, Part, Redirect};

use super::disk::{self, OnDisk as _};
use super::git_config::forbidden_key;
use super::git_includes::included;
use super::git_index::{Gitlinks, gitlinks};
use super::path_forms::PathForms;
use super::policy::Policy;

/// The largest file of git that is read, in bytes. A command in a repository with a larger one requires approval.
const LONGEST_FILE: u64 = 1024 * 1024;

/// The largest index that is read, in bytes; it has about a hundred bytes for each file of the repository.
const LONGEST_INDEX: u64 = 256 * 1024 * 1024;

/// How many files may include each other in a row, as git allows.
const DEEPEST_INCLUDE: usize = 10;

/// Hooks that read-only commands do not run. `post-index-change` is not one of them: `git status` runs it.
const QUIET_HOOKS: &[&str] = &[
    "applypatch-msg",
    "commit-msg",
    "post-applypatch",
    "post-checkout",
    "post-commit",
    "post-merge",
    "post-receive",
    "post-rewrite",
    "post-update",
    "pre-applypatch",
    "pre-auto-gc",
    "pre-commit",
    "pre-merge-commit",
    "pre-push",
    "pre-rebase",
    "pre-receive",
    "prepare-commit-msg",
    "push-to-checkout",
    "update",
];

/// Why a read-only `git` command may start a program in this folder; `None` if it cannot.
pub(crate) fn danger(policy: &Policy, folder: &Path) -> Option<String> {
    if let Some(name) = &policy.environment.leads_git {
        return Some(format!("the variable {name} points git elsewhere"));
    }
    if let Some(reason) = users_configuration(policy) {
        return Some(reason);
    }
    match found(policy, folder) {
        Ok(repository) => repository.danger(),
        Err(reason) => Some(reason),
    }
}

/// Whether a folder belongs to a repository that is trusted individually. A nested repository, or one with its files
/// elsewhere, is another repository.
pub(crate) fn is_trusted(policy: &Policy, folder: &Path) -> bool {
    !policy.trusted_repositories.is_empty()
        && found(policy, folder).is_ok_and(|repository| {
            let own = repository.tree.join(".git");
            policy.trusted_repositories.contains(&repository.tree)
                && repository.git == own
                && repository.common == own
        })
}

/// Checks the user's configuration, which is trusted unless the agent and the project can write it.
fn users_configuration(policy: &Policy) -> Option<String> {
    policy.environment.git_files().find_map(|file| users_file(policy, file, 0))
}

fn users_file(policy: &Policy, file: &Path, depth: usize) -> Option<String> {
    if file.look().is_err() {
        return None;
    }
    // It may be a link to a file that the agent can write, or include one.
    let place = PathForms::of(file);
    if policy.working_directories().any(|folder| place.may_be_inside(folder)) {
        return configuration(file);
    }
    if depth >= DEEPEST_INCLUDE {
        return Some(format!("{} is included by too many files in a row", file.display()));
    }
    // Whatever is in a file that cannot be read here, the agent has not written it.
    let bytes = disk::read_bytes(file, LONGEST_FILE).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    let included = included(&text, file, policy.environment.home());
    included.iter().find_map(|file| users_file(policy, file, depth + 1))
}

/// The setting of a configuration file that can start programs, if any.
fn configuration(file: &Path) -> Option<String> {
    let found = match read(file) {
        Ok(text) => forbidden_key(&text)?,
        Err(reason) => return Some(reason),
    };
    Some(format!("{} sets {found}, which can start programs", file.display()))
}

/// Why a command that also changes files may create such a repository.
pub(crate) fn could_be_made(list: &Judged) -> Option<String> {
    // File names that make a folder a repository.
    let is_named = |Redirect { writes, target }: &Redirect| {
        let name = target.text.rsplit('/').next().unwrap_or_default().to_lowercase();
        *writes && matches!(name.as_str(), "head" | "commondir" | "config" | ".git" | "gitdir")
    };
    let changes = |part: &Part| ostler_shell::change(part).is_some();
    let makes_one = list.redirects.iter().any(is_named) || list.parts.iter().any(changes);
    makes_one.then(|| {
        "the same command changes files: it could create a repository whose settings start programs"
            .to_owned()
    })
}

/// A repository as git sees it.
struct Repository {
    /// The folder with `HEAD`.
    git: PathBuf,
    /// The folder with `config` and `objects`: another one for a linked worktree.
    common: PathBuf,
    /// Its working tree.
    tree: PathBuf,
}

/// Walks up to the repository that git would use.
fn found(policy: &Policy, folder: &Path) -> Result<Repository, String> {
    let real = folder.with_links_followed();
    let real = real.map_err(|error| format!("{} cannot be read: {error}", folder.display()))?;
    for folder in real.ancestors() {
        // A folder can be a bare repository. Its settings are plain files that are not protected.
        let is_there = |name: &str| folder.join(name).look().is_ok();
        if is_there("HEAD") && ["objects", "refs", "commondir", "config"].into_iter().any(is_there)
        {
            let folder = folder.display();
            return Err(format!(
                "{folder} is a bare repository, whose settings can start programs"
            ));
        }
        if is_there(".git") {
            return open(policy, folder);
        }
    }
    Err(format!("there is no git repository at {}", folder.display()))
}

fn open(policy: &Policy, tree: &Path) -> Result<Repository, String> {
    let dot_git = tree.join(".git");
    let kind = dot_git.look().map_err(|error| error.to_string())?;
    let git = if kind.is_dir() {
        dot_git
    } else if kind.is_file() {
        let text = read(&dot_git)?;
        let target = text.strip_prefix("gitdir: ").map(|path| path.trim_end_matches(['\n', '\r']));
        tree.join(target.ok_or_else(|| format!("{} is malformed", dot_git.display()))?)
    } else {
        return Err(format!("{} is a link", dot_git.display()));
    };
    let commondir = git.join("commondir");
    let common = match commondir.look() {
        Ok(_) => git.join(read(&commondir)?.trim_end_matches(['\n', '\r'])),
        Err(_) => git.clone(),
    };
    for folder in [&git, &common] {
        let place = PathForms::of(folder);
        if !policy.working_directories().any(|working| place.is_inside(working)) {
            let folder = folder.display();
            return Err(format!("the repository {folder} is outside the working directories"));
        }
    }
    Ok(Repository { git, common, tree: tree.to_owned() })
}

fn read(path: &Path) -> Result<String, String> {
    disk::read_text(path, LONGEST_FILE)
        .map_err(|error| format!("{} cannot be read: {error}", path.display()))
}

impl Repository {
    fn danger(&self) -> Option<String> {
        self.incomplete()
            .or_else(|| self.configuration())
            .or_else(|| self.hooks())
            .or_else(|| self.submodules())
    }

    /// Checks that the repository is complete and without links: git walks further up if it is not complete, and
    /// follows links to any place.
    fn incomplete(&self) -> Option<String> {
        let parts = [
            (&self.git, "HEAD"),
            (&self.common, "objects"),
            (&self.common, "refs"),
            (&self.common, "config"),
        ];
        let is_plain = |(folder, name): &(&PathBuf, &str)| {
            let kind = folder.join(name).look();
            kind.is_ok_and(|kind| !kind.is_symlink())
        };
        if let Some((folder, name)) = parts.iter().find(|part| !is_plain(part)) {
            return Some(format!("{} is missing or a link", folder.join(name).display()));
        }
        let alternates = self.common.join("objects/info/alternates");
        let has_alternates = alternates.look().is_ok();
        has_alternates.then(|| format!("{} leads to other repositories", alternates.display()))
    }

    fn configuration(&self) -> Option<String> {
        let files = [
            self.common.join("config"),
            self.common.join("config.worktree"),
            self.git.join("config"),
            self.git.join("config.worktree"),
        ];
        let mut there = files.iter().filter(|file| file.look().is_ok());
        there.find_map(|file| configuration(file))
    }

    fn hooks(&self) -> Option<String> {
        let folders = [self.common.join("hooks"), self.git.join("hooks")];
        let entries = folders.iter().filter_map(|folder| folder.entries().ok()).flatten().flatten();
        let mut names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let runs =
            names.find(|name| !name.ends_with(".sample") && !QUIET_HOOKS.contains(&name.as_str()));
        runs.map(|name| format!("the repository has the hook {name}, which git may start"))
    }

    /// Checks for submodules: git starts itself in each of them, with the submodule's configuration.
    fn submodules(&self) -> Option<String> {
        let index = self.git.join("index");
        let links = match disk::read_bytes(&index, LONGEST_INDEX) {
            Ok(bytes) => gitlinks(&bytes),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
            Err(error) => return Some(format!("{} cannot be read: {error}", index.display())),
        };
        match links {
            Gitlinks::Unknown => Some(format!("{} has an unknown format", index.display())),
            Gitlinks::Paths(paths) => {
                let is_there = |path: &&PathBuf| self.tree.join(path).join(".git").look().is_ok();
                let path = paths.iter().find(is_there)?;
                Some(format!("git starts itself in the submodule {}", path.display()))
            }
        }
    }
}
