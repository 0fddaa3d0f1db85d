//! The program without a user: `--print` and its formats, and frames in both directions.

use ostler_proto::frame::{Frame, ToHost};
use ostler_testkit::{Script, ScriptedApi, reply, when};
use serde_json::{Value, json};

use crate::run::{Ostler, Ran};

fn frames(ran: &Ran) -> Vec<ToHost> {
    ran.stdout.lines().map(|line| ToHost::from_line(line).unwrap()).collect()
}

fn summaries(ran: &Ran) -> Vec<String> {
    frames(ran).iter().map(Frame::summary).collect()
}

#[test]
fn print_gives_the_answer_and_nothing_else() {
    let ran = Ostler::new().args(&["-p", "read README.md"]).type_lines(&[]);
    assert!(ran.stdout.starts_with("Here is README.md:"), "{}", ran.stdout);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    let ran = Ostler::new().args(&["-p"]).type_lines(&["read README.md"]);
    assert!(
        ran.stdout.starts_with("Here is README.md:"),
        "the prompt may come from a pipe: {}",
        ran.stdout
    );
}

// Mutant: `without_name` gives the result back as it is.
#[test]
fn json_gives_the_result_as_one_object() {
    let ran =
        Ostler::new().args(&["-p", "--output-format", "json", "read README.md"]).type_lines(&[]);
    let result: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!((&result["type"], &result["subtype"]), (&json!("result"), &json!("success")));
    assert_eq!(result["num_turns"], 2);
    // The caller has not given its prompt an id, so the result contains neither an id nor the fields that come with
    // ids.
    for of_names in ["user_message_uuid", "user_message_uuids", "first_request_input_tokens"] {
        assert_eq!(result.get(of_names), None, "{result}");
    }
}

#[test]
fn stream_json_gives_every_frame() {
    let ran = Ostler::new()
        .args(&["-p", "--output-format", "stream-json", "read README.md"])
        .type_lines(&[]);
    let expected = [
        "system init",
        "assistant text",
        "assistant tool_use",
        "user tool_result",
        "assistant text",
        "result success",
    ];
    assert_eq!(summaries(&ran), expected);
    let partial = ["-p", "--output-format", "stream-json", "--include-partial-messages", "hello"];
    let ran = Ostler::new().args(&partial).type_lines(&[]);
    assert!(summaries(&ran).contains(&"stream_event content_block_delta text_delta".to_owned()));
}

#[test]
fn frames_are_read_and_written() {
    let ostler = Ostler::new().args(&[
        "--input-format",
        "stream-json",
        "--output-format",
        "stream-json",
        "--verbose",
    ]);
    let ran = ostler.type_lines(&[
        r#"{"type":"control_request","request_id":"1","request":{"subtype":"initialize"}}"#,
        r#"{"type":"user","message":{"role":"user","content":"read README.md"}}"#,
        "",
        "[1]",
        r#"{"type":"something_new"}"#,
    ]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let summaries = summaries(&ran);
    assert_eq!(summaries.first().unwrap(), "control_response success");
    assert_eq!(summaries.last().unwrap(), "result success");
}

#[test]
fn without_a_host_to_ask_calls_are_denied() {
    let ostler = Ostler::new().args(&["-p", "write \"x\" to new.txt"]);
    let ran = ostler.type_lines(&[]);
    assert!(ran.stdout.contains("No user is available"), "{}", ran.stdout);
    assert!(!ostler.path("new.txt").exists());

    let ostler =
        Ostler::new().args(&["--input-format", "stream-json", "--output-format", "stream-json"]);
    let prompt =
        json!({"type": "user", "message": {"role": "user", "content": "write \"x\" to new.txt"}});
    let ran = ostler.type_lines(&[&prompt.to_string()]);
    assert!(ran.stdout.contains("No user is available"), "{}", ran.stdout);
    assert!(!ostler.path("new.txt").exists());
    // A host that wanted to answer, and has closed the input.
    let ostler = ostler.args(&["--permission-prompt-tool", "stdio"]);
    let ran = ostler.type_lines(&[&prompt.to_string()]);
    assert!(ran.stdout.contains("Stream closed"), "{}", ran.stdout);
    assert!(!ostler.path("new.txt").exists());
}

#[test]
fn a_malformed_line_ends_the_program_and_says_why() {
    for (line, expected) in [
        ("hello", "not JSON"),
        (r#"{"type":"user"}"#, "missing field `message`"),
        (
            r#"{"type":"user","message":{"role":"assistant","content":"I am you"}}"#,
            "Expected message role 'user', got 'assistant'",
        ),
    ] {
        let ostler = Ostler::new().args(&[
            "--input-format",
            "stream-json",
            "--output-format",
            "stream-json",
        ]);
        let ran = ostler.type_lines(&[line]);
        assert_eq!(ran.code, Some(1));
        assert!(ran.stderr.contains(expected), "{}", ran.stderr);
    }
    let ran = Ostler::new().args(&["-p"]).type_lines(&["  "]);
    assert!(ran.stderr.contains("the prompt is empty"), "{}", ran.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_background_command_is_reported_from_start_to_end_before_the_program_ends() {
    let input = json!({"command": "echo hi", "run_in_background": true, "description": "greet"});
    let script = Script::new()
        .rule(when().turn(0), reply().tool_use("Bash", input))
        .rule(when(), reply().text("Fine."));
    let api = ScriptedApi::start(script).await;
    let ran = Ostler::new()
        .env("ANTHROPIC_API_KEY", "key")
        .env("ANTHROPIC_BASE_URL", &api.base_url())
        .args(&["--permission-mode", "bypassPermissions"])
        .args(&["-p", "--output-format", "stream-json", "go"])
        .type_lines(&[]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let summaries = summaries(&ran);
    let of_task = |line: &&String| line.contains("task");
    let tasks: Vec<_> = summaries.iter().filter(of_task).map(String::as_str).collect();
    let expected = [
        "system background_tasks_changed",
        "system task_started",
        "system task_updated",
        "system task_notification",
        "system background_tasks_changed",
    ];
    assert_eq!(tasks, expected, "{summaries:?}");
    let turns = summaries.iter().filter(|line| *line == "result success").count();
    assert_eq!((turns, summaries.last().unwrap().as_str()), (2, "result success"));
    let result: Value = serde_json::from_str(ran.stdout.lines().last().unwrap()).unwrap();
    assert_eq!(result["origin"]["kind"], "task-notification");
}

#[test]
fn commands_do_not_see_the_key() {
    let ran = Ostler::new()
        .env("ANTHROPIC_API_KEY", "sk-very-secret")
        .env("ANTHROPIC_AUTH_TOKEN", "tok-very-secret")
        .args(&["-p", "--model", "offline-demo", "--allowed-tools=Bash"])
        .args(&["--output-format", "stream-json", "run `env`"])
        .type_lines(&[]);
    assert!(ran.stdout.contains("OSTLER=1"), "{}", ran.stdout);
    assert!(!ran.stdout.contains("very-secret"), "{}", ran.stdout);
}
