//! What is too long to show is kept in a private folder that goes with the session.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use tempfile::TempDir;

/// A folder that is made when the first thing is kept in it.
#[derive(Debug, Default)]
pub(crate) struct Kept {
    folder: Mutex<Option<TempDir>>,
    n_files: AtomicU64,
}

impl Kept {
    /// Keeps a text; says where.
    pub(crate) fn keep(&self, text: &str) -> io::Result<PathBuf> {
        let mut folder = self.folder.lock().unwrap_or_else(PoisonError::into_inner);
        let path = match &*folder {
            Some(folder) => folder.path().to_owned(),
            None => {
                let only_the_user = Permissions::from_mode(0o700);
                let mut builder = tempfile::Builder::new();
                let made = builder.prefix("ostler-").permissions(only_the_user).tempdir()?;
                folder.insert(made).path().to_owned()
            }
        };
        let n = self.n_files.fetch_add(1, Ordering::Relaxed);
        let path = path.join(format!("page-{n}.md"));
        fs::write(&path, text)?;
        Ok(path)
    }
}
