//! Removes temporary folders of killed processes, without touching those in use.
//!
//! A folder in use has a file that its process holds a lock on. The system releases the lock when the process ends,
//! however it ends. A folder without such a file may be in the making, so it is left alone for a minute. The lock
//! file is removed last, so that a process killed during removal leaves a folder that the next one can finish.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Duration;

/// The lock file, and its name until it is locked.
const LOCK: &str = ".lock";
const UNFINISHED: &str = ".lock.new";

/// How long making a folder and its lock may take.
const MAKING: Duration = Duration::from_secs(60);

/// Marks a folder as in use until dropped.
#[derive(Debug)]
pub struct Claim(#[expect(dead_code, reason = "held for its lock")] File);

impl Claim {
    /// Claims a folder that this process has just made.
    ///
    /// # Errors
    /// If the lock file cannot be written.
    pub fn new(folder: &Path) -> io::Result<Self> {
        // Locked under another name first: a lock file without a lock means that the folder can be removed.
        let new = folder.join(UNFINISHED);
        let file = File::create_new(&new)?;
        file.lock()?;
        fs::rename(&new, folder.join(LOCK))?;
        Ok(Self(file))
    }
}

/// Removes folders whose name starts with `prefix`, that belong to this user and whose process is gone.
///
/// Returns how many. Folders that cannot be read or removed stay.
pub fn remove(parent: &Path, prefix: &str) -> usize {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    let named =
        entries.filter(|entry| entry.file_name().as_encoded_bytes().starts_with(prefix.as_bytes()));
    named.filter(|entry| remove_unclaimed(&entry.path()).unwrap_or(false)).count()
}

fn remove_unclaimed(folder: &Path) -> io::Result<bool> {
    let about = folder.symlink_metadata()?;
    if !about.is_dir() || about.uid() != rustix::process::geteuid().as_raw() {
        return Ok(false);
    }
    let lock = folder.join(LOCK);
    match lock.symlink_metadata() {
        // A FIFO in its place would block.
        Ok(lock) if !lock.is_file() => return Ok(false),
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let is_old = about.modified()?.elapsed().is_ok_and(|age| age >= MAKING);
            return if is_old { remove_unfinished(folder) } else { Ok(false) };
        }
        Err(error) => return Err(error),
    }
    let file = File::open(&lock)?;
    if file.try_lock().is_err() {
        return Ok(false);
    }
    for entry in fs::read_dir(folder)?.flatten().filter(|entry| entry.file_name() != LOCK) {
        match entry.file_type()?.is_dir() {
            true => fs::remove_dir_all(entry.path())?,
            false => fs::remove_file(entry.path())?,
        }
    }
    fs::remove_dir_all(folder)?;
    Ok(true)
}

/// Removes a folder whose process was killed while it made it. Such a folder contains nothing but the lock file under
/// its first name. A folder with more in it may belong to the user.
fn remove_unfinished(folder: &Path) -> io::Result<bool> {
    let unfinished = folder.join(UNFINISHED);
    for entry in fs::read_dir(folder)? {
        if entry?.file_name() != UNFINISHED {
            return Ok(false);
        }
    }
    match fs::remove_file(unfinished) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    fs::remove_dir(folder)?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_unclaimed_folders_are_removed() {
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
        // Mutant: without `try_lock` the folder in use is removed as well.
        assert_eq!(remove(&parent, "mine-"), 1);
        assert!(!folder("mine-dead").exists());
        for name in ["mine-live", "mine-new", "mine-fifo", "mine-link", "other-dead"] {
            assert!(folder(name).symlink_metadata().is_ok(), "{name}");
        }
        drop(live);
        assert_eq!(remove(&parent, "mine-"), 1);
        // Mutant: a folder without a lock is left alone however old it is.
        let long_ago = std::time::SystemTime::now() - 2 * MAKING;
        File::open(folder("mine-new")).unwrap().set_modified(long_ago).unwrap();
        // Mutant: every folder without a lock is removed, also one of the user with such a name.
        fs::create_dir(folder("mine-own")).unwrap();
        fs::write(folder("mine-own").join("notes"), "").unwrap();
        File::open(folder("mine-own")).unwrap().set_modified(long_ago).unwrap();
        assert_eq!(remove(&parent, "mine-"), 1);
        assert!(!folder("mine-new").exists());
        assert!(folder("mine-own").join("notes").exists());
        fs::remove_dir_all(parent).unwrap();
    }
}
