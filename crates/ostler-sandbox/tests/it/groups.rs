//! Limits for all processes of a command together. Where this process can make no control groups, the tests show that the
//! attestation says so and that the other limits hold.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use ostler_sandbox::{Layers, Limits};

use crate::probe::{self, NONE, Probe};
use crate::stage::Stage;

/// All control groups with names that begin like this, wherever groups of version 2 are mounted.
pub(crate) fn groups(prefix: &str) -> Vec<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap();
    let mounts = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    let roots = mounts.filter(|fields| fields[2] == "cgroup2").map(|fields| fields[1].to_owned());
    let mut left: Vec<PathBuf> = roots.map(PathBuf::from).collect();
    let mut found = Vec::new();
    while let Some(folder) = left.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                if entry.file_name().to_string_lossy().starts_with(prefix) {
                    found.push(entry.path());
                }
                left.push(entry.path());
            }
        }
    }
    found
}

// Mutants, with a controller that the machine had in the place of `pids`: the helper does not enter the group; the group is not
// removed.
#[test]
fn a_command_has_a_group_of_its_own_exactly_if_the_attestation_says_so() {
    let stage = Stage::new();
    let sandbox = stage.sandbox(Layers::ALL);
    let by = &sandbox.attestation().limits_by;
    let expected = [
        ("processes", ["cgroup", "rlimit"]),
        ("memory", ["cgroup", "supervisor"]),
        ("session.processes", ["cgroup", "supervisor"]),
        ("session.memory", ["cgroup", "supervisor"]),
        ("fileSize", ["rlimit"; 2]),
        ("openFiles", ["rlimit"; 2]),
        ("temporary", ["tmpfs"; 2]),
    ];
    for (limit, by_one_of) in expected {
        assert!(by_one_of.contains(&by[limit]), "{limit}: {by:?}");
    }
    assert_eq!(by.len(), expected.len(), "limits that were not requested are not listed: {by:?}");
    let is_attested = by.values().any(|by| *by == "cgroup");
    println!("limits by {by:?}");
    let script = "sleep 600 & echo ready; read _";
    let work = stage.path("work");
    let inside = sandbox.command(Path::new("/bin/bash"), &["-c", script], &work).unwrap();
    let mut command = Command::new(&inside.program);
    command.args(&inside.arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut String::new()).unwrap();
    let own = format!("ostler-{}-", std::process::id());
    let group = fs::read_to_string(format!("/proc/{}/cgroup", child.id())).unwrap();
    let group = group.lines().find(|line| line.starts_with("0::")).unwrap_or_default().to_owned();
    assert_eq!(group.contains(&own), is_attested, "{group}");
    // The group of the session, and in it that of the command.
    assert_eq!(groups(&own).len(), if is_attested { 2 } else { 0 });
    if let Some(group) = groups(&own).iter().max() {
        let processes = fs::read_to_string(group.join("cgroup.procs")).unwrap();
        assert!(processes.lines().count() >= 3, "all processes are in it: {processes}");
    }
    // With the group everything in it ends, also before the program has.
    if is_attested {
        drop(inside.guard);
        assert!(!child.wait().unwrap().success());
    } else {
        drop(child.stdin.take());
        child.wait().unwrap();
        drop(inside.guard);
    }
    drop(sandbox);
    assert!(groups(&own).is_empty(), "{:?}", groups(&own));
}

// Mutant: without the limit of processes.
#[test]
fn a_fork_bomb_ends_with_a_reason() {
    let mut stage = Stage::new();
    stage.boundary.limits = Limits { processes: Some(40), ..Limits::NONE };
    let sandbox = stage.sandbox(Layers::ALL);
    let script = "import os, sys, time
try:
    for _ in range(200):
        if os.fork() == 0:
            time.sleep(600)
except OSError:
    sys.exit('Cannot fork')";
    let work = stage.path("work");
    let inside = sandbox.command(Path::new("python3"), &["-c", script], &work).unwrap();
    let mut command = Command::new(&inside.program);
    let output = command.args(&inside.arguments).stdin(Stdio::null()).output().unwrap();
    drop(inside.guard);
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let reason = sandbox.reason_of_failure(&text, output.status.code()).unwrap_or(text);
    assert!(reason.contains("40 processes") && reason.contains("limits.processes"), "{reason}");
    let is_group = sandbox.attestation().limits_by["processes"] == "cgroup";
    assert_eq!(reason.contains("that limit was reached"), is_group, "{reason}");
    // It is not the reason of another command.
    let other = sandbox.with(sandbox.boundary().clone()).unwrap();
    assert_eq!(other.reason_of_failure("", Some(1)), None);
}

const PROBES: &[Probe] = &[
    Probe::of_root(
        26,
        NONE,
        "f=$(find /sys/fs/cgroup -name cgroup.procs | head -n 1); echo $$ > $f && echo ESCAPED",
    ),
    Probe::of_root(
        26,
        NONE,
        "d=$(find /sys/fs/cgroup -name cgroup.procs | head -n 1); d=${d%/*}/ostler-escape-$$; \
         mkdir $d && rmdir $d && echo ESCAPED",
    ),
];

// Mutant: without all layers, as root; the test runs it.
#[test]
fn a_program_cannot_leave_its_group_or_make_another_one() {
    probe::check(PROBES);
}
