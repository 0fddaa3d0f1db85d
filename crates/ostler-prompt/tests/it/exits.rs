//! Workspaces are removed when a process ends, in whatever way.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use ostler_prompt::{HostMount, Workspace};

use crate::mounts::Host;
use crate::stage::within;

/// The body of the child process. An environment variable sets how it ends.
#[test]
fn a_process_with_a_workspace() {
    let Some(ends) = std::env::var_os("OSTLER_TEST_ENDS") else { return };
    let host = Host::new(&[("it/a", "x")]);
    let mount = HostMount::new(host.path("it"));
    let temp = PathBuf::from(std::env::var_os("OSTLER_TEST_TEMP").unwrap());
    let workspace = Workspace::builder().mount(mount).temp_root(temp).open().unwrap();
    println!("\nworkspace {}", workspace.path().display());
    match ends.to_str().unwrap() {
        "return" => {}
        "panic" => panic!("as asked"),
        "exit" => std::process::exit(0),
        "abort" => std::process::abort(),
        _ => loop {
            std::thread::park();
        },
    }
}

/// This program. A shell without a terminal ignores SIGINT in what it starts in the background, and so would the child.
fn program() -> Command {
    let this = std::env::current_exe().unwrap();
    if cfg!(target_os = "linux") {
        let mut command = Command::new("env");
        command.arg("--default-signal=INT").arg(this);
        command
    } else {
        Command::new(this)
    }
}

fn start(ends: &str, temp: &Path) -> (Child, PathBuf) {
    let mut child = program()
        .args(["--exact", "exits::a_process_with_a_workspace", "--nocapture"])
        .env("OSTLER_TEST_ENDS", ends)
        .env("OSTLER_TEST_TEMP", temp)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    let mut lines = output.lines().map(Result::unwrap);
    let path = lines.find_map(|line| line.strip_prefix("workspace ").map(PathBuf::from)).unwrap();
    (child, path)
}

/// Waits until a folder is empty.
async fn is_emptied(folder: &Path) {
    within(async {
        while fs::read_dir(folder).unwrap().count() > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
}

async fn check(ends: &str, signal: Option<&str>) {
    let temp = tempfile::tempdir().unwrap();
    let (mut child, path) = start(ends, temp.path());
    if let Some(signal) = signal {
        assert!(path.join("it/a").exists());
        let id = child.id().to_string();
        assert!(
            Command::new("kill").args([&format!("-{signal}"), &id]).status().unwrap().success()
        );
    }
    child.wait().unwrap();
    is_emptied(temp.path()).await;
}

#[tokio::test]
async fn a_workspace_is_removed_when_main_returns() {
    check("return", None).await;
}

#[tokio::test]
async fn a_workspace_is_removed_after_a_panic() {
    check("panic", None).await;
}

#[tokio::test]
async fn a_workspace_is_removed_after_exit() {
    check("exit", None).await;
}

#[tokio::test]
async fn a_workspace_is_removed_after_abort() {
    check("abort", None).await;
}

#[tokio::test]
async fn a_workspace_is_removed_after_sigterm() {
    check("wait", Some("TERM")).await;
}

#[tokio::test]
async fn a_workspace_is_removed_after_sigint() {
    check("wait", Some("INT")).await;
}

#[tokio::test]
async fn a_workspace_is_removed_after_sigkill() {
    check("wait", Some("KILL")).await;
}
