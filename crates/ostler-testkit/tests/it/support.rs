//! Clients for the tests: HTTP calls, a raw socket, and a reader of event streams.

use std::time::Duration;

use ostler_testkit::{Reply, Script, ScriptedApi, when};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// Far longer than any step takes; only a step that hangs exceeds it.
const LIMIT: Duration = Duration::from_secs(30);

/// A server that answers every request with `reply`.
pub(crate) async fn always(reply: Reply) -> ScriptedApi {
    ScriptedApi::start(Script::new().rule(when(), reply)).await
}

/// A request with this prompt.
pub(crate) fn ask(prompt: &str) -> Value {
    json!({"model": "claude-test", "max_tokens": 100, "messages": [{"role": "user", "content": prompt}]})
}

/// The same request as a streaming one.
pub(crate) fn streamed(mut request: Value) -> Value {
    request["stream"] = json!(true);
    request
}

/// The request that follows when the client has run the only tool call of `message`.
pub(crate) fn after_tool(mut request: Value, message: &Value, result: &str) -> Value {
    let calls =
        message["content"].as_array().unwrap().iter().filter(|block| block["type"] == "tool_use");
    let results: Vec<Value> = calls
        .map(|call| json!({"type": "tool_result", "tool_use_id": call["id"], "content": result}))
        .collect();
    let messages = request["messages"].as_array_mut().unwrap();
    messages.push(json!({"role": "assistant", "content": message["content"]}));
    messages.push(json!({"role": "user", "content": results}));
    request
}

/// Sends a request to `/v1/messages`.
pub(crate) async fn send(server: &ScriptedApi, request: &Value) -> reqwest::Response {
    let url = format!("{}/v1/messages", server.base_url());
    client().post(url).json(request).send().await.unwrap()
}

/// Sends a request and returns the JSON of the answer, whatever its status.
pub(crate) async fn message(server: &ScriptedApi, request: &Value) -> Value {
    send(server, request).await.json().await.unwrap()
}

/// Streams a request to its end and returns its events.
pub(crate) async fn events(server: &ScriptedApi, prompt: &str) -> Vec<Value> {
    parse_events(&send(server, &streamed(ask(prompt))).await.text().await.unwrap())
}

pub(crate) fn client() -> reqwest::Client {
    // The workspace's reqwest comes without cryptography and panics without it, even if none is used.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder().timeout(LIMIT).no_proxy().build().unwrap()
}

/// Reads an event stream strictly: two lines and a blank one per event, the name equal to the type of the data.
pub(crate) fn parse_events(text: &str) -> Vec<Value> {
    let whole = text.strip_suffix("\n\n").expect("a stream ends with a complete event");
    whole.split("\n\n").map(parse_event).collect()
}

fn parse_event(event: &str) -> Value {
    let (name, data) = event.split_once('\n').expect("an event has two lines");
    let data: Value =
        serde_json::from_str(data.strip_prefix("data: ").expect("the second line is data"))
            .unwrap();
    assert_eq!(name, format!("event: {}", data["type"].as_str().unwrap()));
    data
}

pub(crate) fn names(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["type"].as_str().unwrap()).collect()
}

/// Assembles the message from its events, as a client does.
pub(crate) fn accumulate(events: &[Value]) -> Value {
    let mut message = events[0]["message"].clone();
    let mut inputs: Vec<String> = Vec::new();
    for event in &events[1..] {
        let index = event["index"].as_u64().unwrap_or_default() as usize;
        match event["type"].as_str().unwrap() {
            "content_block_start" => {
                message["content"].as_array_mut().unwrap().push(event["content_block"].clone());
                inputs.push(String::new());
            }
            "content_block_delta" => {
                apply(&mut message["content"][index], &mut inputs[index], &event["delta"])
            }
            "content_block_stop" if !inputs[index].is_empty() => {
                message["content"][index]["input"] = serde_json::from_str(&inputs[index]).unwrap();
            }
            "message_delta" => {
                message["stop_reason"] = event["delta"]["stop_reason"].clone();
                message["stop_sequence"] = event["delta"]["stop_sequence"].clone();
                message["usage"] = event["usage"].clone();
            }
            _ => {}
        }
    }
    message
}

fn apply(block: &mut Value, input: &mut String, delta: &Value) {
    let field = match delta["type"].as_str().unwrap() {
        "input_json_delta" => return input.push_str(delta["partial_json"].as_str().unwrap()),
        "text_delta" => "text",
        "thinking_delta" => "thinking",
        "signature_delta" => "signature",
        other => panic!("unknown delta {other}"),
    };
    block[field] =
        json!(format!("{}{}", block[field].as_str().unwrap(), delta[field].as_str().unwrap()));
}

/// A connection that shows every byte of the response, headers and chunk sizes included.
pub(crate) struct RawExchange(TcpStream);

impl RawExchange {
    pub(crate) async fn send(server: &ScriptedApi, request: &Value) -> Self {
        let body = request.to_string();
        let head = format!(
            "POST /v1/messages HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            server.address(),
            body.len()
        );
        let mut connection = TcpStream::connect(server.address()).await.unwrap();
        connection.write_all((head + &body).as_bytes()).await.unwrap();
        Self(connection)
    }

    /// Reads until the response so far contains `text`.
    pub(crate) async fn read_until(&mut self, text: &str) -> String {
        let mut seen = Vec::new();
        while !String::from_utf8_lossy(&seen).contains(text) {
            let read = tokio::time::timeout(LIMIT, self.0.read_buf(&mut seen))
                .await
                .expect("bytes in time")
                .unwrap();
            assert_ne!(
                read,
                0,
                "the connection ended before {text:?}: {}",
                String::from_utf8_lossy(&seen)
            );
        }
        String::from_utf8(seen).unwrap()
    }

    /// Reads until the server closes the connection, properly or not.
    pub(crate) async fn read_to_end(&mut self) -> String {
        let mut seen = Vec::new();
        let reading = async { while matches!(self.0.read_buf(&mut seen).await, Ok(1..)) {} };
        tokio::time::timeout(LIMIT, reading).await.expect("an end in time");
        String::from_utf8(seen).unwrap()
    }
}
