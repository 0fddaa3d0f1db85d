//! Which processes belong to a child: its session and group, all that carries its marker, and their children.
//!
//! Read from `/proc`. Where there is none, only the process group is known.

use std::collections::HashSet;
use std::fs;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// How long the processes may take to disappear after they were killed. Only one that the kernel holds takes longer.
const LIMIT: Duration = Duration::from_secs(2);
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(1);

/// A process, as far as it matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Process {
    id: i32,
    parent: i32,
    group: i32,
    session: i32,
    /// Since the start of the system, in ticks of the clock.
    started: u64,
    /// It has ended and waits for its parent.
    is_zombie: bool,
}

/// Kills everything that belongs to a child until nothing is left.
pub(crate) fn end(leader: Pid, started: u64, marker: &str) {
    let begun = Instant::now();
    // A process that was killed may have started another one between the look and the kill.
    let mut known = HashSet::new();
    loop {
        let members = of(leader.as_raw(), started, marker, &known);
        known.extend(&members);
        for id in &members {
            // It fails when the process has just ended.
            let _ = kill(Pid::from_raw(*id), Signal::SIGKILL);
        }
        if members.is_empty() || begun.elapsed() > LIMIT {
            return;
        }
        std::thread::sleep(PAUSE);
    }
}

/// When a process began; 0 if that is not known, which is before all others.
pub(crate) fn started(id: Pid) -> u64 {
    read(id.as_raw()).map_or(0, |process| process.started)
}

fn of(leader: i32, started: u64, marker: &str, known: &HashSet<i32>) -> HashSet<i32> {
    let own = std::process::id().cast_signed();
    let processes: Vec<_> = all().filter(|it| it.id != own && !it.is_zombie).collect();
    let is_marked = |it: &Process| it.started >= started && has(it.id, marker);
    let was_with = |it: &Process| {
        it.started >= started
            && [it.parent, it.group, it.session].iter().any(|id| known.contains(id))
    };
    let is_member =
        |it: &&Process| it.session == leader || it.group == leader || was_with(it) || is_marked(it);
    let mut members: HashSet<i32> = processes.iter().filter(is_member).map(|it| it.id).collect();
    // Who has thrown the marker away is still somebody's child, or in the session of somebody found.
    loop {
        let follows = |it: &&Process| members.contains(&it.parent) || members.contains(&it.session);
        let more: Vec<_> = processes.iter().filter(follows).map(|it| it.id).collect();
        let before = members.len();
        members.extend(more);
        if members.len() == before {
            return members;
        }
    }
}

fn all() -> impl Iterator<Item = Process> {
    let folders = fs::read_dir("/proc").into_iter().flatten().flatten();
    folders.filter_map(|folder| read(folder.file_name().to_str()?.parse().ok()?))
}

fn read(id: i32) -> Option<Process> {
    parse(id, &fs::read_to_string(format!("/proc/{id}/stat")).ok()?)
}

/// The fields of `/proc/…/stat`. The second is the program's name in parentheses, which may contain anything.
fn parse(id: i32, stat: &str) -> Option<Process> {
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    let is_zombie = matches!(fields.next()?, "Z" | "X" | "x");
    let mut number = || fields.next()?.parse().ok();
    let (parent, group, session) = (number()?, number()?, number()?);
    let started = fields.nth(15)?.parse().ok()?;
    Some(Process { id, parent, group, session, started, is_zombie })
}

/// Whether a process carries a marker. Those of other users cannot be read, and were not started here.
fn has(id: i32, marker: &str) -> bool {
    let environment = fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
    environment.windows(marker.len()).any(|bytes| bytes == marker.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_may_have_any_name() {
        let stat = "7 (a) b) S 1 2 3 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4711 5 6";
        let process = parse(7, stat);
        let expected =
            Process { id: 7, parent: 1, group: 2, session: 3, started: 4711, is_zombie: false };
        assert_eq!(process, Some(expected));
        assert_eq!(parse(7, "7 (half"), None);
    }

    #[test]
    fn this_process_is_read_as_it_is() {
        let own = Pid::this();
        let process = read(own.as_raw()).unwrap();
        assert_eq!(process.parent, Pid::parent().as_raw());
        assert_eq!(process.group, nix::unistd::getpgrp().as_raw());
        assert!(started(own) > 0);
    }
}
