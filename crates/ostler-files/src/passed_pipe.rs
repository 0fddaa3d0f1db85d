//! Reads a pipe that the shell passes by its descriptor, as `<(command)` does: the user writes it in place of a file.
//!
//! Unlike a named pipe, it exists for this program alone, and its writer runs already. It may still be silent or
//! endless, so it is read for a limited time and up to a limited length.

use std::fs::OpenOptions;
use std::io::{self, ErrorKind, Read as _};
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::fs::OFlags;

/// How long the writer may take until it closes the pipe.
const PIPE_TIMEOUT: Duration = Duration::from_secs(5);
/// The pause between two attempts to read.
const PAUSE: Duration = Duration::from_millis(5);

/// Reads the pipe at this path to its end. `None` if the path is not a pipe by its descriptor. A pipe can be read only
/// once.
///
/// # Errors
/// Also when the writer does not close the pipe within five seconds, or writes more than `most` bytes.
pub fn read_passed_pipe(path: &Path, most: u64) -> Option<io::Result<String>> {
    let path = path.to_str().filter(|path| is_descriptor(path))?;
    let is_pipe = std::fs::metadata(path).is_ok_and(|file| file.file_type().is_fifo());
    is_pipe.then(|| read(Path::new(path), most, PIPE_TIMEOUT))
}

fn is_descriptor(path: &str) -> bool {
    let number = path.strip_prefix("/dev/fd/").or_else(|| path.strip_prefix("/proc/self/fd/"));
    number.is_some_and(|number| !number.is_empty() && number.bytes().all(|it| it.is_ascii_digit()))
}

fn read(path: &Path, most: u64, limit: Duration) -> io::Result<String> {
    let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed();
    let mut pipe = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let begun = Instant::now();
    let mut bytes = Vec::new();
    let mut portion = vec![0; 64 * 1024];
    loop {
        match pipe.read(&mut portion) {
            Ok(0) => break,
            Ok(n) => bytes.extend_from_slice(&portion[..n]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => sleep(PAUSE),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        if bytes.len() as u64 > most {
            return Err(crate::regular::too_long(most));
        }
        if begun.elapsed() > limit {
            return Err(unfinished(limit));
        }
    }
    String::from_utf8(bytes).map_err(|error| io::Error::new(ErrorKind::InvalidData, error))
}

fn unfinished(limit: Duration) -> io::Error {
    let seconds = limit.as_secs();
    let text = format!(
        "it is a pipe that was not closed within {seconds} s; write to a file first, and name the file"
    );
    io::Error::new(ErrorKind::TimedOut, text)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::fd::AsRawFd as _;

    use super::*;

    /// Writes into a pipe, and reads it by its descriptor, with the writing end open or closed.
    fn check(written: &[u8], stays_open: bool, most: u64) -> io::Result<String> {
        let (reader, mut writer) = io::pipe().unwrap();
        writer.write_all(written).unwrap();
        let writer = stays_open.then_some(writer);
        let path = format!("/proc/self/fd/{}", reader.as_raw_fd());
        let read = read(Path::new(&path), most, Duration::from_millis(50));
        drop(writer);
        read
    }

    // Mutants: the check of the length, and that of the time, left out.
    #[test]
    fn a_pipe_is_read_to_its_end_within_its_limits() {
        assert_eq!(check(b"hello", false, 5).unwrap(), "hello");
        assert_eq!(check(b"", false, 5).unwrap(), "");
        let kind = |written: &[u8], stays_open| check(written, stays_open, 5).unwrap_err().kind();
        assert_eq!(kind(b"hello!", false), ErrorKind::FileTooLarge);
        assert_eq!(kind(b"hello", true), ErrorKind::TimedOut);
        assert_eq!(kind(b"\xff", false), ErrorKind::InvalidData);
    }

    // Mutant: `is_descriptor` is always true.
    #[test]
    fn only_a_pipe_by_its_descriptor_counts() {
        let folder = tempfile::tempdir().unwrap();
        let named = folder.path().join("named");
        let made = std::process::Command::new("mkfifo").arg(&named).status().unwrap();
        assert!(made.success());
        let (reader, writer) = io::pipe().unwrap();
        drop(writer);
        let passed = format!("/dev/fd/{}", reader.as_raw_fd());
        assert_eq!(read_passed_pipe(Path::new(&passed), 9).unwrap().unwrap(), "");
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&passed, &link).unwrap();
        let file = std::fs::File::open(folder.path()).unwrap();
        let other = format!("/dev/fd/{}", file.as_raw_fd());
        for path in [named.as_path(), &link, Path::new(&other), Path::new("/dev/fd/../zero")] {
            assert!(read_passed_pipe(path, 9).is_none(), "{}", path.display());
        }
    }
}
