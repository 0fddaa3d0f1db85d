//! Temporary folders of processes that were killed, and how to tell them from those in use.
//!
//! A folder in use has a file that its process holds a lock on. The system gives the lock back when the process ends,
//! however it ends. A folder without such a file is left alone: it may just be being made.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// The file with the lock.
const LOCK: &str = ".lock";

/// Shows that a folder is in use, as long as it is not dropped.
#[derive(Debug)]
pub struct Claim(#[expect(dead_code, reason = "held for its lock")] File);

impl Claim {
    /// Claims a folder that this process has just made.
    ///
    /// # Errors
    /// When the lock cannot be written.
    pub fn new(folder: &Path) -> io::Result<Self> {
        // Locked under another name first: a lock file that nobody holds means that the folder can go.
        let new = folder.join(".lock.new");
        let file = File::create_new(&new)?;
        file.lock()?;
        fs::rename(&new, folder.join(LOCK))?;
        Ok(Self(file))
    }
}

/// Removes the folders whose name begins with `prefix` that belong to this user and whose process is gone.
///
/// Returns how many. What cannot be looked at or removed stays.
pub fn remove(parent: &Path, prefix: &str) -> usize {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    let named =
        entries.filter(|entry| entry.file_name().as_encoded_bytes().starts_with(prefix.as_bytes()));
    named.filter(|entry| remove_unclaimed(&entry.path()).unwrap_or(false)).count()
}

fn remove_unclaimed(folder: &Path) -> io::Result<bool> {
    let about = folder.symlink_metadata()?;
    if !about.is_dir() || about.uid() != nix::unistd::geteuid().as_raw() {
        return Ok(false);
    }
    let lock = folder.join(LOCK);
    // A FIFO in its place would block.
    if !lock.symlink_metadata()?.is_file() {
        return Ok(false);
    }
    let file = File::open(&lock)?;
    if file.try_lock().is_err() {
        return Ok(false);
    }
    fs::remove_dir_all(folder)?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_folders_that_nobody_claims_are_removed() {
        let parent = std::env::temp_dir().join(format!("leftover-{}", std::process::id()));
        let folder = |name: &str| parent.join(name);
        for name in ["mine-live", "mine-dead", "mine-new", "mine-fifo", "other-dead"] {
            fs::create_dir_all(folder(name)).unwrap();
        }
        let live = Claim::new(&folder("mine-live")).unwrap();
        drop(Claim::new(&folder("mine-dead")).unwrap());
        drop(Claim::new(&folder("other-dead")).unwrap());
        let mkfifo =
            std::process::Command::new("mkfifo").arg(folder("mine-fifo").join(LOCK)).status();
        assert!(mkfifo.unwrap().success());
        std::os::unix::fs::symlink(folder("other-dead"), folder("mine-link")).unwrap();
        // Mutant: without `try_lock` the live one goes as well.
        assert_eq!(remove(&parent, "mine-"), 1);
        assert!(!folder("mine-dead").exists());
        for name in ["mine-live", "mine-new", "mine-fifo", "mine-link", "other-dead"] {
            assert!(folder(name).symlink_metadata().is_ok(), "{name}");
        }
        drop(live);
        assert_eq!(remove(&parent, "mine-"), 1);
        fs::remove_dir_all(parent).unwrap();
    }
}
