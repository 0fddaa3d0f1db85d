//! Groups of processes that are gone.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;

use super::group::end;
use crate::owner;

/// The end of the name of a group in which a process itself is.
pub(super) const OF_PROCESS: &str = "-main";

/// Ends and removes the groups of processes that are gone.
pub(super) fn remove_of_others(parent: &Path) {
    remove(parent, owner::is_gone);
}

/// Ends and removes all groups of one process: `prefix` is the path of one of them without its last number.
///
/// # Errors
/// When the path is not one of groups that are made here.
pub(crate) fn sweep(prefix: &Path) -> Result<(), String> {
    let (parent, name) = (prefix.parent(), prefix.file_name().and_then(OsStr::to_str));
    let found = parent.zip(name).filter(|(_, name)| owner::is_prefix(name));
    let (parent, prefix) =
        found.ok_or_else(|| format!("{} has no groups of a sandbox", prefix.display()))?;
    remove(parent, |name| name.starts_with(prefix));
    Ok(())
}

fn remove(parent: &Path, is_left: impl Fn(&str) -> bool) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        // What cannot be removed is tried again by the next process.
        let _ = match name.to_str().filter(|name| is_left(name)) {
            // This process may be in it: the one that cleans up begins where its parent was.
            Some(name) if name.ends_with(OF_PROCESS) => fs::remove_dir(entry.path()),
            Some(_) => end(&entry.path()),
            None => Ok(()),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Mutants: groups of living processes are removed too; the start does not matter.
    #[test]
    fn only_groups_whose_process_is_gone_are_removed() {
        let parent = tempfile::tempdir().unwrap();
        let make = |name: &str| fs::create_dir(parent.path().join(name)).unwrap();
        let own = format!("{}0", owner::prefix().unwrap());
        let reused = format!("ostler-{}-1-0", std::process::id());
        for name in [&own, &reused, "ostler-4194305-77-3", "ostler-main", "user.slice"] {
            make(name);
        }
        remove_of_others(parent.path());
        let left = |name: &str| parent.path().join(name).exists();
        assert!(left(&own) && left("ostler-main") && left("user.slice"));
        assert!(!left(&reused) && !left("ostler-4194305-77-3"));
        let other = format!("ostler-{}-1-4", std::process::id());
        make(&other);
        sweep(&parent.path().join(owner::prefix().unwrap())).unwrap();
        assert!(!left(&own) && left(&other) && left("user.slice"));
        for foreign in ["user.slice", "ostler-main", "", "ostler-"] {
            assert!(sweep(&parent.path().join(foreign)).is_err(), "{foreign}");
        }
        assert!(left("user.slice"));
    }
}
