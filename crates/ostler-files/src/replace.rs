//! Replaces a file in one step.

use std::fs::{self, File, Metadata, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, fchown};
use std::path::Path;

use crate::regular;

/// Replaces a file of this program, and waits until it is on disk. An existing file keeps its permissions; a new one
/// gets `mode`. Missing folders are created.
///
/// # Errors
/// When the new content cannot be written. The old file is unchanged then.
pub fn replace(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    fs::create_dir_all(folder(path))?;
    replace_with(path, mode, |file| {
        if let Ok(before) = fs::metadata(path) {
            file.set_permissions(before.permissions())?;
        }
        file.write_all(bytes)?;
        file.sync_all()
    })
}

/// Replaces a file of the user: an existing file keeps its owner, and its permissions unless others are given. A new
/// one gets `mode`. Does not wait for the disk.
///
/// If the folder or the owner does not allow that, an existing file is written in place.
///
/// # Errors
/// When the new content cannot be written.
pub fn edit(
    path: &Path,
    bytes: &[u8],
    mode: u32,
    permissions: Option<Permissions>,
) -> io::Result<()> {
    let before = fs::metadata(path).ok();
    let permissions = permissions.or_else(|| before.as_ref().map(Metadata::permissions));
    let written = replace_with(path, mode, |file| {
        if let Some(before) = &before {
            keep_owner(file, before)?;
        }
        // First, so that no process can read it that could not read the old one.
        if let Some(permissions) = permissions {
            file.set_permissions(permissions)?;
        }
        file.write_all(bytes)
    });
    match written {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied && before.is_some() => {
            let mut file = regular::write(path, OpenOptions::new().write(true).truncate(true))?;
            file.write_all(bytes)
        }
        written => written,
    }
}

/// Has a new file written next to `path` and renames it to `path`, so that a reader sees the old content or the new. A
/// link is replaced, not its target. The umask narrows `mode`.
///
/// # Errors
/// Those of `write`, and when the file cannot be created or renamed. The old file is unchanged then.
pub fn replace_with(
    path: &Path,
    mode: u32,
    write: impl FnOnce(&mut File) -> io::Result<()>,
) -> io::Result<()> {
    // Short, because the file's own name may be as long as the system allows.
    let temporary = folder(path).join(format!(".ostler-{}", uuid::Uuid::new_v4().simple()));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&temporary)?;
    let written = write(&mut file).and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        // The caller needs the first error, not that of the clean-up.
        let _ = fs::remove_file(&temporary);
    }
    written
}

fn folder(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("."))
}

fn keep_owner(file: &File, before: &Metadata) -> io::Result<()> {
    let now = file.metadata()?;
    if (now.uid(), now.gid()) != (before.uid(), before.gid()) {
        fchown(file, Some(before.uid()), Some(before.gid()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_file_is_replaced_with_its_permissions_and_no_temporary_file_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("new/file");
        replace(&file, b"one", 0o600).unwrap();
        let mode = |file: &Path| fs::metadata(file).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&file), 0o600);
        fs::set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
        replace(&file, b"two", 0o600).unwrap();
        assert_eq!((fs::read(&file).unwrap(), mode(&file)), (b"two".to_vec(), 0o640));
        fs::create_dir_all(folder.path().join("taken/by a folder")).unwrap();
        assert!(replace(&folder.path().join("taken"), b"three", 0o600).is_err());
        let left: Vec<_> =
            fs::read_dir(folder.path()).unwrap().flatten().map(|entry| entry.file_name()).collect();
        assert_eq!(left.len(), 2, "{left:?}");
    }

    #[test]
    fn a_file_of_the_user_keeps_its_owner_and_permissions() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        let seen = |file: &Path| {
            let about = fs::metadata(file).unwrap();
            (fs::read(file).unwrap(), about.permissions().mode() & 0o777)
        };
        edit(&file, b"one", 0o600, None).unwrap();
        assert_eq!(seen(&file), (b"one".to_vec(), 0o600));
        edit(&file, b"two", 0o600, Some(Permissions::from_mode(0o750))).unwrap();
        edit(&file, b"three", 0o600, None).unwrap();
        assert_eq!(seen(&file), (b"three".to_vec(), 0o750));
        assert!(edit(&folder.path().join("missing/file"), b"", 0o600, None).is_err());
        // Mutant: without `keep_owner` the file belongs to root afterwards. Only root can try it.
        if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(&file, Some(65534), Some(65534)).unwrap();
            edit(&file, b"four", 0o600, None).unwrap();
            let about = fs::metadata(&file).unwrap();
            assert_eq!((about.uid(), about.gid()), (65534, 65534));
        }
    }
}
