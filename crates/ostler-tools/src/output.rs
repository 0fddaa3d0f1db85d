//! One output of a command: its start and end in memory, and all of it in a file if it is long.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use ostler_engine::scratch::Scratch;

/// How many bytes of the start, and of the end, are shown.
const HALF: usize = 15_000;
/// The size limit of the file; later output is only shown if it is at the end.
const MAX_FILE_BYTES: u64 = 64 * 1024 * 1024;

/// One output of a command.
pub(crate) struct Output {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    n_cut: u64,
    whole: WholeOutputFile,
    /// The scratch folder whose quota the file uses.
    scratch: Scratch,
}

/// The file with the whole output.
enum WholeOutputFile {
    /// Not needed yet; its path.
    Unneeded(PathBuf),
    Written {
        path: PathBuf,
        file: File,
        len: u64,
        /// Output beyond the limit is missing.
        is_cut: bool,
    },
    Failed,
}

impl Output {
    /// `path` is the file for a long output.
    pub(crate) fn new(path: PathBuf, scratch: &Scratch) -> Self {
        Self {
            head: Vec::new(),
            tail: VecDeque::new(),
            n_cut: 0,
            whole: WholeOutputFile::Unneeded(path),
            scratch: scratch.clone(),
        }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        if self.head.len() + self.tail.len() + bytes.len() > 2 * HALF {
            self.open();
        }
        self.whole.append(bytes, &self.scratch);
        let (head, tail) = bytes.split_at(bytes.len().min(HALF - self.head.len()));
        self.head.extend_from_slice(head);
        self.tail.extend(tail);
        let excess = self.tail.len().saturating_sub(HALF);
        self.tail.drain(..excess);
        self.n_cut += excess as u64;
    }

    /// The text to show; a note says what is cut and where the rest is.
    pub(crate) fn text(&self) -> String {
        let tail: Vec<u8> = self.tail.iter().copied().collect();
        if self.n_cut == 0 {
            return String::from_utf8_lossy(&[&self.head[..], &tail].concat()).into_owned();
        }
        let (head, tail) = (String::from_utf8_lossy(&self.head), String::from_utf8_lossy(&tail));
        let rest = match &self.whole {
            WholeOutputFile::Written { path, is_cut: false, .. } => {
                format!("all of it is in {}", path.display())
            }
            WholeOutputFile::Written { path, len: MAX_FILE_BYTES, .. } => {
                let size = MAX_FILE_BYTES / (1024 * 1024);
                format!("the first {size} MiB are in {}", path.display())
            }
            WholeOutputFile::Written { path, len, .. } => {
                let path = path.display();
                format!("the first {len} bytes are in {path}, and the session's quota is used up")
            }
            WholeOutputFile::Unneeded(_) | WholeOutputFile::Failed => {
                "they could not be saved".to_owned()
            }
        };
        format!("{head}\n[{} bytes cut; {rest}]\n{tail}", self.n_cut)
    }

    /// The file with the whole output, and its size, if not all is shown.
    pub(crate) fn whole(&self) -> Option<(&Path, u64)> {
        match &self.whole {
            WholeOutputFile::Written { path, len, .. } => Some((path, *len)),
            WholeOutputFile::Unneeded(_) | WholeOutputFile::Failed => None,
        }
    }

    fn open(&mut self) {
        let WholeOutputFile::Unneeded(path) = &mut self.whole else { return };
        self.whole = match self.scratch.create(path) {
            Ok(file) => {
                WholeOutputFile::Written { path: std::mem::take(path), file, len: 0, is_cut: false }
            }
            Err(_) => WholeOutputFile::Failed,
        };
        let (front, back) = self.tail.as_slices();
        for bytes in [&self.head, front, back] {
            self.whole.append(bytes, &self.scratch);
        }
    }
}

impl WholeOutputFile {
    fn append(&mut self, bytes: &[u8], scratch: &Scratch) {
        let Self::Written { file, len, is_cut, .. } = self else { return };
        let room = scratch.take_room((MAX_FILE_BYTES - *len).min(bytes.len() as u64));
        let room = usize::try_from(room).unwrap_or(usize::MAX);
        *is_cut |= room < bytes.len();
        let bytes = &bytes[..bytes.len().min(room)];
        *len += bytes.len() as u64;
        // One short write into the page cache, in our own folder: a blocking thread would cost more.
        if file.write_all(bytes).is_err() {
            *self = Self::Failed;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Mutants: `append` without `MAX_FILE_BYTES`; the end in memory is not cut.
    #[test]
    fn the_file_of_an_endless_output_stops_growing() {
        let scratch = Scratch::default();
        let path = scratch.folder().unwrap().join("output.txt");
        let mut output = Output::new(path.clone(), &scratch);
        let portion = vec![b'x'; 1 << 20];
        (0..65).for_each(|_| output.push(&portion));
        assert_eq!(path.metadata().unwrap().len(), MAX_FILE_BYTES);
        assert_eq!(output.head.len() + output.tail.len(), 2 * HALF);
        let text = output.text();
        assert!(text.contains("the first 64 MiB are in"), "{}", &text[HALF..HALF + 200]);
    }

    // Mutant: `append` without `take_room`.
    #[test]
    fn output_beyond_the_sessions_quota_is_not_saved() {
        let scratch = Scratch::default();
        let room = scratch.take_room(u64::MAX);
        assert!(room > 0 && scratch.take_room(1) == 0, "all room is taken");
        let path = scratch.folder().unwrap().join("output.txt");
        let mut output = Output::new(path.clone(), &scratch);
        (0..10).for_each(|_| output.push(&[b'x'; HALF]));
        assert_eq!(path.metadata().unwrap().len(), 0);
        let text = output.text();
        assert!(text.contains("the first 0 bytes are in"), "{}", &text[HALF..HALF + 200]);
    }
}
