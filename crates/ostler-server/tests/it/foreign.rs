//! Programs of other projects examine the server: a WebSocket client in Python, Schemathesis with the OpenAPI document,
//! and the vendor's program as its engine.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use ostler_server::config::{Config, EngineChoice};
use ostler_testkit::{Script, ScriptedApi, reply, when};
use serde_json::json;
use tokio::process::Command;

use crate::desk::Desk;

/// Far longer than any of them takes.
const PATIENCE: Duration = Duration::from_secs(400);

/// A program of the environment that `cargo xtask test` creates.
fn program(name: &str) -> Command {
    let folder = std::env::var_os("OSTLER_SERVER_PYTHON")
        .expect("OSTLER_SERVER_PYTHON names a virtual environment");
    let mut command = Command::new(PathBuf::from(folder).join("bin").join(name));
    command.stdin(Stdio::null()).kill_on_drop(true);
    command
}

/// Runs a command, which must succeed, and returns its output.
async fn play(command: &mut Command) -> String {
    let output = tokio::time::timeout(PATIENCE, command.output()).await.expect("it ends").unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}\n{said}\n{errors}", output.status);
    said
}

fn of_a_page() -> Script {
    let questions = json!({"questions": [{"question": "Which colour?", "header": "Colour", "multiSelect": false,
        "options": [{"label": "blue", "description": "as the sky"}, {"label": "red", "description": "as a rose"}]}]});
    Script::new()
        .rule(when().has_tool_result(true), reply().text("the end"))
        .rule(
            when().prompt_contains("race"),
            reply().tool_use("Bash", json!({"command": "echo ran >> races"})),
        )
        .rule(when().prompt_contains("ask me"), reply().tool_use("AskUserQuestion", questions))
        .rule(
            when(),
            reply().text("Let me see.").tool_use("Bash", json!({"command": "touch made"})),
        )
}

// Seen to fail when `settle` does not check the state first (both answers of a race count), and when `greet` does not
// send the pending requests.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a WebSocket client from PyPI: OSTLER_SERVER_PYTHON"]
async fn a_websocket_client_in_another_language_passes_the_nine_steps() {
    let desk = Desk::open(of_a_page()).await;
    let ann = desk.client_of("ann").await;
    let mut python = program("python");
    python.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/foreign/page.py"));
    python.env("OSTLER_SERVER", format!("ws://{}/api/ws", desk.address()));
    python.env("OSTLER_OWNER", &desk.token).env("OSTLER_ANN", &ann.token);
    python.env("OSTLER_WORKSPACE", desk.workspace());
    let said = play(&mut python).await;
    // Two times nine steps, and the checks after them.
    assert!(said.contains("all 26 passed"), "{said}");
    desk.api.finish();
}

/// Every run first makes a call that needs approval, so that Schemathesis finds approvals.
fn of_a_tester() -> Script {
    Script::new()
        .rule(when().has_tool_result(true), reply().text("the end"))
        .rule(when(), reply().tool_use("Bash", json!({"command": "touch made"})))
}

// Seen to fail when an array passes for a body, when `after` has no bound, and when a route is not described.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Schemathesis from PyPI: OSTLER_SERVER_PYTHON"]
async fn schemathesis_finds_no_answer_that_the_document_does_not_promise() {
    let desk = Desk::with(of_a_tester(), |config| {
        // Its requests must not be refused by the rate limit.
        config.limits.requests_per_second = 1_000_000;
        config.limits.wrong_tokens = u32::MAX;
        config.skills = vec![concat!(env!("CARGO_MANIFEST_DIR"), "/tests/foreign/skills").into()];
    })
    .await;
    let reports = tempfile::tempdir().unwrap();
    let mut tester = program("schemathesis");
    let settings = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/foreign/schemathesis.toml");
    tester.args(["--config-file", settings, "run"]);
    tester.arg(format!("http://{}/openapi.json", desk.address()));
    tester.args(["--header", &format!("Authorization: Bearer {}", desk.token)]);
    // With a rotated token its other requests would fail.
    tester.args(["--exclude-operation-id", "rotateToken", "--no-color"]);
    // It stores what it has learned in the current folder.
    let said = play(tester.current_dir(reports.path())).await;
    for phase in ["Coverage", "Fuzzing", "Stateful"] {
        assert!(said.contains(&format!("✅ {phase}")), "{phase} did not run:\n{said}");
    }
}

/// The vendor's newer program, which must not connect to any other server.
fn vendor(config: &mut Config) {
    let folder =
        std::env::var_os("OSTLER_NATIVE_PEERS").expect("it names a folder with npm packages");
    let machine = std::env::consts::ARCH.replace("x86_64", "x64").replace("aarch64", "arm64");
    let package = format!("node_modules/@anthropic-ai/claude-agent-sdk-linux-{machine}/claude");
    config.engine = EngineChoice::Program(PathBuf::from(folder).join(package));
    for quiet in [
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC",
        "DISABLE_TELEMETRY",
        "DISABLE_AUTOUPDATER",
        "IS_SANDBOX",
    ] {
        config.env.insert(quiet.to_owned(), "1".to_owned());
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs npm packages; run by cargo xtask test"]
async fn the_vendors_program_also_forks_counts_usage_and_rewinds_files() {
    // The script names a file in the workspace, which exists only once the server has started.
    let mut desk = Desk::with(Script::new(), vendor).await;
    let poem = desk.workspace().join("poem.txt");
    let write = json!({"file_path": poem.display().to_string(), "content": "roses\nare\nred\n"});
    let script = Script::new()
        .rule(when().offers_tool("Write").turn(0), reply().tool_use("Write", write))
        .rule(when(), reply().text("Done."));
    desk.api = ScriptedApi::start(script).await;
    desk.stop().await;
    desk.start().await;
    let client = desk.client();
    let made = client.post("/api/sessions", json!({"permissionMode": "acceptEdits"})).await;
    let session = format!("/api/sessions/{}", made["id"].as_str().unwrap());
    let run = client.prompt(made["id"].as_str().unwrap(), "write it").await;
    client.until(&run, "completed").await;
    let changes = client.get(&format!("{session}/changes")).await;
    assert_eq!(
        (&changes["added"], &changes["runs"][0]["files"][0]["path"]),
        (&json!(3), &json!("poem.txt"))
    );
    let usage = client.get(&format!("{session}/usage")).await;
    assert_eq!(usage["tools"][0]["name"], "Write", "{usage}");
    assert!(usage["total"]["costUsd"].as_f64().unwrap() > 0.0, "{usage}");
    assert!(client.get(&format!("{session}/setup")).await["live"] == true);

    let forked = client.post(&format!("{session}/fork"), json!({})).await;
    let next = client.prompt(forked["id"].as_str().unwrap(), "and now").await;
    client.until(&next, "completed").await;
    let sent = desk.api.requests().last().unwrap().body["messages"].to_string();
    assert!(sent.contains("write it") && sent.contains("and now"), "{sent}");
    let forked = client.get(&format!("/api/sessions/{}", forked["id"].as_str().unwrap())).await;
    assert_ne!(forked["engineSession"], client.get(&session).await["engineSession"]);

    let back = json!({"before": run});
    let rewound = client.post(&format!("{session}/rewind"), back).await;
    assert_eq!((rewound["files"].as_array().unwrap().len(), poem.exists()), (1, false));
}
