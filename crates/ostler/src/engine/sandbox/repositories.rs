//! Repositories inside the working directories. Those that are there when the session first looks are protected like one at the
//! root of a working directory: git runs their hooks, and programs that their configuration names, outside the sandbox later.
//! Those that commands create stay writable, because git itself writes there; they are reported once.
//!
//! The search is bounded, and what it did not reach is stated in the attestation.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use ostler_sandbox::{Attestation, Kind, Protected, Sandbox};
use parking_lot::{Mutex, MutexGuard};

use super::git_paths;

/// How many folders are looked at, the upper ones first.
const MOST_FOLDERS: usize = 4_000;
/// How many repositories are protected, the upper ones first: each is some mounts for every command.
const MOST_PROTECTED: usize = 32;
/// How many new repositories a notice names.
const MOST_NAMED: usize = 5;

/// The repositories of a session.
#[derive(Debug, Default)]
pub(super) struct Repositories(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// What is known of each folder, so that only changed ones are read again.
    folders: HashMap<PathBuf, Folder>,
    /// The working directories that were searched.
    roots: Vec<PathBuf>,
    /// The repositories that were found there first, in the order of their depth.
    protected: Vec<(PathBuf, Layout)>,
    /// All that are known, also those that commands created.
    known: BTreeSet<PathBuf>,
    /// Those that commands created.
    created: BTreeSet<PathBuf>,
    /// Files from which git runs programs because the configuration of a repository names them.
    named: Vec<Protected>,
    /// What is not protected, as text.
    missing: Vec<String>,
}

/// How a repository is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layout {
    /// A folder with a folder `.git`.
    Usual,
    /// A folder with a file `.git`, which names the repository.
    Link,
    /// The repository itself: a bare one, or that of a submodule.
    Bare,
    /// What a repository stores about one of its worktrees.
    Worktree,
}

/// A folder as it was when it was read.
#[derive(Clone, Debug)]
struct Folder {
    /// When it last changed. Programs cannot set that time.
    changed: (i64, i64),
    /// The folders in it that may contain repositories, as relative paths.
    folders: Vec<OsString>,
    layout: Option<Layout>,
}

impl Repositories {
    /// The paths of repositories in these working directories that must not change.
    pub(super) fn protected(&self, roots: &[PathBuf]) -> Vec<Protected> {
        let mut state = self.state();
        state.search_new(roots);
        let is_meant = |path: &Path| roots.iter().any(|root| path.starts_with(root));
        let meant = state.protected.iter().filter(|(path, _)| is_meant(path));
        let named = state.named.iter().filter(|it| is_meant(&it.path)).cloned();
        meant.flat_map(|(path, layout)| parts(path, *layout)).chain(named).collect()
    }

    /// A text about repositories that commands have created since the last call, if there are any.
    pub(super) fn notice(&self, roots: &[PathBuf]) -> Option<String> {
        let mut state = self.state();
        state.search_new(roots);
        let (found, _) = state.search(roots);
        let new: Vec<PathBuf> = found
            .into_iter()
            .map(|(path, _)| path)
            .filter(|path| !state.known.contains(path))
            .collect();
        state.known.extend(new.iter().cloned());
        state.created.extend(new.iter().cloned());
        let first = new.iter().take(MOST_NAMED).map(|path| path.display().to_string());
        let first = first.collect::<Vec<_>>().join(", ");
        let more = new.len().saturating_sub(MOST_NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        (!new.is_empty()).then(|| {
            format!(
                "[A git repository was created inside the sandbox: {first}{more}. Commands can write its hooks and its \
                 configuration, and git outside the sandbox runs them: look at both before using git there.]"
            )
        })
    }

    /// Adds what is protected and what is not.
    pub(super) fn attest(&self, sandbox: &Sandbox, attestation: &mut Attestation) {
        let roots = &sandbox.boundary().writable;
        attestation.protected.extend(self.protected(roots).into_iter().map(|it| it.path));
        let state = self.state();
        attestation.missing.extend(state.missing.iter().cloned());
        let created = state.created.iter().map(|path| {
            format!("hooks and configuration of {}, which a command created", path.display())
        });
        attestation.missing.extend(created);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock()
    }
}

impl State {
    /// Searches working directories that were not searched before.
    fn search_new(&mut self, roots: &[PathBuf]) {
        let new: Vec<PathBuf> =
            roots.iter().filter(|root| !self.roots.contains(root)).cloned().collect();
        if new.is_empty() {
            return;
        }
        let (found, is_complete) = self.search(&new);
        let found: Vec<_> =
            found.into_iter().filter(|(path, _)| self.known.insert(path.clone())).collect();
        if !is_complete {
            let roots = new.iter().map(|root| root.display().to_string()).collect::<Vec<_>>();
            self.missing.push(format!(
                "repositories below the first {MOST_FOLDERS} folders of {}",
                roots.join(", ")
            ));
        }
        let room = MOST_PROTECTED.saturating_sub(self.protected.len());
        if found.len() > room {
            let left = found.len() - room;
            self.missing.push(format!("{left} repositories besides the first {MOST_PROTECTED}"));
        }
        let found: Vec<_> = found.into_iter().take(room).collect();
        self.roots.extend(new.iter().cloned());
        let of_roots = new.into_iter().map(|root| (root, Layout::Usual));
        for (path, layout) in of_roots.chain(found.iter().cloned()) {
            let config = match layout {
                Layout::Usual => path.join(".git/config"),
                Layout::Bare => path.join("config"),
                // They use the configuration of their repository.
                Layout::Link | Layout::Worktree => continue,
            };
            let (named, missing) = git_paths::of(&config, &path, &self.roots);
            self.named.extend(named);
            self.missing.extend(missing);
        }
        self.protected.extend(found);
    }

    /// The repositories in some folders, the upper ones first, and whether everything was looked at.
    fn search(&mut self, roots: &[PathBuf]) -> (Vec<(PathBuf, Layout)>, bool) {
        let mut before = std::mem::take(&mut self.folders);
        let mut found = BTreeMap::new();
        let mut order = Vec::new();
        let mut queue: VecDeque<PathBuf> = roots.iter().cloned().collect();
        let mut n_looked = 0;
        while let Some(path) = queue.pop_front() {
            if n_looked == MOST_FOLDERS {
                self.folders.extend(before);
                return (order, false);
            }
            n_looked += 1;
            let Some(folder) = read(&path, before.remove(&path)) else { continue };
            // The parts of a repository at the root of a working directory are protected by their usual names.
            let is_root = roots.contains(&path);
            if let Some(layout) = folder.layout.filter(|layout| !is_root || *layout == Layout::Bare)
                && found.insert(path.clone(), layout).is_none()
            {
                order.push((path.clone(), layout));
            }
            queue.extend(folder.folders.iter().map(|name| path.join(name)));
            self.folders.insert(path, folder);
        }
        // Those of other working directories stay known.
        before.retain(|path, _| !roots.iter().any(|root| path.starts_with(root)));
        self.folders.extend(before);
        (order, true)
    }
}

/// Reads a folder, unless it is as it was before. Links are not followed.
fn read(path: &Path, before: Option<Folder>) -> Option<Folder> {
    let about = fs::symlink_metadata(path).ok().filter(fs::Metadata::is_dir)?;
    let changed = (about.ctime(), about.ctime_nsec());
    if let Some(folder) = before.filter(|folder| folder.changed == changed) {
        return Some(folder);
    }
    let (mut folders, mut files) = (BTreeSet::new(), BTreeSet::new());
    for entry in fs::read_dir(path).ok()?.flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => _ = folders.insert(entry.file_name()),
            Ok(kind) if kind.is_file() => _ = files.insert(entry.file_name()),
            _ => {}
        }
    }
    let has = |set: &BTreeSet<OsString>, name: &str| set.contains(std::ffi::OsStr::new(name));
    let of_worktrees = path.parent().is_some_and(|parent| parent.ends_with("worktrees"));
    let layout = if has(&folders, ".git") {
        Some(Layout::Usual)
    } else if has(&files, ".git") {
        Some(Layout::Link)
    } else if has(&files, "HEAD") && has(&folders, "objects") && has(&folders, "refs") {
        Some(Layout::Bare)
    } else if of_worktrees && has(&files, "HEAD") && has(&files, "commondir") {
        Some(Layout::Worktree)
    } else {
        None
    };
    let folders = match layout {
        // Objects are not searched; submodules and worktrees of the repository are.
        Some(Layout::Bare) => ["modules", "worktrees"].map(OsString::from).to_vec(),
        Some(Layout::Worktree) => Vec::new(),
        Some(Layout::Usual) => {
            folders.remove(std::ffi::OsStr::new(".git"));
            let inside = [".git/modules", ".git/worktrees"].map(OsString::from);
            folders.into_iter().chain(inside).collect()
        }
        Some(Layout::Link) | None => folders.into_iter().collect(),
    };
    Some(Folder { changed, folders, layout })
}

/// The parts of a repository that make git start programs, or look for such parts elsewhere.
fn parts(path: &Path, layout: Layout) -> Vec<Protected> {
    let of = |path: PathBuf, kind| Protected { path, kind };
    match layout {
        Layout::Usual => of_folder(&path.join(".git")),
        Layout::Link => vec![of(path.join(".git"), Kind::File)],
        Layout::Bare => of_folder(path),
        Layout::Worktree => vec![
            of(path.join("commondir"), Kind::File),
            of(path.join("config.worktree"), Kind::EMPTY),
        ],
    }
}

fn of_folder(git: &Path) -> Vec<Protected> {
    let parts = [
        ("hooks", Kind::Folder),
        ("config", Kind::File),
        ("config.worktree", Kind::EMPTY),
        ("commondir", Kind::THIS_FOLDER),
    ];
    parts.into_iter().map(|(name, kind)| Protected { path: git.join(name), kind }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder with empty folders, and files with one character.
    fn tree(names: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        names.iter().for_each(|name| add(folder.path(), name));
        folder
    }

    fn add(folder: &Path, name: &str) {
        let path = folder.join(name);
        if name.ends_with('/') {
            fs::create_dir_all(path).unwrap();
        } else {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "x").unwrap();
        }
    }

    fn protected(repositories: &Repositories, folder: &Path) -> Vec<String> {
        let paths = repositories.protected(&[folder.to_owned()]).into_iter().map(|it| it.path);
        let name = |path: PathBuf| path.strip_prefix(folder).unwrap().display().to_string();
        let mut names: Vec<String> = paths.map(name).collect();
        names.retain(|name| !name.ends_with("config.worktree") && !name.ends_with("commondir"));
        names.sort();
        names
    }

    #[test]
    fn repositories_of_every_layout_are_protected() {
        let folder = tree(&[
            ".git/modules/sub/HEAD",
            ".git/modules/sub/objects/",
            ".git/modules/sub/refs/",
            "sub/.git",
            "a/b/.git/HEAD",
            "a/b/src/",
            "bare.git/HEAD",
            "bare.git/objects/",
            "bare.git/refs/",
            "plain/objects/",
        ]);
        std::os::unix::fs::symlink(folder.path().join("a"), folder.path().join("link")).unwrap();
        let found = protected(&Repositories::default(), folder.path());
        let expected = [
            ".git/modules/sub/config",
            ".git/modules/sub/hooks",
            "a/b/.git/config",
            "a/b/.git/hooks",
            "bare.git/config",
            "bare.git/hooks",
            "sub/.git",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_new_repository_is_reported_once_and_stays_writable() {
        let folder = tree(&["old/.git/HEAD", "x/y/"]);
        let roots = [folder.path().to_owned()];
        let repositories = Repositories::default();
        let before = protected(&repositories, folder.path());
        assert_eq!(repositories.notice(&roots), None);
        add(folder.path(), "x/y/new/.git/HEAD");
        let notice = repositories.notice(&roots).unwrap();
        assert!(notice.contains("x/y/new") && !notice.contains("old"), "{notice}");
        assert_eq!(repositories.notice(&roots), None);
        assert_eq!(protected(&repositories, folder.path()), before);
    }

    #[test]
    fn what_the_search_does_not_reach_is_stated() {
        let many: Vec<String> =
            (0..MOST_PROTECTED + 2).map(|number| format!("{number}/.git/HEAD")).collect();
        let folder = tree(&many.iter().map(String::as_str).collect::<Vec<_>>());
        let repositories = Repositories::default();
        repositories.protected(&[folder.path().to_owned()]);
        let state = repositories.state();
        assert_eq!(state.protected.len(), MOST_PROTECTED);
        assert!(state.missing[0].contains("2 repositories"), "{:?}", state.missing);
    }
}
