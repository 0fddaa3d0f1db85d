//! Placeholders for all protected paths of a boundary that are missing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::boundary::Boundary;
use crate::error::SandboxError;
use crate::mask::{self, Masks};

/// Makes them, as long as the result lives. Protected paths whose parents are missing are then protected at the first missing
/// parent.
///
/// # Errors
/// When a placeholder cannot be made.
pub(crate) fn make(boundary: &mut Boundary, sweeper: &Path) -> Result<Vec<Masks>, SandboxError> {
    let mut missing: BTreeMap<PathBuf, Vec<_>> = BTreeMap::new();
    let roots: Vec<PathBuf> = boundary.writable_roots().cloned().collect();
    for protected in &mut boundary.protected {
        let (path, kind) = mask::place(protected);
        if roots.iter().any(|root| path.starts_with(root))
            && mask::is_needed(&path)
            && let (Some(folder), Some(name)) = (path.parent(), path.file_name())
        {
            let names = missing.entry(folder.to_owned()).or_default();
            names.push((name.to_owned(), kind));
        }
        protected.path = path;
    }
    missing.iter().map(|(folder, names)| Masks::new(folder, names, sweeper)).collect()
}
