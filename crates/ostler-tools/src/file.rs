//! Regular files: read whole up to a limit, and replaced atomically.
//!
//! Other paths (folders, pipes, sockets, devices) are refused with a message for the model.

use std::fs::{self, Metadata};
use std::io::{self, Read as _};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use ostler_engine::tool::ToolError;

use crate::similar;

/// The size limit for reading a whole file.
pub(crate) const MAX_BYTES: u64 = 16 * 1024 * 1024;

/// Reads a regular file.
pub(crate) fn load(path: &Path) -> Result<Vec<u8>, ToolError> {
    let found = fs::metadata(path).map_err(|error| unreadable(path, &error))?;
    refuse_other_kinds(path, &found)?;
    let file = ostler_files::open(path).map_err(|error| unreadable(path, &error))?;
    let size = file.metadata().map_err(|error| unreadable(path, &error))?.len();
    if size > MAX_BYTES {
        return Err(too_large(path, size));
    }
    // Files in /proc report no size, and a log may grow meanwhile: the limit applies to what is read.
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0));
    let n_read = file.take(MAX_BYTES + 1).read_to_end(&mut bytes);
    n_read.map_err(|error| unreadable(path, &error))?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(too_large(path, bytes.len() as u64));
    }
    Ok(bytes)
}

/// Replaces or creates a file, so that a reader sees the old or the new one, never a part.
///
/// An existing file keeps its mode and owner. If the folder does not allow that, the file is written in place.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> Result<(), ToolError> {
    let parent = path.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(parent).map_err(|error| unwritable(parent, &error))?;
    ostler_files::edit(path, bytes, 0o666, None).map_err(|error| unwritable(path, &error))
}

/// The file does not exist; suggests similar names.
pub(crate) fn missing(path: &Path) -> ToolError {
    let mut text = format!("{} does not exist.", path.display());
    // Names that are not UTF-8 are shown like this. Whichever file is meant, permissions were decided for another
    // name.
    if path.to_string_lossy().contains('\u{fffd}') {
        text.push_str(" If its name is not UTF-8, it cannot be written here: use Bash, with a pattern for the name.");
        return ToolError::Refused(text);
    }
    let similar = similar::similar_names(path);
    if !similar.is_empty() {
        text += &format!(" In the same folder: {}.", similar.join(", "));
    }
    ToolError::Refused(text)
}

/// Why a path could not be read.
pub(crate) fn unreadable(path: &Path, error: &io::Error) -> ToolError {
    match error.kind() {
        io::ErrorKind::NotFound => missing(path),
        _ => ToolError::Failed(format!("cannot read {}: {error}", path.display())),
    }
}

fn unwritable(path: &Path, error: &io::Error) -> ToolError {
    ToolError::Failed(format!("cannot write {}: {error}", path.display()))
}

fn refuse_other_kinds(path: &Path, metadata: &Metadata) -> Result<(), ToolError> {
    let kind = metadata.file_type();
    let what = if kind.is_file() {
        return Ok(());
    } else if kind.is_dir() {
        "a folder; list it with Glob or with ls in Bash"
    } else if kind.is_fifo() {
        "a pipe, which is never opened: reading it could wait forever"
    } else if kind.is_socket() {
        "a socket, not a file"
    } else {
        "a device, not a file"
    };
    Err(ToolError::Refused(format!("{} is {what}.", path.display())))
}

fn too_large(path: &Path, size: u64) -> ToolError {
    ToolError::Refused(format!(
        "{} has {} MiB, more than the {} MiB that are read at once. Search it with Grep, or cut a part out with Bash (sed -n, head, tail).",
        path.display(),
        size / (1024 * 1024),
        MAX_BYTES / (1024 * 1024),
    ))
}
