//! MCP servers whose tools and results the Messages API would refuse. The scripted API refuses them as the real one does,
//! so a prompt that ends well shows that they were adapted.

use std::fs;

use ostler_testkit::{Script, ScriptedApi, reply, when};
use serde_json::{Value, json};

use crate::run::Ostler;
use crate::talk::Talk;

/// A server in shell code that answers with the files of its folder: `tools.json`, and `NAME.json` for a call of the tool NAME.
const SERVER: &str = r#"
while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  answer() { printf '{"jsonrpc":"2.0","id":%s,"result":' "$id"; cat; printf '}\n'; }
  case "$line" in
    *'"method":"initialize"'*) printf '%s' '{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"odd","version":"1"}}' | answer;;
    *'"method":"tools/list"'*) answer < tools.json;;
    *'"method":"tools/call"'*) answer < "$(printf '%s' "$line" | sed -n 's/.*"name":"\([a-z_]*\)".*/\1/p').json";;
  esac
done
"#;

/// A valid image of one pixel.
const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

struct Odd {
    api: ScriptedApi,
    ostler: Ostler,
}

impl Odd {
    /// A program with a server that has these tools.
    async fn new(script: Script, tools: Value) -> Self {
        let api = ScriptedApi::start(script).await;
        let ostler = Ostler::new()
            .env("ANTHROPIC_API_KEY", "key")
            .env("ANTHROPIC_BASE_URL", &api.base_url());
        fs::write(ostler.path("tools.json"), one_line(&json!({"tools": tools}))).unwrap();
        Self { api, ostler }
    }

    fn talk(&self) -> Talk {
        let config = json!({"mcpServers": {"odd": {"command": "/bin/sh", "args": ["-c", SERVER]}}});
        Talk::with(&self.ostler, &["--mcp-config", &config.to_string(), "--allowedTools=mcp__odd"])
    }
}

/// MCP over pipes has one message per line.
fn one_line(value: &Value) -> String {
    value.to_string()
}

// Mutant: the program before the fix.
#[tokio::test(flavor = "multi_thread")]
async fn tools_that_the_api_refuses_do_not_break_prompts() {
    let long = "n".repeat(120);
    let tools = json!([
        {"name": "plain", "inputSchema": {"type": "object", "properties": {"a": {}}}},
        {"name": "alternatives", "inputSchema": {"anyOf": [
            {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]},
            {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
        ]}},
        {"name": "key", "inputSchema": {"type": "object", "properties": {"first name": {}, "b": {}}}},
        {"name": "text", "inputSchema": {"type": "string"}},
        {"name": long, "inputSchema": {"type": "object"}},
    ]);
    let odd = Odd::new(Script::new().rule(when(), reply().text("Fine.")), tools).await;
    let mut talk = odd.talk();
    talk.say("hello", None);
    let warning = talk.until(|frame| {
        frame["level"] == "warning" && frame.to_string().contains("MCP server odd: the tool")
    });
    assert!(warning.to_string().contains("alternatives"), "{warning}");
    assert_eq!(talk.result()["result"], "Fine.");
    let request = odd.api.requests().pop().unwrap();
    let names = request.tool_names().into_iter().filter(|name| name.starts_with("mcp__odd"));
    let names: Vec<_> = names.collect();
    assert_eq!(names, ["mcp__odd__alternatives", "mcp__odd__key", "mcp__odd__plain"]);
    let tool = |name: &str| {
        let tools = request.body["tools"].as_array().unwrap().iter();
        tools.clone().find(|tool| tool["name"] == name).unwrap()["input_schema"].clone()
    };
    let alternatives = tool("mcp__odd__alternatives");
    assert_eq!(
        alternatives["properties"],
        json!({"id": {"type": "string"}, "name": {"type": "string"}})
    );
    assert_eq!(tool("mcp__odd__key")["properties"], json!({"b": {}}));
    let status = talk.asked(json!({"subtype": "mcp_status"}));
    let warnings = status["mcpServers"][0]["warnings"].as_array().unwrap().clone();
    let found = |part: &str| warnings.iter().any(|it| it.as_str().unwrap().contains(part));
    for part in [
        "alternatives: `anyOf`",
        "key: its property \"first name\"",
        "text is left out: its input is of type \"string\"",
        "is left out: its name for the model has 130 characters",
    ] {
        assert!(found(part), "{part}: {warnings:?}");
    }
    // Every change is reported once.
    talk.say("again", None);
    let second = talk.result();
    assert_eq!(second["result"], "Fine.");
    assert_eq!(talk.end().code, Some(0));
}

/// What the model reads of one result.
async fn read_by_model(result: Value) -> Value {
    let script = Script::new()
        .rule(when().turn(0), reply().tool_use("mcp__odd__show", json!({})))
        .rule(when(), reply().text("Seen."));
    let tools = json!([{"name": "show", "inputSchema": {"type": "object"}}]);
    let odd = Odd::new(script, tools).await;
    fs::write(odd.ostler.path("show.json"), one_line(&result)).unwrap();
    let mut talk = odd.talk();
    talk.say("show", None);
    assert_eq!(talk.result()["result"], "Seen.", "{result}");
    assert_eq!(talk.end().code, Some(0));
    let request = odd.api.requests().pop().unwrap();
    let last = request.messages().last().unwrap().clone();
    last["content"][0]["content"].clone()
}

// Mutant: the program before the fix.
#[tokio::test(flavor = "multi_thread")]
async fn results_that_the_api_refuses_are_adapted() {
    let content = |block: Value| json!({"content": [block]});
    let sound = "c291bmQ=";
    for (result, part) in [
        (content(json!({"type": "text", "text": ""})), "[]"),
        (
            content(json!({"type": "image", "mimeType": "image/svg+xml", "data": "PHN2Zy8+"})),
            "6 bytes of image/svg+xml, in the file",
        ),
        (
            content(json!({"type": "image", "mimeType": "image/png", "data": "?"})),
            "not valid base64",
        ),
        (
            content(json!({"type": "audio", "mimeType": "audio/wav", "data": sound})),
            "sound: 5 bytes",
        ),
        (
            content(json!({"type": "resource", "resource": {"uri": "x://y", "blob": sound}})),
            "x://y: 5 bytes",
        ),
        (
            content(json!({"type": "resource", "resource": {"uri": "x://y", "text": "inside"}})),
            "inside",
        ),
        (json!({"content": [], "isError": true}), "show failed and gave no reason"),
        (content(json!({"type": "image", "mimeType": "image/png", "data": PNG})), PNG),
    ] {
        let read = read_by_model(result).await.to_string();
        assert!(read.contains(part), "{part}: {read}");
        assert!(!read.contains(sound), "bytes are not for the model: {read}");
    }
}

// Mutant: the program before the fix.
#[tokio::test(flavor = "multi_thread")]
async fn a_structured_result_does_not_hide_an_image() {
    let read = read_by_model(json!({
        "content": [
            {"type": "text", "text": "{\"k\": 1}"},
            {"type": "image", "mimeType": "image/png", "data": PNG},
        ],
        "structuredContent": {"k": 1},
    }))
    .await;
    assert_eq!(read[0]["text"], "{\"k\":1}");
    assert_eq!(read[1]["source"]["data"], PNG, "{read}");
    assert_eq!(read.as_array().map(Vec::len), Some(2), "the text repeats the structure: {read}");
}
