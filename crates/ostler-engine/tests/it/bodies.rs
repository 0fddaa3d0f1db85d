//! The bytes of a response, in any chunks and encodings.

use std::io::Write as _;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use ostler_engine::model::Request;
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

use crate::model::{ask, client, request};

/// Generous: it only ends a test whose client hangs.
const LIMIT: Duration = Duration::from_secs(60);

/// Reads a request to its end.
async fn read_request(stream: TcpStream) -> TcpStream {
    let mut stream = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await.unwrap();
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line.trim().is_empty() {
            break;
        }
    }
    stream.read_exact(&mut vec![0; length]).await.unwrap();
    stream.into_inner()
}

/// Answers one request with these headers and this body, in these chunks. Returns the address.
async fn serve(headers: &'static str, portions: Vec<Vec<u8>>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let mut stream = read_request(stream).await;
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n{headers}\r\n"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        for portion in portions {
            let size = format!("{:x}\r\n", portion.len());
            let chunk = [size.as_bytes(), &portion, b"\r\n"].concat();
            stream.write_all(&chunk).await.unwrap();
            stream.flush().await.unwrap();
        }
        stream.write_all(b"0\r\n\r\n").await.unwrap();
    });
    format!("http://{address}")
}

/// Answers every request with these bytes, then sends nothing more and keeps the connection open. Returns the address.
async fn serve_and_fall_silent(bytes: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let mut open = Vec::new();
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let mut stream = read_request(stream).await;
            stream.write_all(bytes.as_bytes()).await.unwrap();
            open.push(stream);
        }
    });
    format!("http://{address}")
}

/// A response with these texts, as server-sent events.
fn events(texts: &[&str]) -> String {
    let message = json!({"id": "m", "type": "message", "role": "assistant", "model": "first",
        "content": [], "stop_reason": null, "stop_sequence": null, "usage": {"input_tokens": 1}});
    let delta = |text: &&str| json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}});
    let mut events = vec![
        json!({"type": "message_start", "message": message}),
        json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
        json!({"type": "an_event_of_tomorrow", "with": ["anything"]}),
    ];
    events.extend(texts.iter().map(delta));
    events.extend([
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": null},
            "usage": {"output_tokens": 1}}),
        json!({"type": "message_stop"}),
    ]);
    let line = |event: &serde_json::Value| {
        format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap())
    };
    events.iter().map(line).collect()
}

async fn check(headers: &'static str, portions: Vec<Vec<u8>>, expected: &str) {
    let model = client(serve(headers, portions).await, |config| config.retry.max_retries = 0);
    assert_eq!(ask(&model, request()).await, [expected, "end"]);
}

#[tokio::test]
async fn a_compressed_stream_is_read_as_it_comes() {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    let mut portions = Vec::new();
    for event in events(&["Hel", "lo"]).split_inclusive("\n\n") {
        encoder.write_all(event.as_bytes()).unwrap();
        encoder.flush().unwrap();
        portions.push(std::mem::take(encoder.get_mut()));
    }
    portions.push(encoder.finish().unwrap());
    portions.retain(|portion| !portion.is_empty());
    check("content-encoding: gzip\r\n", portions, "Hello").await;
}

#[tokio::test]
async fn characters_that_a_chunk_boundary_splits_are_joined_and_invalid_ones_are_replaced() {
    let bytes = events(&["日本", "x🎉"]).into_bytes();
    check("", bytes.chunks(1).map(<[u8]>::to_vec).collect(), "日本x🎉").await;
    let at = bytes.windows(3).position(|window| window == "本".as_bytes()).unwrap();
    let broken = [&bytes[..at + 1], &bytes[at + 3..]].concat();
    check("", vec![broken], "日\u{fffd}x🎉").await;
}

#[tokio::test]
async fn a_long_delta_stays_one_delta() {
    let long = "word ".repeat(2_000_000);
    let bytes = events(&[&long]).into_bytes();
    check("", bytes.chunks(64 * 1024).map(<[u8]>::to_vec).collect(), &long).await;
}

#[tokio::test]
async fn other_line_ends_and_comments_make_no_difference() {
    let text = events(&["fine"]).replace('\n', "\r\n");
    let text =
        text.replacen("event: content_block_stop", ": still there\r\nretry: 5\r\nevent: x", 1);
    check("", vec![text.into_bytes()], "fine").await;
}

#[tokio::test]
async fn an_error_response_whose_body_never_ends_is_still_an_error() {
    let head = "HTTP/1.1 400 Bad Request\r\ncontent-length: 1000\r\n\r\nhalf a rea";
    let address = serve_and_fall_silent(head).await;
    let model = client(address, |config| {
        config.timeouts.first_byte = Duration::from_millis(200);
        config.timeouts.whole = Duration::from_millis(200);
    });
    for stream in [true, false] {
        let request = Request { stream, ..request() };
        let story = tokio::time::timeout(LIMIT, ask(&model, request)).await.unwrap();
        assert_eq!(story, ["failed unknown: API Error: 400 half a rea"]);
    }
}
