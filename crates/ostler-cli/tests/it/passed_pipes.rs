//! Options that name a file accept a pipe that the shell passes by its descriptor, as in `--settings <(command)`.

use std::io::{PipeWriter, Write as _};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use ostler_testkit::{Script, ScriptedApi, reply, when};
use serde_json::json;

use crate::record;
use crate::run::{Ostler, Ran};

/// The options that come before the path.
const OPTIONS: [&str; 4] = ["--settings", "--mcp-config", "--system-prompt-file", "--replay"];
/// Far longer than the time limit of a pipe.
const LIMIT: Duration = Duration::from_secs(50);

/// Starts the program with a pipe as descriptor 3. The test has the writing end.
fn spawn(ostler: &Ostler, arguments: &[&str]) -> (Child, PipeWriter) {
    let (reader, writer) = std::io::pipe().unwrap();
    let mut command = Command::new("/bin/sh");
    ostler.furnish(&mut command);
    command.args(["-c", "exec 3<&0 </dev/null; exec \"$0\" \"$@\""]).arg(&ostler.program);
    command.args(&ostler.arguments).args(arguments).stdin(reader);
    (command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap(), writer)
}

fn run(ostler: &Ostler, text: &str, arguments: &[&str]) -> Ran {
    let (child, mut writer) = spawn(ostler, arguments);
    // A program that has read enough closes its end.
    let _ = writer.write_all(text.as_bytes());
    drop(writer);
    Ran::of(child)
}

// Mutants: `read_pipes` does nothing; the reader of recordings does without `read_passed_pipe`.
#[tokio::test(flavor = "multi_thread")]
async fn a_pipe_that_the_shell_passes_is_read_like_a_file() {
    for path in ["/dev/fd/3", "/proc/self/fd/3"] {
        let allows = r#"{"permissions": {"allow": ["Bash(touch:*)"]}}"#;
        let ostler = Ostler::new();
        let ran = run(&ostler, allows, &["--settings", path, "-p", "run `touch made`"]);
        assert!(ostler.path("made").exists(), "{path}: {ran:?}");

        let servers = r#"{"mcpServers": {"one": {"command": "false"}}}"#;
        let arguments = ["--mcp-config", path, "-p", "--output-format", "stream-json", "hello"];
        let ran = run(&Ostler::new(), servers, &arguments);
        assert!(ran.stdout.contains(r#""name":"one""#), "{path}: {ran:?}");

        let script = Script::new().rule(when(), reply().text("Hello."));
        let api = ScriptedApi::start(script.clone()).await;
        let ran = run(
            &record::online(&api),
            "You are a cat.",
            &["--system-prompt-file", path, "-p", "x"],
        );
        assert!(api.requests()[0].body["system"].to_string().contains("a cat"), "{path}: {ran:?}");

        let folder = tempfile::tempdir().unwrap();
        let recording = folder.path().join("recording");
        record::record(script, &recording, &["-p", "hello"]).await;
        let recorded = std::fs::read_to_string(&recording).unwrap();
        let ran = run(&record::offline(), &recorded, &["--replay", path, "-p", "hello"]);
        assert_eq!((ran.stdout.trim(), ran.code), ("Hello.", Some(0)), "{path}: {ran:?}");

        // The server has read the settings if it reports the error in them.
        let wrong = json!({"permissions": {"allow": "Bash"}}).to_string();
        let ran = run(&Ostler::new(), &wrong, &["serve", "--settings", path]);
        assert!(ran.code == Some(1) && ran.stderr.contains("allow"), "{path}: {ran:?}");
    }
}

#[test]
fn a_process_substitution_of_bash_names_mcp_servers() {
    let ostler = Ostler::new();
    let mut bash = Command::new("bash");
    ostler.furnish(&mut bash);
    let script =
        r#""$0" --mcp-config <(echo '{"mcpServers": {"one": {"command": "false"}}}') "$@""#;
    bash.args(["-c", script]).arg(&ostler.program);
    bash.args(["-p", "--output-format", "stream-json", "hello"]).stdin(Stdio::null());
    let output = bash.output().unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(stdout.contains(r#""name":"one""#), "{output:?}");
}

// Mutant: the check of the time left out of `passed_pipe::read`.
#[test]
fn a_pipe_that_is_not_closed_is_refused_after_a_time_limit() {
    let check = |option: &'static str| {
        let begun = Instant::now();
        let ostler = Ostler::new();
        let (child, writer) = spawn(&ostler, &[option, "/dev/fd/3", "-p", "hello"]);
        let ended = thread::spawn(move || Ran::of(child));
        while !ended.is_finished() && begun.elapsed() < LIMIT {
            thread::sleep(Duration::from_millis(20));
        }
        drop(writer);
        let ran = ended.join().unwrap();
        assert!(begun.elapsed() < LIMIT, "{option}: {ran:?}");
        assert_eq!(ran.code, Some(1), "{option}: {ran:?}");
        assert!(ran.stderr.contains("not closed within 5 s"), "{option}: {ran:?}");
    };
    let checks = OPTIONS.map(|option| thread::spawn(move || check(option)));
    checks.into_iter().for_each(|check| check.join().unwrap());
}

// Mutants: `take_json` takes whatever it reads; the check of the length left out of `passed_pipe::read`.
#[test]
fn input_that_is_too_long_or_not_json_is_refused_with_a_reason() {
    // A recording may be very long; a test of the engine checks its bound.
    for option in &OPTIONS[..3] {
        let long = " ".repeat(4 * 1024 * 1024 + 1);
        let ran = run(&Ostler::new(), &long, &[option, "/dev/fd/3", "-p", "hello"]);
        assert!(ran.code == Some(1) && ran.stderr.contains("longer than"), "{option}: {ran:?}");
        assert!(ran.stderr.contains(&format!("{option} /dev/fd/3")), "{option}: {ran:?}");
    }
    for (text, reason) in [("README.md", "not JSON"), ("[1]", "not a JSON object")] {
        for option in &OPTIONS[..2] {
            let ran = run(&Ostler::new(), text, &[option, "/dev/fd/3", "-p", "hello"]);
            assert!(ran.code == Some(1) && ran.stderr.contains(reason), "{option}: {ran:?}");
        }
    }
}
