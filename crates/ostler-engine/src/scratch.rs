//! A session's private folder for texts that are too long for the conversation.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Once};

use ostler_files::RealPath;
use ostler_process::leftover::{self, Claim};
use parking_lot::Mutex;

/// The most bytes that a session stores. A loop that prints must not fill the disk.
const MOST_BYTES: u64 = 1024 * 1024 * 1024;
/// The prefix of the names of these folders.
const PREFIX: &str = "ostler-";

/// A folder that only this user can enter, made when it is first needed and removed with its last owner.
///
/// Its path is fixed from the beginning, so that permission rules can name it.
#[derive(Clone, Debug)]
pub struct Scratch(Arc<Folder>);

#[derive(Debug)]
struct Folder {
    path: PathBuf,
    /// Set once the folder is made: shows other processes that it is in use.
    claim: Mutex<Option<Claim>>,
    /// How many more bytes may be stored.
    room: AtomicU64,
}

impl Default for Scratch {
    fn default() -> Self {
        remove_leftovers();
        // The name cannot be guessed, so no other user can create it first.
        let name = format!("{PREFIX}{}", uuid::Uuid::new_v4().simple());
        // Without links: files in it are opened without following any, because commands can write there.
        let folder = std::env::temp_dir();
        let path = folder.canonicalize().unwrap_or(folder).join(name);
        Self(Arc::new(Folder { path, claim: Mutex::default(), room: AtomicU64::new(MOST_BYTES) }))
    }
}

/// Removes the folders of killed processes, once per process. Runs on its own thread: there may be much to remove.
fn remove_leftovers() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let remove = || leftover::remove(&std::env::temp_dir(), PREFIX);
        // Without a thread the next process does it.
        let _ = std::thread::Builder::new().name("leftovers".to_owned()).spawn(remove);
    });
}

impl Scratch {
    /// Where the folder is, or would be.
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// The folder, which is created if needed.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn folder(&self) -> io::Result<&Path> {
        let mut claim = self.0.claim.lock();
        if claim.is_none() {
            // Fails when something is there already, which then is not ours.
            DirBuilder::new().mode(0o700).create(&self.0.path)?;
            *claim = Some(Claim::new(&self.0.path)?);
        }
        Ok(&self.0.path)
    }

    /// Reserves up to `wanted` bytes. Returns how many were reserved.
    pub fn take_room(&self, wanted: u64) -> u64 {
        let less = |room: u64| Some(room - room.min(wanted));
        let room = self.0.room.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        room.unwrap_or_default().min(wanted)
    }

    /// Writes bytes to a new file with a name like `page-….md` and returns its path. Touches the disk.
    ///
    /// # Errors
    /// When it cannot be written, or the session has stored too much already.
    pub fn keep_new(&self, kind: &str, ending: &str, bytes: &[u8]) -> io::Result<PathBuf> {
        self.keep(&format!("{kind}-{}{ending}", uuid::Uuid::new_v4().simple()), bytes)
    }

    fn keep(&self, name: &str, bytes: &[u8]) -> io::Result<PathBuf> {
        let wanted = bytes.len() as u64;
        let taken = self.take_room(wanted);
        if taken < wanted {
            self.0.room.fetch_add(taken, Ordering::Relaxed);
            let most = MOST_BYTES / (1024 * 1024);
            let error = format!("this session has stored {most} MiB, which is the limit");
            return Err(io::Error::new(io::ErrorKind::QuotaExceeded, error));
        }
        let path = self.folder()?.join(name);
        self.create(&path)?.write_all(bytes)?;
        Ok(path)
    }

    /// Creates a file in the folder by its path, without following a link that a command has put there.
    ///
    /// # Errors
    /// When something is there, or it cannot be created.
    pub fn create(&self, path: &Path) -> io::Result<File> {
        let path = RealPath::from_resolved(path.to_owned()).ok_or(io::ErrorKind::InvalidInput)?;
        path.create_new(0o666)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if self.claim.get_mut().is_some() {
            // Not on another thread: the process may end right after it. Files that cannot be removed stay in the
            // temporary folder.
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn the_folder_is_private_and_goes_with_its_last_owner() {
        let scratch = Scratch::default();
        let path = scratch.path().to_owned();
        assert!(!path.exists());
        assert_eq!(scratch.folder().unwrap(), path);
        fs::write(path.join("note"), "kept").unwrap();
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o700);
        let second = scratch.clone();
        drop(scratch);
        assert!(second.folder().unwrap().join("note").exists());
        drop(second);
        assert!(!path.exists());
    }

    // Mutant: without the subtraction in `take_room` the last assertions fail.
    #[test]
    fn a_session_stores_only_a_limited_amount_and_a_refused_file_does_not_count() {
        let scratch = Scratch::default();
        let path = scratch.keep("a", b"text").unwrap();
        assert_eq!(fs::read(path).unwrap(), b"text");
        assert_eq!(scratch.take_room(MOST_BYTES - 5), MOST_BYTES - 5);
        assert_eq!(scratch.keep("b", b"ab").unwrap_err().kind(), io::ErrorKind::QuotaExceeded);
        assert!(!scratch.path().join("b").exists());
        assert_eq!(scratch.clone().take_room(10), 1, "all copies share the room");
        assert_eq!(scratch.take_room(10), 0);
    }

    // Mutant: `create` with `File::create_new`, as before, writes behind the link.
    #[test]
    fn no_file_is_written_behind_a_link_in_place_of_the_folder() {
        let outside = tempfile::tempdir().unwrap();
        let scratch = Scratch::default();
        scratch.keep("a", b"text").unwrap();
        let aside = outside.path().join("aside");
        fs::rename(scratch.path(), &aside).unwrap();
        std::os::unix::fs::symlink(outside.path(), scratch.path()).unwrap();
        assert!(scratch.keep("b", b"text").is_err());
        assert!(!outside.path().join("b").exists());
        fs::remove_file(scratch.path()).unwrap();
    }

    #[test]
    fn a_folder_of_another_user_is_not_used() {
        let scratch = Scratch::default();
        std::os::unix::fs::symlink("/", scratch.path()).unwrap();
        assert_eq!(scratch.folder().unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        fs::remove_file(scratch.path()).unwrap();
    }
}
