//! Commands that print far too much, start far too many processes, or do not end.

use std::fs;
use std::time::Instant;

use ostler_testkit::{Script, ScriptedApi, reply, when};
use serde_json::{Value, json};

use super::peak::{ENGINE_LIMIT, add_row, current, measure_sized, sized};
use super::{at, prompt};
use crate::run::{Ostler, Ran};
use crate::signals::{is_gone, signal};
use crate::tmux::eventually;

async fn place(input: Value) -> (ScriptedApi, Ostler) {
    let script = Script::new()
        .rule(when().turn(0), reply().tool_use("Bash", input))
        .rule(when(), reply().text("Result: {{tool_result}}"));
    let api = ScriptedApi::start(script).await;
    let ostler = at(&api.base_url()).args(&["--permission-mode", "bypassPermissions"]);
    (api, ostler)
}

async fn attack(name: &str, input: Value) -> (Ran, Ostler) {
    attack_sized(name, "", input).await
}

/// Runs one command; whatever its result, the model answers.
async fn attack_sized(name: &str, size: &str, input: Value) -> (Ran, Ostler) {
    let (_api, ostler) = place(input).await;
    // Temporary files of the command are in here, and must be deleted with the run.
    let temporary = ostler.path("temporary");
    fs::create_dir(&temporary).unwrap();
    let ostler = ostler.env("TMPDIR", temporary.to_str().unwrap());
    let name = format!("Bash: {name}");
    let ran =
        tokio::task::block_in_place(|| measure_sized(&name, size, prompt(&ostler, &["-p", "go"])));
    assert_eq!(ran.code, Some(0), "{name}: {:.500} {:.500}", ran.stdout, ran.stderr);
    assert!(ran.stdout.starts_with("Result: "), "{name}: {:.500}", ran.stdout);
    assert!(ran.stdout.len() < 100_000, "{name}: {} bytes reach the model", ran.stdout.len());
    let left = fs::read_dir(temporary).unwrap().count();
    assert_eq!(left, 0, "{name} leaves temporary files");
    (ran, ostler)
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_that_print_gigabytes() {
    let bytes = sized(5_000_000_000, 400_000_000);
    for (name, command) in [
        ("flood on standard output", format!("head -c {bytes} /dev/zero")),
        ("flood of lines", format!("yes 'a line of text' | head -c {bytes}")),
        ("flood on standard error", format!("head -c {bytes} /dev/zero >&2")),
    ] {
        let size = format!("{} MB", bytes / 1_000_000);
        attack_sized(name, &size, json!({"command": command})).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_background_command_that_prints_gigabytes() {
    let bytes = sized(2_000_000_000, 400_000_000);
    let command = format!("head -c {bytes} /dev/zero; echo > finished");
    let input = json!({"command": command, "run_in_background": true});
    let size = format!("{} MB", bytes / 1_000_000);
    attack_sized("flood in the background", &size, input).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_that_print_what_no_terminal_should_see() {
    attack("binary output", json!({"command": "head -c 3000000 /dev/urandom"})).await;
    let command = r"printf '\033]0;title\007\033[2J\033c\b\b\r\n%.0s' $(seq 2000)";
    attack("control characters", json!({"command": command})).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_reads_its_input() {
    attack("reads standard input", json!({"command": "cat; read x; echo read"})).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_with_500_children_ends_with_all_of_them() {
    let command = "for i in $(seq 500); do sleep 600 & echo $! >> pids; done; wait";
    let input = json!({"command": command, "timeout": 4_000});
    let (_, ostler) = attack("500 children", input).await;
    let pids = fs::read_to_string(ostler.path("pids")).unwrap();
    assert_eq!(pids.lines().count(), 500);
    pids.lines().for_each(is_gone);
}

const STUBBORN: &str = "trap '' TERM INT HUP; echo $$ > pid; while :; do sleep 0.05; done";

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_ignores_its_timeout() {
    let input = json!({"command": STUBBORN, "timeout": 1_000});
    let (_, ostler) = attack("ignores SIGTERM, timeout", input).await;
    is_gone(&fs::read_to_string(ostler.path("pid")).unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_ignores_the_end_of_the_program() {
    for (name, code) in [("TERM", Some(143)), ("KILL", None)] {
        let (_api, ostler) = place(json!({"command": STUBBORN, "timeout": 600_000})).await;
        let child = prompt(&ostler, &["-p", "go"]);
        let pid = || fs::read_to_string(ostler.path("pid")).unwrap_or_default();
        eventually(|| pid().ends_with('\n'), || "the command to run".to_owned());
        let peak = current(child.id());
        let begun = Instant::now();
        signal(&child, name);
        let row = format!("Bash: ignores SIGTERM, SIG{name} to ostler");
        let ran = Ran::of(child);
        add_row(&row, "the command has ended", begun.elapsed(), peak, ENGINE_LIMIT);
        assert_eq!(ran.code, code, "{}", ran.stderr);
        is_gone(&pid());
    }
}
