//! A model that does not stop: huge answers, or pings for ever. Each request ends with an error that says why. The
//! tests of `ostler-cli` (`hostile`) measure how much memory it takes.

use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use ostler_engine::model::{MAX_RESPONSE_BYTES, Request};
use ostler_testkit::{RawApi, RawPart, RawReply};
use serde_json::json;
use std::io::Write as _;

use crate::model::{ask, client, request};

/// Generous: it only ends a test whose client hangs.
const LIMIT: Duration = Duration::from_secs(120);

fn event(data: serde_json::Value) -> String {
    format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap())
}

fn begin(block: serde_json::Value) -> String {
    let message = json!({"id": "msg", "type": "message", "role": "assistant", "model": "m",
        "content": [], "stop_reason": null, "usage": {"input_tokens": 1, "output_tokens": 1}});
    let start = event(json!({"type": "message_start", "message": message}));
    start + &event(json!({"type": "content_block_start", "index": 0, "content_block": block}))
}

fn delta(delta: serde_json::Value) -> String {
    event(json!({"type": "content_block_delta", "index": 0, "delta": delta}))
}

/// An answer that begins with `beginning` and repeats `piece` until it is too large.
fn flood(beginning: String, piece: String) -> RawReply {
    let times = 2 * MAX_RESPONSE_BYTES as u64 / 50_000;
    RawReply::events(vec![RawPart::once(beginning), RawPart::repeated(piece, times)])
}

async fn check_too_large(name: &str, stream: bool, reply: RawReply) {
    let api = RawApi::start(move |_, _| reply.clone()).await;
    let model = client(api.base_url(), |config| config.retry.max_retries = 3);
    let request = Request { stream, ..request() };
    let story = tokio::time::timeout(LIMIT, ask(&model, request)).await.expect(name);
    let last = story.last().unwrap();
    assert!(last.contains("too large"), "{name}: {last:.300}");
    assert_eq!(api.n_requests(), 1, "{name}: the same answer would come again");
}

// Mutant: no limit in `size.rs` (`MAX_RESPONSE_BYTES` as large as the address space): the answer is taken whole.
#[tokio::test]
async fn an_answer_that_is_too_large_ends_with_an_error() {
    let piece = "x".repeat(50_000);
    let text = begin(json!({"type": "text", "text": ""}));
    check_too_large("text", true, flood(text, delta(json!({"type": "text_delta", "text": piece}))))
        .await;
    let call = begin(json!({"type": "tool_use", "id": "t", "name": "Look", "input": {}}));
    let arguments = delta(json!({"type": "input_json_delta", "partial_json": piece}));
    check_too_large("arguments", true, flood(call, arguments)).await;
    let thinking = begin(json!({"type": "thinking", "thinking": ""}));
    let thought = delta(json!({"type": "thinking_delta", "thinking": piece}));
    check_too_large("thinking", true, flood(thinking, thought)).await;
    let line =
        RawReply::events(vec![RawPart::once("data: "), RawPart::repeated(piece.clone(), 700)]);
    check_too_large("one line", true, line).await;
    let whole = RawReply::json(vec![RawPart::once("{\"a\": \""), RawPart::repeated(piece, 700)]);
    check_too_large("in one piece", false, whole).await;
}

/// Many times the largest response, in a few kilobytes.
fn bomb(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    for _ in 0..(4 * MAX_RESPONSE_BYTES / text.len()) {
        encoder.write_all(text).unwrap();
    }
    encoder.finish().unwrap()
}

// Mutant: `whole` reads with `response.bytes()`, which holds whatever comes out of a compressed body.
#[tokio::test]
async fn a_compressed_answer_counts_with_its_decompressed_size() {
    let body = bomb(&[b' '; 4096]);
    assert!(body.len() < 100_000);
    for stream in [true, false] {
        let reply = RawReply::events(vec![RawPart::once(body.clone())]);
        check_too_large("bomb", stream, reply.header("content-encoding: gzip")).await;
    }
}

// Mutant: the deadline for content moves with every byte, as the one for silence does.
#[tokio::test]
async fn a_model_that_only_pings_has_stalled_and_is_asked_again() {
    let ping = event(json!({"type": "ping"}));
    let forever = |pause| RawPart::repeated(ping.clone(), u64::MAX).pausing(pause);
    let start = begin(json!({"type": "text", "text": ""}));
    let start = start.split_inclusive("\n\n").next().unwrap().to_owned();
    // Slowly, as fast as they can be read, and byte by byte without ever completing an event.
    let slow = RawPart::repeated("x", u64::MAX).pausing(Duration::from_millis(20));
    for parts in [
        vec![forever(Duration::from_millis(20))],
        vec![forever(Duration::ZERO)],
        vec![RawPart::once(start), forever(Duration::from_millis(20))],
        vec![RawPart::once("data: "), slow],
    ] {
        let fine = begin(json!({"type": "text", "text": ""}))
            + &delta(json!({"type": "text_delta", "text": "fine"}))
            + &event(json!({"type": "content_block_stop", "index": 0}))
            + &event(json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}}))
            + &event(json!({"type": "message_stop"}));
        let api = RawApi::start(move |n, _| match n {
            0 => RawReply::events(parts.clone()),
            _ => RawReply::events(vec![RawPart::once(fine.clone())]),
        })
        .await;
        let model = client(api.base_url(), |config| {
            config.timeouts.content = Duration::from_millis(400);
            config.retry.max_retries = 1000;
        });
        let story = tokio::time::timeout(LIMIT, ask(&model, request())).await.expect("an end");
        assert_eq!(story[0], "retry 1/1000 - server_error");
        assert_eq!(story[story.len() - 2..], ["fine", "end"]);
    }
}
