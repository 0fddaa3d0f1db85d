//! A pipe or a device in place of a file does not block the program or fill its memory.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::run::{Ostler, Ran};

/// Far longer than any step takes.
const LIMIT: Duration = Duration::from_secs(60);
const SESSION: &str = "11111111-1111-4111-8111-111111111111";

/// A pipe without a writer, and an endless device.
fn places(ostler: &Ostler) -> [String; 2] {
    let path = |name: &str| ostler.path(name).display().to_string();
    assert!(Command::new("mkfifo").arg(path("pipe")).status().unwrap().success());
    symlink("/dev/zero", path("zero")).unwrap();
    [path("pipe"), path("zero")]
}

/// Runs the program with at most 2 GiB of memory; kills it if it does not end by itself.
fn run(ostler: &Ostler, arguments: &[&str]) -> Ran {
    let mut limited = Command::new("/bin/sh");
    ostler.furnish(&mut limited);
    limited.args(["-c", "ulimit -v 2097152 2>/dev/null; exec \"$0\" \"$@\""]).arg(&ostler.program);
    let output = ostler.path("output");
    limited.args(arguments).stdin(std::process::Stdio::null());
    limited.stdout(fs::File::create(&output).unwrap());
    limited.stderr(fs::File::create(output.with_extension("errors")).unwrap());
    let (mut child, begun) = (limited.spawn().unwrap(), Instant::now());
    let status = loop {
        match child.try_wait().unwrap() {
            Some(status) => break Some(status),
            None if begun.elapsed() > LIMIT => {
                child.kill().unwrap();
                child.wait().unwrap();
                break None;
            }
            None => std::thread::sleep(Duration::from_millis(10)),
        }
    };
    let status = status.unwrap_or_else(|| panic!("{arguments:?} does not end"));
    let text = |path| fs::read_to_string(path).unwrap();
    let (stdout, stderr) = (text(output.clone()), text(output.with_extension("errors")));
    Ran { stdout, stderr, code: status.code() }
}

// Mutants: `--system-prompt-file` and `--mcp-config` are read with `std::fs::read_to_string`.
#[test]
fn every_option_that_names_a_file_refuses_a_pipe_and_a_device() {
    for option in [
        "--settings",
        "--mcp-config",
        "--system-prompt-file",
        "--replay",
        "--record",
        "--debug-file",
    ] {
        let ostler = Ostler::new();
        for place in places(&ostler) {
            let ran = run(&ostler, &["-p", option, &place, "hello"]);
            // Writing to a device that accepts everything is not an error.
            let is_fine = option == "--debug-file" && place.ends_with("zero");
            assert_eq!(ran.code, Some(if is_fine { 0 } else { 1 }), "{option} {place}: {ran:?}");
            assert!(is_fine || ran.stderr.contains(&place), "{option} {place}: {ran:?}");
        }
    }
    let ostler = Ostler::new();
    for place in places(&ostler) {
        let ran = run(&ostler, &["serve", "--settings", &place]);
        assert!(ran.code == Some(1) && ran.stderr.contains(&place), "{place}: {ran:?}");
    }
}

// Mutant: `regular::open` opens whatever it is.
#[test]
fn a_pipe_or_a_device_among_the_session_files_does_not_block() {
    let ostler = Ostler::new();
    assert_eq!(run(&ostler, &["-p", "list the files"]).code, Some(0));
    let projects = ostler.path("no-home/.claude/projects");
    let folder = fs::read_dir(&projects).unwrap().next().unwrap().unwrap().path();
    for (place, name) in
        places(&ostler).iter().zip([SESSION, "22222222-2222-4222-8222-222222222222"])
    {
        fs::rename(place, folder.join(format!("{name}.jsonl"))).unwrap();
        assert_eq!(run(&ostler, &["sessions"]).code, Some(0));
        let ran = run(&ostler, &["-p", "--continue", "hello"]);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        let ran = run(&ostler, &["-p", "--resume", name, "hello"]);
        assert_eq!(ran.code, Some(1), "{ran:?}");
    }
}
