//! The files that a read-only command reads.

use crate::word::Word;

/// The files that a read-only part reads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// Files and folders it reads or lists. Empty for a command that reads none, or only the working directory.
    pub paths: Vec<Word>,
    /// Whether the paths must not be folders: the command would show the files in a folder, also through links.
    pub files_only: bool,
    /// Whether it shows the contents of files that it finds by itself.
    pub searches: bool,
}
