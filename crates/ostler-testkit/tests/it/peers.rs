//! The vendor's own clients work with the scripted API.
//!
//! They are npm packages in the folder that the environment variable `OSTLER_PEERS` names; the README says how to
//! install them.

use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;

use ostler_testkit::{Action, Rule, Script, ScriptedApi, Status, Usage, reply, when};
use serde_json::{Value, json};
use tokio::process::Command;

/// A cold start of the vendor's command line program on a busy machine takes seconds, not minutes.
const LIMIT: Duration = Duration::from_secs(120);

fn peers() -> PathBuf {
    let folder =
        std::env::var_os("OSTLER_PEERS").expect("OSTLER_PEERS names a folder with node_modules");
    std::fs::canonicalize(folder).expect("the folder that OSTLER_PEERS names exists")
}

/// Runs a program to its end and returns its standard output. If it fails, the panic contains all its output.
async fn run(command: &mut Command) -> String {
    command.stdin(Stdio::null()).kill_on_drop(true);
    let output = tokio::time::timeout(LIMIT, command.output())
        .await
        .expect("the peer ends in time")
        .unwrap();
    let Output { status, stdout, stderr } = output;
    let (stdout, stderr) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success(), "{status}\n--- stdout\n{stdout}\n--- stderr\n{stderr}");
    stdout.into_owned()
}

async fn client_facts(server: &ScriptedApi) -> Value {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers/anthropic_client.mjs");
    let mut command = Command::new("node");
    command.arg(program).arg(server.base_url()).env("OSTLER_PEERS", peers());
    serde_json::from_str(&run(&mut command).await).unwrap()
}

fn client_script() -> Script {
    let overloaded = Status::new(529).retry_after(3);
    Script::new()
        .rule(
            when().prompt_contains("stream text").streaming(true),
            reply()
                .text_pieces(["Hel", "lo"])
                .usage(Usage::tokens(11, 22).cached(3, 4))
                .ping_between_events(),
        )
        .rule(
            when().prompt_contains("use tools").turn(0).offers_tool("Bash").offers_tool("Read"),
            reply()
                .thinking("Two calls will do. 日本", "c2lnbmVk")
                .tool_use("Bash", json!({"command": "echo 🎉"}))
                .tool_use("Read", json!({}))
                .chunk_bytes(7),
        )
        .rule(
            when()
                .turn(1)
                .tool_result_of("Bash")
                .tool_result_of("Read")
                .tool_result_contains("ran Bash"),
            reply().text("{{tool_result}}"),
        )
        .rule(when().prompt_contains("whole text").streaming(false), reply().text("All at once."))
        .rule(when().prompt_contains("overloaded"), reply().status(overloaded))
        .rule(
            when().prompt_contains("error event"),
            reply().text("x").interrupt(2, Action::overloaded()),
        )
        .rule(when().prompt_contains("cut"), reply().text("x").cut(2))
        .rule(
            when().prompt_contains("malformed"),
            reply().text("x").interrupt(2, Action::MalformedJson),
        )
        .count_tokens(77)
}

#[tokio::test]
#[ignore = "needs npm packages; run by cargo xtask test"]
async fn the_official_client_library_understands_every_reply_and_fault() {
    let server = ScriptedApi::start(client_script()).await;
    let facts = client_facts(&server).await;

    let streamed = &facts["streamed"];
    assert_eq!(streamed["content"], json!([{"type": "text", "text": "Hello"}]));
    assert_eq!(streamed["pieces"], json!(["Hel", "lo"]));
    let usage =
        ["input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"];
    assert_eq!(
        usage.map(|name| streamed["usage"][name].as_u64()),
        [Some(11), Some(22), Some(3), Some(4)]
    );
    assert_eq!(
        (&streamed["stop_reason"], &streamed["model"]),
        (&json!("end_turn"), &json!("claude-test"))
    );

    let first = &facts["tool_loop"]["first"];
    let thinking =
        json!({"type": "thinking", "thinking": "Two calls will do. 日本", "signature": "c2lnbmVk"});
    assert_eq!(first[0], thinking);
    assert_eq!(
        (&first[1]["name"], &first[1]["input"]),
        (&json!("Bash"), &json!({"command": "echo 🎉"}))
    );
    assert_eq!((&first[2]["name"], &first[2]["input"]), (&json!("Read"), &json!({})));
    assert_eq!(facts["tool_loop"]["first_stop_reason"], "tool_use");
    assert_eq!(facts["tool_loop"]["last"], json!([{"type": "text", "text": "ran Read"}]));

    assert_eq!(facts["whole"]["content"][0]["text"], "All at once.");
    assert!(facts["whole"]["request_id"].as_str().unwrap().starts_with("req_"));
    assert_eq!(facts["counted"]["input_tokens"], 77);
    assert_eq!(facts["models"].as_array().unwrap().len(), 2);
    check_failures(&facts);
    server.finish();
}

fn check_failures(facts: &Value) {
    let overloaded = &facts["overloaded"];
    assert_eq!((&overloaded["is_api_error"], &overloaded["status"]), (&json!(true), &json!(529)));
    assert_eq!(
        (&overloaded["type"], &overloaded["retry_after"]),
        (&json!("overloaded_error"), &json!("3"))
    );
    assert_eq!(facts["error_event"]["type"], "overloaded_error", "{}", facts["error_event"]);
    for fault in ["cut", "malformed"] {
        assert_eq!(
            facts[fault].get("unexpected"),
            None,
            "{fault} must be an error: {}",
            facts[fault]
        );
    }
}

/// Runs the vendor's command line program once, without the user's settings, and returns its frames.
async fn command_line_frames(server: &ScriptedApi, prompt: &str) -> Vec<Value> {
    let home = tempfile::tempdir().unwrap();
    let mut command = Command::new("node");
    command
        .arg(peers().join("node_modules/@anthropic-ai/claude-agent-sdk/cli.js"))
        .args([
            "-p",
            prompt,
            "--output-format",
            "stream-json",
            "--verbose",
            "--allowedTools",
            "Bash",
        ])
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", home.path())
        .env("ANTHROPIC_BASE_URL", server.base_url())
        .env("ANTHROPIC_API_KEY", "test")
        .env("IS_SANDBOX", "1")
        .current_dir(home.path());
    for silenced in
        ["CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "DISABLE_TELEMETRY", "DISABLE_AUTOUPDATER"]
    {
        command.env(silenced, "1");
    }
    run(&mut command).await.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[tokio::test]
#[ignore = "needs npm packages; run by cargo xtask test"]
async fn the_vendors_command_line_program_completes_a_tool_loop() {
    let call = reply()
        .text("Running it.")
        .tool_use("Bash", json!({"command": "echo hi", "description": "Say hi"}));
    let script = Script::new()
        .with(
            Rule::new(when().offers_tool("Bash").turn(0).prompt_contains("say hi"), call)
                .named("call"),
        )
        .with(
            Rule::new(when().tool_result_of("Bash"), reply().text("It said {{tool_result}}."))
                .named("end"),
        )
        // The program also asks a smaller model about the command, in a separate conversation.
        .with(Rule::new(when().turn(0), reply().text("none")).named("aside"));
    let server = ScriptedApi::start(script).await;
    let frames = command_line_frames(&server, "say hi").await;

    let result = frames.iter().find(|frame| frame["type"] == "result").expect("a result frame");
    assert_eq!(
        (&result["subtype"], &result["is_error"]),
        (&json!("success"), &json!(false)),
        "{result}"
    );
    assert_eq!(
        (&result["result"], &result["num_turns"]),
        (&json!("It said hi."), &json!(2)),
        "{result}"
    );

    let requests = server.requests();
    let of_rule = |name: &str| -> Vec<_> {
        requests.iter().filter(|request| request.rule_name.as_deref() == Some(name)).collect()
    };
    let (first, second) = (of_rule("call"), of_rule("end"));
    assert_eq!((first.len(), second.len()), (1, 1));
    assert_eq!(second[0].tool_results()[0].text, "hi");
    assert!(second[0].has_api_key && second[0].tool_names().contains(&"Bash"));
    assert_eq!(second[0].system_text(), first[0].system_text());
    server.finish();
}
