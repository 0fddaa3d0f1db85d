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

/// Opens a regular file to read it, unless its name is a link: for files that other programs can replace.
///
/// # Errors
/// As [`open`].
fn open_unless_link(path: &Path) -> io::Result<File> {
    if !path.symlink_metadata()?.is_file() {
        return Err(not_regular());
    }
    let flags = (OFlags::NONBLOCK | OFlags::NOFOLLOW).bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(not_regular()) }
}

/// Opens a regular file to read it and to write at its end. A missing one is created if its mode is given.
///
/// # Errors
/// As [`open`]: a pipe in its place would wait for a reader.
pub fn append(path: &Path, new: Option<u32>) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).append(true).create(new.is_some()).mode(new.unwrap_or_default());
    write(path, &mut options)
}

/// Copies a regular file, with its permissions, to a place where there is none.
///
/// # Errors
/// As [`open`], and when `to` exists or cannot be written.
pub fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let mut from = open(from)?;
    let permissions = from.metadata()?.permissions();
    let mut to = OpenOptions::new().write(true).create_new(true).mode(0o600).open(to)?;
    to.set_permissions(permissions)?;
    io::copy(&mut from, &mut to).map(drop)
}

/// Opens a regular file for writing.
pub(crate) fn write(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    match path.metadata() {
        Ok(about) if !about.is_file() => return Err(not_regular()),
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let file = options.custom_flags(OFlags::NONBLOCK.bits().cast_signed()).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(not_regular()) }
}

pub(crate) fn too_long(most: u64) -> io::Error {
    let text = format!("it is longer than {most} bytes; make it shorter");
    io::Error::new(io::ErrorKind::FileTooLarge, text)
}

fn not_regular() -> io::Error {
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

/// Reads a regular file of at most `most` bytes, unless its name is a link: for files that other programs can replace.
///
/// # Errors
/// As [`read_bytes`], and for a link.
pub fn read_bytes_unless_link(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let bytes = read_at_most(open_unless_link(path)?, most)?;
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
    use std::io::{Read as _, Write as _};

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

    /// Mutant: `write` without the check before it opens, and without `NONBLOCK`: it waits forever.
    #[test]
    fn writers_do_not_wait_for_a_reader_of_a_pipe() {
        let folder = tempfile::tempdir().unwrap();
        let (file, pipe) = (folder.path().join("file"), folder.path().join("pipe"));
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        assert!(append(&file, None).is_err(), "a missing file is not created");
        append(&file, Some(0o640)).unwrap().write_all(b"one").unwrap();
        append(&file, None).unwrap().write_all(b" two").unwrap();
        assert_eq!(read_text(&file, 100).unwrap(), "one two");
        let to = folder.path().join("copy");
        copy(&file, &to).unwrap();
        assert_eq!(read_text(&to, 100).unwrap(), "one two");
        assert_eq!(to.metadata().unwrap().permissions(), file.metadata().unwrap().permissions());
        assert!(copy(&file, &to).is_err(), "an existing file is not overwritten");
        for other in [folder.path(), &pipe, Path::new("/dev/null")] {
            assert!(append(other, Some(0o600)).is_err(), "{}", other.display());
            // Without reading, opening the pipe would wait.
            assert!(write(other, OpenOptions::new().write(true)).is_err(), "{}", other.display());
            assert!(copy(other, &folder.path().join("new")).is_err(), "{}", other.display());
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
