//! A pipe or a device in place of a file does not block the program or fill its memory.

use std::fs;
use std::os::unix::fs::{FileTypeExt as _, symlink};
use std::process::Command;
use std::time::{Duration, Instant};

use ostler_testkit::{Script, ScriptedApi, reply, when};
use serde_json::json;

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
            // `--mcp-config` accepts several files, so the prompt comes first.
            let ran = run(&ostler, &["-p", "hello", option, &place]);
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

/// A command that replaces every file it can reach: of the project, of the configuration, of the session and of its
/// temporary folder.
const REPLACE_ALL: &str = "find \"$HOME\" . ${TMPDIR:-/tmp}/ostler-* -type f ! -name 'output*' 2>/dev/null | \
     while read -r file; do rm \"$file\" && mkfifo \"$file\"; done; find . -type p | wc -l";

/// What follows in the same session and in later ones ends, as do lists, checks and the rewind of files.
#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_replaces_all_files_by_pipes_blocks_nothing() {
    let mut ostler = Ostler::new();
    let path = |name: &str| ostler.path(name).display().to_string();
    for (name, text) in [
        (".claude/settings.json", "{}"),
        (".claude/settings.local.json", "{}"),
        ("CLAUDE.md", "text"),
        (".mcp.json", "{}"),
        (".claude/agents/a.md", "---\nname: a\ndescription: d\n---\ntext"),
        (".claude/skills/s/SKILL.md", "---\nname: s\ndescription: d\n---\ntext"),
        (".git/HEAD", "ref: refs/heads/main\n"),
        (".git/config", ""),
        ("no-home/.claude/settings.json", "{}"),
        ("no-home/.claude.json", "{}"),
        ("tmp/note", ""),
    ] {
        fs::create_dir_all(ostler.path(name).parent().unwrap()).unwrap();
        fs::write(ostler.path(name), text).unwrap();
    }
    let write = |content| json!({"file_path": path("note.txt"), "content": content});
    let script = Script::new()
        .rule(when().turn(0), reply().tool_use("Write", write("one")))
        .rule(when().turn(1), reply().tool_use("Bash", json!({"command": REPLACE_ALL})))
        .rule(when().turn(2), reply().tool_use("Bash", json!({"command": "ls; cd /"})))
        .rule(when().turn(3), reply().tool_use("Write", write("two")))
        .rule(when().turn(4), reply().tool_use("Read", json!({"file_path": "CLAUDE.md"})))
        .rule(when().turn(5), reply().tool_use("Grep", json!({"pattern": "t"})))
        .rule(when(), reply().text("Done."));
    let api = ScriptedApi::start(script).await;
    for (name, value) in [
        ("ANTHROPIC_API_KEY", "key"),
        ("ANTHROPIC_BASE_URL", &api.base_url()),
        ("CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING", "true"),
        ("TMPDIR", &path("tmp")),
    ] {
        ostler = ostler.env(name, value);
    }
    let first = ["-p", "go", "--permission-mode=bypassPermissions", "--session-id", SESSION];
    let ran = tokio::task::block_in_place(|| run(&ostler, &first));
    assert_eq!((ran.code, ran.stdout.trim()), (Some(0), "Done."), "{ran:?}");
    // Otherwise nothing was shown.
    let is_pipe = |name: &str| fs::metadata(ostler.path(name)).unwrap().file_type().is_fifo();
    assert!(is_pipe(".claude/settings.local.json") && is_pipe("no-home/.claude/settings.json"));
    assert!(is_pipe(".git/HEAD") && is_pipe(".claude/skills/s/SKILL.md"));
    for arguments in [
        &["-p", "again"][..],
        &["-p", "--continue", "again"],
        &["-p", "--resume", SESSION, "again"],
        &["-p", "/compact"],
        &["sessions"],
        &["doctor"],
    ] {
        // Whether it works without its files is another question.
        tokio::task::block_in_place(|| run(&ostler, arguments));
    }
}
