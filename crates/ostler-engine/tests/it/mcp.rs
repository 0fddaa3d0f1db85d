//! MCP servers in whole sessions: their configuration, permission rules and settings.

use std::sync::Arc;

use futures::future::BoxFuture;
use ostler_engine::mcp::{
    Connected, Connector, HostLine, KnownServer, McpToolInfo, Server, ServerLocation,
};
use ostler_engine::permission::{Behavior, Policy, Source};
use ostler_engine::session::SessionOptions;
use ostler_engine::tool::{RunFuture, ToolCx, ToolOutput};
use ostler_proto::control::{AskEngine, McpSetServers};
use ostler_proto::frame::ToHost;
use ostler_proto::mcp::McpServerConfig;
use ostler_proto::message::System;
use ostler_proto::permission::PermissionMode;
use ostler_testkit::{Script, reply, when};
use serde_json::{Value, json};

use crate::host::TestHost;

/// A server with a tool that changes something and one that claims to only read.
struct Calc;

impl Connector for Calc {
    fn connect(&self, _: String, _: ServerLocation, _: HostLine) -> BoxFuture<'static, Connected> {
        Box::pin(async { Ok(Arc::new(Self) as Arc<dyn Server>) })
    }
}

impl Server for Calc {
    fn info(&self) -> (String, String) {
        ("calc".to_owned(), "1".to_owned())
    }

    fn tools(&self) -> Vec<McpToolInfo> {
        let tool = |name: &str, read_only| McpToolInfo {
            name: name.to_owned(),
            description: String::new(),
            input_schema: json!({"type": "object"}),
            read_only,
            ..McpToolInfo::default()
        };
        vec![tool("add", false), tool("look", true)]
    }

    fn lost(&self) -> Option<String> {
        None
    }

    fn call(&self, tool: &str, _: Value, _: &ToolCx) -> RunFuture {
        let words = format!("called {tool}");
        Box::pin(async move { Ok(ToolOutput::new(words, json!(null))) })
    }
}

fn config(value: Value) -> McpServerConfig {
    serde_json::from_value(value).unwrap()
}

/// A session that calls a tool of the server `calc`.
async fn calling(tool: &str, change: impl FnOnce(&mut SessionOptions)) -> TestHost {
    let script = Script::new()
        .rule(when().turn(0), reply().tool_use(tool, json!({})))
        .rule(when(), reply().text("Done."));
    TestHost::with(script, |options| {
        options.connector = Some(Arc::new(Calc));
        let server = config(json!({"command": "calc"}));
        options.mcp_servers.insert("calc".to_owned(), server.into());
        change(options);
    })
    .await
}

fn set_policy(options: &mut SessionOptions, mode: &PermissionMode, rules: &[(Behavior, &str)]) {
    let mut policy = Policy::new(std::env::temp_dir(), mode.clone());
    policy.bypass_available = true;
    for (behavior, rule) in rules {
        policy.add_rule(*behavior, rule.parse().unwrap(), Source::CliArg);
    }
    options.policy = policy;
}

/// The tools that the model was offered.
fn offered(host: &TestHost) -> Vec<String> {
    host.api.requests()[0].tool_names().into_iter().map(str::to_owned).collect()
}

/// How the call ended, and whether the host was asked. The host allows it.
async fn fate(host: TestHost) -> (&'static str, TestHost) {
    let mut host = host.answering(json!({"behavior": "allow"}));
    host.prompt("go").await;
    host.result().await;
    let story = host.story();
    let has = |text: &str| story.iter().any(|line| line.contains(text));
    let fate = match (has("control_request"), has("= called")) {
        (true, true) => "asks",
        (false, true) => "runs",
        _ => "refused",
    };
    (fate, host)
}

const MODES: [PermissionMode; 5] = [
    PermissionMode::Default,
    PermissionMode::AcceptEdits,
    PermissionMode::Plan,
    PermissionMode::DontAsk,
    PermissionMode::BypassPermissions,
];

// Mutant: `mcp::policy::of` that is always `Unset`; `judge` that looks at it after bypassPermissions or the allow
// rules.
#[tokio::test]
async fn the_policy_of_a_server_for_its_tool_holds_in_every_mode() {
    let rows = [
        ("always_deny", ["refused", "refused", "refused", "refused", "refused"]),
        ("always_ask", ["asks", "asks", "asks", "refused", "asks"]),
        // In plan mode a tool that changes something is still refused.
        ("always_allow", ["runs", "runs", "refused", "runs", "runs"]),
    ];
    for (word, expected) in rows {
        for (mode, expected) in MODES.iter().zip(expected) {
            for allowed in [false, true] {
                let entry = json!([{"name": "add", "permission_policy": word}]);
                let server = config(json!({"command": "calc", "tools": entry}));
                let rules = [(Behavior::Allow, "mcp__calc__add")];
                let host = calling("mcp__calc__add", |options| {
                    set_policy(options, mode, if allowed { &rules } else { &[] });
                    options.mcp_servers.insert("calc".to_owned(), server.into());
                })
                .await;
                let (fate, host) = fate(host).await;
                assert_eq!(fate, expected, "{word} in {mode}, allowed: {allowed}");
                let offered = offered(&host);
                let is_offered = offered.iter().any(|name| name == "mcp__calc__add");
                assert_eq!(is_offered, word != "always_deny", "{offered:?}");
            }
        }
    }
}

// Mutant: `change` that does not look at MCP tools.
#[tokio::test]
async fn plan_mode_refuses_tools_of_servers_that_may_change_something() {
    for (tool, allowed, expected) in [
        ("mcp__calc__add", false, "refused"),
        ("mcp__calc__add", true, "refused"),
        ("mcp__calc__look", false, "asks"),
        ("mcp__calc__look", true, "runs"),
    ] {
        let rules = [(Behavior::Allow, "mcp__calc")];
        let host = calling(tool, |options| {
            set_policy(options, &PermissionMode::Plan, if allowed { &rules } else { &[] });
        })
        .await;
        assert_eq!(fate(host).await.0, expected, "{tool}, allowed: {allowed}");
    }
}

// Mutant: `with_tools_of` that adds every tool of a server.
#[tokio::test]
async fn tools_of_servers_that_are_denied_are_not_offered_listed_or_run() {
    for rule in ["mcp__calc__add", "mcp__calc", "mcp__calc__*"] {
        let host = calling("mcp__calc__add", |options| {
            let rules = [(Behavior::Deny, rule), (Behavior::Allow, "mcp__calc__add")];
            set_policy(options, &PermissionMode::BypassPermissions, &rules);
        })
        .await;
        let (fate, host) = fate(host).await;
        assert_eq!(fate, "refused", "{rule}");
        let offered = offered(&host);
        assert!(!offered.iter().any(|name| name == "mcp__calc__add"), "{rule}: {offered:?}");
        assert_eq!(offered.iter().any(|name| name == "mcp__calc__look"), rule == "mcp__calc__add");
        let listed = host.seen.iter().find_map(|frame| match frame {
            ToHost::System(System::Init(init)) => Some(init.tools.clone()),
            _ => None,
        });
        let listed = listed.unwrap();
        assert!(!listed.iter().any(|name| name == "mcp__calc__add"), "{rule}: {listed:?}");
    }
}

// Mutant: `connect` that does not look at the lists.
#[tokio::test]
async fn a_server_that_settings_deny_is_not_connected_however_it_is_added() {
    let denied = || serde_json::from_value::<Vec<_>>(json!([{"serverCommand": ["evil"]}])).unwrap();
    let evil = || config(json!({"command": "evil"}));
    let mut host = calling("mcp__calc__add", |options| {
        options.server_lists.denied = denied();
        options.mcp_servers.insert("calc".to_owned(), KnownServer::from(evil()));
        set_policy(options, &PermissionMode::BypassPermissions, &[]);
    })
    .await;
    let set = McpSetServers { servers: [("late".to_owned(), evil())].into(), ..Default::default() };
    host.ask("set", AskEngine::McpSetServers(set)).await;
    let response = serde_json::to_value(host.until("control_response").await).unwrap();
    assert!(response.to_string().contains("deniedMcpServers"), "{response}");
    let reconnect =
        serde_json::from_value(json!({"subtype": "mcp_reconnect", "serverName": "calc"}));
    host.ask("again", reconnect.unwrap()).await;
    let response = serde_json::to_value(host.until("control_response").await).unwrap();
    assert!(response.to_string().contains("deniedMcpServers"), "{response}");
    let (fate, host) = fate(host).await;
    assert_eq!(fate, "refused");
    let offered = offered(&host);
    assert!(!offered.iter().any(|name| name.starts_with("mcp__")), "{offered:?}");
}
