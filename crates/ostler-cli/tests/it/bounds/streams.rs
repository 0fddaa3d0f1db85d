//! Readers of events that do not read, and a WebSocket that sends pings as fast as it can.

use std::time::{Duration, Instant};

use ostler_testkit::{Script, reply, when};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};

use super::peak::{SERVER_LIMIT, add_row, current, sized};
use super::requests::{PATIENCE, server};
use crate::serve_options::Served;

/// Requests all events of a session and reads none.
async fn silent_reader(served: &Served, session: &str) -> TcpStream {
    let address = served.base.trim_start_matches("http://");
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4_096).unwrap();
    let mut stream = socket.connect(address.parse().unwrap()).await.unwrap();
    let head = format!(
        "GET /api/sessions/{session}/events HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {}\r\n\r\n",
        served.token
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    // The head of the answer has arrived, so it is a subscriber now.
    tokio::time::timeout(PATIENCE, stream.readable()).await.expect("an answer").unwrap();
    stream
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_readers_that_do_not_read_do_not_delay_other_clients() {
    // A debug build takes half a minute for the hashes of the full log.
    let pieces = (0..sized(400, 30)).map(|number| format!("{number} {}", "x".repeat(10_000)));
    let mut script =
        Script::new().rule(when().prompt_contains("long"), reply().text_pieces(pieces));
    let turns = usize::try_from(sized(60, 8)).unwrap();
    for turn in 0..turns {
        let call = reply().tool_use("Read", json!({"file_path": "README.md"}));
        script = script.rule(when().prompt_contains("calls").turn(turn), call);
    }
    let served = Served::scripted(script.rule(when(), reply().text("Done.")), &[]).await;
    let session = served.ask("/sessions", Some(json!({}))).await;
    let session = session["id"].as_str().unwrap();
    let run = async |session: &str, prompt: &str| {
        let path = format!("/sessions/{session}/runs");
        let run = served.ask(&path, Some(json!({"prompt": prompt}))).await;
        served.settled(&format!("/runs/{}", run["id"].as_str().unwrap()), "state").await
    };
    assert_eq!(run(session, "long").await, "completed");
    // The same run before there are any readers, for comparison.
    let other = served.ask("/sessions", Some(json!({}))).await;
    let begun = Instant::now();
    assert_eq!(run(other["id"].as_str().unwrap(), "calls").await, "completed");
    let alone = begun.elapsed();
    let mut readers = Vec::new();
    for _ in 0..200 {
        readers.push(silent_reader(&served, session).await);
    }
    let begun = Instant::now();
    let other = served.ask("/sessions", Some(json!({}))).await;
    let answered = begun.elapsed();
    let state = run(other["id"].as_str().unwrap(), "calls").await;
    let took = begun.elapsed();
    let result = format!(
        "first answer {} ms, run of {turns} calls {:.1} s, without readers {:.1} s",
        answered.as_millis(),
        took.as_secs_f64(),
        alone.as_secs_f64()
    );
    let (row, peak) = ("server: 200 readers that do not read", current(served.id()));
    add_row(row, &result, took, peak, SERVER_LIMIT);
    assert_eq!(state, "completed");
    // A store that waits for readers was seen to stand still for 8 to 60 s.
    assert!(took < alone * 3 + Duration::from_secs(3), "{result}");
    drop(readers);
}

/// Opens a WebSocket by hand that sends only pings.
async fn socket(served: &Served) -> TcpStream {
    let address = served.base.trim_start_matches("http://");
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = format!(
        "GET /api/ws HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {}\r\nconnection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n",
        served.token
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut answer = [0; 12];
    tokio::time::timeout(PATIENCE, stream.read_exact(&mut answer))
        .await
        .expect("an answer")
        .unwrap();
    assert_eq!(&answer, b"HTTP/1.1 101");
    stream
}

#[tokio::test(flavor = "multi_thread")]
async fn half_a_million_pings_on_one_socket_are_slowed_down() {
    let served = server().await;
    let mut idle = Vec::new();
    for _ in 0..100 {
        idle.push(socket(&served).await);
    }
    let (mut reading, mut writing) = socket(&served).await.into_split();
    // The answers are read, so that it is the server that slows the sender down.
    let reader = tokio::spawn(async move {
        let mut bytes = vec![0; 1 << 16];
        while reading.read(&mut bytes).await.is_ok_and(|n| n > 0) {}
    });
    // A masked text frame with `{"type":"ping"}`, a thousand times.
    let text = br#"{"type":"ping"}"#;
    let mut frame = vec![0x81, 0x80 | u8::try_from(text.len()).unwrap(), 0, 0, 0, 0];
    frame.extend_from_slice(text);
    let pings = frame.repeat(1_000);
    let begun = Instant::now();
    let mut sent = 0_u64;
    while sent < 528_000 {
        // The server no longer reads: what does not get through within a second is held back by the request limit.
        let writes = tokio::time::timeout(Duration::from_secs(1), writing.write_all(&pings)).await;
        match writes {
            Ok(written) => written.unwrap(),
            Err(_) => break,
        }
        sent += 1_000;
    }
    let health = served.http.get(format!("{}/healthz", served.base)).send().await.unwrap();
    let result = format!("{sent} taken of 528000, health {}", health.status().as_u16());
    let (row, peak) = ("server: 528,000 pings on one socket", current(served.id()));
    add_row(row, &result, begun.elapsed(), peak, SERVER_LIMIT);
    assert_eq!(health.status(), 200);
    assert!(sent < 528_000, "all pings were accepted at once");
    reader.abort();
}
