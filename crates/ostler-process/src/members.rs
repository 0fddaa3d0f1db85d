//! The processes that belong to a child: its session and group, everything with its marker, and their children.
//!
//! Read from `/proc`. Without `/proc`, only the process group is known.

use std::collections::{HashMap, HashSet};

use rustix::process::Pid;

use crate::processes::{Mark, Process, ScanResult, all, end_all, with_descendants};
use crate::{marker, tracking};

/// Kills everything that belongs to a child until nothing is left.
pub(crate) fn end(leader: Pid, started: u64, number: u64) {
    let marker = marker::of_child(number);
    end_all(|known| of(leader.as_raw_pid(), started, number, &marker, known));
}

fn of(leader: i32, started: u64, number: u64, marker: &str, known: &HashSet<i32>) -> ScanResult {
    let processes = all();
    let tracked = tracking::of(number, &processes);
    let own = std::process::id().cast_signed();
    let mut processes = processes;
    processes.retain(|it| it.id != own && !it.is_zombie);
    let young = processes.iter().filter(|it| it.started >= started && !it.is_kernel);
    let marks: HashMap<i32, Mark> =
        young.map(|it| (it.id, Mark::of(it.id, marker.as_bytes()))).collect();
    let is_marked = |it: &Process| marks.get(&it.id) == Some(&Mark::Carried);
    let was_with = |it: &Process| {
        it.started >= started
            && [it.parent, it.group, it.session].iter().any(|id| known.contains(id))
    };
    let is_member = |it: &&Process| {
        let is_in_group = it.session == leader || it.group == leader;
        is_in_group || tracked.contains(&it.id) || was_with(it) || is_marked(it)
    };
    let members = processes.iter().filter(is_member).map(|it| it.id).collect();
    let members = with_descendants(members, &processes);
    let is_unclear = marks.iter().any(|(id, it)| *it == Mark::Unclear && !members.contains(id));
    ScanResult { members, is_unclear }
}
