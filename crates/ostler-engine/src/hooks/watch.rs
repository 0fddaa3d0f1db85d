//! Files that hooks watch. They are polled; without watched files there is no polling.
//!
//! Watched are the files that a `FileChanged` matcher names, in the session's directory, and those that hooks request
//! with `watchPaths`. Only changes after a file was added to the list are reported.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;

use crate::file_stamp::FileStamp;

/// The most watched files: each is polled on the disk.
const MAX_FILES: usize = 1_000;

/// What happened to a file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) path: PathBuf,
    /// As in the hooks' input: `add`, `change` or `unlink`.
    pub(super) event: &'static str,
}

/// The files that hooks requested, and the last known state of all watched files.
#[derive(Debug, Default)]
pub(super) struct Watch {
    state: Mutex<State>,
    /// Notified when there may be something to watch.
    pub(super) bell: Notify,
}

#[derive(Debug, Default)]
struct State {
    asked_for: Vec<PathBuf>,
    known: BTreeMap<PathBuf, Option<FileStamp>>,
}

impl Watch {
    /// Watches these files instead of those requested before. Relative paths are ignored. Touches the disk.
    pub(super) fn ask_for(&self, paths: Vec<String>) {
        let paths = paths.into_iter().map(PathBuf::from).filter(|path| path.is_absolute());
        let paths: Vec<PathBuf> = paths.take(MAX_FILES).collect();
        self.note(&paths.iter().cloned().collect());
        self.lock().asked_for = paths;
        self.bell.notify_one();
    }

    /// Notes the state of files: only later changes are reported. Touches the disk.
    pub(super) fn note(&self, files: &BTreeSet<PathBuf>) {
        // Looked at before the lock is taken: code of the runtime takes it too, and must not wait for the disk.
        let is_new = |path: &&PathBuf| !self.lock().known.contains_key(*path);
        let new: Vec<_> =
            files.iter().filter(is_new).map(|path| (path, FileStamp::of(path))).collect();
        let mut state = self.lock();
        for (path, stamp) in new {
            state.known.entry(path.clone()).or_insert(stamp);
        }
    }

    /// All files to watch: the requested ones, and those with one of the names in a folder.
    pub(super) fn list(&self, names: &[&str], folder: &Path) -> BTreeSet<PathBuf> {
        let named = names.iter().map(|name| folder.join(name));
        named.chain(self.lock().asked_for.iter().cloned()).take(MAX_FILES).collect()
    }

    /// Looks at the files, and returns the changes since the last look. Touches the disk.
    pub(super) fn look(&self, files: &BTreeSet<PathBuf>) -> Vec<Change> {
        // As above: the disk first, then the lock.
        let stamps: Vec<_> = files.iter().map(|path| (path, FileStamp::of(path))).collect();
        let mut state = self.lock();
        let mut changes = Vec::new();
        let mut seen = BTreeMap::new();
        for (path, now) in stamps {
            let event = match (state.known.get(path), now) {
                (Some(None), Some(_)) => Some("add"),
                (Some(Some(_)), None) => Some("unlink"),
                (Some(Some(before)), Some(now)) if *before != now => Some("change"),
                _ => None,
            };
            changes.extend(event.map(|event| Change { path: path.clone(), event }));
            seen.insert(path.clone(), now);
        }
        state.known = seen;
        changes
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_file_comes_changes_and_goes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(".env");
        let watch = Watch::default();
        let look = || {
            let files = watch.list(&[".env"], folder.path());
            let changes = watch.look(&files);
            changes.into_iter().map(|change| change.event).collect::<Vec<_>>()
        };
        assert_eq!(look(), [""; 0], "a file that is new on the list has not changed");
        fs::write(&path, "A=1").unwrap();
        assert_eq!(look(), ["add"]);
        assert_eq!(look(), [""; 0]);
        fs::write(&path, "A=1, B=2").unwrap();
        assert_eq!(look(), ["change"]);
        // Another file in its place, as editors do it.
        fs::write(folder.path().join("new"), "A=1, B=2").unwrap();
        fs::rename(folder.path().join("new"), &path).unwrap();
        assert_eq!(look(), ["change"]);
        fs::remove_file(&path).unwrap();
        assert_eq!(look(), ["unlink"]);
    }

    #[test]
    fn requested_paths_replace_those_before_and_relative_ones_are_ignored() {
        let watch = Watch::default();
        watch.ask_for(vec!["/a".to_owned(), "b".to_owned()]);
        assert_eq!(watch.list(&["c"], Path::new("/w")), paths(&["/a", "/w/c"]));
        watch.ask_for(vec!["/d".to_owned()]);
        assert_eq!(watch.list(&[], Path::new("/w")), paths(&["/d"]));
    }

    fn paths(paths: &[&str]) -> BTreeSet<PathBuf> {
        paths.iter().map(PathBuf::from).collect()
    }
}
