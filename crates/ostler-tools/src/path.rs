//! Paths as permissions see them: absolute, without `.` and `..`.
//!
//! A tool opens exactly the path it has named as its effect. `..` is taken off by its letters, so what was decided on
//! and what gets opened are the same even where a link stands on the way.

use std::path::{Component, Path, PathBuf};

use ostler_engine::tool::ToolCx;

/// The path a tool works on.
pub(crate) fn absolute(cx: &ToolCx, path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for component in cx.resolve(path).components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                clean.pop();
            }
            other => clean.push(other),
        }
    }
    clean
}

/// A path as short as the model can use it: relative if it lies below the working directory.
pub(crate) fn short(cwd: &Path, path: &Path) -> String {
    let relative = path.strip_prefix(cwd).ok().filter(|rest| !rest.as_os_str().is_empty());
    relative.unwrap_or(path).display().to_string()
}
