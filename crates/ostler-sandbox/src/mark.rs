//! Marks a folder as used by this process, and finds out whether others use it.
//!
//! The marks are locks of two bytes of the folder. Each holder has a lock of the first one. Who wants to remove what all
//! holders share also takes the second one, and then looks for other holders. A new holder takes the first one, and then waits
//! until no process has the second one. So one of both always sees the other. All locks are shared ones, because a folder cannot
//! be opened for writing; and no other program uses locks of this kind on folders.

use std::fs::File;
use std::io;

use nix::fcntl::{FcntlArg, fcntl};

const USED: i64 = 0;
const REMOVING: i64 = 1;

/// A folder that is marked as used while this value exists.
#[derive(Debug)]
pub(crate) struct Mark(File);

impl Mark {
    pub(crate) fn used(folder: File) -> io::Result<Self> {
        set(&folder, USED, libc::F_RDLCK)?;
        Ok(Self(folder))
    }

    pub(crate) fn folder(&self) -> &File {
        &self.0
    }

    /// Whether another holder is removing what all share.
    pub(crate) fn others_remove(&self) -> io::Result<bool> {
        others_have(&self.0, REMOVING)
    }

    /// Gives up the mark, and removes what all holders share if it was the last.
    pub(crate) fn remove_if_last(
        &mut self,
        remove: impl FnOnce(&File) -> io::Result<()>,
    ) -> io::Result<()> {
        // In this order: of two that end together at least one sees that it is the last.
        set(&self.0, REMOVING, libc::F_RDLCK)?;
        set(&self.0, USED, libc::F_UNLCK)?;
        let removed = match others_have(&self.0, USED)? {
            true => Ok(()),
            false => remove(&self.0),
        };
        set(&self.0, REMOVING, libc::F_UNLCK)?;
        removed
    }
}

fn set(folder: &File, byte: i64, kind: libc::c_int) -> io::Result<()> {
    // Never waits: shared locks do not exclude each other.
    fcntl(folder, FcntlArg::F_OFD_SETLK(&lock(byte, kind)))?;
    Ok(())
}

/// Whether others have a lock of a byte. Locks of the same opened folder do not count.
fn others_have(folder: &File, byte: i64) -> io::Result<bool> {
    // Asks for what would be in the way of an exclusive lock.
    let mut lock = lock(byte, libc::F_WRLCK);
    fcntl(folder, FcntlArg::F_OFD_GETLK(&mut lock))?;
    Ok(i32::from(lock.l_type) != libc::F_UNLCK)
}

fn lock(byte: i64, kind: libc::c_int) -> libc::flock {
    libc::flock {
        // The three kinds are small numbers.
        l_type: i16::try_from(kind).unwrap_or_default(),
        l_whence: i16::try_from(libc::SEEK_SET).unwrap_or_default(),
        l_start: byte,
        l_len: 1,
        // As this kind of lock demands.
        l_pid: 0,
    }
}
