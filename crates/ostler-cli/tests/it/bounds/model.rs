//! A model with invalid answers: every run ends with a message.

use std::time::Duration;

use ostler_testkit::{RawApi, RawPart, RawReply};
use serde_json::{Value, json};

use super::peak::measure;
use super::{at, begin, event, prompt};
use crate::run::Ran;

/// The end of an answer whose only block has begun.
pub(super) fn end(reason: &str) -> String {
    event(&json!({"type": "content_block_stop", "index": 0}))
        + &event(&json!({"type": "message_delta", "delta": {"stop_reason": reason}}))
        + &event(&json!({"type": "message_stop"}))
}

fn delta(delta: &Value) -> String {
    event(&json!({"type": "content_block_delta", "index": 0, "delta": delta}))
}

/// A whole answer of one text.
pub(super) fn text(text: &str) -> RawReply {
    let block = begin(&json!({"type": "text", "text": ""}));
    stream(block + &delta(&json!({"type": "text_delta", "text": text})) + &end("end_turn"))
}

fn stream(bytes: impl Into<Vec<u8>>) -> RawReply {
    RawReply::events(vec![RawPart::once(bytes.into())])
}

/// An answer with one tool call.
fn call(name: &str, arguments: &str) -> RawReply {
    let block = begin(&json!({"type": "tool_use", "id": "toolu_1", "name": name, "input": {}}));
    let arguments = delta(&json!({"type": "input_json_delta", "partial_json": arguments}));
    stream(block + &arguments + &end("tool_use"))
}

/// Sends this as the first answer and a text after it, without retries.
async fn attack(name: &str, first: RawReply) -> (Ran, usize) {
    let api = RawApi::start(move |n, _| match n {
        0 => first.clone(),
        _ => text("After it."),
    })
    .await;
    let ostler = at(&api.base_url())
        .env("CLAUDE_CODE_MAX_RETRIES", "0")
        .env("OSTLER_CONTENT_TIMEOUT_MS", "1000");
    let name = format!("model: {name}");
    let ran = tokio::task::block_in_place(|| measure(&name, prompt(&ostler, &["-p", "go"])));
    (ran, api.n_requests())
}

/// The error is on standard output, where the answer would have been.
async fn check_error(name: &str, first: RawReply) {
    let (ran, _) = attack(name, first).await;
    assert_eq!(ran.code, Some(1), "{name}: {:.500} {:.500}", ran.stdout, ran.stderr);
    assert!(!ran.stdout.trim().is_empty(), "{name}: nothing is printed");
}

/// The answer is usable, or requested again in one piece: the run continues.
async fn check_goes_on(name: &str, first: RawReply) {
    let (ran, _) = attack(name, first).await;
    assert_eq!(ran.code, Some(0), "{name}: {:.500} {:.500}", ran.stdout, ran.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_whose_stream_is_invalid() {
    let started = begin(&json!({"type": "text", "text": ""}));
    check_error("garbage", stream(vec![0xA5_u8; 100_000])).await;
    check_error("broken events", stream("event: \n\ndata\ndata:{\n\n: \n\nid: 7\n\n")).await;
    check_error("HTML", stream("<!doctype html><html><body>Sign in</body></html>")).await;
    check_error("nothing at all", stream("")).await;
    check_error("half an answer", stream(started.clone())).await;
    check_error("wrong types", stream(event(&json!({"type": "message_start", "message": [1]}))))
        .await;
    let bad = [started.as_bytes(), b"data: {\"type\": \"\xff\xfe\"}\n\n"].concat();
    check_error("bad UTF-8", stream(bad)).await;
    let deep = format!("{started}data: {}{}\n\n", "[".repeat(200_000), "]".repeat(200_000));
    check_error("200,000 levels of JSON", stream(deep)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_whose_connection_breaks_or_stays_silent() {
    let started = begin(&json!({"type": "text", "text": ""}));
    check_error("connection reset", stream(started.clone()).reset()).await;
    let silence = |bytes: &str| RawPart::once(bytes.to_owned()).pausing(Duration::from_secs(3600));
    check_error("silence", RawReply::events(vec![silence("")])).await;
    check_error("an answer without an end", RawReply::events(vec![silence(&started)])).await;
    let slowly = RawPart::repeated("x", u64::MAX).pausing(Duration::from_millis(20));
    check_error("byte by byte", RawReply::events(vec![RawPart::once("data: "), slowly])).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_whose_calls_are_invalid() {
    check_goes_on("arguments that are not JSON", call("Read", "{\"file_path\": ")).await;
    check_goes_on("arguments of the wrong type", call("Read", "[1, 2, 3]")).await;
    let deep = "[".repeat(200_000) + &"]".repeat(200_000);
    check_goes_on("arguments of 200,000 levels", call("Read", &deep)).await;
    for name in ["", "../Bash", "Bash\u{0}", "\u{1b}[2J", &"x".repeat(100_000)] {
        let what = format!("a tool called {:.12}", format!("{name:?}"));
        check_goes_on(&what, call(name, "{}")).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_redirects_gets_no_second_request_elsewhere() {
    let other = RawApi::start(|_, _| text("Here.")).await;
    let redirect = stream("").status(307).header(format!("location: {}", other.base_url()));
    check_error("redirect to another host", redirect).await;
    assert_eq!(other.n_requests(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_with_a_retry_after_of_three_years() {
    let api = RawApi::start(|_, _| stream("").status(429).header("retry-after: 94608000")).await;
    let ostler = at(&api.base_url());
    let ran = tokio::task::block_in_place(|| {
        measure("model: retry-after of 3 years", prompt(&ostler, &["-p", "go"]))
    });
    assert_eq!(ran.code, Some(1), "{:.500} {:.500}", ran.stdout, ran.stderr);
}
