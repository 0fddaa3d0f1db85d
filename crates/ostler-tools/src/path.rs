//! Paths as permissions see them: absolute, without `.` and `..`.
//!
//! A tool names a path as its effect. `..` is removed lexically. The permission is decided on the path with links
//! followed, and the tool opens exactly that path: a link that appears later is refused.

use std::path::{Component, Path, PathBuf};

use ostler_engine::tool::{ToolCx, ToolError};
use ostler_files::RealPath;

/// The path of a call.
#[derive(Clone)]
pub(crate) struct CallPath {
    /// As the model wrote it, made absolute. Results and errors show it.
    pub(crate) written: PathBuf,
    /// With links followed, as it was permitted. Everything is opened by it.
    pub(crate) real: RealPath,
}

impl CallPath {
    /// The path that a call may open. Touches the disk for a tool that is run by itself.
    pub(crate) fn of(cx: &ToolCx, written: PathBuf) -> Result<Self, ToolError> {
        match cx.real_path(&written) {
            Ok(real) => Ok(Self { written, real }),
            Err(error) => {
                let is_link = written.symlink_metadata().is_ok_and(|found| found.is_symlink());
                let what = if is_link { "is a link that leads nowhere" } else { "leads nowhere" };
                Err(ToolError::Refused(format!("{} {what}: {error}", written.display())))
            }
        }
    }
}

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
