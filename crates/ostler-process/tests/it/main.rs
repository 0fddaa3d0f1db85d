//! Whatever a child starts ends with it, however it hides and however the child ends.

#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod adoption;
mod spawning;
mod watchdog;

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use ostler_process::{Group, OnDrop};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;

/// In the environment of everything a test starts, with a value unique to the test.
const MARK: &str = "OSTLER_TEST_PROCESS";
/// Far longer than any step here takes.
const LIMIT: Duration = Duration::from_secs(60);

/// Ways to start a process that tries to stay. Each prints a line when it runs.
const ESCAPES: &[(&str, &str)] = &[
    ("in the group", "sleep 600 & echo there"),
    ("setsid", "setsid sh -c 'echo there; exec sleep 600' &"),
    ("double fork", "(setsid sh -c 'sleep 600 & echo there' &)"),
    ("nohup and setsid", "nohup setsid sh -c 'echo there >&2; exec sleep 600' 2>&1 >/dev/null &"),
    (
        "sessions within sessions",
        "setsid sh -c 'setsid sh -c \"sleep 600 & echo there; sleep 600\"' &",
    ),
    // Mutant: `processes::read` with `read_to_string`: such a process is not listed.
    (
        "a name that is not text",
        "setsid sh -c 'printf \"\\377\" >/proc/$$/comm; echo there; while :; do sleep 600; done' &",
    ),
    ("many", "for i in 1 2 3 4 5 6 7 8 9; do setsid sleep 600 & done; echo there"),
];

fn command(script: &str, mark: &str) -> Command {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", script]).env(MARK, mark);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    command
}

/// Starts a child and waits until the processes it starts are running.
async fn spawn(script: &str, mark: &str) -> Group {
    let mut group = Group::spawn(command(script, mark)).unwrap();
    let mut line = String::new();
    BufReader::new(group.stdout().unwrap()).read_line(&mut line).await.unwrap();
    assert_eq!(line, "there\n", "{script}");
    let begun = Instant::now();
    while left(mark).is_empty() {
        assert!(begun.elapsed() < LIMIT, "{script}");
    }
    group
}

/// Running processes with a mark.
fn left(mark: &str) -> Vec<String> {
    let wanted = format!("{MARK}={mark}");
    let has_mark = |pid: &String| {
        let environment = std::fs::read(Path::new("/proc").join(pid).join("environ"));
        let environment = environment.unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes())
    };
    let names = std::fs::read_dir("/proc").unwrap();
    let names = names.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names.filter(has_mark).collect()
}

/// Waits for `count` processes: one in the middle of `exec` is invisible for a moment.
fn until_there(mark: &str, count: usize) {
    let begun = Instant::now();
    while left(mark).len() != count {
        assert!(begun.elapsed() < LIMIT, "{mark}: {:?} are there", left(mark));
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until nothing is left.
fn all_end(mark: &str) {
    let begun = Instant::now();
    while !left(mark).is_empty() {
        assert!(begun.elapsed() < LIMIT, "{mark}: {:?} are left", left(mark));
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn unique(test: &str, escape: &str) -> String {
    format!("{test} {escape} {}", std::process::id())
}

/// Mutant: `members::end` taken out of `Group::kill`.
#[tokio::test]
async fn what_a_command_started_ends_when_the_command_has_ended() {
    for (name, script) in ESCAPES {
        let mark = unique("ended", name);
        let mut group = spawn(script, &mark).await;
        assert!(group.wait().await.unwrap().success());
        drop(group);
        assert_eq!(left(&mark), [""; 0], "{name}");
    }
}

/// Mutant: as before.
#[tokio::test]
async fn what_a_command_started_ends_when_the_command_is_killed_or_dropped() {
    for (name, script) in ESCAPES {
        for is_killed in [true, false] {
            let mark = unique("killed", name);
            let mut group = spawn(&format!("{script}\nsleep 600"), &mark).await;
            if is_killed {
                group.kill();
            }
            drop(group);
            assert_eq!(left(&mark), [""; 0], "{name}");
        }
    }
}

#[test]
fn what_a_command_started_ends_when_it_is_dropped_after_its_runtime() {
    for (name, script) in ESCAPES {
        let mark = unique("runtime", name);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let group = runtime.block_on(spawn(&format!("{script}\nsleep 600"), &mark));
        drop(runtime);
        drop(group);
        assert_eq!(left(&mark), [""; 0], "{name}");
    }
}

/// A process that drops the marker is found as long as its parent lives.
#[tokio::test]
async fn a_child_without_the_marker_ends_with_its_parent() {
    let mark = unique("unmarked", "");
    let script = "env -u OSTLER_COMMAND_ID setsid sh -c 'echo there; sleep 600; true' & sleep 600";
    drop(spawn(script, &mark).await);
    assert_eq!(left(&mark), [""; 0]);
}

/// Other commands continue. Mutant: the marker of the whole process used for one child.
#[tokio::test]
async fn the_end_of_one_command_leaves_the_others_alone() {
    let (one, other) = (unique("one", ""), unique("other", ""));
    let mut groups = Vec::new();
    for _ in 0..12 {
        // Numbers with a common prefix must not be confused.
        groups.push(spawn("setsid sh -c 'echo there; exec sleep 600' &", &other).await);
    }
    until_there(&other, 12);
    drop(spawn("setsid sh -c 'echo there; exec sleep 600' &", &one).await);
    assert_eq!((left(&one).len(), left(&other).len()), (0, 12));
    drop(groups.swap_remove(0));
    assert_eq!(left(&other).len(), 11);
    drop(groups);
    assert_eq!(left(&other).len(), 0);
}

/// Mutants: `OnDrop::Terminate` treated as `Kill`: the trap does not run. Without the watchdog's `finish` the process
/// that ignores SIGTERM stays.
#[tokio::test]
async fn a_program_gets_two_seconds_after_sigterm() {
    let folder = std::env::temp_dir().join(unique("asked", ""));
    let mark = unique("asked", "");
    let polite = format!(
        "trap 'echo asked > \"{}\"; exit' TERM; setsid sleep 600 & echo there; while :; do sleep 0.05; done",
        folder.display()
    );
    let deaf = "trap '' TERM; setsid sleep 600 & echo there; while :; do sleep 1; done";
    for script in [polite.as_str(), deaf] {
        drop(spawn(script, &mark).await.on_drop(OnDrop::Terminate));
        all_end(&mark);
    }
    assert_eq!(std::fs::read_to_string(&folder).unwrap(), "asked\n");
    std::fs::remove_file(folder).unwrap();
}

/// Mutant: `OnDrop::CloseInput` treated as `Kill`: neither writes.
#[tokio::test]
async fn a_server_gets_the_end_of_its_input_then_sigterm_then_sigkill() {
    let file = std::env::temp_dir().join(unique("server", ""));
    let at = file.display();
    let scripts = [
        format!("echo there; cat; echo end > \"{at}\""),
        format!("trap 'echo term > \"{at}\"; exit' TERM; echo there; while :; do sleep 0.05; done"),
        "trap '' TERM; echo there; while :; do sleep 1; done".to_owned(),
    ];
    for (script, said) in scripts.iter().zip(["end\n", "term\n", ""]) {
        let _ = std::fs::remove_file(&file);
        let mark = unique("server", said.trim());
        drop(spawn(script, &mark).await.on_drop(OnDrop::CloseInput));
        all_end(&mark);
        assert_eq!(std::fs::read_to_string(&file).unwrap_or_default(), said, "{script}");
    }
    let _ = std::fs::remove_file(&file);
}
