//! Questions of MCP servers: hooks may answer in the user's place, and may change the user's answer.

use std::sync::Arc;

use futures::future::BoxFuture;
use ostler_engine::mcp::{Connected, Connector, HostLine, McpToolInfo, Server, ServerLocation};
use ostler_engine::tool::{RunFuture, ToolCx, ToolOutput};
use ostler_proto::build;
use ostler_proto::control::{AskHost, Elicitation};
use ostler_proto::frame::ToHost;
use ostler_proto::mcp::{McpServerConfig, StdioServer};
use ostler_testkit::{Script, reply, when};
use serde_json::{Value, json};

use super::{HookLog, matcher, next_callback, register, says, specific};
use crate::host::TestHost;

/// A server with one tool, which asks the user for a name and returns the answer.
struct Curious(Option<HostLine>);

impl Connector for Curious {
    fn connect(
        &self,
        _: String,
        _: ServerLocation,
        line: HostLine,
    ) -> BoxFuture<'static, Connected> {
        let server: Arc<dyn Server> = Arc::new(Self(Some(line)));
        Box::pin(async move { Ok(server) })
    }
}

impl Server for Curious {
    fn info(&self) -> (String, String) {
        ("curious".to_owned(), "1".to_owned())
    }

    fn tools(&self) -> Vec<McpToolInfo> {
        vec![McpToolInfo {
            name: "ask".to_owned(),
            description: "Asks.".to_owned(),
            input_schema: json!({"type": "object"}),
            read_only: true,
            ..McpToolInfo::default()
        }]
    }

    fn lost(&self) -> Option<String> {
        None
    }

    fn call(&self, _: &str, _: Value, _: &ToolCx) -> RunFuture {
        let line = self.0.clone().unwrap();
        Box::pin(async move {
            let question = build!(Elicitation {
                mcp_server_name: "curious".to_owned(),
                message: "Who are you?".to_owned(),
                mode: Some("form".to_owned()),
                elicitation_id: Some("q1".to_owned()),
                requested_schema: Some(json!({"type": "object", "properties": {"name": {}}}))
            });
            let reply = line.elicit(question).await;
            let content = reply.content.map(|content| content["name"].to_string());
            let text = format!("{} {}", reply.action, content.unwrap_or_default().replace('"', ""));
            Ok(ToolOutput::new(text.trim().to_owned(), json!(null)))
        })
    }
}

async fn session(hooks: Value) -> TestHost {
    let script = Script::new()
        .rule(when().turn(0), reply().tool_use("mcp__curious__ask", json!({})))
        .rule(when(), reply().text("{{tool_result}}"));
    TestHost::with(script, |options| {
        options.hooks = vec![hooks];
        options.connector = Some(Arc::new(Curious(None)));
        let server = McpServerConfig::Stdio(StdioServer::default());
        options.mcp_servers.insert("curious".to_owned(), server.into());
        options.policy.mode = ostler_proto::permission::PermissionMode::BypassPermissions;
        options.policy.bypass_available = true;
    })
    .await
}

fn hook(event: &str, command: String) -> Value {
    json!({event: [{"matcher": "curious", "hooks": [{"type": "command", "command": command}]}]})
}

/// The answer that the server receives, and whether the user was asked.
async fn answered(mut host: TestHost, user: Value) -> (String, bool) {
    host.prompt("go").await;
    let mut was_asked = false;
    loop {
        match host.next().await.unwrap() {
            ToHost::ControlRequest(request) => {
                assert!(matches!(request.request, AskHost::Elicitation(_)), "{request:?}");
                was_asked = true;
                host.respond(request.request_id.unwrap(), Ok(user.clone())).await;
            }
            ToHost::Result(result) => return (result.result.unwrap(), was_asked),
            _ => {}
        }
    }
}

fn accept(name: &str) -> Value {
    json!({"action": "accept", "content": {"name": name}})
}

#[tokio::test]
async fn if_hooks_give_no_answer_the_user_answers() {
    let ledger = HookLog::new();
    let host = session(ledger.hooks(&["Elicitation", "ElicitationResult"])).await;
    assert_eq!(answered(host, accept("Ada")).await, ("accept Ada".to_owned(), true));
    let entries = ledger.entries();
    let [asked, result] = &entries[..] else { panic!("{entries:?}") };
    for (field, value) in [
        ("mcp_server_name", json!("curious")),
        ("message", json!("Who are you?")),
        ("mode", json!("form")),
        ("elicitation_id", json!("q1")),
        ("requested_schema", json!({"type": "object", "properties": {"name": {}}})),
    ] {
        assert_eq!(asked[field], value, "{field}");
    }
    assert!(asked.get("url").is_none());
    assert_eq!(
        (&result["action"], &result["content"]),
        (&json!("accept"), &json!({"name": "Ada"}))
    );
    assert_eq!((&result["mode"], &result["elicitation_id"]), (&json!("form"), &json!("q1")));
}

#[tokio::test]
async fn a_hook_answers_in_the_users_place() {
    for (fields, received) in [
        (accept("Grace"), "accept Grace"),
        (json!({"action": "decline"}), "decline"),
        (json!({"action": "cancel"}), "cancel"),
        (json!({"action": "shrug"}), "decline"),
    ] {
        let command = says(&specific("Elicitation", fields));
        let host = session(hook("Elicitation", command)).await;
        assert_eq!(answered(host, accept("Ada")).await, (received.to_owned(), false));
    }
}

#[tokio::test]
async fn a_hook_that_objects_or_fails_declines() {
    for command in ["exit 2", "echo '{broken'"] {
        let host = session(hook("Elicitation", command.to_owned())).await;
        assert_eq!(answered(host, accept("Ada")).await, ("decline".to_owned(), false), "{command}");
        let host = session(hook("ElicitationResult", command.to_owned())).await;
        assert_eq!(answered(host, accept("Ada")).await, ("decline".to_owned(), true), "{command}");
    }
}

#[tokio::test]
async fn a_hook_may_change_the_users_answer() {
    for (fields, received) in [
        (accept("somebody"), "accept somebody"),
        (json!({"action": "accept"}), "accept Ada"),
        (json!({"action": "decline"}), "decline"),
        (json!({}), "accept Ada"),
    ] {
        let command = says(&specific("ElicitationResult", fields.clone()));
        let host = session(hook("ElicitationResult", command)).await;
        assert_eq!(answered(host, accept("Ada")).await, (received.to_owned(), true), "{fields}");
    }
}

#[tokio::test]
async fn callbacks_of_the_host_receive_the_questions_of_servers() {
    let mut host = session(json!({})).await;
    register(&mut host, "Elicitation", matcher(json!({"matcher": "curious"}))).await;
    host.prompt("go").await;
    let (id, input) = next_callback(&mut host).await;
    assert_eq!(input["message"], "Who are you?");
    host.respond(id, Ok(specific("Elicitation", accept("the host")))).await;
    assert_eq!(host.result().await.result.as_deref(), Some("accept the host"));
}
