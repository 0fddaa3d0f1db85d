//! User namespaces that show the files of one owner as files of the sandbox's user, for a caller that is root.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::namespace;
use crate::spec::NAMESPACE;

/// The user and group of a sandbox that root starts. No system gives this number to a user.
pub(super) const ID: u32 = 65_533;

/// An owner of files: user and group.
type Owner = (u32, u32);

/// The namespace for the owner of a path, as a path that other processes of this user can open while this process lives.
pub(super) fn namespace_of(path: &Path, helper: &Path) -> io::Result<PathBuf> {
    static KNOWN: Mutex<Option<HashMap<Owner, File>>> = Mutex::new(None);
    let about = fs::symlink_metadata(path)?;
    let owner = (about.uid(), about.gid());
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let known = known.get_or_insert_default();
    if let std::collections::hash_map::Entry::Vacant(vacant) = known.entry(owner) {
        vacant.insert(make(owner, helper)?);
    }
    let number = known[&owner].as_raw_fd();
    Ok(format!("/proc/{}/fd/{number}", std::process::id()).into())
}

fn make((user, group): Owner, helper: &Path) -> io::Result<File> {
    namespace::take(helper, NAMESPACE, |process| {
        fs::write(process.join("uid_map"), map(user))?;
        fs::write(process.join("gid_map"), map(group))?;
        File::open(process.join("ns/user"))
    })
}

/// Shows files of `owner` as those of the sandbox's user, and all others as they are.
fn map(owner: u32) -> String {
    let mut edges = [owner, ID];
    edges.sort_unstable();
    let mut lines = vec![format!("{owner} {ID} 1")];
    let mut next = 0;
    for edge in edges {
        if edge > next {
            lines.push(format!("{next} {next} {}", edge - next));
        }
        next = edge + 1;
    }
    // The last number means no user.
    lines.push(format!("{next} {next} {}", u32::MAX - next));
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_owner_is_shown_as_another_user() {
        assert_eq!(map(0), "0 65533 1\n1 1 65532\n65534 65534 4294901761\n");
        let of_user = "1000 65533 1\n0 0 1000\n1001 1001 64532\n65534 65534 4294901761\n";
        assert_eq!(map(1000), of_user);
    }
}
