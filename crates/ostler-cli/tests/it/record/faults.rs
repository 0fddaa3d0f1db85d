//! Errors are recorded, and happen again in the replay.

use std::fs;

use ostler_testkit::{Script, ScriptedApi, Status, reply, when};
use serde_json::json;

use super::{FRAMES, lines, online, parts, record, replay, story, text};
use crate::run::Ran;

/// Records a run of this script and compares it with its replay.
async fn check(script: Script, args: &[&str]) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let tape = folder.path().join("a.jsonl");
    let args = [args, &FRAMES].concat();
    let recorded = record(script, &tape, &args).await;
    let replayed = replay(&tape, &args);
    assert_eq!(replayed.code, recorded.code, "{}", replayed.stderr);
    assert_eq!(parts(story(&replayed)), parts(story(&recorded)));
    story(&replayed)
}

fn has(story: &[String], part: &str) {
    assert!(story.iter().any(|line| line.contains(part)), "no {part} in {story:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn retries_are_replayed() {
    let busy = |status| reply().status(Status::new(status).retry_after(0));
    let script = Script::new().rule(when(), [busy(529), busy(429), reply().text("Here.")]);
    let story = check(script, &[]).await;
    assert_eq!(story.iter().filter(|line| line.contains("api_retry")).count(), 2, "{story:#?}");
    has(&story, "Here.");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_of_the_api_is_replayed() {
    let status = Status::new(401).message("invalid x-api-key");
    let story = check(Script::new().rule(when(), reply().status(status)), &[]).await;
    has(&story, "Invalid API key");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broken_stream_is_replayed() {
    let script = Script::new()
        .rule(when().streaming(true), reply().text_pieces(["Half ", "of it"]).cut(3))
        .rule(when().streaming(false), reply().text("All of it."));
    let story = check(script, &[]).await;
    has(&story, "Half ");
    has(&story, "All of it.");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_fallback_to_another_model_is_replayed() {
    let script = Script::new()
        .rule(when().model("claude-fallback"), reply().text("I take over."))
        .rule(when(), reply().status(Status::new(529).retry_after(0)));
    let args = ["--model", "claude-first", "--fallback-model", "claude-fallback"];
    let story = check(script, &args).await;
    has(&story, "I take over.");
    has(&story, "model_fallback");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_recording_of_a_killed_run_can_be_replayed_up_to_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let tape = folder.path().join("a.jsonl");
    let script = Script::new()
        .rule(when().turn(0), reply().tool_use("Read", json!({"file_path": "README.md"})))
        .rule(when().turn(1), reply().text("never").gate(0, "never"));
    let api = ScriptedApi::start(script).await;
    let ostler = online(&api).args(&["--record", text(&tape)]);
    let mut child = ostler.spawn(&FRAMES);
    drop(child.stdin.take());
    api.wait_for_requests(2).await;
    child.kill().unwrap();
    Ran::of(child);
    drop(api);
    assert_eq!(lines(&tape).iter().filter(|line| line["exchange"].is_u64()).count(), 1);
    // Half a line, as a kill in the middle of a write leaves it.
    let whole = fs::read_to_string(&tape).unwrap();
    fs::write(&tape, format!("{whole}{{\"run\":\"x\",\"exch")).unwrap();
    let replayed = replay(&tape, &FRAMES);
    assert_eq!(replayed.code, Some(1));
    let story = story(&replayed);
    has(&story, "tool_use");
    has(&story, "all of its exchanges have been replayed");
}
