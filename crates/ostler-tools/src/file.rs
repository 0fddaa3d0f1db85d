//! Regular files: read whole up to a limit, and replaced atomically.
//!
//! Other paths (folders, pipes, sockets, devices) are refused with a message for the model.

use std::fs::Metadata;
use std::io::{self, Read as _};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

use ostler_engine::tool::ToolError;

use crate::path::CallPath;
use crate::similar;

/// The size limit for reading a whole file.
pub(crate) const MAX_BYTES: u64 = 16 * 1024 * 1024;

/// Reads a regular file.
pub(crate) fn load(path: &CallPath) -> Result<Vec<u8>, ToolError> {
    let failed = |error: io::Error| unreadable(path, &error);
    let found = path.real.metadata().map_err(failed)?;
    refuse_other_kinds(&path.written, &found)?;
    let file = path.real.open().map_err(failed)?;
    let size = file.metadata().map_err(failed)?.len();
    if size > MAX_BYTES {
        return Err(too_large(&path.written, size));
    }
    // Files in /proc report no size, and a log may grow meanwhile: the limit applies to what is read.
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0));
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(failed)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(too_large(&path.written, bytes.len() as u64));
    }
    Ok(bytes)
}

/// Replaces or creates a file, so that a reader sees the old or the new one, never a part.
///
/// An existing file keeps its mode and owner. If the folder does not allow that, the file is written in place.
pub(crate) fn replace(path: &CallPath, bytes: &[u8]) -> Result<(), ToolError> {
    let failed = |at: &Path, error: io::Error| match ostler_files::is_link_appeared(&error) {
        true => link_appeared(&path.written),
        false => ToolError::Failed(format!("cannot write {}: {error}", at.display())),
    };
    let parent = path.real.parent().and_then(|parent| parent.create_folders(0o777));
    let folder = path.written.parent().unwrap_or(&path.written);
    parent.map_err(|error| failed(folder, error))?;
    path.real.edit(bytes, 0o666, None).map_err(|error| failed(&path.written, error))
}

/// The file does not exist; suggests similar names.
pub(crate) fn missing(path: &CallPath) -> ToolError {
    let mut text = format!("{} does not exist.", path.written.display());
    // Names that are not UTF-8 are shown like this. Whichever file is meant, permissions were decided for another
    // name.
    if path.written.to_string_lossy().contains('\u{fffd}') {
        text.push_str(" If its name is not UTF-8, it cannot be written here: use Bash, with a pattern for the name.");
        return ToolError::Refused(text);
    }
    let similar = similar::similar_names(&path.real);
    if !similar.is_empty() {
        text += &format!(" In the same folder: {}.", similar.join(", "));
    }
    ToolError::Refused(text)
}

/// Why a path could not be read.
pub(crate) fn unreadable(path: &CallPath, error: &io::Error) -> ToolError {
    match error.kind() {
        io::ErrorKind::NotFound => missing(path),
        _ if ostler_files::is_link_appeared(error) => link_appeared(&path.written),
        _ => ToolError::Failed(format!("cannot read {}: {error}", path.written.display())),
    }
}

fn link_appeared(path: &Path) -> ToolError {
    ToolError::Refused(format!(
        "{} changed into a symbolic link, or a folder on the way to it did, after permission was given. It was not \
         opened. Call the tool again.",
        path.display()
    ))
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
    } else if kind.is_symlink() {
        return Err(link_appeared(path));
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
