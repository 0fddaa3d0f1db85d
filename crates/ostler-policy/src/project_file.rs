//! Opens the files that a project or the user brings to a session: instructions, commands, skills, agents, styles,
//! settings.
//!
//! A project may be written by strangers. Until the user trusts it, a file of it counts only if it really lies inside
//! the project: a link may lead only to another file of the project. No file may be a device, a pipe or part of `/proc`
//! and similar folders. Paths are resolved first and then opened without following links, so that nothing can be swapped
//! in between.

use std::fmt;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ostler_files::{RealPath, is_of_kernel, read_at_most};

use crate::permission::ReadGuard;

/// Folders of the kernel's own files: environments, memory, devices.
const KERNEL_FOLDERS: &[&str] = &["/proc", "/sys", "/dev"];
/// The most entries of one folder that are listed.
const MOST_ENTRIES: usize = 10_000;

/// The area in which the files of one origin must lie.
#[derive(Clone, Debug, Default)]
pub struct Boundary {
    /// The folder in which they must lie; any folder if absent.
    root: Option<PathBuf>,
    /// Files that permission rules forbid to read.
    denied: Arc<ReadGuard>,
}

/// Why a file is not opened.
#[derive(Debug)]
#[non_exhaustive]
pub enum Refusal {
    /// There is no such file.
    Missing,
    /// It lies outside the folder it belongs to.
    Outside {
        /// Where it really lies.
        resolved: PathBuf,
        /// The folder it belongs to.
        root: PathBuf,
    },
    /// A permission rule forbids reading it.
    Denied,
    /// It is not a regular file, or it belongs to the kernel.
    NotRegular,
    /// It is longer than this many bytes.
    TooLong(u64),
    /// It cannot be read.
    Io(io::Error),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => f.write_str("there is no such file"),
            Self::Outside { resolved, root } => write!(
                f,
                "it is {}, which lies outside {}, and the project is not trusted; pass --trust-project if you \
                 trust what is in this folder",
                resolved.display(),
                root.display()
            ),
            Self::Denied => f.write_str(
                "a permission rule forbids reading it; change the rule Read(…) to allow it",
            ),
            Self::NotRegular => f.write_str(
                "it is not a regular file; devices, pipes and files of /proc are never read",
            ),
            Self::TooLong(most) => write!(f, "it is longer than {most} bytes; make it shorter"),
            Self::Io(error) => write!(f, "it cannot be read: {error}"),
        }
    }
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Self::Missing,
            _ => Self::Io(error),
        }
    }
}

/// Two boundaries are equal if the same folders are; the rules in force belong to the session.
impl PartialEq for Boundary {
    fn eq(&self, other: &Self) -> bool {
        self.root == other.root
    }
}

impl Eq for Boundary {}

impl Boundary {
    /// Files that may lie anywhere: the user's own, and those of a trusted project.
    pub fn anywhere(denied: Arc<ReadGuard>) -> Self {
        Self { root: None, denied }
    }

    /// Files of a folder that is not trusted.
    pub fn inside(root: impl Into<PathBuf>, denied: Arc<ReadGuard>) -> Self {
        Self { root: Some(root.into()), denied }
    }

    /// Opens a regular file at one of the usual places.
    ///
    /// # Errors
    /// When it is missing, lies outside the boundary, or is not a regular file.
    pub fn open(&self, path: &Path) -> Result<File, Refusal> {
        let resolved = self.resolve(path)?;
        // A file at its usual place needs no permission; a link must not lead to a file that a rule denies.
        if !self.lies_at(path, &resolved) && !self.denied.may_show(&resolved) {
            return Err(Refusal::Denied);
        }
        open_resolved(resolved)
    }

    /// Opens a regular file that another one names.
    ///
    /// # Errors
    /// As [`Boundary::open`], and when a permission rule forbids reading it.
    pub fn open_import(&self, path: &Path) -> Result<File, Refusal> {
        let resolved = self.resolve(path)?;
        if !self.denied.may_show(path) || !self.denied.may_show(&resolved) {
            return Err(Refusal::Denied);
        }
        open_resolved(resolved)
    }

    /// Reads a text file at one of the usual places.
    ///
    /// # Errors
    /// As [`Boundary::open`], and when it is longer than `most` bytes or not UTF-8.
    pub fn read_text(&self, path: &Path, most: u64) -> Result<String, Refusal> {
        let bytes = read_at_most(self.open(path)?, most)?;
        if bytes.len() as u64 > most {
            return Err(Refusal::TooLong(most));
        }
        String::from_utf8(bytes)
            .map_err(|error| Refusal::Io(io::Error::new(io::ErrorKind::InvalidData, error)))
    }

    /// The entries of a folder, sorted. A missing folder counts as empty.
    ///
    /// # Errors
    /// When it lies outside the boundary, or cannot be read.
    pub fn entries(&self, folder: &Path) -> Result<Vec<PathBuf>, Refusal> {
        let listed = self.resolve(folder).and_then(|resolved| {
            let real = RealPath::from_resolved(resolved).ok_or(Refusal::NotRegular)?;
            Ok(real.names(MOST_ENTRIES)?)
        });
        let mut names = match listed {
            Ok(names) => names,
            Err(Refusal::Missing) => return Ok(Vec::new()),
            Err(refusal) => return Err(refusal),
        };
        names.sort_unstable();
        Ok(names.into_iter().map(|name| folder.join(name)).collect())
    }

    /// The path with links followed, if it is inside the boundary.
    ///
    /// # Errors
    /// When it is missing, or lies outside the boundary.
    pub fn resolve(&self, path: &Path) -> Result<PathBuf, Refusal> {
        let resolved = path.canonicalize()?;
        if KERNEL_FOLDERS.iter().any(|folder| resolved.starts_with(folder)) {
            return Err(Refusal::NotRegular);
        }
        match &self.root {
            Some(root) => {
                let root = root.canonicalize()?;
                match resolved.starts_with(&root) {
                    true => Ok(resolved),
                    false => Err(Refusal::Outside { resolved, root }),
                }
            }
            None => Ok(resolved),
        }
    }

    /// Whether a path leads to its file without a link below the root.
    fn lies_at(&self, path: &Path, resolved: &Path) -> bool {
        let below = self
            .root
            .as_ref()
            .and_then(|root| Some(root.canonicalize().ok()?.join(path.strip_prefix(root).ok()?)));
        below.as_deref().unwrap_or(path) == resolved
    }
}

/// Opens a regular file whose path has no links.
fn open_resolved(resolved: PathBuf) -> Result<File, Refusal> {
    let real = RealPath::from_resolved(resolved).ok_or(Refusal::NotRegular)?;
    if !real.metadata()?.is_file() {
        return Err(Refusal::NotRegular);
    }
    let file = real.open()?;
    if is_of_kernel(&file) { Err(Refusal::NotRegular) } else { Ok(file) }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    /// A project with a file, and a secret next to it.
    fn stage() -> (tempfile::TempDir, PathBuf) {
        let place = tempfile::tempdir().unwrap();
        let root = place.path().canonicalize().unwrap().join("project");
        fs::create_dir_all(root.join("docs")).unwrap();
        fs::write(root.join("docs/a.md"), "inside").unwrap();
        fs::create_dir(place.path().join("outside")).unwrap();
        fs::write(place.path().join("outside/a.md"), "secret").unwrap();
        (place, root)
    }

    #[test]
    fn a_link_may_lead_to_another_file_of_the_project_only() {
        let (_place, root) = stage();
        symlink("docs/a.md", root.join("in.md")).unwrap();
        symlink("../outside/a.md", root.join("out.md")).unwrap();
        symlink("../outside", root.join("folder")).unwrap();
        let boundary = Boundary::inside(&root, Arc::default());
        assert_eq!(boundary.read_text(&root.join("in.md"), 100).unwrap(), "inside");
        for name in ["out.md", "folder/a.md", "docs/../../outside/a.md"] {
            let refusal = boundary.read_text(&root.join(name), 100).unwrap_err();
            assert!(matches!(refusal, Refusal::Outside { .. }), "{name}: {refusal}");
        }
        let refusal = boundary.entries(&root.join("folder")).unwrap_err();
        assert!(matches!(refusal, Refusal::Outside { .. }), "{refusal}");
        assert_eq!(boundary.entries(&root.join("docs")).unwrap(), [root.join("docs/a.md")]);
        assert!(boundary.entries(&root.join("missing")).unwrap().is_empty());
        let anywhere = Boundary::default();
        assert_eq!(anywhere.read_text(&root.join("folder/a.md"), 100).unwrap(), "secret");
    }

    // Mutant: `open_resolved` opens with `ostler_files::open`.
    #[test]
    fn a_file_that_is_swapped_for_a_link_after_the_check_is_not_followed() {
        let (place, root) = stage();
        let boundary = Boundary::inside(&root, Arc::default());
        let checked = boundary.resolve(&root.join("docs/a.md")).unwrap();
        fs::rename(root.join("docs"), root.join("old")).unwrap();
        symlink(place.path().join("outside"), root.join("docs")).unwrap();
        assert!(open_resolved(checked.clone()).is_err(), "a folder on the way");
        fs::remove_file(root.join("docs")).unwrap();
        fs::create_dir(root.join("docs")).unwrap();
        symlink(place.path().join("outside/a.md"), root.join("docs/a.md")).unwrap();
        assert!(open_resolved(checked.clone()).is_err(), "the file itself");
    }

    #[test]
    fn only_regular_files_of_a_bounded_size_are_read_and_no_files_of_the_kernel() {
        let (_place, root) = stage();
        let anywhere = Boundary::default();
        for path in ["/proc/self/environ", "/proc/self/status", "/dev/null", "/dev/zero"] {
            let refusal = anywhere.open(Path::new(path)).unwrap_err();
            assert!(matches!(refusal, Refusal::NotRegular), "{path}: {refusal}");
        }
        let refusal = anywhere.open(&root).unwrap_err();
        assert!(matches!(refusal, Refusal::NotRegular), "a folder: {refusal}");
        let refusal = anywhere.read_text(&root.join("docs/a.md"), 5).unwrap_err();
        assert!(matches!(refusal, Refusal::TooLong(5)), "{refusal}");
        assert_eq!(anywhere.read_text(&root.join("docs/a.md"), 6).unwrap(), "inside");
    }
}
