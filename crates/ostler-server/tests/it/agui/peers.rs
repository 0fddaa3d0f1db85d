//! Official clients examine the server. The list of checks is in `tests/agui/conformance.mjs`.

use std::process::Stdio;
use std::time::Duration;

use axum::routing::post;
use axum::{Json, Router};
use ostler_server::agui::{AgUi, Approvals, Busy};
use ostler_server::config::Config;
use ostler_testkit::{Action, Script, ScriptedApi, Status, Usage, reply as model, when};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::stage::{config, serve, start};

/// The numbers of all checks.
const CHECKS: std::ops::RangeInclusive<u32> = 1..=60;

fn script() -> Script {
    let agent = |name: &str| json!({"description": name, "prompt": "dig", "subagent_type": "general-purpose"});
    let todos =
        json!({"todos": [{"content": "dig", "status": "pending", "activeForm": "digging"}]});
    let hello = || model().text_pieces(["Hello w", "örld 👩", "\u{200d}👩\u{200d}👧\u{200d}👦!"]);
    // A gate that was opened stays open, so each use has its own gate.
    let gates = ["a", "b", "c", "d"].iter().fold(Script::new(), |script, name| {
        let (hold, halves) = (format!("hold-{name}"), format!("halves-{name}"));
        let held = model().text("held").hold(&hold);
        let half = model().text_pieces(["first", " second"]).gate(3, &halves);
        script.rule(when().prompt_contains(&hold), held).rule(when().prompt_contains(&halves), half)
    });
    gates
        .rule(when().prompt_contains("dig"), model().text("dug").usage(Usage::tokens(50, 1000)))
        .rule(
            when().prompt_contains("agents").has_tool_result(true),
            model().text("All done").usage(Usage::tokens(5, 100)),
        )
        .rule(
            when().prompt_contains("agents"),
            model()
                .tool_use("Agent", agent("one"))
                .tool_use("Agent", agent("two"))
                .usage(Usage::tokens(5, 10)),
        )
        .rule(
            when().prompt_contains("think twice").has_tool_result(true),
            model().thinking("Two", "dHdv").text("Done"),
        )
        .rule(
            when().prompt_contains("think twice"),
            model().thinking("One", "b25l").tool_use("Glob", json!({"pattern": "*.none"})),
        )
        .rule(when().prompt_contains("hello"), hello())
        .rule(when().has_tool_result(true), model().text("Result: {{tool_result}}"))
        .rule(when().prompt_contains("think"), model().thinking("Hm", "c2lnbmVk").text("Yes"))
        .rule(when().prompt_contains("nap"), model().text("slept").delay_before_first_byte_ms(300))
        .rule(when().prompt_contains("stall"), model().text_pieces(["be", "gun"]).gate(3, "stall"))
        .rule(when().prompt_contains("fail "), model().text("never"))
        .rule(
            when().prompt_contains("failing"),
            model().tool_use("Read", json!({"file_path": "nowhere.txt"})),
        )
        .rule(
            when().prompt_contains("fail"),
            model().status(Status::new(400).error_type("invalid_request_error").message("no luck")),
        )
        // After a broken stream the engine asks once more for the whole answer.
        .rule(
            when().prompt_contains("breaks off").streaming(false),
            model().status(Status::new(400).message("no luck")),
        )
        .rule(
            when().prompt_contains("breaks off"),
            model().text_pieces(["so far", " and", " on"]).interrupt(4, Action::overloaded()),
        )
        .rule(
            when().prompt_contains("backend"),
            model().tool_use("Glob", json!({"pattern": "*.none"})),
        )
        .rule(
            when().prompt_contains("parallel"),
            model()
                .tool_use("Glob", json!({"pattern": "one.none"}))
                .tool_use("Glob", json!({"pattern": "two.none"})),
        )
        .rule(
            when().prompt_contains("paint two"),
            model()
                .tool_use("mcp__ag_ui__paint", json!({"n": 1}))
                .tool_use("mcp__ag_ui__paint", json!({"n": 2})),
        )
        .rule(
            when().prompt_contains("paint mixed"),
            model()
                .tool_use("mcp__ag_ui__paint", json!({"n": 1}))
                .tool_use("Glob", json!({"pattern": "*.none"})),
        )
        .rule(when().prompt_contains("paint"), model().tool_use("mcp__ag_ui__paint", json!({})))
        .rule(
            when().prompt_contains("write"),
            model().tool_use("Write", json!({"file_path": "a.txt", "content": "original"})),
        )
        .rule(when().prompt_contains("todo"), model().tool_use("TodoWrite", todos))
        .rule(
            when().prompt_contains("picture"),
            model().tool_use("Read", json!({"file_path": "pixel.png"})),
        )
        .rule(
            when().prompt_contains("state"),
            model().tool_use(
                "mcp__shared_state__update",
                json!({"set": {"steps": [1, 2], "old": null}}),
            ),
        )
        .rule(when(), model().text("You said {{prompt}}"))
}

/// How a server's settings differ.
type Change = fn(&mut Config);

/// The smallest picture, as a PNG.
const PIXEL: &[u8] = &[
    0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 0x0d, 0x49, 0x48, 0x44, 0x52, 0, 0, 0,
    1, 0, 0, 0, 1, 8, 6, 0, 0, 0, 0x1f, 0x15, 0xc4, 0x89, 0, 0, 0, 0x0d, 0x49, 0x44, 0x41, 0x54,
    0x78, 0x9c, 0x63, 0xf8, 0xcf, 0xc0, 0xf0, 0x1f, 0, 5, 0, 1, 0xff, 0x89, 0x99, 0x3d, 0x1d, 0, 0,
    0, 0, 0x49, 0x45, 0x4e, 0x44, 0xae, 0x42, 0x60, 0x82,
];

async fn examine(client: &str) {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let peers = std::env::var_os("OSTLER_AGUI_PEERS")
        .expect("OSTLER_AGUI_PEERS names a folder with node_modules");
    let api = ScriptedApi::start(script()).await;
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("pixel.png"), PIXEL).unwrap();
    let shutdown = CancellationToken::new();
    let data = tempfile::tempdir().unwrap();
    let settings: [(&str, Change); 10] = [
        ("plain", |_| {}),
        ("lively", |config| config.agui.keep_alive = Duration::from_millis(50)),
        ("small", |config| config.limits.body = 1_000),
        ("hasty", |config| config.limits.run = Some(Duration::from_millis(1_500))),
        ("ending", |_| {}),
        ("keys", |config| config.agui.server_keys = vec!["plan".into()]),
        ("confirm", |config| config.agui.approvals = Approvals::Tool("confirm".into())),
        ("refuse", |config| config.agui.busy = Busy::Refuse),
        ("single", |config| config.agui.max_runs = 1),
        ("restless", |config| config.limits.idle = Duration::from_millis(20)),
    ];
    let mut addresses = serde_json::Map::from_iter([("model".to_owned(), json!(api.base_url()))]);
    let mut restless = None;
    for (name, change) in settings {
        let mut config = config(&api.base_url(), home.path(), &data.path().join(name));
        config.agui.origins = vec!["https://app.example".into()];
        for (variable, value) in [("CLAUDE_CODE_MAX_RETRIES", "0"), ("MAX_THINKING_TOKENS", "2000")]
        {
            config.env.insert(variable.to_owned(), value.to_owned());
        }
        change(&mut config);
        let stopping = if name == "ending" { shutdown.clone() } else { CancellationToken::new() };
        let (agui, url) = start(config, stopping).await;
        addresses.insert(name.to_owned(), url.into());
        if name == "restless" {
            restless = Some(agui);
        }
    }
    let restless = restless.unwrap();
    let control = Router::new()
        .route("/shutdown", post(move || async move { shutdown.cancel() }))
        .route("/sweep", post(move || async move { Json(rested(&restless).await) }));
    addresses.insert("control".to_owned(), serve(control).await.into());
    let said = play(client, &peers, &Value::Object(addresses)).await;
    let missing: Vec<_> =
        CHECKS.filter(|number| !said.contains(&format!("ok {number} "))).collect();
    assert!(missing.is_empty(), "checks {missing:?} did not pass:\n{said}");
    // Models that fail on purpose are not failures of the script, but invalid requests are.
    let invalid = api.take_failures();
    assert!(invalid.is_empty(), "{invalid:?}");
}

/// Waits until one engine is left, the one whose turn waits. Returns the number of engines.
async fn rested(agui: &AgUi) -> usize {
    for _ in 0..1_000 {
        if agui.engines() == 1 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    agui.engines()
}

async fn play(client: &str, peers: &std::ffi::OsStr, servers: &Value) -> String {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/agui/conformance.mjs");
    let mut node = tokio::process::Command::new("node");
    node.arg(script).env("OSTLER_AGUI_PEERS", peers).env("OSTLER_AGUI_CLIENT", client);
    node.env("OSTLER_AGUI_SERVERS", servers.to_string()).stdin(Stdio::null()).kill_on_drop(true);
    if let Ok(only) = std::env::var("OSTLER_AGUI_ONLY") {
        node.arg(only);
    }
    let output = node.output().await.unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    format!("{}{errors}", String::from_utf8_lossy(&output.stdout))
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs clients of AG-UI from npm: OSTLER_AGUI_PEERS"]
async fn the_official_client_passes_every_check() {
    examine("new").await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs clients of AG-UI from npm: OSTLER_AGUI_PEERS"]
async fn the_official_client_before_1_0_passes_every_check() {
    examine("old").await;
}
