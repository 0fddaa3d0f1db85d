//! Opens regular files, and nothing that could make the reader wait: a pipe has no end until somebody writes to it.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// Opens a regular file to read it.
///
/// # Errors
/// For folders, pipes, sockets and devices, too: without waiting, and without an effect on a device.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    // Asked first, because opening alone makes some devices do something; asked again, because names can change.
    if !path.metadata()?.is_file() {
        return Err(not_regular());
    }
    let file = OpenOptions::new().read(true).custom_flags(nix::libc::O_NONBLOCK).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(not_regular()) }
}

fn not_regular() -> io::Error {
    io::Error::other("it is not a regular file")
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn a_file_is_opened_and_everything_else_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let (file, pipe) = (folder.path().join("file"), folder.path().join("pipe"));
        std::fs::write(&file, "text").unwrap();
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let mut text = String::new();
        open(&file).unwrap().read_to_string(&mut text).unwrap();
        assert_eq!(text, "text");
        for other in [folder.path(), &pipe, Path::new("/dev/zero"), Path::new("/dev/tty")] {
            assert!(open(other).is_err(), "{}", other.display());
        }
    }
}
