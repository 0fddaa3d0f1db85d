//! What to clean up after this process: folders, for example because placeholders were made in them, or anything else that the
//! program which cleans up knows by a text on one line.

use std::io;
use std::path::Path;

use crate::watchdog;

/// The first argument of the program that cleans up. The folders follow.
pub const ARGUMENT: &str = "__sweep";

/// Has the watchdog start `program` with [`ARGUMENT`] and this folder when this process is gone. Call it before something
/// is made that must not stay.
///
/// # Errors
/// If a path is not text on one line, or no watchdog can be started.
pub fn add(program: &Path, folder: &Path) -> io::Result<()> {
    watchdog::add_folder(line(program)?, line(folder)?)
}

/// Takes back one call of [`add`]. The folder may still be cleaned up: so the program must not remove what others need.
pub fn remove(folder: &Path) {
    if let Some(folder) = folder.to_str() {
        watchdog::remove_folder(folder);
    }
}

fn line(path: &Path) -> io::Result<&str> {
    let text = path.to_str().filter(|path| !path.contains('\n'));
    text.ok_or_else(|| io::Error::other(format!("{path:?} is not text on one line")))
}
