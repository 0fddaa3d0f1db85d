//! Row 31: several sandboxes on one folder, and a caller that is killed.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use ostler_sandbox::Layers;

use crate::stage::Stage;

// Mutant: the first user of a placeholder removes it although the second one still needs it.
#[test]
fn two_sandboxes_on_one_folder_protect_it_together() {
    let stage = Stage::new();
    let sandbox = stage.sandbox(Layers::ALL);
    let work = stage.path("work");
    let start = |script: &str| {
        let inside = sandbox.command(Path::new("/bin/bash"), &["-c", script], &work).unwrap();
        let mut command = Command::new(&inside.program);
        command.args(&inside.arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.stderr(Stdio::null()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        (child, inside.guard)
    };
    let wait = "echo ready; read _; echo x > .mcp.json";
    let (mut first, first_guard) = start(wait);
    let (mut second, second_guard) = start(wait);
    drop(first.stdin.take());
    first.wait().unwrap();
    drop(first_guard);
    drop(second.stdin.take());
    assert!(!second.wait().unwrap().success());
    assert!(!work.join(".mcp.json").is_file());
    drop(second_guard);
    assert!(!work.join(".mcp.json").exists());
}

// Mutants: placeholders are files, which git adds; that of `commondir` is empty, with which git does not work.
#[test]
fn git_works_in_a_repository_and_adds_no_placeholder() {
    let stage = Stage::new();
    let sandbox = stage.sandbox(Layers::ALL);
    let work = stage.path("work");
    std::fs::remove_dir_all(work.join(".git")).unwrap();
    let git = |folder: &Path| {
        let mut git = Command::new("git");
        git.current_dir(folder).args(["-c", "user.name=a", "-c", "user.email=a@b"]);
        git
    };
    assert!(git(&work).args(["init", "-q"]).status().unwrap().success());
    // Inside, and by the user outside while a program runs inside.
    let script = "set -e; git='git -c user.name=a -c user.email=a@b'; echo one > a.txt; $git add -A; $git commit -qm one; \
                  $git branch other; $git stash list; $git gc -q; $git worktree list; $git status --short; echo ready; read _";
    let inside = sandbox.command(Path::new("/bin/bash"), &["-c", script], &work).unwrap();
    let mut command = Command::new(&inside.program);
    command.args(&inside.arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let before: Vec<_> = lines.by_ref().take_while(|line| line != "ready").collect();
    assert_eq!(before.len(), 1, "the list of worktrees: {before:?}");
    assert!(work.join(".mcp.json").symlink_metadata().is_ok(), "placeholders are there");
    std::fs::write(work.join("b.txt"), "two").unwrap();
    for arguments in [&["add", "-A"][..], &["commit", "-qm", "two"]] {
        assert!(git(&work).args(arguments).status().unwrap().success());
    }
    let files = git(&work).args(["ls-files"]).output().unwrap().stdout;
    assert_eq!(String::from_utf8_lossy(&files), ".claude/settings.json\na.txt\nb.txt\n");
    drop(child.stdin.take());
    child.wait().unwrap();
    drop(inside.guard);
    let status = git(&work).args(["status", "--short"]).output().unwrap();
    assert!(status.status.success() && status.stdout.is_empty(), "{status:?}");
    assert!(!work.join(".git/commondir").exists());
}

/// The variable that makes this test the victim of itself.
const VICTIM: &str = "OSTLER_TEST_VICTIM";

// Mutants: the watchdog does not remove placeholders; it does not remove control groups.
#[test]
fn a_killed_caller_leaves_no_process_and_no_placeholder() {
    if let Some(work) = std::env::var_os(VICTIM) {
        return be_killed(Path::new(&work));
    }
    let stage = Stage::new();
    let work = stage.path("work");
    let listed = || {
        let names = std::fs::read_dir(&work).unwrap().map(|it| it.unwrap().file_name());
        let mut names: Vec<_> = names.collect();
        names.sort();
        names
    };
    let before = listed();
    for round in 0..10 {
        let name = "masks::a_killed_caller_leaves_no_process_and_no_placeholder";
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args([name, "--exact", "--nocapture"]).env(VICTIM, &work);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let id = lines.find_map(|line| line.unwrap().strip_prefix("inside ").map(str::to_owned));
        assert!(listed().len() > before.len(), "placeholders exist while it runs");
        child.kill().unwrap();
        child.wait().unwrap();
        let limit = Instant::now() + Duration::from_secs(30);
        let is_alive = || Path::new(&format!("/proc/{}", id.as_deref().unwrap())).exists();
        let groups = || crate::groups::groups(&format!("ostler-{}-", child.id()));
        while (listed() != before || is_alive() || !groups().is_empty()) && Instant::now() < limit {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(listed(), before, "round {round}");
        assert!(!is_alive() && groups().is_empty(), "round {round}");
    }
}

/// Runs a program in a sandbox and waits for its end, which does not come.
fn be_killed(work: &Path) {
    let stage = Stage::of(work);
    let sandbox = stage.sandbox(Layers::ALL);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let _entered = runtime.enter();
    let group = ostler_process::Group::spawn_piped(ostler_process::PipedCommand {
        program: Path::new("/bin/sleep"),
        arguments: &["600".as_ref()],
        folder: work,
        environment: Default::default(),
        boundary: Some(&sandbox),
    });
    let mut group = group.unwrap();
    println!("inside {}", group.id());
    let _ = runtime.block_on(group.wait());
}
