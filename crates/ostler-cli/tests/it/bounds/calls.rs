//! One answer with very many calls, or with calls that have the same id.

use ostler_testkit::{RawApi, RawPart, RawReply, Script, ScriptedApi, reply, when};
use serde_json::{Value, json};

use super::model::text;
use super::peak::{measure_sized, sized};
use super::{at, event, prompt};

/// An answer of these blocks, each complete.
fn blocks(blocks: impl Iterator<Item = Value>) -> RawReply {
    let message = json!({"id": "msg", "type": "message", "role": "assistant", "model": "m",
        "content": [], "stop_reason": null, "usage": {"input_tokens": 1, "output_tokens": 1}});
    let mut bytes = event(&json!({"type": "message_start", "message": message}));
    for (index, block) in blocks.enumerate() {
        bytes +=
            &event(&json!({"type": "content_block_start", "index": index, "content_block": block}));
        bytes += &event(&json!({"type": "content_block_stop", "index": index}));
    }
    bytes += &event(&json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}}));
    bytes += &event(&json!({"type": "message_stop"}));
    RawReply::events(vec![RawPart::once(bytes)])
}

fn call(id: u64, name: &str, input: &Value) -> Value {
    json!({"type": "tool_use", "id": format!("toolu_{id}"), "name": name, "input": input})
}

/// Sends one answer, then a text. Returns how many results the second request has.
async fn attack(name: &str, size: u64, first: RawReply) -> usize {
    let (sent, received) = std::sync::mpsc::channel();
    let api = RawApi::start(move |n, body| match n {
        0 => first.clone(),
        _ => {
            let _ = sent.send(body.to_vec());
            text("Done.")
        }
    })
    .await;
    let ostler = at(&api.base_url()).args(&["--permission-mode", "bypassPermissions"]);
    let ran = tokio::task::block_in_place(|| {
        measure_sized(name, &size.to_string(), prompt(&ostler, &["-p", "go"]))
    });
    assert_eq!((ran.code, ran.stdout.trim()), (Some(0), "Done."), "{name}: {:.500}", ran.stderr);
    let body: Value = serde_json::from_slice(&received.recv().unwrap()).unwrap();
    let results = |message: &Value| {
        let blocks = message["content"].as_array().into_iter().flatten();
        blocks.filter(|block| block["type"] == "tool_result").count()
    };
    body["messages"].as_array().unwrap().iter().map(results).sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn three_calls_with_one_id() {
    let input = json!({"file_path": "README.md"});
    let calls = (0..3).map(|_| call(1, "Read", &input));
    let results = attack("model: calls with one id", 3, blocks(calls)).await;
    assert!((1..=3).contains(&results), "{results}");
}

#[tokio::test(flavor = "multi_thread")]
async fn thousands_of_calls_in_one_answer() {
    let count = sized(10_000, 1_000);
    let input = json!({"file_path": "README.md"});
    let calls = (0..count).map(|id| call(id, "Read", &input));
    let results = attack("model: thousands of calls in one answer", count, blocks(calls)).await;
    assert_eq!(results as u64, count);
}

#[tokio::test(flavor = "multi_thread")]
async fn thousands_of_commands_in_one_answer() {
    let count = sized(2_000, 150);
    let input = json!({"command": "true"});
    let calls = (0..count).map(|id| call(id, "Bash", &input));
    let results = attack("model: thousands of commands in one answer", count, blocks(calls)).await;
    assert_eq!(results as u64, count);
}

#[tokio::test(flavor = "multi_thread")]
async fn tens_of_thousands_of_blocks_in_one_answer() {
    let count = sized(40_000, 5_000);
    let texts = (0..count).map(|number| json!({"type": "text", "text": format!("block {number}")}));
    let input = json!({"file_path": "README.md"});
    let answer = blocks(texts.chain([call(1, "Read", &input)]));
    assert_eq!(attack("model: thousands of blocks in one answer", count, answer).await, 1);
}

/// Calls in several turns: the memory of one turn is freed before the next.
#[tokio::test(flavor = "multi_thread")]
async fn a_large_result_in_every_turn() {
    let turns = usize::try_from(sized(100, 12)).unwrap();
    let input = json!({"command": "head -c 20000000 /dev/zero | tr '\\0' x"});
    let mut script = Script::new();
    for turn in 0..turns {
        script = script.rule(when().turn(turn), reply().tool_use("Bash", input.clone()));
    }
    let api = ScriptedApi::start(script.rule(when(), reply().text("Done."))).await;
    let ostler = at(&api.base_url()).args(&["--permission-mode", "bypassPermissions"]);
    let ran = tokio::task::block_in_place(|| {
        let size = format!("{turns} turns");
        measure_sized("Bash: 20 MB in every turn", &size, prompt(&ostler, &["-p", "go"]))
    });
    assert_eq!((ran.code, ran.stdout.trim()), (Some(0), "Done."), "{:.500}", ran.stderr);
}
