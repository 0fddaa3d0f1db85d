//! What a command wrote to one of its outputs: the beginning and the end in memory, all of it in a file once it is long.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// What is shown: so much of the beginning, and as much of the end.
const HALF: usize = 15_000;
/// The file ends here; what comes after is shown only if it is among the last.
const MAX_FILE_BYTES: u64 = 64 * 1024 * 1024;

/// One output of a command.
pub(crate) struct Output {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    n_cut: u64,
    whole: Whole,
}

/// The file with everything.
enum Whole {
    /// Where it would be.
    Unneeded(PathBuf),
    Written {
        path: PathBuf,
        file: File,
        len: u64,
    },
    Failed,
}

impl Output {
    /// `path` is where the whole goes if it gets long.
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { head: Vec::new(), tail: VecDeque::new(), n_cut: 0, whole: Whole::Unneeded(path) }
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        if self.head.len() + self.tail.len() + bytes.len() > 2 * HALF {
            self.open();
        }
        self.whole.append(bytes);
        let (head, tail) = bytes.split_at(bytes.len().min(HALF - self.head.len()));
        self.head.extend_from_slice(head);
        self.tail.extend(tail);
        let excess = self.tail.len().saturating_sub(HALF);
        self.tail.drain(..excess);
        self.n_cut += excess as u64;
    }

    /// What is shown of it; what is cut says so and where the rest is.
    pub(crate) fn text(&self) -> String {
        let tail: Vec<u8> = self.tail.iter().copied().collect();
        if self.n_cut == 0 {
            return String::from_utf8_lossy(&[&self.head[..], &tail].concat()).into_owned();
        }
        let (head, tail) = (String::from_utf8_lossy(&self.head), String::from_utf8_lossy(&tail));
        let rest = match &self.whole {
            Whole::Written { path, len, .. } if *len < MAX_FILE_BYTES => {
                format!("all of it is in {}", path.display())
            }
            Whole::Written { path, .. } => {
                let size = MAX_FILE_BYTES / (1024 * 1024);
                format!("the first {size} MiB are in {}", path.display())
            }
            Whole::Unneeded(_) | Whole::Failed => "they could not be kept".to_owned(),
        };
        format!("{head}\n[{} bytes cut; {rest}]\n{tail}", self.n_cut)
    }

    /// The file with all of it, and the file's size, if not all is shown.
    pub(crate) fn whole(&self) -> Option<(&Path, u64)> {
        match &self.whole {
            Whole::Written { path, len, .. } => Some((path, *len)),
            Whole::Unneeded(_) | Whole::Failed => None,
        }
    }

    fn open(&mut self) {
        let Whole::Unneeded(path) = &mut self.whole else { return };
        // The folder is the session's own; a name that exists all the same is not ours to follow.
        self.whole = match File::create_new(&path) {
            Ok(file) => Whole::Written { path: std::mem::take(path), file, len: 0 },
            Err(_) => Whole::Failed,
        };
        let (front, back) = self.tail.as_slices();
        for bytes in [&self.head, front, back] {
            self.whole.append(bytes);
        }
    }
}

impl Whole {
    fn append(&mut self, bytes: &[u8]) {
        let Self::Written { file, len, .. } = self else { return };
        let room = usize::try_from(MAX_FILE_BYTES - *len).unwrap_or(usize::MAX);
        let bytes = &bytes[..bytes.len().min(room)];
        *len += bytes.len() as u64;
        if file.write_all(bytes).is_err() {
            *self = Self::Failed;
        }
    }
}
