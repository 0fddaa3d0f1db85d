//! Ctrl-C and requests to end, without a user at the terminal.

use std::fs;
use std::io::{Read, Write};
use std::process::{Child, Command};

use ostler_testkit::{Script, ScriptedApi, reply, when};
use serde_json::{Value, json};

use crate::run::{Ostler, Ran};
use crate::tmux::eventually;

pub(crate) fn signal(child: &Child, name: &str) {
    kill(&child.id().to_string(), name);
}

/// Sends a signal with the shell's `kill`.
pub(crate) fn kill(pid: &str, name: &str) {
    let command = format!("kill -s {name} {}", pid.trim());
    assert!(Command::new("sh").args(["-c", &command]).status().unwrap().success(), "{command}");
}

/// Waits until a process has ended, or is a zombie.
pub(crate) fn is_gone(pid: &str) {
    let stat = format!("/proc/{}/stat", pid.trim());
    let is_gone = || fs::read_to_string(&stat).map_or(true, |stat| stat.contains(") Z"));
    eventually(is_gone, || format!("the end of {pid}"));
}

async fn hanging() -> (ScriptedApi, Ostler) {
    let api = ScriptedApi::start(Script::new().rule(when(), reply().hold("never"))).await;
    let ostler =
        Ostler::new().env("ANTHROPIC_API_KEY", "key").env("ANTHROPIC_BASE_URL", &api.base_url());
    (api, ostler)
}

#[tokio::test(flavor = "multi_thread")]
async fn after_ctrl_c_the_result_of_the_stopped_turn_is_printed() {
    for format in ["text", "json", "stream-json"] {
        let (api, ostler) = hanging().await;
        let child = ostler.spawn(&["-p", "--output-format", format, "hello"]);
        api.gate("never").reached().await;
        signal(&child, "INT");
        let ran = Ran::of(child);
        assert_eq!(ran.code, Some(130), "{format}: {}{}", ran.stdout, ran.stderr);
        let last = ran.stdout.lines().last().unwrap_or_default();
        if format == "text" {
            assert!(last.contains("interrupted"), "{}", ran.stdout);
        } else {
            let result: Value = serde_json::from_str(last).unwrap();
            assert_eq!(result["subtype"], "error_during_execution", "{format}");
        }
        assert!(!ran.stdout.contains("terminal-interrupt"), "our own request: {}", ran.stdout);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_ends_the_program_although_the_host_keeps_the_input_open() {
    let (api, ostler) = hanging().await;
    let format = ["--input-format", "stream-json", "--output-format", "stream-json"];
    // Idle: there is nothing to stop, so it ends.
    let mut child = ostler.spawn(&format);
    let mut stdin = child.stdin.take().unwrap();
    let hello = r#"{"type":"control_request","request_id":"1","request":{"subtype":"initialize"}}"#;
    writeln!(stdin, "{hello}").unwrap();
    let mut first = [0];
    child.stdout.as_mut().unwrap().read_exact(&mut first).unwrap();
    signal(&child, "INT");
    assert_eq!(child.wait().unwrap().code(), Some(0), "programs read the result");
    drop(stdin);

    // Busy: it prints the result of the turn first.
    let mut child = ostler.spawn(&format);
    let mut stdin = child.stdin.take().unwrap();
    let prompt = json!({"type": "user", "message": {"role": "user", "content": "hello"}});
    writeln!(stdin, "{prompt}").unwrap();
    api.gate("never").reached().await;
    signal(&child, "INT");
    let ran = Ran::of(child);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.contains("error_during_execution"), "{}", ran.stdout);
    drop(stdin);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_is_asked_to_end_leaves_nothing_running() {
    for (arguments, name, code) in [
        (&["-p", "go"][..], "TERM", 143),
        (&["go"], "TERM", 143),
        (&["-p", "--output-format", "stream-json", "go"], "HUP", 129),
    ] {
        let script = Script::new().rule(
            when(),
            reply().tool_use("Bash", json!({"command": "sleep 1000 & echo $! > pid; wait"})),
        );
        let api = ScriptedApi::start(script).await;
        let ostler = Ostler::new()
            .env("ANTHROPIC_API_KEY", "key")
            .env("ANTHROPIC_BASE_URL", &api.base_url())
            .args(&["--permission-mode", "bypassPermissions"]);
        let child = ostler.spawn(arguments);
        let pid = || fs::read_to_string(ostler.path("pid")).unwrap_or_default();
        eventually(|| pid().ends_with('\n'), || "the command to run".to_owned());
        signal(&child, name);
        let ran = Ran::of(child);
        assert_eq!(ran.code, Some(code), "{arguments:?}: {}{}", ran.stdout, ran.stderr);
        is_gone(&pid());
    }
}

// Mutant: the watchdog ends nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_hook_ends_with_the_engine_however_the_engine_ends() {
    let (_api, ostler) = hanging().await;
    let command = "sleep 1000 & echo $! > pid; wait";
    let hook = json!([{"hooks": [{"type": "command", "command": command}]}]);
    let settings = json!({"hooks": {"UserPromptSubmit": hook}}).to_string();
    let child = ostler.spawn(&["--settings", &settings, "-p", "hello"]);
    let pid = || fs::read_to_string(ostler.path("pid")).unwrap_or_default();
    eventually(|| pid().ends_with('\n'), || "the hook to run".to_owned());
    signal(&child, "KILL");
    Ran::of(child);
    is_gone(&pid());
}

#[tokio::test(flavor = "multi_thread")]
async fn repeated_ctrl_c_ends_a_program_that_does_not_stop() {
    let (_api, ostler) = hanging().await;
    let hook =
        json!([{"hooks": [{"type": "command", "command": "echo $$ > pid; exec sleep 1000"}]}]);
    let settings = json!({"hooks": {"UserPromptSubmit": hook}}).to_string();
    for arguments in [&["-p", "hello"][..], &["hello"]] {
        let arguments = [&["--settings", &settings], arguments].concat();
        let mut child = ostler.spawn(&arguments);
        let pid = || fs::read_to_string(ostler.path("pid")).unwrap_or_default();
        eventually(|| pid().ends_with('\n'), || "the hook to run".to_owned());
        let child = std::cell::RefCell::new(&mut child);
        let has_ended = || {
            let mut child = child.borrow_mut();
            signal(&child, "INT");
            child.try_wait().unwrap().is_some()
        };
        eventually(has_ended, || "the end".to_owned());
        assert_eq!(child.borrow_mut().wait().unwrap().code(), Some(130), "{arguments:?}");
        is_gone(&pid());
        fs::remove_file(ostler.path("pid")).unwrap();
    }
}
