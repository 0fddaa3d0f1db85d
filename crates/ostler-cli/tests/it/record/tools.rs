//! Tools in a replay: real, or from the recording.

use std::fs;

use ostler_testkit::{Script, reply, when};
use serde_json::json;

use super::{offline, record, replay, text};

fn counting() -> Script {
    Script::new()
        .rule(
            when().turn(0),
            reply()
                .tool_use("Bash", json!({"command": "echo counted >> count; cat count | wc -l"})),
        )
        .rule(when().turn(1), reply().text("Counted {{tool_result}}."))
}

#[tokio::test(flavor = "multi_thread")]
async fn recorded_tools_touch_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let tape = folder.path().join("a.jsonl");
    let args = ["--allowed-tools=Bash", "-p", "go"];
    let recorded = record(counting(), &tape, &args).await;
    assert_eq!(recorded.stdout, "Counted 1.\n", "{}", recorded.stderr);

    let real = offline().args(&["--replay", text(&tape)]);
    assert_eq!(real.run(&args).stdout, "Counted 1.\n");
    assert!(real.path("count").exists());
    // The second time the count differs, and the recording has no answer for that.
    let ran = real.run(&args);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stdout.contains("messages[2].content[0].content"), "{}", ran.stdout);

    let from_tape = offline().args(&["--replay", text(&tape), "--replay-tools", "recorded"]);
    assert_eq!(from_tape.run(&args).stdout, "Counted 1.\n");
    assert_eq!(from_tape.run(&args).stdout, "Counted 1.\n");
    assert!(!from_tape.path("count").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn approvals_are_required_in_a_replay_too() {
    let folder = tempfile::tempdir().unwrap();
    let tape = folder.path().join("a.jsonl");
    record(counting(), &tape, &["--allowed-tools=Bash", "-p", "go"]).await;
    let ran = replay(&tape, &["--replay-tools", "recorded", "-p", "go"]);
    assert_eq!(ran.code, Some(1), "a denied call has another result: {}", ran.stdout);
    assert!(ran.stdout.contains("messages[2].content[0].content"), "{}", ran.stdout);
}

#[tokio::test(flavor = "multi_thread")]
async fn random_names_in_real_tool_results_replace_the_recorded_ones() {
    let folder = tempfile::tempdir().unwrap();
    let tape = folder.path().join("a.jsonl");
    let script = Script::new()
        .rule(when().turn(0), reply().tool_use("Bash", json!({"command": "mktemp -d | tee made"})))
        .rule(when().turn(1), reply().text("It is {{tool_result}}, I think."));
    let args = ["--allowed-tools=Bash", "-p", "go"];
    let recorded = record(script, &tape, &args).await;
    assert!(recorded.stdout.starts_with("It is /"), "{}", recorded.stdout);
    let replaying = offline().args(&["--replay", text(&tape)]);
    let replayed = replaying.run(&args);
    let made = fs::read_to_string(replaying.path("made")).unwrap();
    assert_eq!(replayed.stdout, format!("It is {}, I think.\n", made.trim()));
    assert_ne!(replayed.stdout, recorded.stdout);
    fs::remove_dir(made.trim()).unwrap();
    let first = recorded.stdout.trim_start_matches("It is ").trim_end_matches(", I think.\n");
    fs::remove_dir(first).unwrap();
}
