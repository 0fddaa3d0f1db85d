//! The official MCP packages: their server with our client, their client with our server.
//!
//! They come from npm, into the folder in the environment variable `OSTLER_PEERS`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex};

use ostler_mcp::{CallOptions, Client, ClientOptions, Content, Endpoint, Remote};
use ostler_proto::control::ElicitationReply;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::program::calc;
use crate::support::within;

fn peers() -> PathBuf {
    let folder =
        std::env::var_os("OSTLER_PEERS").expect("OSTLER_PEERS names a folder with node_modules");
    std::fs::canonicalize(folder).expect("the folder that OSTLER_PEERS names exists")
}

fn everything() -> String {
    let folder = peers().join("node_modules/@modelcontextprotocol/server-everything");
    folder.join("dist/index.js").to_str().expect("a path in UTF-8").to_owned()
}

/// Uses everything that the server offers.
async fn check(endpoint: Endpoint) {
    let name = json!({"name": "Ada", "check": true});
    let options =
        ClientOptions::default().on_elicitation(move |_| {
            let content = Some(name.clone());
            async move {
                ElicitationReply { action: "accept".to_owned(), content, ..Default::default() }
            }
        });
    let client =
        within("connecting", Client::connect("everything", endpoint, options)).await.unwrap();
    let details = client.details().unwrap();
    assert!(details.name.contains("everything"), "{details:?}");
    let tools = within("tools", client.list_tools()).await.unwrap();
    let names: Vec<_> = tools.iter().map(|tool| tool.name.as_str()).collect();
    assert!(names.contains(&"echo"), "{names:?}");

    let call = async |tool: &str, arguments: Value, options: CallOptions| {
        within(tool, client.call_tool(tool, arguments, options)).await.unwrap()
    };
    let output = call("echo", json!({"message": "hello"}), CallOptions::default()).await;
    assert!(output.joined_text().contains("hello"), "{output:?}");
    let output = call("get-sum", json!({"a": 2, "b": 3}), CallOptions::default()).await;
    assert!(output.joined_text().contains('5'), "{output:?}");
    let output = call("get-tiny-image", json!({}), CallOptions::default()).await;
    let is_image = |content: &Content| matches!(content, Content::Image(media) if media.mime_type == "image/png");
    assert!(output.content.iter().any(is_image), "{output:?}");
    let output =
        call("get-structured-content", json!({"location": "Chicago"}), CallOptions::default())
            .await;
    assert!(output.structured.is_some(), "{output:?}");
    let output = call("get-sum", json!({"a": "two"}), CallOptions::default()).await;
    assert!(output.is_error, "{output:?}");

    let steps = Arc::new(Mutex::new(Vec::new()));
    let hear = Arc::clone(&steps);
    let options =
        CallOptions::default().on_progress(move |step| hear.lock().unwrap().push(step.done));
    let arguments = json!({"duration": 1, "steps": 3});
    call("trigger-long-running-operation", arguments, options).await;
    assert_eq!(*steps.lock().unwrap(), [1.0, 2.0, 3.0]);

    let output = call("trigger-elicitation-request", json!({}), CallOptions::default()).await;
    assert!(output.joined_text().contains("Ada"), "{output:?}");

    let resources = within("resources", client.list_resources()).await.unwrap();
    let contents = within("a resource", client.read_resource(&resources[0].uri)).await.unwrap();
    assert!(contents[0].text.is_some() || contents[0].blob.is_some());
    assert!(!within("templates", client.list_resource_templates()).await.unwrap().is_empty());
    let prompts = within("prompts", client.list_prompts()).await.unwrap();
    let plain = prompts.iter().find(|prompt| prompt.arguments.is_empty()).unwrap();
    let prompt = within("a prompt", client.get_prompt(&plain.name, BTreeMap::new())).await.unwrap();
    assert!(!prompt.messages.is_empty());
    client.ping().await.unwrap();
    within("closing", client.close()).await;
}

#[tokio::test]
#[ignore = "needs the peers from npm: cargo xtask test"]
async fn the_official_server_is_used_over_stdio() {
    check(Endpoint::program("node", [everything().as_str(), "stdio"])).await;
}

/// Starts the official server on a free port, and waits for its message on stderr.
async fn listening(transport: &str) -> (Child, u16) {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut server = Command::new("node");
    server.arg(everything()).arg(transport).env("PORT", free.to_string());
    server.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut server = server.spawn().unwrap();
    let mut lines = BufReader::new(server.stderr.take().unwrap()).lines();
    let ready = async {
        while let Some(line) = lines.next_line().await.unwrap() {
            if line.contains(&free.to_string()) {
                return;
            }
        }
        panic!("the official server ended before it listened");
    };
    within("the official server", ready).await;
    tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
    (server, free)
}

#[tokio::test]
#[ignore = "needs the peers from npm: cargo xtask test"]
async fn the_official_server_is_used_over_streamable_http() {
    let (_server, port) = listening("streamableHttp").await;
    let url = format!("http://127.0.0.1:{port}/mcp");
    check(Endpoint::Http(Remote { url, ..Remote::default() })).await;
}

#[tokio::test]
#[ignore = "needs the peers from npm: cargo xtask test"]
async fn the_official_server_is_used_over_the_older_transport() {
    let (_server, port) = listening("sse").await;
    let url = format!("http://127.0.0.1:{port}/sse");
    check(Endpoint::Sse(Remote { url, ..Remote::default() })).await;
}

#[tokio::test]
#[ignore = "needs the peers from npm: cargo xtask test"]
async fn the_official_client_uses_our_server() {
    check_with_official_client(calc().as_os_str()).await;
}

#[tokio::test]
#[ignore = "needs the peers from npm: cargo xtask test"]
async fn the_official_client_uses_our_server_over_streamable_http() {
    let mut server = Command::new(calc());
    server.arg("http").stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true);
    let mut server = server.spawn().unwrap();
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
    let address = within("the address", lines.next_line()).await.unwrap().unwrap();
    check_with_official_client(address.as_ref()).await;
}

/// Lets the official client use a program, or a server at an address.
async fn check_with_official_client(target: &std::ffi::OsStr) {
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/peers/mcp_client.mjs");
    let mut node = Command::new("node");
    node.arg(program)
        .arg(target)
        .env("OSTLER_PEERS", peers())
        .stdin(Stdio::null())
        .kill_on_drop(true);
    let output = within("the official client", node.output()).await.unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    let facts: Value = serde_json::from_str(&text).unwrap();
    let expected = json!({
        "server": {"name": "calc", "version": "1.0.0"},
        "instructions": "Adds and counts.",
        "tools": ["add", "count", "hang"],
        "readOnly": true,
        "sum": "5",
        "wrong": {"isError": true, "text": "invalid arguments for `add`: `b`: invalid type: string \"x\", expected i64"},
        "progress": [1, 2, 3],
        "cancelled": true,
        "unknownTool": -32602,
        "resource": "3.14159",
        "prompt": "Explain rain to a child.",
        "together": 50,
    });
    assert_eq!(facts, expected);
}
