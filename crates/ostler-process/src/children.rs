//! The processes that this process has adopted: read from `/proc` without looking at any other process, and ended.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Read as _;

use rustix::process::Pid;

/// With longer lists, the processes are looked at one by one.
const LONGEST_LIST: usize = 4096;

/// The children of the first thread of this process, zombies included. `None` if they cannot be known for certain:
/// without `/proc`, or on a kernel that does not list them.
///
/// Linux gives orphans to the first thread of the process that adopts them, and so it does with the children of a thread
/// that ends. The children of other threads were therefore started by this process itself.
///
/// The kernel may skip a child while another one ends, so the list counts only if it is the same twice.
pub(crate) fn of_first_thread() -> Option<BTreeSet<i32>> {
    let first = read()?;
    (read()? == first).then_some(first)
}

/// Kills a child and collects its exit status. Returns whether that is done.
#[cfg(target_os = "linux")]
pub(crate) fn end(id: Pid) -> bool {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    use rustix::process::{
        PidfdFlags, Signal, WaitOptions, pidfd_open, pidfd_send_signal, waitpid,
    };
    /// The namespaces of a sandbox take some milliseconds to end.
    const LONGEST: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };
    // A handle first: then the number cannot mean another process.
    let Ok(handle) = pidfd_open(id, PidfdFlags::empty()) else { return false };
    // Fails if it has ended already.
    let _ = pidfd_send_signal(&handle, Signal::KILL);
    let mut ended = [PollFd::new(&handle, PollFlags::IN)];
    let is_over = matches!(poll(&mut ended, Some(&LONGEST)), Ok(1));
    is_over && waitpid(Some(id), WaitOptions::NOHANG).is_ok()
}

/// Elsewhere no process is adopted.
#[cfg(not(target_os = "linux"))]
pub(crate) fn end(_: Pid) -> bool {
    false
}

fn read() -> Option<BTreeSet<i32>> {
    let id = std::process::id();
    let mut file = File::open(format!("/proc/self/task/{id}/children")).ok()?;
    let mut list = [0; LONGEST_LIST];
    let mut n = 0;
    loop {
        match file.read(list.get_mut(n..).filter(|rest| !rest.is_empty())?).ok()? {
            0 => break,
            more => n += more,
        }
    }
    let ids = str::from_utf8(&list[..n]).ok()?.split_ascii_whitespace();
    ids.map(|id| id.parse().ok()).collect()
}
