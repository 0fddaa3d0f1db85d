//! Standard input as part of the prompt, and callers that never write to it.

use std::io::Write as _;

use ostler_testkit::{Script, ScriptedApi, reply, when};

use crate::run::{Ostler, Ran};
use crate::signals::signal;
use crate::tmux::eventually;

async fn place() -> (ScriptedApi, Ostler) {
    let api = ScriptedApi::start(Script::new().rule(when(), reply().text("I see."))).await;
    let ostler =
        Ostler::new().env("ANTHROPIC_API_KEY", "key").env("ANTHROPIC_BASE_URL", &api.base_url());
    (api, ostler)
}

/// Mutant: `join` leaves the piped text out.
#[tokio::test(flavor = "multi_thread")]
async fn piped_text_is_appended_to_the_prompt() {
    for arguments in [&["-p", "explain this"][..], &["explain this"]] {
        let (api, ostler) = place().await;
        let ostler = ostler.args(arguments);
        let ran = ostler.type_lines(&["line one", "line two"]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let said = api.requests()[0].last_user_text();
        assert!(said.contains("explain this\n\nline one\nline two"), "{arguments:?}: {said}");
    }
}

/// Mutant: the bound taken out of `read`.
#[tokio::test(flavor = "multi_thread")]
async fn too_much_input_is_refused_with_a_reason() {
    let (api, ostler) = place().await;
    let mut child = ostler.spawn(&["-p", "explain this"]);
    let mut stdin = child.stdin.take().unwrap();
    let megabyte = vec![b'x'; 1024 * 1024];
    // The program stops reading, which ends the loop.
    while stdin.write_all(&megabyte).is_ok() {}
    let ran = Ran::of(child);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("longer than 10 MiB"), "{}", ran.stderr);
    assert_eq!(api.requests().len(), 0);
}

/// Mutant: the wait for the first byte without its limit.
#[tokio::test(flavor = "multi_thread")]
async fn a_silent_pipe_does_not_delay_the_prompt() {
    let (_api, ostler) = place().await;
    let mut child = ostler.spawn(&["-p", "hello"]);
    let stdin = child.stdin.take().unwrap();
    let ran = Ran::of(child);
    assert_eq!((ran.code, ran.stdout.trim()), (Some(0), "I see."), "{}", ran.stderr);
    drop(stdin);
}

/// Mutant: standard input read before the signals are listened to, or without them.
#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_waits_for_its_prompt_obeys_signals() {
    for (name, code) in [("INT", 130), ("TERM", 143), ("HUP", 129)] {
        for begun in ["", "the beginning of a prompt"] {
            let (api, ostler) = place().await;
            let mut child = ostler.spawn(&["-p"]);
            let mut stdin = child.stdin.take().unwrap();
            stdin.write_all(begun.as_bytes()).unwrap();
            // It reads once it catches signals: before that, the default action also ends it, but without an exit code.
            let status = format!("/proc/{}/status", child.id());
            let catches = || {
                let status = std::fs::read_to_string(&status).unwrap_or_default();
                let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:\t"));
                let caught = caught.and_then(|mask| u64::from_str_radix(mask, 16).ok());
                // SIGHUP, SIGINT and SIGTERM.
                caught.is_some_and(|mask| mask & 0x4003 == 0x4003)
            };
            eventually(catches, || "the signals to be caught".to_owned());
            signal(&child, name);
            let ran = Ran::of(child);
            assert_eq!(ran.code, Some(code), "{name} {begun:?}: {}", ran.stderr);
            assert_eq!(api.requests().len(), 0);
            drop(stdin);
        }
    }
}
