//! What a workspace was like when it was made.

use std::collections::BTreeMap;
use std::path::PathBuf;

/// Its files, by their paths in it.
pub(super) type Baseline = BTreeMap<PathBuf, Original>;

/// A file as it was.
#[derive(Clone, Debug)]
pub(super) struct Original {
    pub(super) digest: [u8; 32],
    pub(super) mode: u32,
    /// The mount it came with.
    pub(super) mount: usize,
    /// Where it came from; `None` when a link led there.
    pub(super) host_path: Option<PathBuf>,
}
