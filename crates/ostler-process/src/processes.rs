//! The processes of this system, read from `/proc`, and how to kill a set of them.
//!
//! Without `/proc`, no process is known.

use std::collections::HashSet;
use std::fs;
use std::io::Read as _;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, getpid, kill_process};

/// How long killed processes may take to disappear. Only one blocked in the kernel takes longer.
const LIMIT: Duration = Duration::from_secs(2);
/// Between two scans.
const PAUSE: Duration = Duration::from_millis(1);
/// How long a process with an empty environment is assumed to be in the middle of `exec`.
const EXEC_LIMIT: Duration = Duration::from_millis(50);

/// More than the kernel writes about a process: 51 numbers and a short name.
const LONGEST_STAT: usize = 2048;

/// The kernel's flag for its own threads (`PF_KTHREAD`).
const KERNEL_THREAD: u64 = 0x0020_0000;

/// The relevant fields of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) id: i32,
    pub(crate) parent: i32,
    pub(crate) group: i32,
    pub(crate) session: i32,
    /// Clock ticks since the system started.
    pub(crate) started: u64,
    /// It has ended and its parent has not waited for it.
    pub(crate) is_zombie: bool,
    /// A kernel thread, which never has an environment.
    pub(crate) is_kernel: bool,
    /// Its threads, the first one included.
    pub(crate) threads: u64,
    /// Processor time in clock ticks: its own, and that of children that it has waited for.
    pub(crate) own_ticks: u64,
    pub(crate) waited_ticks: u64,
}

/// The result of one scan of all processes.
#[derive(Default)]
pub(crate) struct ScanResult {
    pub(crate) members: HashSet<i32>,
    /// A process may carry the marker, but its environment cannot be read at this moment.
    pub(crate) is_unclear: bool,
}

/// Kills what a scan finds, and scans again until nothing is left.
pub(crate) fn end_all(look: impl Fn(&HashSet<i32>) -> ScanResult) {
    let begun = Instant::now();
    let mut last_member = begun;
    // A killed process may have started another one between the scan and the kill.
    let mut known = HashSet::new();
    loop {
        let ScanResult { members, is_unclear } = look(&known);
        known.extend(&members);
        for id in members.iter().filter_map(|id| Pid::from_raw(*id)) {
            // Fails if the process has just ended.
            let _ = kill_process(id, Signal::KILL);
        }
        if !members.is_empty() {
            last_member = Instant::now();
        }
        let is_done = members.is_empty() && (!is_unclear || last_member.elapsed() > EXEC_LIMIT);
        if is_done || begun.elapsed() > LIMIT {
            return;
        }
        std::thread::sleep(PAUSE);
    }
}

/// When a process started; 0 if unknown, which is earlier than all others.
pub(crate) fn started(id: Pid) -> u64 {
    read(id.as_raw_pid()).map_or(0, |process| process.started)
}

/// This process. Its session is 0 if the leader of it is in another container. Not from `rustix`, which has no such
/// number: it panics there, or worse without debug assertions.
pub(crate) fn own() -> Option<Process> {
    read(getpid().as_raw_pid())
}

/// The session of this process.
pub(crate) fn own_session() -> Option<i32> {
    own().map(|process| process.session)
}

/// Adds processes without the marker that are children of a member or in a member's session.
pub(crate) fn with_descendants(mut members: HashSet<i32>, processes: &[Process]) -> HashSet<i32> {
    loop {
        let follows = |it: &&Process| {
            !it.is_zombie && (members.contains(&it.parent) || members.contains(&it.session))
        };
        let more: Vec<_> = processes.iter().filter(follows).map(|it| it.id).collect();
        let before = members.len();
        members.extend(more);
        if members.len() == before {
            return members;
        }
    }
}

/// All processes, including this one and zombies.
pub(crate) fn all() -> Vec<Process> {
    let folders = fs::read_dir("/proc").into_iter().flatten().flatten();
    folders.filter_map(|folder| read(folder.file_name().to_str()?.parse().ok()?)).collect()
}

/// One process; `None` if it is gone.
pub(crate) fn read(id: i32) -> Option<Process> {
    let mut stat = [0; LONGEST_STAT];
    // The kernel writes the whole line at once, so one call is enough. `read_to_string` makes eight.
    let n = fs::File::open(format!("/proc/{id}/stat")).ok()?.read(&mut stat).ok()?;
    parse(id, &stat[..n])
}

/// Parses `/proc/…/stat`. The second field is the program's name in parentheses, which may contain anything, also bytes
/// that are not text.
fn parse(id: i32, stat: &[u8]) -> Option<Process> {
    let after_name = &stat[stat.iter().rposition(|byte| *byte == b')')? + 1..];
    let mut fields = str::from_utf8(after_name).ok()?.split_ascii_whitespace();
    let is_zombie = matches!(fields.next()?, "Z" | "X" | "x");
    let mut number = || fields.next()?.parse().ok();
    let (parent, group, session) = (number()?, number()?, number()?);
    let flags: u64 = fields.nth(2)?.parse().ok()?;
    let is_kernel = flags & KERNEL_THREAD != 0;
    let mut later = |skipped: usize| -> Option<u64> { fields.nth(skipped)?.parse().ok() };
    let own_ticks = later(4)? + later(0)?;
    let waited_ticks = later(0)? + later(0)?;
    let (threads, started) = (later(2)?, later(1)?);
    Some(Process {
        id,
        parent,
        group,
        session,
        started,
        is_zombie,
        is_kernel,
        threads,
        own_ticks,
        waited_ticks,
    })
}

/// Whether a process carries a marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    Carried,
    Missing,
    /// The environment is empty, as during `exec`.
    Unclear,
}

impl Mark {
    /// The environment of other users' processes cannot be read; they were not started here.
    pub(crate) fn of(id: i32, marker: &[u8]) -> Self {
        let environment = fs::read(format!("/proc/{id}/environ"));
        environment.map_or(Self::Missing, |environment| Self::within(&environment, marker))
    }

    fn within(environment: &[u8], marker: &[u8]) -> Self {
        match environment.windows(marker.len()).any(|bytes| bytes == marker) {
            true => Self::Carried,
            false if environment.is_empty() => Self::Unclear,
            false => Self::Missing,
        }
    }
}

/// Whether a process certainly carries a marker.
pub(crate) fn has(id: i32, marker: &str) -> bool {
    Mark::of(id, marker.as_bytes()) == Mark::Carried
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_name_may_contain_any_character() {
        let stat = b"7 (a) \xff) S 1 2 3 0 -1 4194560 1 0 0 0 10 3 20 4 20 0 5 0 4711 5 6";
        let process = parse(7, stat);
        let expected = Process {
            id: 7,
            parent: 1,
            group: 2,
            session: 3,
            started: 4711,
            is_zombie: false,
            is_kernel: false,
            threads: 5,
            own_ticks: 13,
            waited_ticks: 24,
        };
        assert_eq!(process, Some(expected));
        let thread = b"9 (kworker/0:1) I 2 0 0 0 -1 69238880 0 0 0 0 0 0 0 0 20 0 1 0 12 0 0";
        assert!(parse(9, thread).is_some_and(|it| it.is_kernel && it.started == 12));
        assert_eq!(parse(7, b"7 (half"), None);
    }

    #[test]
    fn an_empty_environment_leaves_the_marker_unknown() {
        assert_eq!(Mark::within(b"A=1\0ID=x1;\0", b"x1;"), Mark::Carried);
        assert_eq!(Mark::within(b"A=1\0ID=x12;\0", b"x1;"), Mark::Missing);
        assert_eq!(Mark::within(b"", b"x1;"), Mark::Unclear);
    }

    /// A process that calls `exec` during the only scan would escape. Mutant: `is_unclear` ignored.
    #[test]
    fn scanning_continues_while_an_environment_cannot_be_read() {
        let missing = i32::MAX;
        let looks = [
            ScanResult { members: HashSet::new(), is_unclear: true },
            ScanResult { members: HashSet::from([missing]), is_unclear: false },
            ScanResult::default(),
        ];
        let looks = std::cell::RefCell::new(looks.into_iter());
        end_all(|_| looks.borrow_mut().next().unwrap());
        assert!(looks.borrow_mut().next().is_none(), "it stopped looking too early");
    }

    #[test]
    fn this_process_is_read_correctly() {
        let process = read(getpid().as_raw_pid()).unwrap();
        assert_eq!(process.parent, rustix::process::getppid().map_or(0, Pid::as_raw_pid));
        assert!(started(getpid()) > 0);
        assert_eq!(own_session(), Some(process.session));
    }
}
