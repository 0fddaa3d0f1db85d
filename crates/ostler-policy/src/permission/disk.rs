//! Disk access of decisions.
//!
//! A decision that needs no disk can be made at once. Every other one belongs on a thread that may block: the disk may be
//! slow or gone. Which one it is turns out only on the way, so all access of this module goes through here, and
//! [`without`] makes a decision that fails at the first access.

use std::cell::Cell;
use std::fs::{Metadata, ReadDir};
use std::io;
use std::path::{Path, PathBuf};

#[derive(Clone, Copy, PartialEq)]
enum Access {
    Allowed,
    Refused,
    /// It was refused, and something wanted it.
    Missed,
}

thread_local! {
    static ACCESS: Cell<Access> = const { Cell::new(Access::Allowed) };
}

/// Makes a decision without disk access. `None` if it needs some.
pub(super) fn without<T>(decide: impl FnOnce() -> T) -> Option<T> {
    /// Allows access again, also after a panic.
    struct Restore(Access);
    impl Drop for Restore {
        fn drop(&mut self) {
            ACCESS.set(self.0);
        }
    }
    let _restore = Restore(ACCESS.replace(Access::Refused));
    let decision = decide();
    (ACCESS.get() == Access::Refused).then_some(decision)
}

fn access() -> io::Result<()> {
    if ACCESS.get() == Access::Allowed {
        return Ok(());
    }
    ACCESS.set(Access::Missed);
    Err(io::Error::other("this decision is made without disk access"))
}

/// Reads a text file.
pub(super) fn read_text(path: &Path, limit: u64) -> io::Result<String> {
    access()?;
    ostler_files::read_text(path, limit)
}

/// Reads a file.
pub(super) fn read_bytes(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    access()?;
    ostler_files::read_bytes(path, limit)
}

/// Looks at a path on the disk.
pub(super) trait OnDisk {
    /// The path with links followed.
    fn with_links_followed(&self) -> io::Result<PathBuf>;
    /// What is there, without following a link.
    fn look(&self) -> io::Result<Metadata>;
    /// Whether it is a folder or leads to one.
    fn is_folder(&self) -> bool;
    /// The contents of a folder.
    fn entries(&self) -> io::Result<ReadDir>;
}

impl OnDisk for Path {
    fn with_links_followed(&self) -> io::Result<PathBuf> {
        access()?;
        self.canonicalize()
    }

    fn look(&self) -> io::Result<Metadata> {
        access()?;
        self.symlink_metadata()
    }

    fn is_folder(&self) -> bool {
        access().is_ok() && self.is_dir()
    }

    fn entries(&self) -> io::Result<ReadDir> {
        access()?;
        self.read_dir()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decision_that_looks_at_the_disk_is_not_made_without_it() {
        let root = Path::new("/");
        assert_eq!(without(|| 1), Some(1));
        assert_eq!(without(|| drop(root.look())), None);
        assert_eq!(without(|| drop(root.entries())), None);
        assert_eq!(without(|| drop(root.with_links_followed())), None);
        assert_eq!(without(|| root.is_folder()), None);
        assert_eq!(without(|| drop(read_text(root, 1))), None);
        assert_eq!(without(|| drop(read_bytes(root, 1))), None);
        assert!(root.is_folder(), "access is allowed again");
    }

    #[test]
    fn access_is_allowed_again_after_a_panic() {
        let broken = std::panic::catch_unwind(|| without(|| panic!("a decision broke")));
        assert!(broken.is_err() && Path::new("/").is_folder());
    }

    /// Another way to the disk would block the runtime.
    #[test]
    fn nothing_in_this_module_goes_around_it() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/permission");
        for entry in folder.read_dir().unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() || path.ends_with("disk.rs") {
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap();
            for call in [
                ".canonicalize()",
                "metadata()",
                ".is_dir()",
                ".is_file()",
                ".exists()",
                ".read_dir()",
                ".read_link()",
                "ostler_files::read",
                "ostler_files::open",
                "RealPath::resolve",
                "fs::read",
            ] {
                let lines = code.lines().filter(|line| line.contains(call));
                // What is known of an entry needs no further look.
                let lines: Vec<_> = lines.filter(|line| !line.contains("kind.is_")).collect();
                assert!(lines.is_empty(), "{}: {lines:?}", path.display());
            }
        }
    }
}
