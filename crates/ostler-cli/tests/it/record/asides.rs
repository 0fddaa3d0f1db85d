//! Requests outside of the conversation are recorded like any other: summaries, and searches of tools.

use ostler_testkit::{Script, ScriptedApi, reply, when};
use serde_json::{Value, json};

use super::{FRAMES, lines, offline, online, parts, record, replay, story, text};

#[tokio::test(flavor = "multi_thread")]
async fn a_compaction_is_replayed() {
    let folder = tempfile::tempdir().unwrap();
    let tape = folder.path().join("a.jsonl");
    let script = Script::new()
        .rule(when().any_text_contains("and two"), reply().text("Second answer."))
        .rule(when().turn(0), reply().text("First answer."))
        .rule(when(), reply().text("<summary>One was said.</summary>"));
    let api = ScriptedApi::start(script).await;
    let prompt = |text: &str| {
        json!({"type": "user", "message": {"role": "user", "content": text}}).to_string()
    };
    let prompts = [prompt("say one"), prompt("/compact"), prompt("and two")];
    let prompts: Vec<&str> = prompts.iter().map(String::as_str).collect();
    let frames = ["--input-format", "stream-json", "--output-format", "stream-json"];
    let recorded = online(&api).args(&["--record", text(&tape)]).args(&frames).type_lines(&prompts);
    let n_requests = api.requests().len();
    drop(api);
    let replayed = offline().args(&["--replay", text(&tape)]).args(&frames).type_lines(&prompts);
    assert_eq!(story(&replayed), story(&recorded));
    let story = story(&replayed);
    for part in ["First answer.", "compact_boundary", "Second answer."] {
        assert!(story.iter().any(|line| line.contains(part)), "no {part} in {story:#?}");
    }
    assert_eq!(n_requests, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_search_of_a_tool_is_answered_from_the_recording() {
    let folder = tempfile::tempdir().unwrap();
    let tape = folder.path().join("a.jsonl");
    let script = Script::new()
        .rule(
            when().prompt_contains("go").turn(0),
            reply().tool_use("WebSearch", json!({"query": "crabs"})),
        )
        .rule(when().prompt_contains("Search the web"), reply().text("Crabs are decapods."))
        .rule(when(), reply().text("{{tool_result}}"));
    let args = [&["--allowed-tools=WebSearch"], &FRAMES[..]].concat();
    let recorded = record(script, &tape, &args).await;
    let replayed = replay(&tape, &args);
    assert_eq!(parts(story(&replayed)), parts(story(&recorded)));
    assert!(story(&replayed).last().unwrap().contains("decapods"), "{}", replayed.stdout);
    let mut exchanges: Vec<Value> =
        lines(&tape).into_iter().filter(|line| line["exchange"].is_u64()).collect();
    exchanges.sort_by_key(|line| line["exchange"].as_u64());
    assert_eq!(exchanges.len(), 3);
    let offered = exchanges[1]["request"]["tools"][0]["name"].as_str();
    assert_eq!(offered, Some("web_search"), "{}", exchanges[1]);
    // Text that is already in the file is not written again.
    let last = &exchanges[2]["request"];
    assert_eq!((&last["goes_on_from"], &last["messages_kept"]), (&json!(1), &json!(1)));
    assert_eq!((last["messages"].as_array().unwrap().len(), last.get("tools")), (2, None));
}
