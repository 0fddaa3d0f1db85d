//! The same server over byte streams, as a stand-alone program.

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines};

use crate::support::{calc, call, request, within};

struct Peer {
    write: Option<DuplexStream>,
    lines: Lines<BufReader<DuplexStream>>,
    served: tokio::task::JoinHandle<std::io::Result<()>>,
}

impl Peer {
    fn new() -> Self {
        let (write, reader) = tokio::io::duplex(1 << 16);
        let (writer, read) = tokio::io::duplex(1 << 16);
        let served = tokio::spawn(async move { calc().serve(reader, writer).await });
        Self { write: Some(write), lines: BufReader::new(read).lines(), served }
    }

    async fn send(&mut self, line: &str) {
        let write = self.write.as_mut().expect("the input is open");
        within("writing", write.write_all(line.as_bytes())).await.unwrap();
    }

    async fn next(&mut self) -> Value {
        let line = within("a line", self.lines.next_line()).await.unwrap().expect("a line");
        serde_json::from_str(&line).unwrap()
    }
}

#[tokio::test]
async fn requests_are_answered_as_they_finish_and_progress_precedes_its_answer() {
    let mut peer = Peer::new();
    let slow = call(1, "hang", json!({}));
    let params = json!({"name": "progress", "_meta": {"progressToken": "t"}});
    let quick = request(2, "tools/call", params);
    peer.send(&format!("{slow}\n\n{quick}\r\n")).await;
    assert_eq!(peer.next().await["params"]["progress"], 1.0);
    assert_eq!(peer.next().await["params"]["progress"], 2.0);
    assert_eq!(peer.next().await["id"], 2);
    let cancel = json!({"requestId": 1});
    let cancelled =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancel});
    peer.send(&format!("{cancelled}\n{}\n", request(3, "ping", json!({})))).await;
    assert_eq!(peer.next().await["id"], 3);
}

#[tokio::test]
async fn an_invalid_line_does_not_end_the_session() {
    let mut peer = Peer::new();
    peer.send("what?\n[]\n{\"id\":7}\n").await;
    assert_eq!(peer.next().await["error"]["code"], -32700);
    assert_eq!(peer.next().await["error"]["code"], -32600);
    let refused = peer.next().await;
    assert_eq!((&refused["id"], &refused["error"]["code"]), (&json!(7), &json!(-32600)));
    peer.send(&format!("{}\n", call(8, "add", json!({"a": 1, "b": 1})))).await;
    assert_eq!(peer.next().await["result"]["content"][0]["text"], "2");
}

#[tokio::test]
async fn the_server_ends_after_its_input_and_its_last_answers() {
    let mut peer = Peer::new();
    peer.send(&call(1, "add", json!({"a": 1, "b": 1})).to_string()).await;
    drop(peer.write.take());
    assert_eq!(peer.next().await["id"], 1);
    within("the end", peer.served).await.unwrap().unwrap();
    assert_eq!(peer.lines.next_line().await.unwrap(), None);
}
