//! This process is killed, and the number of watchdogs.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use super::{ESCAPES, LIMIT, MARK, all_end, left, spawn, unique};

/// Set in the process that plays the host.
const HOST: &str = "OSTLER_TEST_HOST";

/// Not a test itself: the host that the next test kills.
#[tokio::test]
async fn host() {
    let Ok(mark) = std::env::var(HOST) else { return };
    let mut groups = Vec::new();
    for (_, script) in ESCAPES {
        groups.push(spawn(&format!("{script}\nsleep 600"), &mark).await);
        groups.push(spawn(script, &mark).await);
    }
    // One has ended already but was not dropped yet.
    groups.last_mut().unwrap().wait().await.unwrap();
    println!("\nall there");
    tokio::time::sleep(LIMIT).await;
}

/// Mutants: `sweep` taken out of `watchdog.sh`; `+` ignored by it.
#[test]
fn what_commands_started_ends_when_this_process_is_killed() {
    let mark = unique("host", "");
    let mut host = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "watchdog::host", "--nocapture"])
        .env(HOST, &mark)
        .env_remove(MARK)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(host.stdout.take().unwrap()).lines();
    assert!(lines.map_while(Result::ok).any(|line| line == "all there"));
    assert!(left(&mark).len() > ESCAPES.len());
    // Mutant: a shell per child, as it used to be.
    assert_eq!(watchdogs(host.id()), 1);
    host.kill().unwrap();
    host.wait().unwrap();
    all_end(&mark);
}

/// How many watchdogs a process has.
fn watchdogs(parent: u32) -> usize {
    let of_parent = format!("PPid:\t{parent}\n");
    let names =
        std::fs::read_dir("/proc").unwrap().filter_map(Result::ok).map(|entry| entry.path());
    let is_watchdog = |process: &std::path::PathBuf| {
        let status = std::fs::read_to_string(process.join("status")).unwrap_or_default();
        let line = std::fs::read(process.join("cmdline")).unwrap_or_default();
        status.contains(&of_parent) && String::from_utf8_lossy(&line).contains("ostler-watchdog")
    };
    names.filter(is_watchdog).count()
}
