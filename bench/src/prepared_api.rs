//! A Messages API that answers with prepared bytes. Its own time counts in a measurement of programs, so it is as short as
//! possible: a request is kept and read afterwards, and only searched for what decides about the answer.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

/// Chooses the answer to the body of a request.
type Choose = dyn Fn(&[u8]) -> Vec<u8> + Send + Sync;

/// A running API, with a thread for each connection.
pub(crate) struct PreparedApi {
    port: u16,
    requests: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl PreparedApi {
    pub(crate) fn start(choose: impl Fn(&[u8]) -> Vec<u8> + Send + Sync + 'static) -> Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).context("listening")?;
        let api = Self { port: listener.local_addr()?.port(), requests: Arc::default() };
        let (choose, requests): (Arc<Choose>, _) = (Arc::new(choose), Arc::clone(&api.requests));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (choose, requests) = (Arc::clone(&choose), Arc::clone(&requests));
                // A client may leave at any time.
                std::thread::spawn(move || serve(&stream, &*choose, &requests));
            }
        });
        Ok(api)
    }

    pub(crate) fn base_url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// The bodies of the requests since this was last called.
    pub(crate) fn take_requests(&self) -> Vec<Value> {
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        requests.drain(..).filter_map(|body| serde_json::from_slice(&body).ok()).collect()
    }
}

fn serve(stream: &TcpStream, choose: &Choose, requests: &Mutex<Vec<Vec<u8>>>) -> Result<()> {
    stream.set_nodelay(true)?;
    let mut reader = BufReader::new(stream);
    loop {
        let mut first = String::new();
        if reader.read_line(&mut first)? == 0 {
            return Ok(());
        }
        let mut length = 0;
        loop {
            let mut line = String::new();
            reader.read_line(&mut line)?;
            match line.trim_end().split_once(':') {
                Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                    length = value.trim().parse()?;
                }
                Some(_) => {}
                None => break,
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        let (kind, answer) = match first.starts_with("POST /v1/messages?")
            || first.starts_with("POST /v1/messages ")
        {
            true => ("text/event-stream", choose(&body)),
            false => ("application/json", b"{}".to_vec()),
        };
        requests.lock().unwrap_or_else(PoisonError::into_inner).push(body);
        let is_head = first.starts_with("HEAD ");
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\r\n",
            answer.len()
        );
        let body = if is_head { &[][..] } else { &answer };
        let mut stream = stream;
        stream.write_all(&[head.as_bytes(), body].concat())?;
    }
}

/// The event stream of a message with one block.
pub(crate) fn stream(number: usize, block: &Value, delta: &Value, stop: &str) -> Vec<u8> {
    let usage = json!({"input_tokens": 1_000, "output_tokens": 50});
    let message = json!({
        "id": format!("msg_{number:024}"), "type": "message", "role": "assistant", "model": "claude-sonnet-4-5",
        "content": [], "stop_reason": null, "stop_sequence": null, "usage": usage,
    });
    let events = [
        json!({"type": "message_start", "message": message}),
        json!({"type": "content_block_start", "index": 0, "content_block": block}),
        json!({"type": "content_block_delta", "index": 0, "delta": delta}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": null}, "usage": usage}),
        json!({"type": "message_stop"}),
    ];
    let line = |event: &Value| {
        format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default())
    };
    events.iter().map(line).collect::<String>().into_bytes()
}
