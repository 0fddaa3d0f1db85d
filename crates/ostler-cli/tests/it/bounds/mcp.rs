//! MCP servers that die, are silent, or send far too much: the run continues, the model receives the error, and another
//! server of the same session is not harmed.

use std::time::Duration;

use ostler_testkit::{RawApi, RawPart, RawReply, Script, ScriptedApi, reply, when};
use serde_json::{Value, json};

use super::peak::{measure, measure_sized, sized};
use super::{at, prompt};

/// A server in shell code. `LIST` answers `tools/list`, `CALL` answers a call, `FIRST` runs before anything is read.
const SERVER: &str = r#"
id() { printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p'; }
say() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
FIRST
while IFS= read -r line; do
  id=$(id)
  case "$line" in
    *'"method":"initialize"'*) say '{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}';;
    *'"method":"tools/list"'*) LIST;;
    *'"name":"work"'*) CALL;;
  esac
done
"#;

/// The result of the other server.
const UNHARMED: &str = "unharmed";

/// The usual list of tools.
const LIST: &str = r#"say '{"tools":[{"name":"work","inputSchema":{"type":"object"}}]}'"#;
const CALL: &str = r#"say '{"content":[{"type":"text","text":"worked"}]}'"#;

struct Server<'a> {
    first: &'a str,
    list: &'a str,
    call: &'a str,
    /// How long it may take to start, and to answer a call, in milliseconds.
    start_ms: &'a str,
    call_ms: &'a str,
}

impl Default for Server<'_> {
    fn default() -> Self {
        Self { first: ":", list: LIST, call: CALL, start_ms: "60000", call_ms: "60000" }
    }
}

impl Server<'_> {
    fn config(&self) -> Value {
        let code = SERVER.replace("FIRST", self.first).replace("LIST", self.list);
        json!({"command": "/bin/sh", "args": ["-c", code.replace("CALL", self.call)]})
    }

    async fn attack(&self, name: &str) -> String {
        self.attack_sized(name, "").await
    }

    /// Has the model call its tool, and then one of another server. Returns the first result, whatever it is.
    async fn attack_sized(&self, name: &str, size: &str) -> String {
        let script = Script::new()
            .rule(when().turn(0), reply().tool_use("mcp__s__work", json!({})))
            .rule(when().turn(1), reply().tool_use("mcp__other__work", json!({})))
            .rule(when(), reply().text("Result: {{tool_result}}"));
        let api = ScriptedApi::start(script).await;
        let ostler = at(&api.base_url())
            .env("MCP_TIMEOUT", self.start_ms)
            .env("MCP_TOOL_TIMEOUT", self.call_ms);
        let call = CALL.replace("worked", UNHARMED);
        let other = Server { call: &call, ..Server::default() };
        let servers = json!({"mcpServers": {"s": self.config(), "other": other.config()}});
        let servers = servers.to_string();
        let allowed = "--allowedTools=mcp__s,mcp__other";
        let arguments = ["-p", "go", "--mcp-config", &servers, allowed];
        let name = format!("MCP: {name}");
        let ran =
            tokio::task::block_in_place(|| measure_sized(&name, size, prompt(&ostler, &arguments)));
        assert_eq!(ran.code, Some(0), "{name}: {:.500} {:.500}", ran.stdout, ran.stderr);
        assert_eq!(ran.stdout.trim(), format!("Result: {UNHARMED}"), "{name}: {:.500}", ran.stderr);
        let mut results = api.requests()[1].tool_results();
        assert_eq!(results.len(), 1, "{name}");
        results.remove(0).text
    }
}

fn works(result: &str) {
    assert!(result.contains("worked"), "{result:.500}");
}

fn fails(result: &str) {
    assert!(!result.contains("worked"), "{result:.500}");
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_that_never_start() {
    fails(
        &Server { first: "exec sleep 600", start_ms: "3000", ..Server::default() }
            .attack("silent")
            .await,
    );
    fails(&Server { first: "exit 3", ..Server::default() }.attack("dies at once").await);
    let noise = "while :; do printf 'garbage\\n{\\n\\377\\n' || exit; sleep 0.001; done";
    fails(&Server { first: noise, start_ms: "3000", ..Server::default() }.attack("garbage").await);
}

// Seen to fail with 20,000 tools and 215 MB when `McpTool` holds descriptions and schemas twice.
#[tokio::test(flavor = "multi_thread")]
async fn servers_whose_lists_are_too_long() {
    let many = r#"printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"work","inputSchema":{"type":"object"}}' "$id"
        awk 'BEGIN { for (i = 0; i < COUNT; i++) printf ",{\"name\":\"tool_%d\",\"description\":\"Does a thing that nobody needs.\",\"inputSchema\":{\"type\":\"object\",\"properties\":{\"path\":{\"type\":\"string\"}}}}", i }'
        printf ']}}\n'"#;
    let count = sized(20_000, 10_000).to_string();
    let many = many.replace("COUNT", &count);
    let server = Server { list: &many, ..Server::default() };
    works(&server.attack_sized("thousands of tools", &count).await);
    let endless =
        r#"say '{"tools":[{"name":"work","inputSchema":{"type":"object"}}],"nextCursor":"more"}'"#;
    Server { list: endless, start_ms: "3000", ..Server::default() }
        .attack("endless pages of tools")
        .await;
    let other_pages = r#"n=$((n+1)); say '{"tools":[{"name":"work'$n'","inputSchema":{"type":"object"}}],"nextCursor":"'$n'"}'"#;
    let server = Server { list: other_pages, start_ms: "3000", ..Server::default() };
    fails(&server.attack("endless pages of tools, each another one").await);
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_that_send_far_too_much() {
    let bytes = sized(1_000_000_000, 100_000_000);
    let flood = format!("head -c {bytes} /dev/zero | tr '\\0' x >&2");
    let server = Server { first: &flood, ..Server::default() };
    let size = format!("{} MB", bytes / 1_000_000);
    works(&server.attack_sized("flood on standard error", &size).await);
    let long = "printf '{\"x\":\"'; head -c 70000000 /dev/zero | tr '\\0' x; printf '\"}\\n'";
    let server = Server { call: long, ..Server::default() };
    fails(&server.attack("message of 70 MB in a call").await);
    let count = sized(200_000, 20_000);
    let notes = format!(
        r#"yes '{{"jsonrpc":"2.0","method":"notifications/message","params":{{"level":"info","data":"x"}}}}' | head -n {count}; {CALL}"#
    );
    let server = Server { call: &notes, ..Server::default() };
    works(&server.attack_sized("flood of notifications", &count.to_string()).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_that_fail_in_a_call() {
    fails(&Server { call: "exit 3", ..Server::default() }.attack("dies in a call").await);
    fails(
        &Server { call: ":", call_ms: "1000", ..Server::default() }
            .attack("silent in a call")
            .await,
    );
    let malformed = r#"say '{"content":[{"type":7}]}'"#;
    fails(&Server { call: malformed, ..Server::default() }.attack("malformed result").await);
    let drip = "while :; do printf '{' || exit; sleep 1; done";
    fails(
        &Server { call: drip, call_ms: "1500", ..Server::default() }
            .attack("one byte per second in a call")
            .await,
    );
    fails(
        &Server { first: drip, start_ms: "3000", ..Server::default() }
            .attack("one byte per second at the start")
            .await,
    );
    let bytes = r#"printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"\377\376"}]}}\n' "$id""#;
    let read = Server { call: bytes, ..Server::default() }.attack("invalid UTF-8").await;
    assert_eq!(read, "\u{fffd}\u{fffd}");
    let loops = "exit 3";
    fails(&Server { first: loops, call: loops, ..Server::default() }.attack("crash loop").await);
    let garbage = "printf 'not JSON\\n'; exit";
    fails(&Server { call: garbage, ..Server::default() }.attack("garbage in a call").await);
    let sampling = format!(
        r#"printf '{{"jsonrpc":"2.0","id":"x","method":"sampling/createMessage","params":{{"messages":[],"maxTokens":9}}}}\n'; {CALL}"#
    );
    works(&Server { call: &sampling, ..Server::default() }.attack("asks for the model").await);
}

/// Answers of servers over HTTP to the handshake. The prompt is answered without the server.
async fn without_a_server_over_http(name: &str, answer: RawReply) {
    let server = RawApi::start(move |_, _| answer.clone()).await;
    let api = ScriptedApi::start(Script::new().rule(when(), reply().text("Fine."))).await;
    let ostler = at(&api.base_url()).env("MCP_TIMEOUT", "3000");
    let servers = json!({"mcpServers": {"s": {"type": "http", "url": server.base_url()}}});
    let arguments = ["-p", "go", "--mcp-config", &servers.to_string()];
    let name = format!("MCP: HTTP {name}");
    let ran = tokio::task::block_in_place(|| measure(&name, prompt(&ostler, &arguments)));
    assert_eq!((ran.code, ran.stdout.trim()), (Some(0), "Fine."), "{name}: {:.500}", ran.stderr);
    assert!(ran.stderr.contains("MCP server s"), "{name}: {:.500}", ran.stderr);
    assert!(server.n_requests() > 0, "{name}: it was not asked");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_over_http_that_sends_one_byte_per_second_or_invalid_text() {
    let drip = || vec![RawPart::repeated(" ", u64::MAX).pausing(Duration::from_secs(1))];
    without_a_server_over_http("body of one byte per second", RawReply::json(drip())).await;
    without_a_server_over_http("event of one byte per second", RawReply::events(drip())).await;
    let odd = || {
        vec![RawPart::once(&b"data: {\"jsonrpc\":\"2.0\",\"id\":0,\"result\":\"\xff\"}\n\n"[..])]
    };
    without_a_server_over_http("body of invalid UTF-8", RawReply::json(odd())).await;
    without_a_server_over_http("event of invalid UTF-8", RawReply::events(odd())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_over_http_that_sends_300_megabytes() {
    let start =
        r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{"#;
    let piece = || RawPart::repeated("x".repeat(30_000), 10_000);
    let body = || vec![RawPart::once(start), piece()];
    let event = || vec![RawPart::once(format!("data: {start}")), piece()];
    for (name, answer) in [("body", RawReply::json(body())), ("event", RawReply::events(event()))] {
        let server = RawApi::start(move |_, _| answer.clone()).await;
        let api = ScriptedApi::start(Script::new().rule(when(), reply().text("Fine."))).await;
        let ostler = at(&api.base_url());
        let servers = json!({"mcpServers": {"s": {"type": "http", "url": server.base_url()}}});
        let arguments = ["-p", "go", "--mcp-config", &servers.to_string()];
        let name = format!("MCP: HTTP {name} of 300 MB");
        let ran = tokio::task::block_in_place(|| measure(&name, prompt(&ostler, &arguments)));
        assert_eq!(
            (ran.code, ran.stdout.trim()),
            (Some(0), "Fine."),
            "{name}: {:.500}",
            ran.stderr
        );
        assert!(server.n_requests() > 0, "{name}: it was not asked");
    }
}
