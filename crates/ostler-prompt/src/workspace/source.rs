//! Finds the real path of a mount and checks that it may be mounted.

use std::io;
use std::path::{Path, PathBuf};

use ostler_files::openat::Root;

use super::error::{WorkspaceError, WorkspaceSecurityError};

/// Opens the allowed roots; `None` if there is no list of roots.
pub(super) fn roots(roots: Option<&[PathBuf]>) -> Result<Option<Vec<Root>>, WorkspaceError> {
    let Some(roots) = roots else { return Ok(None) };
    let open = |path: &PathBuf| {
        Root::open(path)
            .map_err(|error| WorkspaceError::io("open the allowed host root", path, error))
    };
    roots.iter().map(open).collect::<Result<_, _>>().map(Some)
}

/// The real path of a mount.
pub(super) fn find(host_path: &Path, roots: Option<&[Root]>) -> Result<PathBuf, WorkspaceError> {
    let mut outside = None;
    for candidate in candidates(host_path, roots) {
        let real = match candidate.canonicalize() {
            Ok(real) => real,
            Err(error) if is_missing(&error) => continue,
            Err(error) => return Err(WorkspaceError::io("look at", &candidate, error)),
        };
        if roots.is_none_or(|roots| roots.iter().any(|root| real.starts_with(&root.path))) {
            return Ok(real);
        }
        outside.get_or_insert(real);
    }
    match outside {
        Some(resolved) => {
            Err(WorkspaceSecurityError::OutsideRoots { path: host_path.to_owned(), resolved }
                .into())
        }
        None => Err(WorkspaceError::Missing { path: host_path.to_owned() }),
    }
}

fn candidates(host_path: &Path, roots: Option<&[Root]>) -> Vec<PathBuf> {
    if host_path.is_absolute() {
        return vec![host_path.to_owned()];
    }
    let roots = roots.unwrap_or_default().iter().map(|root| root.path.join(host_path));
    roots.chain([host_path.to_owned()]).collect()
}

fn is_missing(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// The root of a mount without allowed roots: its own folder, or the folder of a file.
pub(super) fn own_boundary(real: &Path) -> Result<[Root; 1], WorkspaceError> {
    let folder = match real.is_dir() {
        true => real,
        false => real.parent().unwrap_or(real),
    };
    Root::open(folder).map(|root| [root]).map_err(|error| WorkspaceError::io("open", folder, error))
}

/// The root from which a mount is opened, and those in which links may be followed.
pub(super) fn boundary<'a>(
    roots: Option<&'a [Root]>,
    own: &'a [Root; 1],
    real: &Path,
) -> Result<(&'a Root, &'a [Root]), WorkspaceError> {
    let all = roots.unwrap_or(own);
    let root = all.iter().find(|root| real.starts_with(&root.path));
    let root = root.ok_or_else(|| WorkspaceSecurityError::Swapped { path: real.to_owned() })?;
    Ok((root, all))
}
