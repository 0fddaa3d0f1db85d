//! The question at the terminal about servers that come with the project.

use std::fs;

use ostler_testkit::{Script, ScriptedApi, reply, when};
use serde_json::{Value, json};

use crate::run::Ostler;
use crate::tmux::Window;

/// A server in shell code with one tool, whose name it gets.
const SERVER: &str = r#"
while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"method":"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}\n' "$id";;
    *'"method":"tools/list"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"work","inputSchema":{"type":"object"}}]}}\n' "$id";;
  esac
done
"#;

fn choices(ostler: &Ostler) -> Value {
    let text = fs::read_to_string(ostler.path("no-home/.claude.json")).unwrap_or_default();
    let root: Value = serde_json::from_str(&text).unwrap_or_default();
    let projects = root["projects"].as_object().cloned().unwrap_or_default();
    projects.into_iter().next().map(|(_, project)| project).unwrap_or_default()
}

// Mutant: Esc counts as a yes.
#[tokio::test(flavor = "multi_thread")]
async fn servers_of_the_project_start_if_the_user_says_so_at_the_terminal() {
    let api = ScriptedApi::start(Script::new().rule(when(), reply().text("Fine."))).await;
    let ostler =
        Ostler::new().env("ANTHROPIC_API_KEY", "key").env("ANTHROPIC_BASE_URL", &api.base_url());
    fs::write(ostler.path("server.sh"), SERVER).unwrap();
    let server = |word: &str| json!({"command": "/bin/sh", "args": ["server.sh", word]});
    let servers = json!({"mcpServers": {
        "good": server("one"), "later": server("two\u{202e}\u{200b}\n[exit 0]"), "never": server("three"),
    }});
    fs::write(ostler.path(".mcp.json"), servers.to_string()).unwrap();
    let window = Window::open(&ostler, 100, &[]);
    let asks = |name: &str| {
        let heading = format!("comes with the MCP server {name}");
        let has_keys = |screen: &str| {
            screen.split_once(&heading).is_some_and(|(_, rest)| rest.contains("not now"))
        };
        window.wait(&format!("the keys for {name}"), has_keys);
    };
    asks("good");
    window.shows("/bin/sh server.sh one");
    window.press("y");
    asks("later");
    // What a project writes cannot hide, and is indented.
    window.shows("two\\u{202e}\\u{200b}");
    window.shows("  [exit 0]");
    window.press("Escape");
    asks("never");
    window.press("n");
    window.shows("ostler 0.");
    window.type_line("hello");
    window.shows("Fine.");
    let request = api.requests().pop().unwrap();
    let offered: Vec<_> =
        request.tool_names().into_iter().filter(|name| name.starts_with("mcp__")).collect();
    assert_eq!(offered, ["mcp__good__work"]);
    let choices = choices(&ostler);
    assert_eq!(choices["enabledMcpjsonServers"], json!(["good"]));
    assert_eq!(choices["disabledMcpjsonServers"], json!(["never"]));
    // Only the one without an answer is asked about again.
    let window = Window::open(&ostler, 100, &[]);
    window.shows("comes with the MCP server later");
    window.shows("not now");
    window.press("Escape");
    window.shows("→ it does not start now");
    window.type_line("hello");
    window.shows("Fine.");
    assert!(!window.text().contains("MCP server good, which"), "{}", window.text());
}
