//! The original state of the files in a workspace.

use std::collections::BTreeMap;
use std::path::PathBuf;

/// The original files by their paths in the workspace.
pub(super) type Baseline = BTreeMap<PathBuf, Original>;

/// A file as it was mounted.
#[derive(Clone, Debug)]
pub(super) struct Original {
    pub(super) digest: [u8; 32],
    pub(super) mode: u32,
    /// The index of its mount.
    pub(super) mount: usize,
    /// Its path on the host; `None` if it was reached by a link.
    pub(super) host_path: Option<PathBuf>,
}
