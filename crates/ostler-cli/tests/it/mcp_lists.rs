//! `allowedMcpServers` and `deniedMcpServers`, for every way in which a server comes into a session.

use std::fs;

use ostler_testkit::{Script, reply, when};
use serde_json::{Value, json};

use crate::mcp::place;
use crate::run::Ostler;
use crate::talk::Talk;

/// A server that leaves a file when it starts.
fn entry() -> Value {
    json!({"command": "/bin/sh", "args": ["-c", "touch started; exec cat >/dev/null"]})
}

fn servers() -> Value {
    json!({"mcpServers": {"x": entry()}})
}

/// A way in: writes files, and returns arguments and, for some, a request of the host.
type Way = fn(&Ostler) -> (Vec<String>, Option<Value>);

fn user(ostler: &Ostler, value: &Value) {
    fs::create_dir_all(ostler.path("no-home")).unwrap();
    fs::write(ostler.path("no-home/.claude.json"), value.to_string()).unwrap();
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

const WAYS: [(&str, Way); 9] = [
    ("--mcp-config with JSON", |_| (words(&["--mcp-config", &servers().to_string()]), None)),
    ("--mcp-config with a file", |ostler| {
        fs::write(ostler.path("s.json"), servers().to_string()).unwrap();
        (words(&["--mcp-config", "s.json"]), None)
    }),
    ("the user's file", |ostler| {
        user(ostler, &servers());
        (Vec::new(), None)
    }),
    ("the user's file, for this project", |ostler| {
        let project = ostler.folder.path().canonicalize().unwrap().display().to_string();
        user(ostler, &json!({"projects": {project: servers()}}));
        (Vec::new(), None)
    }),
    (".mcp.json", |ostler| {
        fs::write(ostler.path(".mcp.json"), servers().to_string()).unwrap();
        let project = ostler.folder.path().canonicalize().unwrap().display().to_string();
        user(ostler, &json!({"projects": {project: {"enabledMcpjsonServers": ["x"]}}}));
        (Vec::new(), None)
    }),
    ("a plugin", |ostler| {
        fs::create_dir_all(ostler.path("kit/.claude-plugin")).unwrap();
        let manifest = json!({"name": "kit", "mcpServers": servers()["mcpServers"]});
        fs::write(ostler.path("kit/.claude-plugin/plugin.json"), manifest.to_string()).unwrap();
        (words(&["--plugin-dir", "kit"]), None)
    }),
    ("an agent of its own", |_| {
        let agent = json!({"cat": {"description": "A cat", "prompt": "You are a cat.", "mcpServers": [{"x": entry()}]}});
        (words(&["--agents", &agent.to_string()]), None)
    }),
    ("mcp_set_servers", |_| {
        let request = json!({"subtype": "mcp_set_servers", "servers": servers()["mcpServers"]});
        (Vec::new(), Some(request))
    }),
    ("the options of a server's session", |_| {
        let arguments =
            ["--mcp-config", &servers().to_string(), "--strict-mcp-config", "--setting-sources="];
        (words(&arguments), None)
    }),
];

async fn starts(way: Way, settings: &Value) -> bool {
    let script = Script::new()
        .rule(when().turn(0).system_contains("You are a cat."), reply().text("Meow."))
        .rule(
            when().turn(0),
            reply().tool_use(
                "Agent",
                json!({"subagent_type": "cat", "description": "d", "prompt": "p"}),
            ),
        )
        .rule(when(), reply().text("Fine."));
    let (_api, ostler) = place(script).await;
    // The server never answers, so it is not waited for.
    let ostler = ostler.env("MCP_TIMEOUT", "1500");
    let (arguments, request) = way(&ostler);
    let settings = settings.to_string();
    let mut all: Vec<&str> = arguments.iter().map(String::as_str).collect();
    all.extend(["--settings", &settings, "--permission-mode", "bypassPermissions"]);
    let mut talk = Talk::with(&ostler, &all);
    if let Some(request) = request {
        talk.asked(request);
    }
    talk.say("go", None);
    talk.result();
    talk.end();
    ostler.path("started").exists()
}

// Mutant: `Servers::connect` does not ask the lists.
#[tokio::test(flavor = "multi_thread")]
async fn the_lists_hold_for_every_way_in_which_a_server_comes_in() {
    let command = json!(["/bin/sh", "-c", "touch started; exec cat >/dev/null"]);
    let lists = [
        (json!({}), true),
        (json!({"deniedMcpServers": [{"serverCommand": command}]}), false),
        (json!({"allowedMcpServers": [{"serverCommand": ["other"]}]}), false),
        (json!({"allowedMcpServers": [{"serverCommand": command}]}), true),
    ];
    for (name, way) in WAYS {
        for (settings, expected) in &lists {
            assert_eq!(starts(way, settings).await, *expected, "{name}: {settings}");
        }
    }
}
