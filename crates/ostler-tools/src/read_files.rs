//! Which files the session has read, with their contents: a file must be read before it is overwritten.

use parking_lot::{Mutex, MutexGuard};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use ostler_engine::tool::ToolError;
use ostler_files::RealPath;

use crate::path::CallPath;

/// The files that a session has read, shared by its tools.
#[derive(Clone, Debug, Default)]
pub(crate) struct ReadFiles(Arc<Mutex<HashMap<RealPath, Fingerprint>>>);

/// Of the content, not of the modification time: touching a file does not change it, and fast changes are noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Fingerprint {
    len: usize,
    hash: u64,
}

impl ReadFiles {
    /// Records that the session has read these bytes of a file.
    pub(crate) fn note(&self, path: &RealPath, bytes: &[u8]) {
        self.files().insert(path.clone(), fingerprint(bytes));
    }

    /// Checks that the session has read exactly these bytes of the file.
    pub(crate) fn check(&self, path: &CallPath, bytes: &[u8]) -> Result<(), ToolError> {
        let known = self.files().get(&path.real).copied();
        let path = path.written.display();
        match known {
            None => Err(ToolError::Refused(format!(
                "{path} exists and was not read in this session. Read it first."
            ))),
            Some(known) if known != fingerprint(bytes) => Err(ToolError::Refused(format!(
                "{path} has changed since it was read. Read it again first."
            ))),
            Some(_) => Ok(()),
        }
    }

    fn files(&self) -> MutexGuard<'_, HashMap<RealPath, Fingerprint>> {
        self.0.lock()
    }
}

fn fingerprint(bytes: &[u8]) -> Fingerprint {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    Fingerprint { len: bytes.len(), hash: hasher.finish() }
}
