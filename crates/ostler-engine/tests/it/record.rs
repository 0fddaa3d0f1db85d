//! Recordings as files: complete, truncated, damaged, and with answers that were dropped before their end.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use futures::{StreamExt as _, poll};
use ostler_engine::model::{ChatMessage, Model, ModelEvent, Request};
use ostler_engine::offline::OfflineModel;
use ostler_engine::record::{Player, Recorder, RecordingRedactor, ReplayOptions};
use ostler_proto::api::{ContentBlock, Role};

fn redactor() -> RecordingRedactor {
    RecordingRedactor::new(Path::new("/work"), None, Path::new("/tmp"))
}

fn request(text: &str) -> Request {
    let said = ChatMessage { role: Role::User, content: vec![ContentBlock::text(text)] };
    Request::new("offline-demo", vec![said])
}

fn recorded(tape: &Path) -> Arc<dyn Model> {
    Recorder::new(tape, redactor(), "offline-demo").unwrap().model(Arc::new(OfflineModel::new()))
}

fn player(tape: &Path) -> Result<Arc<dyn Model>, String> {
    let player = Player::new(tape, redactor(), ReplayOptions::default());
    player.map(|player| player.model("offline-demo")).map_err(|error| error.to_string())
}

async fn hear(model: &Arc<dyn Model>, text: &str) -> Result<Vec<ModelEvent>, String> {
    let events: Vec<_> = model.respond(request(text)).collect().await;
    events.into_iter().collect::<Result<_, _>>().map_err(|error| error.to_string())
}

#[tokio::test]
async fn a_replayed_answer_that_was_dropped_never_gets_past_that_point() {
    let folder = tempfile::tempdir().unwrap();
    let tape = folder.path().join("a.jsonl");
    let heard: Vec<_> = recorded(&tape).respond(request("help")).take(3).collect().await;
    let player = player(&tape).unwrap();
    let mut again = player.respond(request("help"));
    for event in heard {
        assert_eq!(again.next().await, Some(event));
    }
    assert!(poll!(again.next()).is_pending(), "the replay waits where the recording was dropped");
}

#[tokio::test]
async fn a_file_can_have_several_runs_even_after_a_truncated_line() {
    let folder = tempfile::tempdir().unwrap();
    let tape = folder.path().join("a.jsonl");
    let first = hear(&recorded(&tape), "help").await.unwrap();
    let whole = fs::read_to_string(&tape).unwrap();
    fs::write(&tape, &whole[..whole.len() - 20]).unwrap();
    let complaint = hear(&player(&tape).unwrap(), "help").await.unwrap_err();
    assert!(complaint.contains("the recording is empty"), "{complaint}");
    let second = hear(&recorded(&tape), "hello").await.unwrap();
    hear(&recorded(&tape), "help").await.unwrap();
    let player = player(&tape).unwrap();
    assert_eq!(hear(&player, "hello").await.unwrap(), second);
    assert_eq!(hear(&player, "help").await.unwrap().len(), first.len());
}

#[tokio::test]
async fn a_damaged_file_is_reported_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let tape = folder.path().join("a.jsonl");
    hear(&recorded(&tape), "help").await.unwrap();
    let whole = fs::read_to_string(&tape).unwrap();
    let check = |text: String, expected: &str| {
        fs::write(&tape, text).unwrap();
        let complaint = player(&tape).err().unwrap_or_else(|| "no complaint".to_owned());
        assert!(complaint.contains(expected), "{expected}: {complaint}");
    };
    check(whole.replacen("{\"run\"", "{run", 1), "line 2");
    check(
        whole.replace("\"end\":\"complete\"", "\"end\":\"happily\""),
        "end: unknown variant `happily`",
    );
    check(whole.replace("\"ostler_recording\":1", "\"ostler_recording\":2"), "cannot read it");
    check(String::new(), "is not a recording");
    let second = whole.lines().nth(1).unwrap().to_owned();
    check(second, "does not begin with the header of a recording");
    check(
        whole.replacen("\"messages\":[", "\"goes_on_from\":7,\"messages\":[", 1),
        "no exchange 7",
    );
    fs::remove_file(&tape).unwrap();
    let complaint = player(&tape).err().unwrap();
    assert!(complaint.contains("cannot read") && complaint.contains("--record"), "{complaint}");
}
