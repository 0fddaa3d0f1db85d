//! Limits end a run that would not end by itself, and it leaves nothing behind.

use std::fs;
use std::process::Child;
use std::time::{Duration, Instant};

use ostler_testkit::{Script, ScriptedApi, reply, when};
use serde_json::{Value, json};

use crate::bounds::peak::{self, Peak, measure};
use crate::run::{Ostler, Ran};
use crate::signals::{is_gone, signal};
use crate::tmux::eventually;

/// Answers the handshake, and nothing after it.
const SILENT: &str = r#"
while IFS= read -r line; do
  case "$line" in
    *'"method":"initialize"'*) printf '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"prompts":{}},"serverInfo":{"name":"silent","version":"1"}}}\n';;
  esac
done
"#;

/// How long the sleeps of these tests are. A run that takes this long has waited for one.
const LONG: Duration = Duration::from_secs(100);

async fn place(script: Script) -> (ScriptedApi, Ostler) {
    let api = ScriptedApi::start(script).await;
    let ostler = Ostler::new()
        .env("ANTHROPIC_API_KEY", "key")
        .env("ANTHROPIC_BASE_URL", &api.base_url())
        .args(&["--permission-mode", "bypassPermissions"]);
    (api, ostler)
}

/// Runs the program and fails if it takes as long as something it must not wait for.
fn timely(ostler: &Ostler, arguments: &[&str]) -> Ran {
    timed(ostler.spawn(arguments), Ran::of)
}

/// The same as a row of the table of attacks.
fn attack(name: &str, ostler: &Ostler, arguments: &[&str]) -> Ran {
    timed(ostler.spawn(arguments), |child| measure(name, child))
}

fn timed(mut child: Child, run: impl Fn(Child) -> Ran) -> Ran {
    let begun = Instant::now();
    drop(child.stdin.take());
    let ran = run(child);
    assert!(begun.elapsed() < LONG, "it took {:?}: {}", begun.elapsed(), ran.stderr);
    ran
}

fn background(command: &str) -> Script {
    let input = json!({"command": command, "run_in_background": true, "description": "wait"});
    Script::new()
        .rule(when().turn(0), reply().tool_use("Bash", input))
        .rule(when(), reply().text("It runs."))
}

/// Mutant: `COMMANDS_WAIT` taken for `BACKGROUND_WAIT`. Without `deadline` in `end_of_wait` it passes: the command is ended
/// after `COMMANDS_WAIT` anyway.
#[tokio::test(flavor = "multi_thread")]
async fn a_background_command_that_does_not_end_is_ended_after_the_answer() {
    for limit in [&[][..], &["--max-time", "2s"]] {
        let (_api, ostler) = place(background("echo $$ > pid; exec sleep 600")).await;
        let name =
            ["Bash: sleep 600 in the background", &limit.join(" ")].join(" ").trim().to_owned();
        let ran = attack(&name, &ostler, &[limit, &["-p", "go"]].concat());
        assert_eq!((ran.code, ran.stdout.trim()), (Some(0), "It runs."), "{}", ran.stderr);
        is_gone(&fs::read_to_string(ostler.path("pid")).unwrap());
    }
}

/// A server that never lists its tools is given up after MCP_TIMEOUT, and does not delay a run beyond its time limit.
///
/// Mutants: `list` without its timeout; `with_server_tools` without the deadline.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_never_lists_its_tools_does_not_delay_a_run() {
    let config = json!({"mcpServers": {"silent": {"command": "/bin/sh", "args": ["-c", SILENT]}}});
    let config = config.to_string();
    for (milliseconds, limit, expected) in
        [("500", &[][..], "Hello."), ("600000", &["--max-time", "2s"][..], "time")]
    {
        let (api, ostler) = place(Script::new().rule(when(), reply().text("Hello."))).await;
        let ostler = ostler.env("MCP_TIMEOUT", milliseconds);
        let arguments = [limit, &["--mcp-config", &config, "-p", "hello"]].concat();
        let name = format!("MCP: never lists its tools, {expected}");
        let ran = attack(&name, &ostler, &arguments);
        assert!(ran.stdout.contains(expected), "{}{}", ran.stdout, ran.stderr);
        assert_eq!(ran.code, Some(i32::from(expected == "time")), "{}", ran.stdout);
        assert_eq!(api.requests().len(), usize::from(expected != "time"));
    }
}

/// Mutant: `hooks::run` without the deadline of the prompt.
#[tokio::test(flavor = "multi_thread")]
async fn hooks_end_with_the_time_of_the_prompt() {
    // A prompt whose hook has not answered is not sent, whatever the reason.
    for (event, code, expected) in [
        ("Setup", 0, "Hello."),
        ("SessionStart", 1, "time"),
        ("UserPromptSubmit", 0, "the time of the prompt was up"),
        ("Stop", 0, "Hello."),
    ] {
        let (_api, ostler) = place(Script::new().rule(when(), reply().text("Hello."))).await;
        let hook = json!({"type": "command", "command": "sleep 600"});
        let settings = json!({"hooks": {event: [{"hooks": [hook]}]}}).to_string();
        let setup = if event == "Setup" { &["--init"][..] } else { &[] };
        let arguments = [setup, &["--max-time", "2s", "--settings", &settings, "-p", "hello"]];
        let ran = timely(&ostler, &arguments.concat());
        assert_eq!(ran.code, Some(code), "{event}: {}{}", ran.stdout, ran.stderr);
        assert!(ran.stdout.contains(expected), "{event}: {}", ran.stdout);
    }
}

/// Mutant: a compaction by hand does not look at the deadline.
#[tokio::test(flavor = "multi_thread")]
async fn a_compaction_ends_with_the_time_of_the_prompt() {
    let script = Script::new()
        .rule(when().any_text_contains("hello").turn(0), reply().text("Hello."))
        .rule(when(), reply().text("A summary.").hold("never"));
    let (_api, ostler) = place(script).await;
    assert_eq!(timely(&ostler, &["-p", "hello"]).code, Some(0));
    let arguments = ["--continue", "--max-time", "2s", "-p", "/compact"];
    let ran = timely(&ostler, &arguments);
    assert_eq!(ran.code, Some(1), "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("time"), "{}", ran.stdout);
}

/// Hidden processes end with the run: at its end, when the command takes too long, on a signal, and when the program is
/// killed.
///
/// Mutants: `members::end` does nothing; the watchdog does not sweep. Without `adopt_orphans` in `main`, the third one
/// stays: it has no marker, its own session and no parent.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_a_command_started_outlives_the_program() {
    let hide = "setsid sh -c 'echo $$ > pid; exec sleep 600' >/dev/null 2>&1 & \
        (setsid sh -c 'sleep 600 & echo $! > other' >/dev/null 2>&1 &) ; \
        env -i PATH=\"$PATH\" setsid sh -c '(sleep 600 & echo $! > third)' >/dev/null 2>&1";
    for (rest, timeout, name) in [
        ("true", 60_000, None),
        ("sleep 600", 1_000, None),
        ("sleep 600", 600_000, Some("INT")),
        ("sleep 600", 600_000, Some("TERM")),
        ("sleep 600", 600_000, Some("KILL")),
    ] {
        let wait = "until [ -s pid ] && [ -s other ]; do sleep 0.02; done";
        // The watchdog of a killed program ends such a process if it had time to notice it.
        let noticed = if name == Some("KILL") { "sleep 3" } else { "true" };
        let command = format!("{hide}; {wait}; {noticed}; echo > ready; {rest}");
        let input = json!({"command": command, "timeout": timeout, "description": "hide"});
        let script = Script::new()
            .rule(when().turn(0), reply().tool_use("Bash", input))
            .rule(when(), reply().text("Done."));
        let (_api, ostler) = place(script).await;
        let mut child = ostler.spawn(&["-p", "go"]);
        let peak = Peak::of(child.id());
        drop(child.stdin.take());
        let pid = |name: &str| fs::read_to_string(ostler.path(name)).unwrap_or_default();
        eventually(|| pid("ready").ends_with('\n'), || "the command to run".to_owned());
        let begun = Instant::now();
        if let Some(name) = name {
            signal(&child, name);
        }
        Ran::of(child);
        let (peak, took) = (peak.end(), begun.elapsed());
        let end = name.map_or_else(|| format!("{rest}, {timeout} ms"), |name| format!("SIG{name}"));
        let row = format!("Bash: setsid and orphans, {end}");
        peak::add_row(&row, "everything is gone", took, peak, peak::ENGINE_LIMIT);
        is_gone(&pid("pid"));
        is_gone(&pid("other"));
        is_gone(&pid("third"));
    }
}

/// The same for a background command.
///
/// Mutant: `adopt_orphans` left out of `main`.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_a_background_command_started_outlives_the_program() {
    let hide = "env -i PATH=\"$PATH\" setsid sh -c '(sleep 600 & echo $! > pid)' >/dev/null 2>&1; sleep 600";
    let (_api, ostler) = place(background(hide)).await;
    let ran = timely(&ostler, &["--max-time", "5s", "-p", "go"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    is_gone(&fs::read_to_string(ostler.path("pid")).unwrap());
}

/// Mutant: `remove_leftovers` does nothing.
#[tokio::test(flavor = "multi_thread")]
async fn the_temporary_folder_of_a_killed_program_is_removed_at_the_next_start() {
    let input = json!({"command": "touch there; sleep 600", "run_in_background": true});
    let script = Script::new()
        .rule(when().prompt_contains("hello"), reply().text("Hello."))
        .rule(when().turn(0), reply().tool_use("Bash", input))
        .rule(when(), reply().hold("never").text("never"));
    let (api, ostler) = place(script).await;
    let temporary = ostler.path("tmp");
    fs::create_dir(&temporary).unwrap();
    let ostler = ostler.env("TMPDIR", temporary.to_str().unwrap());
    let folders = || fs::read_dir(&temporary).unwrap().count();
    let mut killed = ostler.spawn(&["-p", "go"]);
    drop(killed.stdin.take());
    api.gate("never").reached().await;
    assert_eq!(folders(), 1);
    // A second, running program must keep its own folder.
    timely(&ostler, &["-p", "hello"]);
    assert_eq!(folders(), 1, "the folder of a running program stays");
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert_eq!(folders(), 1, "the killed program could not remove it");
    timely(&ostler, &["-p", "hello"]);
    eventually(|| folders() == 0, || "the folder to go".to_owned());
}

/// The result of a run that was ended by a limit names the limit.
///
/// Mutant: `with_server_tools` without the deadline.
#[tokio::test(flavor = "multi_thread")]
async fn a_time_limit_reached_while_servers_start_is_in_the_result() {
    let config = json!({"mcpServers": {"silent": {"command": "/bin/sh", "args": ["-c", SILENT]}}});
    let (_api, ostler) = place(Script::new().rule(when(), reply().text("Hello."))).await;
    let ran = timely(
        &ostler,
        &[
            "--mcp-config",
            &config.to_string(),
            "--max-time",
            "1s",
            "-p",
            "--output-format",
            "json",
            "hello",
        ],
    );
    let result: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(result["is_error"], true, "{result}");
    assert!(result["errors"].to_string().contains("time limit (1 s)"), "{result}");
}
