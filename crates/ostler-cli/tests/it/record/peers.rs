//! The official SDKs record with an extra argument, and replay without any network.

use std::path::{Path, PathBuf};
use std::process::Output;
use std::time::Duration;

use ostler_testkit::{Script, ScriptedApi, reply, when};
use serde_json::json;
use tokio::process::Command;

use super::{parts, text};
use crate::run::{Ostler, PROGRAM};

/// Generous: it only limits an SDK that hangs.
const LIMIT: Duration = Duration::from_secs(120);

pub(crate) fn installed(variable: &str, path: &str) -> PathBuf {
    let folder = std::env::var_os(variable);
    let folder = folder.unwrap_or_else(|| panic!("{variable} is not set; cargo xtask test does"));
    Path::new(&folder).canonicalize().unwrap().join(path)
}

pub(crate) fn driver(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers").join(name)
}

/// The output of an SDK with these extra arguments.
pub(crate) async fn hear(ostler: &Ostler, program: &[&str], extra: serde_json::Value) -> String {
    let mut command = std::process::Command::new(program[0]);
    ostler.furnish(&mut command);
    let mut command = Command::from(command);
    command.args(&program[1..]).args([PROGRAM, &extra.to_string()]).kill_on_drop(true);
    let output = tokio::time::timeout(LIMIT, command.output()).await.unwrap().unwrap();
    let Output { status, stdout, stderr } = output;
    let (stdout, stderr) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert!(status.success(), "{status}\n{stdout}\n{stderr}");
    stdout.into_owned()
}

async fn check(program: &[&str], module: Option<&Path>) {
    let folder = tempfile::tempdir().unwrap();
    let tape = folder.path().join("tape.jsonl");
    let module = module.map(text).unwrap_or_default();
    let script = Script::new()
        .rule(
            when().turn(0),
            reply()
                .text_pieces(["I ", "look."])
                .tool_use("Read", json!({"file_path": "README.md"})),
        )
        .rule(when().turn(1), reply().text("It says {{tool_result}}"));
    let api = ScriptedApi::start(script).await;
    let online = super::online(&api).env("SDK_MODULE", module);
    let recorded = hear(&online, program, json!({"record": text(&tape)})).await;
    drop(api);
    let offline = super::offline().env("SDK_MODULE", module);
    let replayed = hear(&offline, program, json!({"replay": text(&tape)})).await;
    for part in ["text_delta", "I look.", "A readme", "success"] {
        assert!(recorded.contains(part), "{part} is missing in {recorded}");
    }
    let lines = |text: &str| parts(text.lines().map(str::to_owned).collect());
    assert_eq!(lines(&replayed), lines(&recorded));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs npm packages; run by cargo xtask test"]
async fn the_older_typescript_sdk_replays_what_it_recorded() {
    let module = installed("OSTLER_PEERS", "node_modules/@anthropic-ai/claude-agent-sdk/sdk.mjs");
    check(&["node", text(&driver("replay.mjs"))], Some(&module)).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs npm packages; run by cargo xtask test"]
async fn the_newer_typescript_sdk_replays_what_it_recorded() {
    let package = "node_modules/@anthropic-ai/claude-agent-sdk/sdk.mjs";
    let module = installed("OSTLER_NATIVE_PEERS", package);
    check(&["node", text(&driver("replay.mjs"))], Some(&module)).await;
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a Python package; run by cargo xtask test"]
async fn the_python_sdk_replays_what_it_recorded() {
    let python = installed("OSTLER_PYTHON", "bin/python");
    check(&[text(&python), text(&driver("replay.py"))], None).await;
}
