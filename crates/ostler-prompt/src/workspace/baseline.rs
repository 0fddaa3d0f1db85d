//! The files of a workspace when it was made.

use std::collections::BTreeMap;
use std::path::PathBuf;

/// By their paths in the workspace.
pub(super) type Baseline = BTreeMap<PathBuf, Original>;

/// A file as it was mounted.
#[derive(Clone, Debug)]
pub(super) struct Original {
    pub(super) digest: [u8; 32],
    pub(super) mode: u32,
    /// The mount it belongs to.
    pub(super) mount: usize,
    /// Its path on the host; `None` if it was reached by a link.
    pub(super) host_path: Option<PathBuf>,
}
