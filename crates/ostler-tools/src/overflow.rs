//! Saves text that is too long to show in the session's scratch folder.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use ostler_engine::scratch::Scratch;

/// Numbers the saved files.
#[derive(Debug, Default)]
pub(crate) struct OverflowFiles(AtomicU64);

impl OverflowFiles {
    /// Saves a text and returns its path.
    pub(crate) fn save(&self, scratch: &Scratch, text: &str) -> io::Result<PathBuf> {
        let n = self.0.fetch_add(1, Ordering::Relaxed);
        scratch.keep(&format!("page-{n}.md"), text.as_bytes())
    }
}
