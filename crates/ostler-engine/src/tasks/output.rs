//! The output of a task so far.

use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use ostler_files::RealPath;

/// The end of a task's output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutputTail {
    /// The last bytes, from the beginning of a line if possible.
    pub text: String,
    /// How long the output is in all.
    pub total: u64,
    shown: u64,
}

impl OutputTail {
    /// Whether there is more before it.
    pub fn is_cut(&self) -> bool {
        self.shown < self.total
    }
}

/// The last `max` bytes of a file. A file that is not there yet is empty. Commands can write in its folder, so no link
/// in its path is followed.
///
/// # Errors
/// When it cannot be read.
pub fn end(file: &Path, max: u64) -> io::Result<OutputTail> {
    let file = RealPath::from_resolved(file.to_owned()).ok_or(io::ErrorKind::InvalidInput)?;
    let mut file = match file.open() {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok(OutputTail { text: String::new(), total: 0, shown: 0 });
        }
        Err(error) => return Err(error),
    };
    let total = file.metadata()?.len();
    file.seek(SeekFrom::Start(total.saturating_sub(max)))?;
    let mut bytes = Vec::new();
    file.take(max).read_to_end(&mut bytes)?;
    let shown = bytes.len() as u64;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    // The first line has lost its beginning.
    let whole = if shown < total { text.split_once('\n').map(|(_, rest)| rest) } else { None };
    let text = whole.filter(|rest| !rest.is_empty()).unwrap_or(&text).to_owned();
    Ok(OutputTail { text, total: total.max(shown), shown })
}

#[cfg(test)]
mod tests {
    use super::*;

    // Mutant: the whole file is read.
    #[test]
    fn the_end_begins_with_a_whole_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("output");
        assert_eq!(end(&path, 10).unwrap().text, "");
        std::fs::write(&path, "one\ntwo\nthree\n").unwrap();
        let all = end(&path, 100).unwrap();
        assert_eq!((all.text.as_str(), all.total, all.is_cut()), ("one\ntwo\nthree\n", 14, false));
        let cut = end(&path, 8).unwrap();
        assert_eq!((cut.text.as_str(), cut.total, cut.is_cut()), ("three\n", 14, true));
        assert_eq!(end(&path, 3).unwrap().text, "ee\n");
    }

    // Mutant: `std::fs::File::open`.
    #[test]
    fn an_output_that_is_not_a_file_is_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        assert!(end(&pipe, 10).is_err() && end(Path::new("/dev/zero"), 10).is_err());
    }

    // Mutant: `end` with `ostler_files::open`, as before, shows the secret.
    #[test]
    fn a_link_in_place_of_the_output_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("secret"), "secret").unwrap();
        let path = folder.path().join("output");
        std::os::unix::fs::symlink("secret", &path).unwrap();
        assert!(end(&path, 10).is_err());
    }
}
