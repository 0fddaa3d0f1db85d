//! How much the files of commands take up on disk. The system does not count that for each command, so two cheap numbers
//! are compared first (how full the file systems are, and were before), and only if these have grown too much the folders
//! themselves are read: other programs may have written meanwhile.

use std::collections::BTreeSet;
use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How many files and folders are looked at to find out who has written.
const MOST_ENTRIES: u64 = 300_000;
/// The clock of file systems is behind by some milliseconds.
const CLOCK: Duration = Duration::from_secs(1);

/// Bytes and files on disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Amount {
    pub(super) bytes: u64,
    pub(super) files: u64,
}

/// How full the file systems of some folders were at one time.
#[derive(Debug)]
pub(super) struct DiskBefore {
    roots: Vec<PathBuf>,
    taken: SystemTime,
    devices: BTreeSet<u64>,
    /// A folder on each file system, and what it had.
    systems: Vec<(PathBuf, Amount)>,
}

impl DiskBefore {
    /// Looks at them now.
    pub(super) fn now(roots: &[PathBuf]) -> Self {
        let (taken, devices) = (SystemTime::now(), BTreeSet::new());
        let mut before = Self { roots: Vec::new(), taken, devices, systems: Vec::new() };
        before.add(roots);
        before
    }

    /// Adds folders that were not known before.
    pub(super) fn add(&mut self, roots: &[PathBuf]) {
        for root in roots {
            if self.roots.contains(root) {
                continue;
            }
            self.roots.push(root.clone());
            let Ok(about) = fs::metadata(root) else { continue };
            if self.devices.insert(about.dev())
                && let Some(used) = used(root)
            {
                self.systems.push((root.clone(), used));
            }
        }
    }

    /// How much more there is on these file systems now, also if other programs wrote it.
    pub(super) fn growth(&self) -> Amount {
        let mut all = Amount::default();
        for (folder, before) in &self.systems {
            let now = used(folder).unwrap_or(*before);
            all.bytes += now.bytes.saturating_sub(before.bytes);
            all.files += now.files.saturating_sub(before.files);
        }
        all
    }

    /// What is in the folders and changed since then, of the first [`MOST_ENTRIES`].
    pub(super) fn changed(&self) -> Amount {
        let since = self.taken.checked_sub(CLOCK).unwrap_or(UNIX_EPOCH);
        let since = since.duration_since(UNIX_EPOCH).unwrap_or_default();
        let since = i64::try_from(since.as_secs()).unwrap_or_default();
        let mut found = Amount::default();
        let mut left = MOST_ENTRIES;
        let mut queue: Vec<PathBuf> = self.roots.clone();
        while let Some(folder) = queue.pop() {
            for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
                let Ok(about) = entry.metadata() else { continue };
                if about.ctime() >= since {
                    found = found.with(&about);
                }
                left = left.saturating_sub(1);
                if left == 0 {
                    return found;
                }
                if about.is_dir() {
                    queue.push(entry.path());
                }
            }
        }
        found
    }
}

impl Amount {
    fn with(self, about: &Metadata) -> Self {
        // A file with several names is counted once altogether.
        let bytes = (about.blocks() * 512).checked_div(about.nlink().max(1)).unwrap_or_default();
        let bytes = if about.is_dir() { about.blocks() * 512 } else { bytes };
        Self { bytes: self.bytes + bytes, files: self.files + 1 }
    }
}

/// What a file system has.
fn used(folder: &Path) -> Option<Amount> {
    let about = rustix::fs::statvfs(folder).ok()?;
    let blocks = about.f_blocks.saturating_sub(about.f_bfree);
    Some(Amount {
        bytes: blocks.saturating_mul(about.f_frsize),
        files: about.f_files.saturating_sub(about.f_ffree),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    // Mutants: what was there before counts; folders in folders are not read.
    #[test]
    fn only_what_changed_since_then_counts() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, bytes: usize| fs::write(folder.path().join(name), vec![1; bytes]);
        write("old", 100_000).unwrap();
        let mut before = DiskBefore::now(&[folder.path().to_owned()]);
        // Files change in the past of this test, so that none of them is within the precision of the clock.
        before.taken += Duration::from_secs(3600);
        assert_eq!(before.changed(), Amount::default());
        before.taken -= Duration::from_secs(7200);
        fs::create_dir(folder.path().join("sub")).unwrap();
        write("sub/new", 50_000).unwrap();
        let found = before.changed();
        assert_eq!(found.files, 3);
        assert!((150_000..400_000).contains(&found.bytes), "{found:?}");
    }

    #[test]
    fn file_systems_are_counted_once() {
        let folder = tempfile::tempdir().unwrap();
        let sub = folder.path().join("sub");
        fs::create_dir(&sub).unwrap();
        let before = DiskBefore::now(&[folder.path().to_owned(), sub, "/no/such".into()]);
        assert_eq!(before.systems.len(), 1);
    }
}
