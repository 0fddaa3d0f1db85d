//! The protocol over real pipes: what hosts send, and what they receive.

use ostler_testkit::{Script, ScriptedApi, reply, when};
use serde_json::{Value, json};

use crate::run::Ostler;
use crate::talk::{Talk, kind};

const ONE: &str = "11111111-1111-4111-8111-111111111111";
const TWO: &str = "22222222-2222-4222-8222-222222222222";

async fn scripted(script: Script) -> (ScriptedApi, Ostler) {
    let api = ScriptedApi::start(script).await;
    let ostler =
        Ostler::new().env("ANTHROPIC_API_KEY", "key").env("ANTHROPIC_BASE_URL", &api.base_url());
    (api, ostler)
}

fn text() -> Script {
    Script::new().rule(when(), reply().text("Fine."))
}

fn touch() -> Script {
    let call = json!({"command": "touch made.txt", "description": "Make it"});
    Script::new()
        .rule(when().turn(0), reply().tool_use("Bash", call))
        .rule(when(), reply().text("Done."))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_lifecycle_of_a_prompt_with_an_id_is_reported() {
    let (_api, ostler) = scripted(text()).await;
    let ostler = ostler.env("CLAUDE_CODE_SDK_READS_SESSION_STATE", "1");
    let mut talk = Talk::with(&ostler, &["--replay-user-messages"]);
    talk.say("hello", Some(ONE));
    talk.until(|frame| frame["state"] == "idle");
    let expected = "state running\ncommand_lifecycle queued\ncommand_lifecycle started\nsystem init\n\
                    user replay\nassistant\nresult success\ncommand_lifecycle completed\nstate idle\n";
    assert_eq!(talk.story(), expected);
    let replay = talk.heard.iter().find(|frame| frame["isReplay"] == true).unwrap();
    assert_eq!((&replay["uuid"], &replay["message"]["content"]), (&json!(ONE), &json!("hello")));
    assert_eq!(talk.end().code, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_queued_prompt_can_be_withdrawn() {
    let script = Script::new().rule(when(), reply().text("Fine.").hold("busy"));
    let (api, ostler) = scripted(script).await;
    let mut talk = Talk::with(&ostler, &[]);
    talk.say("first", Some(ONE));
    api.gate("busy").reached().await;
    talk.say("second", Some(TWO));
    talk.until(|frame| frame["command_uuid"] == TWO);
    let cancel = json!({"subtype": "cancel_async_message", "message_uuid": TWO});
    assert_eq!(talk.asked(cancel.clone()), json!({"cancelled": true}));
    assert_eq!(talk.asked(cancel), json!({"cancelled": false}));
    api.gate("busy").release();
    talk.result();
    let ran = talk.end();
    assert_eq!((ran.code, api.requests().len()), (Some(0), 1));
    assert!(ran.stdout.contains("cancelled"), "{}", ran.stdout);
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_permission_host_calls_that_need_approval_are_denied() {
    for arguments in [&[][..], &["--permission-prompt-tool=stdio", "--permission-prompts=none"]] {
        let (_api, ostler) = scripted(touch()).await;
        let mut talk = Talk::with(&ostler, arguments);
        talk.say("go", None);
        let result = talk.result();
        assert_eq!(result["permission_denials"].as_array().unwrap().len(), 1, "{result}");
        let story = talk.story();
        assert!(story.contains("system permission_denied"), "{story}");
        assert!(!story.contains("control_request"), "no host is asked: {story}");
        assert!(!ostler.path("made.txt").exists());
        assert_eq!(talk.end().code, Some(0));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_permission_request_contains_everything_about_the_call() {
    let (_api, ostler) = scripted(touch()).await;
    let mut talk = Talk::with(&ostler, &["--permission-prompt-tool=stdio"]);
    talk.say("go", None);
    let question = talk.until(|frame| frame["request"]["subtype"] == "can_use_tool");
    let request = &question["request"];
    let fields = [
        "tool_name",
        "input",
        "tool_use_id",
        "display_name",
        "description",
        "decision_reason",
        "decision_reason_type",
    ];
    for field in fields {
        assert!(!request[field].is_null(), "{field}: {request}");
    }
    assert_eq!(request["input"]["command"], "touch made.txt");
    // Without `updatedInput` the call runs unchanged.
    talk.answer(&question, json!({"behavior": "allow"}));
    talk.result();
    assert!(ostler.path("made.txt").exists());
    assert_eq!(talk.end().code, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn lines_of_the_session_file_are_mirrored_before_the_result() {
    let (_api, ostler) = scripted(touch()).await;
    let mut talk = Talk::with(&ostler, &["--session-mirror", "--allowedTools", "Bash"]);
    talk.say("go", Some(ONE));
    talk.result();
    let mirrored: Vec<&Value> = talk
        .heard
        .iter()
        .filter(|frame| frame["type"] == "transcript_mirror")
        .flat_map(|frame| frame["entries"].as_array().unwrap())
        .collect();
    let kinds: Vec<&str> = mirrored.iter().map(|entry| entry["type"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["user", "attachment", "assistant", "user", "assistant"]);
    let path = talk.heard.iter().find_map(|frame| frame["filePath"].as_str()).unwrap();
    let file = std::fs::read_to_string(path).unwrap();
    let written: Vec<Value> =
        file.lines().map(|line| serde_json::from_str(line).unwrap()).take(5).collect();
    assert!(written.iter().eq(mirrored), "{file}");
    talk.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_requests_are_answered_and_the_session_continues() {
    let (_api, ostler) = scripted(text()).await;
    let mut talk = Talk::with(&ostler, &[]);
    let unknown = talk.ask("1", json!({"subtype": "from_the_future", "x": 1}));
    assert_eq!(unknown["error"], "Unsupported control request subtype: from_the_future");
    assert_eq!(unknown["error_code"], "unsupported_request");
    let malformed = talk.refused(json!({"subtype": "stop_task", "task_id": 7}));
    assert!(malformed.contains("stop_task") && malformed.contains("task_id"), "{malformed}");
    talk.send(r#"{"type":"control_request","request":{"subtype":"mcp_status"}}"#);
    let nameless = talk.until(|frame| frame["type"] == "control_response");
    assert!(nameless["response"].get("request_id").is_none(), "{nameless}");
    // `initialize` is accepted before a prompt, after it, and twice.
    talk.say("hello", None);
    talk.result();
    talk.asked(json!({"subtype": "initialize"}));
    talk.asked(json!({"subtype": "initialize"}));
    talk.send(
        r#"{"type":"control_response","response":{"subtype":"success","request_id":"nobody"}}"#,
    );
    talk.send(r#"{"type":"control_cancel_request","request_id":"nobody"}"#);
    talk.send(r#"{"type":"keep_alive"}"#);
    talk.say("again", None);
    assert_eq!(talk.result()["result"], "Fine.");
    assert_eq!(talk.end().code, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn unknown_flags_are_reported_and_left_out() {
    let (_api, ostler) = scripted(text()).await;
    let mut talk = Talk::with(&ostler, &["--from-the-future", "value", "--and=more", "--model=m"]);
    talk.say("hello", None);
    let init = talk.until(|frame| kind(frame) == "system init");
    assert_eq!(init["model"], "m");
    talk.result();
    let ran = talk.end();
    assert_eq!(ran.code, Some(0));
    assert!(ran.stderr.contains("--from-the-future, --and"), "{}", ran.stderr);
    // For a person it is an error.
    let ran = ostler.run(&["--from-the-future", "hello"]);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    // A wrong value from a program fails in the way that programs expect.
    let mut talk = Talk::with(&ostler, &["--max-turns=many"]);
    let result = talk.next().expect("a result says why");
    assert!(result["errors"][0].as_str().unwrap().contains("--max-turns"), "{result}");
    assert_eq!(talk.end().code, Some(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn variables_of_the_host_reach_commands() {
    let call = json!({"command": "echo \"it is $FROM_HOST\"", "description": "Look"});
    let script = Script::new()
        .rule(when().turn(0), reply().tool_use("Bash", call))
        .rule(when(), reply().text("{{tool_result}}"));
    let (_api, ostler) = scripted(script).await;
    let mut talk = Talk::with(&ostler, &["--allowedTools", "Bash"]);
    talk.send(r#"{"type":"update_environment_variables","variables":{"FROM_HOST":"here"}}"#);
    talk.say("go", None);
    assert_eq!(talk.result()["result"].as_str().unwrap().trim(), "it is here");
    talk.end();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_environment_switches_background_tasks_off_and_names_the_client() {
    let call = json!({"command": "sleep 60", "description": "Wait", "run_in_background": true});
    let script = Script::new()
        .rule(when().turn(0), reply().tool_use("Bash", call))
        .rule(when(), reply().text("{{tool_result}}"));
    let (api, ostler) = scripted(script).await;
    let ostler = ostler
        .env("CLAUDE_CODE_DISABLE_BACKGROUND_TASKS", "1")
        .env("CLAUDE_AGENT_SDK_CLIENT_APP", "my app/1.0\n");
    let mut talk = Talk::with(&ostler, &["--allowedTools", "Bash"]);
    talk.say("go", None);
    let result = talk.result()["result"].as_str().unwrap().to_owned();
    assert!(result.contains("background tasks are switched off"), "{result}");
    assert_eq!(talk.asked(json!({"subtype": "stop_task", "task_id": "nope"})), json!({}));
    talk.end();
    let agent = api.requests()[0].headers["user-agent"].clone();
    assert!(agent.ends_with("(client-app/myapp/1.0)"), "{agent}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_next_prompt_is_suggested_to_hosts_that_want_it_but_not_after_the_first_turn() {
    let script = Script::new()
        .rule(when().prompt_contains("most likely ask you next"), reply().text("run the tests\n"))
        .rule(when(), reply().text("Fine."));
    let (api, ostler) = scripted(script).await;
    let mut talk = Talk::with(&ostler, &[]);
    talk.asked(json!({"subtype": "initialize", "promptSuggestions": true}));
    for prompt in ["one", "two"] {
        talk.say(prompt, None);
        talk.result();
    }
    // Also when the host sends nothing more.
    let ran = talk.end();
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let last: Value = serde_json::from_str(ran.stdout.lines().last().unwrap()).unwrap();
    assert_eq!(last["type"], "prompt_suggestion");
    assert_eq!(last["suggestion"], "run the tests");
    let requests = api.requests();
    assert_eq!(requests.len(), 3);
    // It begins like the request before, so that it is read from the cache.
    for part in ["system", "tools"] {
        assert_eq!(requests[1].body[part], requests[2].body[part]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frame_of_fifty_megabytes_is_read() {
    let (api, ostler) = scripted(text()).await;
    let mut talk = Talk::with(&ostler, &[]);
    talk.say(&"0123456789".repeat(5 * 1024 * 1024), None);
    assert_eq!(talk.result()["result"], "Fine.");
    assert_eq!(talk.end().code, Some(0));
    let sent = api.requests()[0].body["messages"].to_string().len();
    assert!(sent > 50 * 1024 * 1024, "{sent}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_line_ends_the_program_and_is_named() {
    for line in ["hello", "{\"type\":\"user\", bad", "null", r#"{"type":"control_request"}"#] {
        let (_api, ostler) = scripted(text()).await;
        let mut talk = Talk::with(&ostler, &[]);
        talk.asked(json!({"subtype": "initialize"}));
        talk.send(line);
        while talk.next().is_some() {}
        let ran = talk.end();
        assert_eq!(ran.code, Some(1), "{line}");
        assert!(ran.stderr.contains("line 2 of standard input"), "{line}: {}", ran.stderr);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn frames_are_logged_without_their_content() {
    let (_api, ostler) = scripted(text()).await;
    let file = ostler.path("debug.log").display().to_string();
    let mut talk = Talk::with(&ostler, &["--debug-file", &file]);
    talk.say("a secret", None);
    talk.result();
    talk.end();
    let log = std::fs::read_to_string(file).unwrap();
    assert!(log.contains("< user") && log.contains("> result success"), "{log}");
    assert!(!log.contains("secret"), "{log}");
}
