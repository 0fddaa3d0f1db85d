//! Requests to the server that are far too large, and the effect of models and files on its engines.

use std::fs;
use std::time::{Duration, Instant};

use ostler_testkit::{RawApi, Script, reply, when};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::peak::{Peak, SERVER_LIMIT, add_row, current, sized};
use super::{document_bomb, flood};
use crate::serve_options::Served;

/// Generous: only a hanging server takes this long.
pub(super) const PATIENCE: Duration = Duration::from_secs(100);

/// A server whose model answers every prompt.
pub(super) async fn server() -> Served {
    Served::scripted(Script::new().rule(when(), reply().text("Fine.")), &[]).await
}

/// The head of a request with these additional lines.
fn head(served: &Served, more: &str) -> String {
    let host = served.base.trim_start_matches("http://");
    format!(
        "POST /api/sessions HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/json\r\n{more}\r\n"
    )
}

/// Sends a body of up to a gigabyte until an answer arrives; returns its status, and how many bytes were sent.
async fn send(served: &Served, more: &str, piece: &[u8]) -> (u16, u64) {
    let address = served.base.trim_start_matches("http://");
    let (mut reading, mut writing) = TcpStream::connect(address).await.unwrap().into_split();
    writing.write_all(head(served, more).as_bytes()).await.unwrap();
    let status = tokio::spawn(async move {
        let mut answer = [0; 12];
        reading.read_exact(&mut answer).await.map(|_| answer)
    });
    let mut sent = 0;
    while !status.is_finished() && sent < sized(1_000_000_000, 200_000_000) {
        // The server has closed the connection; the answer says why.
        if writing.write_all(piece).await.is_err() {
            break;
        }
        sent += piece.len() as u64;
    }
    let answer = tokio::time::timeout(PATIENCE, status).await.expect("an answer").unwrap().unwrap();
    (String::from_utf8_lossy(&answer[9..]).parse().unwrap(), sent)
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_of_a_gigabyte_are_not_read() {
    let served = server().await;
    let token = format!("authorization: Bearer {}\r\n", served.token);
    let piece = vec![b'x'; 1 << 16];
    let chunk = [format!("{:x}\r\n", piece.len()).as_bytes(), &piece, b"\r\n"].concat();
    let (length, chunked) = ("content-length: 1000000000\r\n", "transfer-encoding: chunked\r\n");
    for (name, more, piece, expected) in [
        ("with its length", format!("{token}{length}"), &piece, 413),
        ("in chunks", format!("{token}{chunked}"), &chunk, 413),
        ("without a token", length.to_owned(), &piece, 401),
        ("in chunks, without a token", chunked.to_owned(), &chunk, 401),
        ("of 2^63 bytes", format!("{token}content-length: 9223372036854775808\r\n"), &piece, 413),
    ] {
        let begun = Instant::now();
        let (status, sent) = send(&served, &more, piece).await;
        let result = format!("{status} after {} MB", sent / 1_000_000);
        let row = format!("server: body of 1 GB, {name}");
        add_row(&row, &result, begun.elapsed(), current(served.id()), SERVER_LIMIT);
        assert_eq!(status, expected, "{name}");
        assert!(sent < 100_000_000, "{name}: {sent} bytes were sent before the answer");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn prompts_of_many_megabytes() {
    let served = server().await;
    let session = served.ask("/sessions", Some(json!({}))).await;
    let path = format!("/sessions/{}/runs", session["id"].as_str().unwrap());
    // A debug build takes long for the largest prompt.
    let largest = sized(5_000_000, 2_000_000);
    for (name, bytes) in [("small", 100_000), ("large", 1_000_000), ("largest", largest)] {
        let begun = Instant::now();
        let text = "x".repeat(usize::try_from(bytes).unwrap());
        let run = served.ask(&path, Some(json!({"prompt": text}))).await;
        let run = run["id"].as_str().unwrap_or_else(|| panic!("{run}"));
        let state = served.settled(&format!("/runs/{run}"), "state").await;
        let result = format!("{bytes} bytes: {state}");
        let (row, peak) = (format!("server: {name} prompt"), current(served.id()));
        add_row(&row, &result, begun.elapsed(), peak, SERVER_LIMIT);
        assert_eq!(state, "completed", "{name}");
    }
    let url = format!("{}/api{path}", served.base);
    let begun = Instant::now();
    let large = json!({"prompt": "x".repeat(20_000_000)});
    let sent = served.http.post(url).bearer_auth(&served.token).json(&large).send().await;
    // The server may close the connection before everything was sent.
    let result =
        sent.map_or_else(|_| "closed".to_owned(), |answer| answer.status().as_u16().to_string());
    let peak = current(served.id());
    add_row("server: prompt of 20 MB", &result, begun.elapsed(), peak, SERVER_LIMIT);
    assert!(["413", "closed"].contains(&&*result), "{result}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_sends_300_megabytes_to_a_server() {
    let piece = "x".repeat(30_000);
    let (block, delta) =
        (json!({"type": "text", "text": ""}), json!({"type": "text_delta", "text": piece}));
    let answer = flood(&block, &delta);
    let model = RawApi::start(move |_, _| answer.clone()).await;
    let url = model.base_url();
    let served = Served::furnished(Script::new(), &[], |ostler| {
        ostler.env("ANTHROPIC_API_KEY", "key").env("ANTHROPIC_BASE_URL", &url)
    })
    .await;
    let begun = Instant::now();
    let state = served.run(json!({}), "go").await;
    let (row, peak) = ("server: model sends 300 MB of text", current(served.id()));
    add_row(row, &state, begun.elapsed(), peak, SERVER_LIMIT);
    assert_eq!(state, "failed");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_of_300_megabytes_read_on_a_server() {
    let script = Script::new()
        .rule(when().turn(0), reply().tool_use("Read", json!({"file_path": "a.pdf"})))
        .rule(when(), reply().text("Result: {{tool_result}}"));
    let served = Served::scripted(script, &[]).await;
    fs::write(served.ostler.path("a.pdf"), document_bomb()).unwrap();
    let (peak, begun) = (Peak::of(served.id()), Instant::now());
    let state = served.run(json!({}), "go").await;
    let row = "server: PDF with a page that unpacks to too much";
    add_row(row, &state, begun.elapsed(), peak.end(), SERVER_LIMIT);
    assert_eq!(state, "completed");
    let request = served.api.requests().last().unwrap().body.to_string();
    assert!(request.contains("too large to be read"), "{request:.500}");
}
