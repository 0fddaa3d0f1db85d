//! Every fault that a script can cause, as a client sees it.

use std::time::{Duration, Instant};

use ostler_testkit::{Action, Disorder, Outcome, Reply, Status, reply};
use serde_json::{Value, json};

use crate::support::{
    RawExchange, accumulate, always, ask, events, message, names, parse_events, send, streamed,
};

/// The chunk that ends a chunked body properly.
const PROPER_END: &str = "\r\n0\r\n\r\n";

fn hello() -> Reply {
    reply().text_pieces(["hel", "lo"])
}

#[tokio::test]
async fn a_status_has_the_error_format_of_the_api_and_a_retry_after() {
    let server =
        always(reply().status(Status::new(529).retry_after(7).header("x-should-retry", "true")))
            .await;
    let response = send(&server, &streamed(ask("hi"))).await;
    assert_eq!(response.status(), 529);
    assert_eq!(response.headers()["retry-after"], "7");
    assert_eq!(response.headers()["x-should-retry"], "true");
    let body: Value = response.json().await.unwrap();
    assert_eq!(
        (&body["type"], &body["error"]["type"]),
        (&json!("error"), &json!("overloaded_error"))
    );
    assert_eq!(body["error"]["message"], "Overloaded");
    assert_eq!(server.requests()[0].status, Some(529));
}

#[tokio::test]
async fn the_type_of_an_error_follows_its_code_unless_it_is_given() {
    for (code, error_type) in [
        (400, "invalid_request_error"),
        (401, "authentication_error"),
        (403, "permission_error"),
        (404, "not_found_error"),
        (413, "request_too_large"),
        (429, "rate_limit_error"),
        (500, "api_error"),
    ] {
        let server = always(reply().status(Status::new(code))).await;
        assert_eq!(message(&server, &ask("hi")).await["error"]["type"], error_type);
    }
    let server =
        always(reply().status(Status::new(400).error_type("billing_error").message("pay first")))
            .await;
    let error = &message(&server, &ask("hi")).await["error"];
    assert_eq!((&error["type"], &error["message"]), (&json!("billing_error"), &json!("pay first")));
}

#[tokio::test]
async fn a_status_can_have_any_body() {
    let server = always(reply().status(Status::new(502).body("<html>bad gateway</html>"))).await;
    let response = send(&server, &ask("hi")).await;
    assert_eq!(response.headers()["content-type"], "text/plain");
    assert_eq!(response.text().await.unwrap(), "<html>bad gateway</html>");
    let server = always(reply().status(Status::new(500).body(json!({"odd": true})))).await;
    assert_eq!(message(&server, &ask("hi")).await, json!({"odd": true}));
}

#[tokio::test]
async fn the_first_byte_can_be_late() {
    let server = always(hello().delay_before_first_byte_ms(60)).await;
    let start = Instant::now();
    send(&server, &streamed(ask("hi"))).await;
    assert!(start.elapsed() >= Duration::from_millis(60), "the headers are late as well");
}

#[tokio::test]
async fn events_can_have_pauses_between_them() {
    let server = always(reply().delay_between_events_ms(20)).await;
    let start = Instant::now();
    assert_eq!(events(&server, "hi").await.len(), 3);
    assert!(
        start.elapsed() >= Duration::from_millis(40),
        "there are two pauses between three events"
    );
}

#[tokio::test]
async fn a_stalled_stream_sends_nothing_more_until_the_server_stops() {
    let server = always(hello().stall(3)).await;
    let mut exchange = RawExchange::send(&server, &streamed(ask("hi"))).await;
    let before = exchange.read_until("\"hel\"").await;
    assert_eq!(server.requests()[0].outcome, Outcome::Open);
    server.finish();
    let after = exchange.read_to_end().await;
    assert!(!format!("{before}{after}").contains("\"lo\""), "{after}");
    assert!(!after.contains(PROPER_END), "{after}");
}

#[tokio::test]
async fn a_stalled_stream_notices_that_the_client_left() {
    let server = always(hello().stall(1)).await;
    let mut exchange = RawExchange::send(&server, &streamed(ask("hi"))).await;
    exchange.read_until("message_start").await;
    drop(exchange);
    let requests = server
        .wait_for("the client to leave", |requests| requests[0].outcome != Outcome::Open)
        .await;
    assert!(requests[0].client_left());
}

#[tokio::test]
async fn a_cut_sends_the_events_before_it_and_no_end_of_the_body() {
    let server = always(hello().cut(3)).await;
    for _ in 0..20 {
        let seen = RawExchange::send(&server, &streamed(ask("hi"))).await.read_to_end().await;
        assert!(
            seen.starts_with("HTTP/1.1 200 OK") && seen.contains("transfer-encoding: chunked"),
            "{seen}"
        );
        assert!(seen.contains("\"hel\"") && !seen.contains("\"lo\""), "{seen}");
        assert!(!seen.contains(PROPER_END), "{seen}");
    }
    assert!(
        send(&server, &streamed(ask("hi"))).await.bytes().await.is_err(),
        "a client sees an incomplete body"
    );
    assert!(server.requests().iter().all(|request| request.outcome == Outcome::Cut));
}

#[tokio::test]
async fn a_whole_stream_has_a_proper_end() {
    let server = always(hello()).await;
    let mut exchange = RawExchange::send(&server, &streamed(ask("hi"))).await;
    exchange.read_until(PROPER_END).await;
    server.wait_for("completion", |requests| requests[0].outcome == Outcome::Complete).await;
}

#[tokio::test]
async fn a_call_without_a_stream_can_be_cut_stalled_or_malformed() {
    let server = always(hello().cut(0)).await;
    let response = send(&server, &ask("hi")).await;
    assert!(response.bytes().await.is_err());

    let server = always(hello().interrupt(0, Action::MalformedJson)).await;
    let body = send(&server, &ask("hi")).await.bytes().await.unwrap();
    assert!(!body.is_empty() && serde_json::from_slice::<Value>(&body).is_err());

    let server = always(hello().stall(0)).await;
    let mut exchange = RawExchange::send(&server, &ask("hi")).await;
    server
        .wait_for("an answer to begin", |requests| {
            requests.first().is_some_and(|one| one.status.is_some())
        })
        .await;
    server.finish();
    assert!(!exchange.read_to_end().await.contains("hello"));
}

#[tokio::test]
async fn malformed_json_is_sent_in_a_well_formed_event() {
    let server = always(hello().interrupt(3, Action::MalformedJson)).await;
    let text = send(&server, &streamed(ask("hi"))).await.text().await.unwrap();
    let data: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("data: ")).collect();
    let broken: Vec<&&str> =
        data.iter().filter(|line| serde_json::from_str::<Value>(line).is_err()).collect();
    assert_eq!(broken.len(), 1, "{text}");
    assert!(text.ends_with("data: {\"type\":\"message_stop\"}\n\n"), "the stream continues");
}

#[tokio::test]
async fn malformed_sse_has_invalid_lines_and_an_event_that_merges_with_the_next() {
    let server = always(hello().interrupt(2, Action::MalformedSse)).await;
    let text = send(&server, &streamed(ask("hi"))).await.text().await.unwrap();
    let foreign = text.lines().filter(|line| {
        !line.is_empty()
            && !line.starts_with("event: ")
            && !line.starts_with("data: ")
            && !line.starts_with(':')
    });
    assert!(foreign.count() >= 2, "{text}");
    assert!(text.split("\n\n").any(|event| event.matches("event: ").count() == 2), "{text}");
    assert!(text.ends_with("data: {\"type\":\"message_stop\"}\n\n"), "the stream continues");
}

#[tokio::test]
async fn events_can_be_out_of_order() {
    let server = always(hello().interrupt(0, Action::OutOfOrder(Disorder::EarlyMessageStop))).await;
    assert_eq!(names(&events(&server, "hi").await)[..2], ["message_stop", "message_start"]);

    let server = always(hello().interrupt(1, Action::OutOfOrder(Disorder::SwapNextTwo))).await;
    let swapped = events(&server, "hi").await;
    assert_eq!(
        names(&swapped)[..3],
        ["message_start", "content_block_delta", "content_block_start"]
    );

    let server =
        always(hello().interrupt(1, Action::OutOfOrder(Disorder::DeltaWithoutStart))).await;
    let stray = events(&server, "hi").await;
    assert_eq!((names(&stray)[1], &stray[1]["index"]), ("content_block_delta", &json!(1)));

    let server = always(hello().interrupt(1, Action::OutOfOrder(Disorder::StopWithoutStart))).await;
    assert_eq!(names(&events(&server, "hi").await)[1], "content_block_stop");

    let server =
        always(hello().interrupt(4, Action::OutOfOrder(Disorder::SecondMessageStart))).await;
    let starts = events(&server, "hi")
        .await
        .into_iter()
        .filter(|event| event["type"] == "message_start")
        .count();
    assert_eq!(starts, 2);
}

#[tokio::test]
async fn an_error_event_ends_the_stream() {
    let server = always(hello().interrupt(3, Action::overloaded())).await;
    let events = events(&server, "hi").await;
    let last = events.last().unwrap();
    assert_eq!(
        last,
        &json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})
    );
    assert_eq!(events.len(), 5, "message_start, content_block_start, ping, delta, error");
}

#[tokio::test]
async fn pings_raw_text_and_early_ends_are_possible() {
    let server = always(hello().ping_between_events()).await;
    let all = events(&server, "hi").await;
    assert_eq!(
        names(&all).iter().filter(|name| **name == "ping").count(),
        6,
        "between seven events"
    );

    let server = always(hello().interrupt(0, Action::Ping)).await;
    assert_eq!(names(&events(&server, "hi").await)[0], "ping");

    let server = always(
        hello().interrupt(1, Action::Raw(": a comment\n\n".into())).interrupt(1, Action::End),
    )
    .await;
    let text = send(&server, &streamed(ask("hi"))).await.text().await.unwrap();
    assert!(
        text.ends_with("\n\n: a comment\n\n") && text.matches("event: ").count() == 1,
        "{text}"
    );
}

#[tokio::test]
async fn a_stream_can_lack_its_message_stop() {
    let server = always(hello().missing_message_stop()).await;
    let events = events(&server, "hi").await;
    assert_eq!(names(&events).last(), Some(&"message_delta"));
}

#[tokio::test]
async fn bytes_arrive_in_chunks_of_the_requested_size() {
    let server = always(reply().text("añ日本🎉").chunk_bytes(5)).await;
    let mut response = send(&server, &streamed(ask("hi"))).await;
    let (mut all, mut longest, mut chunks) = (Vec::new(), 0, 0);
    while let Some(chunk) = response.chunk().await.unwrap() {
        longest = longest.max(chunk.len());
        chunks += 1;
        all.extend_from_slice(&chunk);
    }
    assert_eq!(longest, 5);
    assert!(chunks > all.len() / 6, "{chunks} chunks for {} bytes", all.len());
    let events = parse_events(&String::from_utf8(all).unwrap());
    assert_eq!(accumulate(&events)["content"][0]["text"], "añ日本🎉");
}
