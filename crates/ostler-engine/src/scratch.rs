//! A session's private folder for what is too long for the conversation.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// A folder that only this user can enter, made when it is first needed and removed with its last owner.
///
/// Its path is fixed from the beginning, so that permissions can speak of it.
#[derive(Clone, Debug)]
pub struct Scratch(Arc<Folder>);

#[derive(Debug)]
struct Folder {
    path: PathBuf,
    is_made: Mutex<bool>,
}

impl Default for Scratch {
    fn default() -> Self {
        // Nobody can guess the name, so nobody can be there first.
        let name = format!("ostler-{}", uuid::Uuid::new_v4().simple());
        let path = std::env::temp_dir().join(name);
        Self(Arc::new(Folder { path, is_made: Mutex::new(false) }))
    }
}

impl Scratch {
    /// Where the folder is, or would be.
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// The folder, which is there from now on.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn folder(&self) -> io::Result<&Path> {
        let mut is_made = self.0.is_made.lock().unwrap_or_else(PoisonError::into_inner);
        if !*is_made {
            // Fails when something is there already, which then is not ours.
            DirBuilder::new().mode(0o700).create(&self.0.path)?;
            *is_made = true;
        }
        Ok(&self.0.path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        if *self.is_made.get_mut().unwrap_or_else(PoisonError::into_inner) {
            // What cannot be removed is left to whoever cleans the temporary folder.
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

    #[test]
    fn a_folder_somebody_else_put_there_is_not_used() {
        let scratch = Scratch::default();
        std::os::unix::fs::symlink("/", scratch.path()).unwrap();
        assert_eq!(scratch.folder().unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        fs::remove_file(scratch.path()).unwrap();
    }
}
