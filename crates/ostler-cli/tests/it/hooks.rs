//! Hooks of settings files, with the program as a process.

use std::fs;
use std::io::{Read as _, Write as _};
use std::path::Path;

use ostler_testkit::{Script, ScriptedApi, reply, when};
use serde_json::{Value, json};

use crate::run::Ostler;

const SETTINGS: &str = r#"{"hooks": {
    "SessionStart": [{"hooks": [{"type": "command", "command": "echo start >> events"}]}],
    "SessionEnd": [{"hooks": [{"type": "command", "command": "echo end >> events"}]}]
}}"#;

#[test]
fn start_and_end_hooks_run_in_every_kind_of_session() {
    let typed = Ostler::new().args(&["--settings", SETTINGS]);
    typed.type_lines(&["hello"]);
    let one_prompt = Ostler::new().args(&["--settings", SETTINGS]);
    one_prompt.run(&["hello"]);
    let printed = Ostler::new().args(&["--settings", SETTINGS]);
    printed.run(&["-p", "hello"]);
    for ostler in [typed, one_prompt, printed] {
        assert_eq!(fs::read_to_string(ostler.path("events")).unwrap(), "start\nend\n");
    }
}

#[test]
fn the_end_hook_receives_whether_the_user_quit_at_the_prompt() {
    let settings = r#"{"hooks": {"SessionEnd": [{"hooks": [{"type": "command", "command": "cat >> events"}]}]}}"#;
    let reason = |ostler: &Ostler| {
        let event: Value =
            serde_json::from_str(&fs::read_to_string(ostler.path("events")).unwrap()).unwrap();
        event["reason"].as_str().unwrap().to_owned()
    };
    let typed = Ostler::new().args(&["--settings", settings]);
    typed.type_lines(&["hello"]);
    assert_eq!(reason(&typed), "prompt_input_exit");
    let printed = Ostler::new().args(&["--settings", settings]);
    printed.run(&["-p", "hello"]);
    assert_eq!(reason(&printed), "other");
    let one_prompt = Ostler::new().args(&["--settings", settings]);
    one_prompt.run(&["hello"]);
    assert_eq!(reason(&one_prompt), "other");
}

#[test]
fn setup_hooks_run_first_or_alone() {
    let settings = r#"{"hooks": {
        "Setup": [{"matcher": "init", "hooks": [{"type": "command", "command": "echo init >> events"}]},
            {"matcher": "maintenance", "hooks": [{"type": "command", "command": "echo tend >> events"}]}],
        "SessionStart": [{"hooks": [{"type": "command", "command": "echo start >> events"}]}],
        "Stop": [{"hooks": [{"type": "command", "command": "echo stop >> events"}]}]
    }}"#;
    for (args, events) in [
        (&["--init-only"][..], "init\nstart\n"),
        (&["--init", "-p", "hello"], "init\nstart\nstop\n"),
        (&["--maintenance", "-p", "hello"], "tend\nstart\nstop\n"),
        (&["-p", "hello"], "start\nstop\n"),
    ] {
        let ostler = Ostler::new().args(&["--settings", settings]);
        ostler.run(args);
        assert_eq!(fs::read_to_string(ostler.path("events")).unwrap(), events, "{args:?}");
    }
}

#[test]
fn hook_events_are_sent_to_programs_that_request_them() {
    let settings = r#"{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "true"}]}]}}"#;
    let ostler =
        Ostler::new().args(&["--settings", settings, "-p", "--output-format", "stream-json"]);
    let ran = ostler.run(&["--include-hook-events", "hello"]);
    ran.shows(&[r#""subtype":"hook_started""#, r#""subtype":"hook_response""#]);
    assert!(!ostler.run(&["hello"]).stdout.contains("hook_started"));
}

#[tokio::test(flavor = "multi_thread")]
async fn hooks_receive_changes_of_the_shells_folder_and_of_tasks() {
    let settings = r#"{"hooks": {
        "CwdChanged": [{"hooks": [{"type": "command", "command": "cat >> \"$CLAUDE_PROJECT_DIR\"/events"}]}],
        "TaskCreated": [{"hooks": [{"type": "command", "command": "cat >> \"$CLAUDE_PROJECT_DIR\"/events"}]}],
        "TaskCompleted": [{"hooks": [{"type": "command", "command": "echo not tested >&2; exit 2"}]}]
    }}"#;
    let script = Script::new()
        .rule(when().turn(0), reply().tool_use("Bash", json!({"command": "mkdir sub; cd sub"})))
        .rule(
            when().turn(1),
            reply().tool_use("TaskCreate", json!({"subject": "Build", "description": "All"})),
        )
        .rule(
            when().turn(2),
            reply().tool_use("TaskUpdate", json!({"taskId": "1", "status": "completed"})),
        )
        .rule(when(), reply().text("{{tool_result}}"));
    let api = ScriptedApi::start(script).await;
    let ostler = Ostler::new()
        .env("ANTHROPIC_API_KEY", "key")
        .env("ANTHROPIC_BASE_URL", &api.base_url())
        .env("CLAUDE_CODE_ENABLE_TASKS", "1")
        .args(&["--settings", settings, "--dangerously-skip-permissions"]);
    let ran = ostler.run(&["-p", "go"]);
    ran.shows(&["not tested"]);
    let events = fs::read_to_string(ostler.path("events")).unwrap();
    let events: Vec<Value> =
        events.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let [moved, task] = &events[..] else { panic!("{events:?}") };
    let sub = ostler.path("sub").canonicalize().unwrap();
    assert_eq!((&moved["new_cwd"], &moved["cwd"]), (&json!(sub), &json!(sub)));
    assert_eq!(Some(Path::new(moved["old_cwd"].as_str().unwrap())), sub.parent());
    assert_eq!(
        (&task["task_id"], &task["task_subject"], &task["task_description"]),
        (&json!("1"), &json!("Build"), &json!("All"))
    );
    let tools = api.requests()[0].tool_names().join(" ");
    assert!(tools.contains("TaskUpdate") && !tools.contains("TodoWrite"), "{tools}");
    api.finish();
}

// Mutants: `stopped_by_hook` of the driver keeps nothing; `finish` of output.rs and of show.rs leave it out.
#[test]
fn the_reason_why_a_hook_stops_a_turn_is_shown() {
    let says = r#"{"continue": false, "stopReason": "enough for today"}"#;
    for event in ["PreToolUse", "PostToolUse", "PostToolBatch", "Stop"] {
        let hook = json!({"hooks": [{"type": "command", "command": format!("echo '{says}'")}]});
        let settings = json!({"hooks": {event: [hook]}}).to_string();
        let ostler = Ostler::new().args(&["--settings", &settings]);
        let text = "stopped by a hook: enough for today";
        let printed = ostler.run(&["-p", "list the files"]);
        assert_eq!(printed.code, Some(0), "{event}: {printed:?}");
        assert!(printed.stderr.contains(text), "{event}: {printed:?}");
        assert!(!printed.stdout.contains(text), "{event}: {printed:?}");
        ostler.type_lines(&["list the files"]).shows(&[text]);
        let ran = ostler.run(&["-p", "--output-format", "json", "list the files"]);
        let result: Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(result["hook_stop_reason"], "enough for today", "{event}: {result}");
        let silent = ostler.run(&["-p", "--settings", "{}", "list the files"]);
        assert!(!silent.stderr.contains("stopped"), "{event}: {silent:?}");
    }
}

// Mutant: `is_for_user` of chat.rs is never true.
#[test]
fn a_message_of_a_hook_is_shown_while_the_terminal_waits_for_a_prompt() {
    let hook = r#"while [ ! -e go ]; do sleep 0.02; done; echo '{"systemMessage": "late news"}'"#;
    let hook = json!({"hooks": [{"type": "command", "command": hook, "async": true}]});
    let settings = json!({"hooks": {"Stop": [hook]}}).to_string();
    let ostler = Ostler::new().args(&["--settings", &settings]);
    let mut child = ostler.spawn(&[]);
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let (send, pieces) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(n @ 1..) = stdout.read(&mut buffer) {
            let _ = send.send(String::from_utf8_lossy(&buffer[..n]).into_owned());
        }
    });
    let mut shown = String::new();
    let mut until = |text: &str| {
        while !shown.contains(text) {
            let limit = std::time::Duration::from_secs(30);
            shown += &pieces.recv_timeout(limit).unwrap_or_else(|_| panic!("{text}: {shown}"));
        }
        shown.clear();
    };
    writeln!(stdin, "hello").unwrap();
    // The line with the usage of the turn, and the next prompt.
    until("1 turn");
    fs::write(ostler.path("go"), "").unwrap();
    until("late news");
    drop(stdin);
    assert!(child.wait().unwrap().success());
}
