//! The proxy's socket: in a private folder, for one user, removed with its owner.

use std::fs::{self, DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _, chown};
use std::path::{Path, PathBuf};

use tokio::net::UnixListener;
use tokio::runtime::Handle;

/// Why a proxy did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// There is no tokio runtime.
    #[error("the proxy of a sandbox needs a tokio runtime; start it from one")]
    Runtime,
    /// Other users may reach the folder, or it is not a folder of this user.
    #[error("{} is not a private folder: it must be a folder of this user with mode 0700, and not a link", .0.display())]
    Folder(PathBuf),
    /// The folder or the socket cannot be created.
    #[error("cannot create the socket {}: {source}. Its path must be new and shorter than 108 bytes", path.display())]
    Create {
        /// The socket.
        path: PathBuf,
        /// What went wrong.
        source: io::Error,
    },
}

/// A socket file. Dropping it removes the file, and the folder if it was created for it.
pub(super) struct Socket {
    path: PathBuf,
    folder: Option<PathBuf>,
}

impl Socket {
    pub(super) fn create(
        path: &Path,
        owner: Option<u32>,
    ) -> Result<(Self, UnixListener), StartError> {
        Handle::try_current().map_err(|_| StartError::Runtime)?;
        let failed = |source| StartError::Create { path: path.to_owned(), source };
        let folder = path.parent().filter(|it| !it.as_os_str().is_empty());
        let folder = folder.unwrap_or(Path::new("."));
        let created = match DirBuilder::new().mode(0o700).create(folder) {
            Ok(()) => Some(folder.to_owned()),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => None,
            Err(error) => return Err(failed(error)),
        };
        // From here on the folder is removed if anything fails.
        let mut socket = Self { path: PathBuf::new(), folder: created };
        if !is_private(folder).map_err(failed)? {
            return Err(StartError::Folder(folder.to_owned()));
        }
        let listener = std::os::unix::net::UnixListener::bind(path).map_err(failed)?;
        path.clone_into(&mut socket.path);
        // The folder keeps others out until this is done.
        fs::set_permissions(path, Permissions::from_mode(0o600)).map_err(failed)?;
        if owner.is_some() {
            chown(path, owner, None).map_err(failed)?;
        }
        listener.set_nonblocking(true).map_err(failed)?;
        let listener = UnixListener::from_std(listener).map_err(failed)?;
        Ok((socket, listener))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

fn is_private(folder: &Path) -> io::Result<bool> {
    let data = fs::symlink_metadata(folder)?;
    let own = data.uid() == rustix::process::geteuid().as_raw();
    Ok(data.is_dir() && own && data.mode() & 0o077 == 0)
}

impl Drop for Socket {
    fn drop(&mut self) {
        if !self.path.as_os_str().is_empty() {
            // It may be gone with its folder.
            _ = fs::remove_file(&self.path);
        }
        if let Some(folder) = &self.folder {
            _ = fs::remove_dir(folder);
        }
    }
}
