//! Keeps other processes from changing a file, or the files of a folder, between reading and writing.

use std::fs::File;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime};

use crate::RealPath;

/// How long to wait for another process.
const PATIENCE: Duration = Duration::from_secs(15);
/// How often to look whether it is done.
const PAUSE: Duration = Duration::from_millis(25);
/// A folder that is older was left behind by a process that was killed. The vendor's program uses the same time.
const STALE: Duration = Duration::from_secs(10);

/// A locked file. Dropping it unlocks the file.
#[derive(Debug)]
pub struct FileLock {
    /// Locked for other processes of this program. The file itself is replaced, so its folder stands for it.
    _folder: File,
    /// Exists while the file is locked for the vendor's program.
    marker: Option<PathBuf>,
}

impl FileLock {
    /// Locks a file, if `is_shared` also for the vendor's program, which uses a folder `<file>.lock`.
    ///
    /// # Errors
    /// When another process keeps it locked.
    pub fn take(file: &RealPath, is_shared: bool) -> Result<Self, String> {
        let wrong =
            |error: std::io::Error| format!("it cannot be locked, so it is not changed: {error}");
        let folder = file.parent().map_err(wrong)?;
        folder.create_folders(0o777).map_err(wrong)?;
        let folder = folder.open_folder().map_err(wrong)?;
        folder.lock().map_err(wrong)?;
        let mut lock = Self { _folder: folder, marker: None };
        if is_shared {
            let mut marker = file.as_path().as_os_str().to_owned();
            marker.push(".lock");
            lock.mark(marker.into(), PATIENCE)?;
        }
        Ok(lock)
    }

    fn mark(&mut self, marker: PathBuf, patience: Duration) -> Result<(), String> {
        let begun = Instant::now();
        loop {
            match std::fs::create_dir(&marker) {
                Ok(()) => break,
                Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                    return Err(format!("it cannot be locked, so it is not changed: {error}"));
                }
                // Only one process of this program is here at a time. If it cannot be removed, the time runs out.
                Err(_) if is_stale(&marker) => _ = std::fs::remove_dir(&marker),
                Err(_) => {}
            }
            if begun.elapsed() > patience {
                let marker = marker.display();
                return Err(format!(
                    "another program is changing it; if there is none, remove {marker} and try again"
                ));
            }
            std::thread::sleep(PAUSE);
        }
        self.marker = Some(marker);
        Ok(())
    }
}

fn is_stale(marker: &PathBuf) -> bool {
    let changed = std::fs::symlink_metadata(marker).and_then(|it| it.modified());
    let age = changed.ok().and_then(|at| SystemTime::now().duration_since(at).ok());
    age.is_some_and(|age| age > STALE)
}

impl Drop for FileLock {
    fn drop(&mut self) {
        if let Some(marker) = &self.marker {
            // If another process has removed it, there is nothing left to do.
            let _ = std::fs::remove_dir(marker);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(folder: &std::path::Path) -> RealPath {
        RealPath::resolve(&folder.join("x.json")).unwrap()
    }

    // Mutants: the marker is not made; it is not removed.
    #[test]
    fn the_vendors_program_sees_the_lock_while_it_is_held() {
        let folder = tempfile::tempdir().unwrap();
        let marker = folder.path().join("x.json.lock");
        let lock = FileLock::take(&file(folder.path()), true).unwrap();
        assert!(marker.is_dir());
        drop(lock);
        assert!(!marker.exists());
    }

    // Mutants: an old marker is waited for; a new one is removed.
    #[test]
    fn a_lock_that_a_killed_process_left_is_taken_over_and_a_new_one_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let marker = folder.path().join("x.json.lock");
        std::fs::create_dir(&marker).unwrap();
        let place = File::open(folder.path()).unwrap();
        let mut lock = FileLock { _folder: place, marker: None };
        let error = lock.mark(marker.clone(), Duration::ZERO).unwrap_err();
        assert!(error.contains("another program") && marker.exists(), "{error}");
        let old = SystemTime::now() - STALE * 2;
        File::open(&marker).unwrap().set_modified(old).unwrap();
        lock.mark(marker.clone(), PATIENCE).unwrap();
        drop(lock);
        assert!(!marker.exists());
    }
}
