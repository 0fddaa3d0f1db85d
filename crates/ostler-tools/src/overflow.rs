//! What is too long to show is kept in the session's own folder.

use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

use ostler_engine::scratch::Scratch;

/// Counts what is kept.
#[derive(Debug, Default)]
pub(crate) struct Kept(AtomicU64);

impl Kept {
    /// Keeps a text; says where.
    pub(crate) fn keep(&self, scratch: &Scratch, text: &str) -> io::Result<PathBuf> {
        let n = self.0.fetch_add(1, Ordering::Relaxed);
        scratch.keep(&format!("page-{n}.md"), text.as_bytes())
    }
}
