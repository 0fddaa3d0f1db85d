//! Opens only regular files, because others could make the reader wait: a pipe blocks until another process writes.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::fd::AsFd;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::OFlags;

/// Opens a regular file to read it.
///
/// # Errors
/// Also for folders, pipes, sockets and devices: without waiting, and without an effect on a device.
pub fn open(path: &Path) -> io::Result<File> {
    // Checked first, because opening alone has an effect on some devices; checked again, because names can change.
    if !path.metadata()?.is_file() {
        return Err(not_regular());
    }
    let without_waiting = OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(without_waiting).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(not_regular()) }
}

pub(crate) fn too_long(most: u64) -> io::Error {
    let text = format!("it is longer than {most} bytes; make it shorter");
    io::Error::new(io::ErrorKind::FileTooLarge, text)
}

pub(crate) fn not_regular() -> io::Error {
    io::Error::other("it is not a regular file")
}

/// Reads a regular file of at most `most` bytes as text.
///
/// # Errors
/// Also for a file that is longer, is not UTF-8, or belongs to the kernel.
pub fn read_text(path: &Path, most: u64) -> io::Result<String> {
    let file = open(path)?;
    if is_of_kernel(&file) {
        return Err(not_regular());
    }
    let bytes = read_at_most(file, most)?;
    if bytes.len() as u64 > most {
        return Err(too_long(most));
    }
    String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// Reads a regular file of at most `most` bytes.
///
/// # Errors
/// Also for a file that is longer.
pub fn read_bytes(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let bytes = read_at_most(open(path)?, most)?;
    if bytes.len() as u64 > most { Err(too_long(most)) } else { Ok(bytes) }
}

/// Reads a file up to one byte more than `most`, so that the caller can detect that it is longer.
///
/// # Errors
/// When it cannot be read.
pub fn read_at_most(file: File, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Whether a file belongs to the kernel, wherever it is mounted.
#[cfg(target_os = "linux")]
pub fn is_of_kernel(file: impl AsFd) -> bool {
    // The kernel's numbers of file systems; the width of the field differs between machines.
    const PROC: rustix::fs::FsWord = 0x9fa0;
    const SYSFS: rustix::fs::FsWord = 0x6265_6572;
    // A file whose file system is unknown is not read.
    rustix::fs::fstatfs(file).map_or(true, |system| matches!(system.f_type, PROC | SYSFS))
}

/// Whether a file belongs to the kernel. Other systems have no such files.
#[cfg(not(target_os = "linux"))]
pub fn is_of_kernel(_: impl AsFd) -> bool {
    false
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    // Mutant: `open` opens whatever it is.
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

    #[test]
    fn text_is_read_up_to_a_limit_and_never_from_the_kernel() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        std::fs::write(&file, "text").unwrap();
        assert_eq!(read_text(&file, 4).unwrap(), "text");
        assert_eq!(read_text(&file, 3).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        std::fs::write(&file, [0xff]).unwrap();
        assert_eq!(read_text(&file, 4).unwrap_err().kind(), io::ErrorKind::InvalidData);
        assert_eq!(read_bytes(&file, 1).unwrap(), [0xff]);
        assert_eq!(read_bytes(&file, 0).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        #[cfg(target_os = "linux")]
        assert!(read_text(Path::new("/proc/self/environ"), 1 << 20).is_err());
    }
}
