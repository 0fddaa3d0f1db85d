//! Record and replay: a run with the scripted API is recorded, the API ends, and the run is replayed.

mod asides;
mod faults;
pub(crate) mod peers;
mod secrets;
mod tools;

use std::fs;
use std::path::Path;

use ostler_proto::frame::{Frame, ToHost};
use ostler_testkit::{Script, ScriptedApi, reply, when};
use serde_json::{Value, json};

use crate::run::{Ostler, Ran};

/// The arguments of a run whose frames are compared.
pub(super) const FRAMES: [&str; 5] =
    ["-p", "--output-format", "stream-json", "--include-partial-messages", "go"];

/// A run with a key and an API.
pub(super) fn online(api: &ScriptedApi) -> Ostler {
    Ostler::new()
        .env("ANTHROPIC_API_KEY", "sk-key-of-this-test")
        .env("ANTHROPIC_BASE_URL", &api.base_url())
}

/// A run without either, in a new folder.
pub(super) fn offline() -> Ostler {
    // An attempt to reach an API fails, because nothing listens there.
    Ostler::new().env("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")
}

/// Records a run of this script in a new folder; the API has ended afterwards.
pub(super) async fn record(script: Script, tape: &Path, args: &[&str]) -> Ran {
    let api = ScriptedApi::start(script).await;
    let ran = online(&api).args(&["--record", text(tape)]).args(args).type_lines(&[]);
    drop(api);
    ran
}

pub(super) fn replay(tape: &Path, args: &[&str]) -> Ran {
    offline().args(&["--replay", text(tape)]).args(args).type_lines(&[])
}

pub(super) fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// The lines of a recording.
pub(super) fn lines(tape: &Path) -> Vec<Value> {
    let text = fs::read_to_string(tape).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The conversation, frame by frame, without ids, times and folders, which differ in each run.
pub(super) fn story(ran: &Ran) -> Vec<String> {
    assert!(!ran.stdout.is_empty(), "{}", ran.stderr);
    let rendered = |line: &str| {
        let frame = ToHost::from_line(line).unwrap();
        let value: Value = serde_json::from_str(line).unwrap();
        let said = match value["type"].as_str().unwrap() {
            "assistant" | "user" => value["message"]["content"].to_string(),
            "stream_event" => value["event"]["delta"].to_string(),
            "result" => json!([
                value["result"],
                value["errors"],
                value["num_turns"],
                value["usage"]["output_tokens"]
            ])
            .to_string(),
            _ => String::new(),
        };
        format!("{} {said}", frame.summary())
    };
    ran.stdout.lines().map(rendered).collect()
}

/// The same in two parts: a tool that starts while the answer still streams may end before or after it.
pub(super) fn parts(lines: Vec<String>) -> (Vec<String>, Vec<String>) {
    lines
        .into_iter()
        .partition(|line| line.contains("stream_event") || line.contains("StreamEvent"))
}

fn two_turns() -> Script {
    Script::new()
        .rule(
            when().turn(0),
            reply()
                .text_pieces(["I ", "look ", "at it."])
                .tool_use("Read", json!({"file_path": "README.md"})),
        )
        .rule(when().turn(1), reply().text("It is a readme: {{tool_result}}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_replayed_without_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let tape = folder.path().join("made/for/it.jsonl");
    let recorded = record(two_turns(), &tape, &FRAMES).await;
    assert_eq!(recorded.code, Some(0), "{}", recorded.stderr);
    let replayed = replay(&tape, &FRAMES);
    assert_eq!(replayed.code, Some(0), "{}", replayed.stdout);
    assert_eq!(parts(story(&replayed)), parts(story(&recorded)));
    let story = story(&replayed);
    assert!(story.iter().any(|line| line.contains("text_delta") && line.contains("look ")));
    assert!(story.last().unwrap().contains("It is a readme"), "{story:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn variables_can_set_it_too_but_arguments_take_precedence() {
    let folder = tempfile::tempdir().unwrap();
    let tape = folder.path().join("a.jsonl");
    let api = ScriptedApi::start(Script::new().rule(when(), reply().text("Hello."))).await;
    let ran = online(&api).env("OSTLER_RECORD", text(&tape)).run(&["-p", "go"]);
    assert_eq!(ran.stdout, "Hello.\n", "{}", ran.stderr);
    drop(api);
    let replay = || offline().env("OSTLER_REPLAY", text(&tape));
    assert_eq!(replay().run(&["-p", "go"]).stdout, "Hello.\n");
    let other = folder.path().join("none.jsonl");
    let ran = replay().run(&["--replay", text(&other), "-p", "go"]);
    assert!(ran.stderr.contains("none.jsonl") && ran.stderr.contains("--record"), "{}", ran.stderr);
    let both = replay().env("OSTLER_RECORD", text(&other)).run(&["-p", "go"]);
    assert!(both.stderr.contains("not both"), "{}", both.stderr);
    assert!(!other.exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn another_prompt_is_a_mismatch_error_with_place_and_advice() {
    let folder = tempfile::tempdir().unwrap();
    let tape = folder.path().join("a.jsonl");
    record(two_turns(), &tape, &["-p", "what is here?"]).await;
    let ran = replay(&tape, &["-p", "what is there?"]);
    assert_eq!(ran.code, Some(1));
    let output = format!("{}{}", ran.stdout, ran.stderr);
    for part in [
        "a.jsonl",
        "request 1 of this run",
        "exchange 1 (line ",
        "messages[0].content[0].text",
        "\"what is here?\"",
        "\"what is there?\"",
        "Record again",
        "--replay-match loose",
    ] {
        assert!(output.contains(part), "{part} is missing in {output}");
    }
    let loose = replay(&tape, &["--replay-match", "loose", "-p", "what is there?"]);
    assert_eq!((loose.code, loose.stdout.contains("It is a readme")), (Some(0), true));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_resumed_session_can_be_replayed() {
    let folder = tempfile::tempdir().unwrap();
    let tape = folder.path().join("a.jsonl");
    let api = ScriptedApi::start(
        Script::new()
            .rule(when().prompt_contains("second"), reply().text("Two."))
            .rule(when(), reply().text("One.")),
    )
    .await;
    let recorded = online(&api).args(&["--record", text(&tape), "-p"]);
    assert_eq!(recorded.run(&["first"]).stdout, "One.\n");
    assert_eq!(recorded.run(&["--continue", "second"]).stdout, "Two.\n");
    drop(api);
    let replayed = offline().args(&["--replay", text(&tape), "-p"]);
    assert_eq!(replayed.run(&["first"]).stdout, "One.\n");
    assert_eq!(replayed.run(&["--continue", "second"]).stdout, "Two.\n");
    let ran = replayed.run(&["--continue", "third"]);
    assert!(ran.stdout.contains("\"third\"") || ran.stderr.contains("third"), "{}", ran.stdout);
}

#[tokio::test(flavor = "multi_thread")]
async fn subagents_are_replayed_in_any_order() {
    let folder = tempfile::tempdir().unwrap();
    let tape = folder.path().join("a.jsonl");
    let task = |what: &str| json!({"description": what, "prompt": format!("do {what}")});
    let script = Script::new()
        .rule(when().prompt_contains("do alpha"), reply().text("alpha is done").gate(1, "alpha"))
        .rule(when().prompt_contains("do beta"), reply().text("beta is done"))
        .rule(
            when().prompt_contains("go").turn(0),
            reply().tool_use("Agent", task("alpha")).tool_use("Agent", task("beta")),
        )
        .rule(when().turn(1), reply().text("Both."));
    let api = ScriptedApi::start(script).await;
    let ostler = online(&api).args(&["--record", text(&tape)]);
    let mut child = ostler.spawn(&FRAMES);
    drop(child.stdin.take());
    // Beta is answered first, whenever it was asked.
    api.wait_for_requests(3).await;
    api.gate("alpha").release();
    let recorded = Ran::of(child);
    assert_eq!(recorded.code, Some(0), "{}", recorded.stderr);
    drop(api);
    let replayed = replay(&tape, &FRAMES);
    assert_eq!(replayed.code, Some(0), "{}", replayed.stdout);
    let sorted = |ran: &Ran| {
        let mut story = story(ran);
        story.sort();
        story
    };
    assert_eq!(sorted(&replayed), sorted(&recorded));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_demo_can_be_recorded_as_well() {
    let folder = tempfile::tempdir().unwrap();
    let tape = folder.path().join("a.jsonl");
    let recorded =
        Ostler::new().args(&["--record", text(&tape), "-p", "read README.md"]).type_lines(&[]);
    let replayed = replay(&tape, &["-p", "read README.md"]);
    assert_eq!(replayed.stdout, recorded.stdout);
    assert!(recorded.stdout.contains("A readme"), "{}", recorded.stdout);
    assert_eq!(lines(&tape)[0]["model"], "offline-demo");
}

#[test]
fn a_file_that_is_not_a_recording_is_not_changed() {
    let ostler = Ostler::new();
    let notes = ostler.path("README.md");
    let before = fs::read_to_string(&notes).unwrap();
    let ran = ostler.run(&["--record", text(&notes), "-p", "hello"]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("is not a recording"), "{}", ran.stderr);
    assert_eq!(fs::read_to_string(&notes).unwrap(), before);
    let ran = ostler.run(&["--replay", text(&notes), "-p", "hello"]);
    assert!(ran.stderr.contains("README.md") && ran.stderr.contains("line 1"), "{}", ran.stderr);
}
