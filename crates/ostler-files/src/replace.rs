//! Replaces a file in one step.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Writes a file next to `path` and renames it to `path`, so that a reader sees the old content or the new. An existing file
/// keeps its permissions; a new one gets `mode`. Missing folders are created.
///
/// # Errors
/// When the new content cannot be written. The old file is unchanged then.
pub fn replace(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let temporary = folder.join(format!(".{name}.{}.tmp", uuid::Uuid::new_v4()));
    let written = write(&temporary, path, bytes, mode).and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        // The caller needs the first error, not that of the clean-up.
        let _ = fs::remove_file(&temporary);
    }
    written
}

fn write(temporary: &Path, path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(temporary)?;
    if let Ok(before) = fs::metadata(path) {
        file.set_permissions(before.permissions())?;
    }
    file.write_all(bytes)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_file_is_replaced_with_its_permissions_and_nothing_is_left_behind() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("new/file");
        replace(&file, b"one", 0o600).unwrap();
        let mode = |file: &Path| fs::metadata(file).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode(&file), 0o600);
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        replace(&file, b"two", 0o600).unwrap();
        assert_eq!((fs::read(&file).unwrap(), mode(&file)), (b"two".to_vec(), 0o640));
        fs::create_dir_all(folder.path().join("taken/by a folder")).unwrap();
        assert!(replace(&folder.path().join("taken"), b"three", 0o600).is_err());
        let left: Vec<_> =
            fs::read_dir(folder.path()).unwrap().flatten().map(|entry| entry.file_name()).collect();
        assert_eq!(left.len(), 2, "{left:?}");
    }
}
