//! Restricted folders: one that cannot be written, one that is deleted, an invalid home, a full disk. The session
//! continues, and losses are reported.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::run::{Ostler, PROGRAM, Ran};

const BYPASS: &str = "bypassPermissions";

/// The printed frames.
fn frames(ran: &Ran) -> Vec<Value> {
    ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn lost(frames: &[Value]) -> Vec<&Value> {
    frames.iter().filter(|frame| frame["subtype"] == "session_writes_lost").collect()
}

/// Runs the program from a shell that runs a command first.
fn after(ostler: &Ostler, first: &str, arguments: &[&str]) -> Ran {
    let mut command = Command::new("sh");
    ostler.furnish(&mut command);
    let script = format!("{first}\nexec \"$@\"");
    command.args(["-c", &script, "sh", PROGRAM]).args(&ostler.arguments).args(arguments);
    Ran::of(
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap(),
    )
}

#[test]
fn in_a_folder_that_cannot_be_written_the_rest_works_and_the_reason_is_reported() {
    let ostler = Ostler::new();
    // No user can create a file there, not even root.
    let ran = ostler.run(&[
        "--cwd",
        "/sys",
        "--permission-mode",
        "acceptEdits",
        "-p",
        "write \"x\" to new.txt",
    ]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.contains("/sys/new.txt"), "{}", ran.stdout);
    let ran = ostler.run(&["--cwd", "/sys", "-p", "run `pwd`"]);
    assert!(ran.stdout.contains("/sys"), "{}", ran.stdout);
}

#[test]
fn a_folder_deleted_during_a_session_is_reported_and_the_session_continues() {
    let ostler = Ostler::new();
    let work = ostler.path("work");
    fs::create_dir(&work).unwrap();
    let work = work.display().to_string();
    let ostler = ostler.args(&["--cwd", &work, "--permission-mode", BYPASS]);
    let remove = format!("run `rmdir {work}`");
    let ran = ostler.type_lines(&[
        &remove,
        "run `pwd`",
        "read notes.txt",
        "write \"x\" to new.txt",
        "hello",
    ]);
    assert_eq!(ran.code, Some(0), "{}\n{}", ran.stdout, ran.stderr);
    assert!(
        !std::path::Path::new(&work).join("new.txt").exists() || ran.stdout.contains("new.txt")
    );
    ran.shows(&["the folder is gone", "notes.txt", "new.txt"]);
    assert!(!ran.stderr.contains("panicked"), "{}", ran.stderr);
}

#[test]
fn a_folder_that_is_missing_at_the_start_is_reported() {
    let ostler = Ostler::new();
    let ran = after(&ostler, "mkdir gone && cd gone && rmdir ../gone", &["-p", "hello"]);
    assert_eq!(ran.code, Some(1), "{}", ran.stdout);
    assert!(ran.stderr.contains("the current folder does not exist any more"), "{}", ran.stderr);
    let ran = after(&ostler, ":", &["--cwd", "nowhere", "-p", "hello"]);
    assert!(ran.stderr.contains("cannot work in nowhere"), "{}", ran.stderr);
}

#[test]
fn without_a_home_or_with_one_that_cannot_be_written_sessions_work() {
    let arguments = ["-p", "--output-format", "stream-json", "run `echo here`"];
    let arguments = [&["--permission-mode", BYPASS][..], &arguments].concat();
    let ostler = Ostler::new();
    // No user can create a folder in the second, and the third is not a folder.
    for first in [
        "unset HOME",
        "HOME=/proc/ostler; export HOME",
        "HOME=/dev/null; export HOME",
        "HOME=; export HOME",
    ] {
        let ran = after(&ostler, first, &arguments);
        assert_eq!(ran.code, Some(0), "{first}: {}\n{}", ran.stdout, ran.stderr);
        let frames = frames(&ran);
        let result = frames.last().unwrap();
        assert_eq!(
            (&result["type"], &result["is_error"]),
            (&"result".into(), &false.into()),
            "{first}: {result}"
        );
        assert!(!ran.stderr.contains("panicked"), "{first}: {}", ran.stderr);
        if first.contains("HOME=/") {
            assert_eq!(lost(&frames).len(), 1, "{first}: {}", ran.stdout);
        }
    }
    for first in ["unset HOME", "HOME=/proc/ostler; export HOME"] {
        for command in ["doctor", "sessions"] {
            let ran = after(&ostler, first, &[command]);
            assert!(
                !ran.stderr.contains("panicked") && ran.code.is_some(),
                "{first}: {}",
                ran.stderr
            );
        }
    }
}

#[test]
fn a_full_disk_loses_only_the_end_of_the_session_file() {
    let ostler = Ostler::new().args(&["--permission-mode", BYPASS]);
    // A limit on the size of files replaces a full disk: writes are cut and then fail.
    let full = "trap '' XFSZ; ulimit -f 8";
    let long = "run `seq 1000`";
    let ran = after(&ostler, full, &["-p", "--output-format", "stream-json", long]);
    assert_eq!(ran.code, Some(0), "{}\n{}", ran.stdout, ran.stderr);
    let seen = frames(&ran);
    let lost = lost(&seen);
    assert_eq!(lost.len(), 1, "reported once: {}", ran.stdout);
    assert_eq!(lost[0]["error_code"], "EFBIG");
    assert_eq!(seen.last().unwrap()["is_error"], false);
    // The saved part can be resumed.
    let ran = ostler.run(&["--continue", "-p", "--output-format", "stream-json", "hello"]);
    assert_eq!(ran.code, Some(0), "{}\n{}", ran.stdout, ran.stderr);
    let again = frames(&ran);
    assert_eq!(again.last().unwrap()["session_id"], seen.last().unwrap()["session_id"]);
    assert_eq!(again.last().unwrap()["is_error"], false);
}

#[test]
fn a_limit_on_time_or_tokens_ends_the_prompt_and_is_named() {
    let ostler =
        Ostler::new().args(&["--permission-mode", BYPASS, "-p", "--output-format", "json"]);
    let ran = ostler.run(&["--max-time", "1s", "run `sleep 100`"]);
    let result: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(result["limit_reached"], "time", "{result}");
    let ran = ostler.run(&["--max-tokens", "1", "run `echo`"]);
    let result: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(result["limit_reached"], "tokens", "{result}");
}

#[test]
fn bypass_mode_without_a_sandbox_prints_a_warning() {
    let ostler = Ostler::new();
    let is_root = ostler.folder.path().metadata().unwrap().uid() == 0;
    let warned = |sandbox: &str, arguments: &[&str]| {
        let ostler = Ostler::new().env("IS_SANDBOX", sandbox);
        let ran = ostler.run(&[arguments, &["-p", "list the files"]].concat());
        // Root cannot even use it.
        let is_refused = is_root && ran.code == Some(1) && ran.stderr.contains("as root");
        assert!(is_refused || ran.code == Some(0), "{}", ran.stderr);
        is_refused || ran.stderr.contains("there is no sandbox around it")
    };
    let bypass = ["--permission-mode", BYPASS];
    assert!(warned("", &bypass));
    assert!(warned("", &["--dangerously-skip-permissions"]));
    assert!(!warned("1", &bypass));
    assert!(!warned("", &[]));
    // Programs may want to choose the mode later.
    assert_eq!(warned("", &["--allow-dangerously-skip-permissions"]), is_root);
    assert!(!warned("1", &["--allow-dangerously-skip-permissions"]));
}
