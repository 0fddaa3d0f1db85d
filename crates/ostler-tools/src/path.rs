//! Paths as permissions see them: absolute, without `.` and `..`.
//!
//! A tool opens exactly the path that it has named as its effect. `..` is removed lexically, so the decision and the
//! opened file agree even if there is a link on the way.

use std::path::{Component, Path, PathBuf};

use ostler_engine::tool::ToolCx;

/// The path that a tool works on.
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

/// A path relative to the working directory if it is below it.
pub(crate) fn short(cwd: &Path, path: &Path) -> String {
    let relative = path.strip_prefix(cwd).ok().filter(|rest| !rest.as_os_str().is_empty());
    relative.unwrap_or(path).display().to_string()
}
