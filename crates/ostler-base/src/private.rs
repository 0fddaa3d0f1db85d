//! Files and folders that only their owner can use: created with these permissions, and refused if others have access.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{
    DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _,
};
use std::path::Path;

use rustix::fs::OFlags;

/// The size limit of a file, in bytes.
const LONGEST: u64 = 16 * 1024 * 1024;

/// Creates a folder that only its owner can use, and its missing parents. An existing folder must not be writable by
/// others.
///
/// # Errors
/// When the folder cannot be created, or others may write in it.
pub fn folder(path: &Path) -> io::Result<()> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    let about = std::fs::metadata(path)?;
    if about.mode() & 0o022 != 0 {
        return Err(refused(path, "others may write in it", "chmod 700"));
    }
    Ok(())
}

/// Creates a file that must not exist yet.
///
/// # Errors
/// When the file exists, or cannot be created.
pub fn create(path: &Path, bytes: &[u8]) -> io::Result<()> {
    fill(&mut OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?, bytes)
}

fn fill(file: &mut File, bytes: &[u8]) -> io::Result<()> {
    // The process's umask may have removed permissions of the owner.
    file.set_permissions(Permissions::from_mode(0o600))?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Replaces a file in one step: a concurrent reader sees the old file or the new one.
///
/// # Errors
/// When it cannot be written. The old file stays.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = path.parent().ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
    ostler_files::replace_with(path, 0o600, |file| fill(file, bytes))?;
    File::open(folder)?.sync_all()
}

/// Reads a file that only its owner can read.
///
/// # Errors
/// When it cannot be read, is a link, or others can read it too.
pub fn read(path: &Path) -> io::Result<String> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let about = file.metadata()?;
    if !about.is_file() {
        return Err(refused(path, "it is not a file", "put a file in its place, or remove it"));
    }
    if about.mode() & 0o077 != 0 {
        return Err(refused(path, "others may read or change it", "make a new one, and chmod 600"));
    }
    let mut text = String::new();
    file.take(LONGEST).read_to_string(&mut text)?;
    Ok(text)
}

fn refused(path: &Path, what: &str, way_out: &str) -> io::Error {
    let text = format!("cannot use {}: {what}; {way_out}", path.display());
    io::Error::new(io::ErrorKind::PermissionDenied, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().mode() & 0o777
    }

    #[test]
    fn new_files_and_folders_are_accessible_to_their_owner_only() {
        let place = tempfile::tempdir().unwrap();
        let inner = place.path().join("a/b");
        folder(&inner).unwrap();
        assert_eq!(mode(&inner), 0o700);
        let file = inner.join("file");
        create(&file, b"one").unwrap();
        assert_eq!(mode(&file), 0o600);
        assert_eq!(create(&file, b"two").unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        replace(&file, b"two").unwrap();
        assert_eq!((mode(&file), read(&file).unwrap().as_str()), (0o600, "two"));
        assert_eq!(std::fs::read_dir(&inner).unwrap().count(), 1, "no temporary file stays");
    }

    // Seen to fail without the check of the mode, and without NOFOLLOW.
    #[test]
    fn files_that_others_can_read_or_replace_are_refused() {
        let place = tempfile::tempdir().unwrap();
        let file = place.path().join("file");
        create(&file, b"x").unwrap();
        let link = place.path().join("link");
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert!(read(&link).is_err());
        std::fs::set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
        assert!(read(&file).unwrap_err().to_string().contains("chmod 600"));
        assert!(read(place.path()).is_err(), "a folder is not a file");
        let open = place.path().join("open");
        std::fs::create_dir(&open).unwrap();
        std::fs::set_permissions(&open, Permissions::from_mode(0o777)).unwrap();
        assert!(folder(&open).is_err());
    }
}
