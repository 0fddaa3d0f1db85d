//! Empty files and folders that keep the place of others while a child runs, and that must not stay.

use std::io;
use std::path::Path;

use crate::watchdog;

/// Has the watchdog remove an empty file or folder with the sticky bit (mode 1644 or 1755, or less) when this process is
/// gone, unless another process holds a lock on it. Call it before the file is made.
///
/// # Errors
/// If the path is not text on one line, or no watchdog can be started.
pub fn add(path: &Path) -> io::Result<()> {
    let text = path.to_str().filter(|path| !path.contains('\n'));
    let text = text.ok_or_else(|| io::Error::other("the path is not text on one line"))?;
    watchdog::add_placeholder(text)
}

/// Takes back one call of [`add`]: this process has removed the file itself.
pub fn remove(path: &Path) {
    if let Some(path) = path.to_str() {
        watchdog::remove_placeholder(path);
    }
}
