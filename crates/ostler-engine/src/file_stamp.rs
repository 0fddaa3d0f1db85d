//! Detects changes of a file without reading it.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// What a file looked like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileStamp {
    inode: u64,
    len: u64,
    modified: (i64, i64),
}

impl FileStamp {
    /// A file as it is; `None` when it is missing.
    pub(crate) fn of(path: &Path) -> Option<Self> {
        let data = fs::metadata(path).ok()?;
        let modified = (data.mtime(), data.mtime_nsec());
        data.is_file().then_some(Self { inode: data.ino(), len: data.len(), modified })
    }
}
