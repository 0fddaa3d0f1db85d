//! Temporary folders of processes that were killed, and how to tell them from those in use.
//!
//! A folder in use has a file that its process holds a lock on. The system gives the lock back when the process ends,
//! however it ends. A folder without such a file may just be being made, so it is left alone for a minute. The file is the
//! last that is removed of a folder, so that whoever is killed meanwhile leaves a folder that the next one can finish.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Duration;

/// The file with the lock, and its name until it is locked.
const LOCK: &str = ".lock";
const UNFINISHED: &str = ".lock.new";

/// How long it takes at most to make a folder and its lock.
const MAKING: Duration = Duration::from_secs(60);

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
        let new = folder.join(UNFINISHED);
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

/// Removes a folder whose process was killed while it made it. Such a folder has nothing in it but the lock that was not in
/// its place yet. Whatever has more in it may be somebody's own.
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
        // Mutant: one without a lock is left alone however old it is.
        let long_ago = std::time::SystemTime::now() - 2 * MAKING;
        File::open(folder("mine-new")).unwrap().set_modified(long_ago).unwrap();
        // Mutant: everything without a lock goes, and with it what somebody else has under such a name.
        fs::create_dir(folder("mine-own")).unwrap();
        fs::write(folder("mine-own").join("notes"), "").unwrap();
        File::open(folder("mine-own")).unwrap().set_modified(long_ago).unwrap();
        assert_eq!(remove(&parent, "mine-"), 1);
        assert!(!folder("mine-new").exists());
        assert!(folder("mine-own").join("notes").exists());
        fs::remove_dir_all(parent).unwrap();
    }
}
