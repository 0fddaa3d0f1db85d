//! The token of a server on this machine, which only the server's user can read.

use std::io::{self, Read as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use rustix::fs::OFlags;

/// Reads a token. Refuses a file that others can access: another user may know the token, or may have written the file.
///
/// # Errors
/// When the file does not exist, is not a regular file, or others can read or change it.
pub fn read(path: &Path) -> io::Result<String> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let file = std::fs::OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let about = file.metadata()?;
    if !about.is_file() || about.mode() & 0o077 != 0 {
        let text =
            "others may read or change it; remove it and start the server again for a new one";
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, text));
    }
    let mut text = String::new();
    file.take(4096).read_to_string(&mut text)?;
    Ok(text.trim().to_owned())
}
