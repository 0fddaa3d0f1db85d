//! Hostile input of every kind, against the program as a process: it ends, says why, and takes little memory.
//!
//! Each attack is a row of the table in [`peak`]. Oversized input of a model or an MCP server is here; the submodules
//! have the rest.

mod bash;
mod calls;
mod connections;
mod database;
mod files;
mod home;
mod mcp;
mod model;
pub(crate) mod peak;
mod requests;
mod streams;
mod transcripts;

use std::fs;
use std::io::Write as _;
use std::process::Child;
use std::time::Duration;

use ostler_testkit::{RawApi, RawPart, RawReply, Script, ScriptedApi, reply, when};
use serde_json::{Value, json};

use self::peak::{measure, measure_sized, sized};
use crate::run::Ostler;

/// Runs one prompt, without a terminal and without input.
fn prompt(ostler: &Ostler, arguments: &[&str]) -> Child {
    let mut child = ostler.spawn(arguments);
    child.stdin = None;
    child
}

async fn with_api(
    answer: impl Fn(usize, &[u8]) -> RawReply + Send + Sync + 'static,
) -> (RawApi, Ostler) {
    let api = RawApi::start(answer).await;
    let ostler = at(&api.base_url());
    (api, ostler)
}

fn at(base_url: &str) -> Ostler {
    Ostler::new()
        .env("ANTHROPIC_API_KEY", "key")
        .env("ANTHROPIC_BASE_URL", base_url)
        .env("CLAUDE_CODE_MAX_RETRIES", "1")
}

fn event(data: &Value) -> String {
    format!("event: {}\ndata: {data}\n\n", data["type"].as_str().unwrap())
}

fn begin(block: &Value) -> String {
    let message = json!({"id": "msg", "type": "message", "role": "assistant", "model": "m",
        "content": [], "stop_reason": null, "usage": {"input_tokens": 1, "output_tokens": 1}});
    let start = event(&json!({"type": "message_start", "message": message}));
    start + &event(&json!({"type": "content_block_start", "index": 0, "content_block": block}))
}

/// An answer of 300 MB: a block, and deltas for it.
fn flood(block: &Value, delta: &Value) -> RawReply {
    let delta = event(&json!({"type": "content_block_delta", "index": 0, "delta": delta}));
    let times = 300_000_000 / delta.len() as u64;
    RawReply::events(vec![RawPart::once(begin(block)), RawPart::repeated(delta, times)])
}

async fn check_flood(name: &str, arguments: &[&str], reply: RawReply) {
    let (api, ostler) = with_api(move |_, _| reply.clone()).await;
    let ran = tokio::task::block_in_place(|| measure(name, prompt(&ostler, arguments)));
    assert!(ran.stdout.contains("too large"), "{name}: {:.500} {:.500}", ran.stdout, ran.stderr);
    assert_eq!((ran.code, api.n_requests()), (Some(1), 1), "{name}");
}

// Mutant: `MAX_RESPONSE_BYTES` of a gigabyte: the whole answer is held, several times.
#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_sends_300_megabytes() {
    let piece = "x".repeat(30_000);
    let (block, delta) =
        (json!({"type": "text", "text": ""}), json!({"type": "text_delta", "text": piece}));
    check_flood("model: 300 MB of text", &["-p", "go"], flood(&block, &delta)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_sends_300_megabytes_while_a_program_reads_the_frames() {
    let piece = "x".repeat(3_000);
    let (block, delta) =
        (json!({"type": "text", "text": ""}), json!({"type": "text_delta", "text": piece}));
    let arguments =
        ["-p", "go", "--output-format", "stream-json", "--verbose", "--include-partial-messages"];
    check_flood("model: 300 MB of text, streamed on", &arguments, flood(&block, &delta)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_with_300_megabytes_of_arguments() {
    let piece = "x".repeat(30_000);
    let block = json!({"type": "tool_use", "id": "t", "name": "Write", "input": {}});
    let delta = json!({"type": "input_json_delta", "partial_json": piece});
    check_flood("model: 300 MB of arguments", &["-p", "go"], flood(&block, &delta)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_of_300_megabytes() {
    let parts = vec![RawPart::once("data: "), RawPart::repeated("x".repeat(100_000), 3_000)];
    check_flood("model: one line of 300 MB", &["-p", "go"], RawReply::events(parts)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_just_below_the_limit_is_accepted() {
    let piece = "x".repeat(1_000_000);
    let block = json!({"type": "text", "text": ""});
    let delta = event(&json!({"type": "content_block_delta", "index": 0,
        "delta": {"type": "text_delta", "text": piece}}));
    let end = event(&json!({"type": "content_block_stop", "index": 0}))
        + &event(&json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}}))
        + &event(&json!({"type": "message_stop"}));
    let parts =
        vec![RawPart::once(begin(&block)), RawPart::repeated(delta, 16), RawPart::once(end)];
    let (_api, ostler) = with_api(move |_, _| RawReply::events(parts.clone())).await;
    let ran = tokio::task::block_in_place(|| {
        measure("model: 16 MB of text, taken", prompt(&ostler, &["-p", "go"]))
    });
    assert_eq!((ran.code, ran.stdout.trim_end().len()), (Some(0), 16_000_000));
}

/// These bytes, repeated and compressed.
fn gzip(bytes: &[u8], times: u64) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    for _ in 0..times {
        encoder.write_all(bytes).unwrap();
    }
    encoder.finish().unwrap()
}

// Mutant: the second try, without a stream, is read whole.
#[tokio::test(flavor = "multi_thread")]
async fn a_compressed_answer_of_300_megabytes() {
    let bomb = gzip(&[b' '; 1_000_000], megabytes());
    // The stream breaks, so the answer is requested again in one piece; that one is the bomb.
    let broken = begin(&json!({"type": "text", "text": ""}));
    let (api, ostler) = with_api(move |n, _| match n {
        0 => RawReply::events(vec![RawPart::once(broken.clone())]),
        _ => RawReply::json(vec![RawPart::once(bomb.clone())]).header("content-encoding: gzip"),
    })
    .await;
    let ran = tokio::task::block_in_place(|| {
        let size = format!("{} MB", megabytes());
        measure_sized("model: gzip bomb", &size, prompt(&ostler, &["-p", "go"]))
    });
    assert!(ran.stdout.contains("too large"), "{:.500} {:.500}", ran.stdout, ran.stderr);
    assert_eq!((ran.code, api.n_requests()), (Some(1), 2));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_of_300_megabytes() {
    for encoding in ["identity", "gzip"] {
        let part = match encoding {
            "gzip" => RawPart::once(gzip(&[b' '; 1_000_000], megabytes())),
            _ => RawPart::repeated(vec![b' '; 100_000], 3_000),
        };
        let (_api, ostler) = with_api(move |_, _| {
            RawReply::json(vec![part.clone()])
                .status(400)
                .header(format!("content-encoding: {encoding}"))
        })
        .await;
        let name = format!("model: large refusal, {encoding}");
        let size = if encoding == "gzip" { megabytes() } else { 300 };
        let ran = tokio::task::block_in_place(|| {
            measure_sized(&name, &format!("{size} MB"), prompt(&ostler, &["-p", "go"]))
        });
        assert!(ran.stdout.contains("400"), "{:.500} {:.500}", ran.stdout, ran.stderr);
    }
}

/// Has the model read a file, and returns the tool's result.
async fn read_file(name: &str, file: &str, bytes: &[u8]) -> String {
    let script = Script::new()
        .rule(when().turn(0), reply().tool_use("Read", json!({"file_path": file})))
        .rule(when(), reply().text("Result: {{tool_result}}"));
    let api = ScriptedApi::start(script).await;
    let ostler = at(&api.base_url());
    fs::write(ostler.path(file), bytes).unwrap();
    let ran = tokio::task::block_in_place(|| measure(name, prompt(&ostler, &["-p", "go"])));
    assert_eq!(ran.code, Some(0), "{:.500} {:.500}", ran.stdout, ran.stderr);
    ran.stdout
}

/// A PDF document of these objects, the first being the catalogue, and the beginning of a cross-reference stream.
fn document(objects: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = b"%PDF-1.7\n".to_vec();
    let mut offsets = Vec::new();
    for (index, object) in objects.iter().enumerate() {
        offsets.push(bytes.len());
        bytes.extend_from_slice(format!("{} 0 obj\n", index + 1).as_bytes());
        bytes.extend_from_slice(object);
        bytes.extend_from_slice(b"\nendobj\n");
    }
    let start = bytes.len();
    let mut end = format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1);
    for offset in offsets {
        end += &format!("{offset:010} 00000 n \n");
    }
    let n_objects = objects.len() + 1;
    end += &format!("trailer\n<< /Size {n_objects} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n");
    bytes.extend_from_slice(end.as_bytes());
    bytes
}

fn stream(dictionary: &str, content: &[u8]) -> Vec<u8> {
    let head = format!("<< {dictionary} /Length {} >>\nstream\n", content.len());
    [head.as_bytes(), content, b"\nendstream"].concat()
}

/// Megabytes that a bomb unpacks to: packing more takes seconds in a debug build, and shows no more.
fn megabytes() -> u64 {
    sized(300, 80)
}

/// A small PDF document whose only page unpacks to far too much.
fn document_bomb() -> Vec<u8> {
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    for _ in 0..megabytes() {
        encoder.write_all(&[b' '; 1_000_000]).unwrap();
    }
    document(&[
        b"<< /Type /Catalog /Pages 2 0 R >>".to_vec(),
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>".to_vec(),
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R >>".to_vec(),
        stream("/Filter /FlateDecode", &encoder.finish().unwrap()),
    ])
}

// Mutant: the document is read in the process and without limits.
#[tokio::test(flavor = "multi_thread")]
async fn a_document_whose_page_unpacks_to_300_megabytes() {
    let bomb = document_bomb();
    let result = read_file("PDF with a page that unpacks to too much", "a.pdf", &bomb).await;
    assert!(result.contains("too large to be read"), "{result:.500}");
}

// Mutant: documents are read in the process: asking for a terabyte ends it.
#[tokio::test(flavor = "multi_thread")]
async fn a_document_that_asks_for_a_terabyte() {
    let mut bytes = b"%PDF-1.7\n".to_vec();
    let start = bytes.len();
    let dictionary = "/Type /XRef /Size 3 /Root 1 0 R /W [1099511627776 1 1]";
    bytes.extend_from_slice(b"1 0 obj\n");
    bytes.extend_from_slice(&stream(dictionary, b"0123456789"));
    bytes.extend_from_slice(format!("\nendobj\nstartxref\n{start}\n%%EOF\n").as_bytes());
    let result = read_file("PDF that asks for 1 TB", "a.pdf", &bytes).await;
    assert!(result.contains("is a PDF that cannot be read"), "{result:.500}");
}

/// A black picture that contains this many of its rows.
fn picture(width: u32, height: u32, rows: u32) -> Vec<u8> {
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    for _ in 0..rows {
        encoder.write_all(&vec![0; 1 + 3 * width as usize]).unwrap();
    }
    let mut png = b"\x89PNG\r\n\x1a\n".to_vec();
    let mut header = [width.to_be_bytes(), height.to_be_bytes()].concat();
    header.extend_from_slice(&[8, 2, 0, 0, 0]);
    for (kind, data) in
        [(b"IHDR", header), (b"IDAT", encoder.finish().unwrap()), (b"IEND", Vec::new())]
    {
        let body = [&kind[..], &data].concat();
        let mut sum = flate2::Crc::new();
        sum.update(&body);
        png.extend_from_slice(&u32::try_from(data.len()).unwrap().to_be_bytes());
        png.extend_from_slice(&body);
        png.extend_from_slice(&sum.sum().to_be_bytes());
    }
    png
}

#[tokio::test(flavor = "multi_thread")]
async fn a_picture_of_100_megapixels() {
    // The size is in its head: packing all rows takes long in a debug build.
    let rows = u32::try_from(sized(10_000, 100)).unwrap();
    let png = picture(10_000, 10_000, rows);
    let result = read_file("PNG of 100 megapixels", "a.png", &png).await;
    assert!(result.contains("too large to show"), "{result:.500}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_picture_that_claims_1600_megapixels() {
    let png = picture(40_000, 40_000, 10);
    let result = read_file("PNG of 1,600 megapixels", "a.png", &png).await;
    assert!(result.contains("too large to show"), "{result:.500}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_notebook_of_15_megabytes() {
    let cell = json!({"cell_type": "code", "source": "x".repeat(1_000), "metadata": {},
        "outputs": [{"output_type": "stream", "name": "stdout", "text": "y".repeat(14_000)}]});
    let notebook =
        json!({"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": vec![cell; 1_000]});
    let result = read_file("notebook of 15 MB", "a.ipynb", notebook.to_string().as_bytes()).await;
    assert!(result.contains("Result:"), "{result:.500}");
}

// Mutant: lines of a session file are read whole, whatever their length.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_file_with_a_line_of_200_megabytes() {
    let script = Script::new().rule(when(), reply().text("Hello again."));
    let api = ScriptedApi::start(script).await;
    let ostler = at(&api.base_url());
    let ran = ostler.run(&["-p", "hello", "--output-format", "json"]);
    let result: Value = serde_json::from_str(&ran.stdout).unwrap();
    let id = result["session_id"].as_str().unwrap();
    let sessions = ostler.path("no-home").join(".claude/projects");
    let folder = fs::read_dir(sessions).unwrap().next().unwrap().unwrap().path();
    let mut file =
        fs::OpenOptions::new().append(true).open(folder.join(format!("{id}.jsonl"))).unwrap();
    file.write_all(b"{\"type\":\"user\",\"text\":\"").unwrap();
    for _ in 0..200 {
        file.write_all(&[b'x'; 1_000_000]).unwrap();
    }
    file.write_all(b"\"}\n").unwrap();
    let ran = tokio::task::block_in_place(|| {
        measure(
            "session file: a line of 200 MB",
            prompt(&ostler, &["--resume", id, "-p", "next prompt"]),
        )
    });
    assert_eq!(ran.code, Some(0), "{:.500} {:.500}", ran.stdout, ran.stderr);
    let last = api.requests().last().unwrap().body.to_string();
    assert!(last.contains("hello") && last.contains("next prompt"), "the rest is resumed");
    api.finish();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_sends_pings_forever() {
    let ping = event(&json!({"type": "ping"}));
    let pings = RawPart::repeated(ping, u64::MAX).pausing(Duration::from_millis(10));
    let (api, ostler) = with_api(move |_, _| RawReply::events(vec![pings.clone()])).await;
    let ostler = ostler.env("OSTLER_CONTENT_TIMEOUT_MS", "1000");
    let ran = tokio::task::block_in_place(|| {
        measure("model: pings for ever", prompt(&ostler, &["-p", "go"]))
    });
    assert!(ran.stdout.contains("nothing but pings"), "{:.500} {:.500}", ran.stdout, ran.stderr);
    assert_eq!((ran.code, api.n_requests()), (Some(1), 2), "asked again once, as configured");
}

/// A server with this answer to everything after the handshake.
fn server(answer: &str) -> Value {
    let script = r#"
id() { printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p'; }
say() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
while IFS= read -r line; do
  id=$(id)
  case "$line" in
    *'"method":"initialize"'*) say '{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}';;
    *'"method":"tools/list"'*) say '{"tools":[{"name":"flood","inputSchema":{"type":"object"}}]}';;
    *'"name":"flood"'*) ANSWER;;
  esac
done
"#;
    json!({"command": "/bin/sh", "args": ["-c", script.replace("ANSWER", answer)]})
}

#[tokio::test(flavor = "multi_thread")]
async fn an_mcp_server_that_answers_with_300_megabytes() {
    for (name, answer) in [
        (
            "MCP: result of 300 MB",
            r#"printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"' "$id"; head -c 300000000 /dev/zero | tr '\0' x; printf '"}]}}\n'"#,
        ),
        ("MCP: line of 300 MB without an end", "head -c 300000000 /dev/zero | tr '\\0' x; exit"),
    ] {
        let script = Script::new()
            .rule(when().turn(0), reply().tool_use("mcp__s__flood", json!({})))
            .rule(when(), reply().text("Result: {{tool_result}}"));
        let api = ScriptedApi::start(script).await;
        let ostler = at(&api.base_url()).env("MCP_TOOL_TIMEOUT", "60000");
        let servers = json!({"mcpServers": {"s": server(answer)}}).to_string();
        let arguments = ["-p", "go", "--mcp-config", &servers, "--allowedTools", "mcp__s__flood"];
        let ran = tokio::task::block_in_place(|| measure(name, prompt(&ostler, &arguments)));
        assert!(ran.stdout.contains("Result:"), "{name}: {:.500} {:.500}", ran.stdout, ran.stderr);
    }
}
