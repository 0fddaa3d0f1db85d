//! Hooks that ask a model, or a tool of an MCP server.

use std::sync::Arc;

use futures::future::BoxFuture;
use ostler_engine::mcp::{Connected, Connector, HostLine, McpToolInfo, Server, ServerLocation};
use ostler_engine::tool::{RunFuture, ToolCx, ToolError, ToolOutput};
use ostler_proto::mcp::{McpServerConfig, StdioServer};
use ostler_testkit::{Script, reply, when};
use serde_json::{Value, json};

use super::{calls, specific};
use crate::host::TestHost;

/// A session with a prompt hook, whose model gives this answer.
async fn judged(event: &str, hook: Value, judgement: &str) -> TestHost {
    let script = Script::new()
        .rule(when().model("small"), reply().text(judgement))
        .rule(when().model("judge"), reply().text(r#"{"ok": false, "reason": "I am stricter"}"#))
        .rule(when().turn(0), reply().tool_use("Look", json!({"word": "it"})))
        .rule(when().prompt_contains("feedback"), reply().text("Tested."))
        .rule(when().has_tool_result(true), reply().text("Done: {{tool_result}}"));
    let mut fields = json!({"type": "prompt", "prompt": "Is this safe? $ARGUMENTS"});
    fields.as_object_mut().unwrap().extend(hook.as_object().unwrap().clone());
    let hooks = json!({event: [{"hooks": [fields]}]});
    TestHost::with(script, |options| {
        options.hooks = vec![hooks];
        options.small_model = Some("small".to_owned());
    })
    .await
}

async fn result(host: &mut TestHost) -> String {
    host.prompt("go").await;
    host.result().await.result.unwrap_or_default()
}

#[tokio::test]
async fn after_a_yes_of_the_model_the_call_is_decided_as_usual() {
    let mut host = judged("PreToolUse", json!({}), r#"{"ok": true}"#).await;
    assert_eq!(result(&mut host).await, "Done: saw it");
    let requests = host.api.requests();
    let question = requests.iter().find(|request| request.model() == "small").unwrap();
    let text = question.last_user_text();
    assert!(
        text.starts_with("Is this safe? {") && text.contains(r#""tool_name":"Look""#),
        "{text}"
    );
    assert!(question.tool_names().is_empty());
}

#[tokio::test]
async fn a_model_that_objects_denies_the_call_and_ends_or_continues_the_turn() {
    let no = r#"{"ok": false, "reason": "it is not"}"#;
    let mut host = judged("PreToolUse", json!({}), no).await;
    assert_eq!(result(&mut host).await, "");
    assert!(host.story().iter().any(|line| line.contains("it is not")), "{:?}", host.story());
    assert!(!host.story().iter().any(|line| line.contains("saw it")));
    let mut host = judged("PreToolUse", json!({"continueOnBlock": true}), no).await;
    let text = result(&mut host).await;
    assert!(text.starts_with("Done: ") && text.contains("it is not"), "{text}");
}

#[tokio::test]
async fn a_model_that_gives_no_clear_answer_denies() {
    for odd in ["I cannot say.", r#"{"ok": "yes"}"#] {
        let mut host = judged("PreToolUse", json!({}), odd).await;
        let text = result(&mut host).await;
        assert!(text.contains("neither yes nor no"), "{odd}: {text}");
    }
}

#[tokio::test]
async fn a_hook_may_name_its_model() {
    let hook = json!({"model": "judge", "continueOnBlock": true});
    let mut host = judged("PreToolUse", hook, r#"{"ok": true}"#).await;
    let text = result(&mut host).await;
    assert!(text.contains("I am stricter"), "{text}");
}

#[tokio::test]
async fn requests_of_prompt_hooks_count_for_the_cost_of_the_session() {
    let mut host = judged("PreToolUse", json!({}), r#"{"ok": true}"#).await;
    host.prompt("go").await;
    let usage = serde_json::to_value(host.result().await.model_usage).unwrap();
    assert!(usage.as_object().unwrap().len() == 2, "{usage}");
}

/// A server with one tool, which answers with this text or fails.
struct Words(Result<String, String>);

impl Connector for Words {
    fn connect(
        &self,
        name: String,
        _: ServerLocation,
        _: HostLine,
    ) -> BoxFuture<'static, Connected> {
        let server: Arc<dyn Server> = Arc::new(Self(self.0.clone()));
        let is_there = name == "guard";
        Box::pin(async move { is_there.then_some(server).ok_or("no such program".into()) })
    }
}

impl Server for Words {
    fn info(&self) -> (String, String) {
        ("words".to_owned(), "1".to_owned())
    }

    fn tools(&self) -> Vec<McpToolInfo> {
        Vec::new()
    }

    fn lost(&self) -> Option<String> {
        None
    }

    fn call(&self, tool: &str, input: Value, _: &ToolCx) -> RunFuture {
        let answer = match &self.0 {
            Ok(words) => {
                let words =
                    words.replace("TOOL", tool).replace("INPUT", &input["path"].to_string());
                Ok(ToolOutput::new(words, json!(null)))
            }
            Err(error) => Err(ToolError::Failed(error.clone())),
        };
        Box::pin(async move { answer })
    }
}

/// A session whose hook calls a tool of a server.
async fn guarded(event: &str, server: &str, answer: Result<Value, &str>) -> TestHost {
    let hook = json!({"type": "mcp_tool", "server": server, "tool": "scan",
        "input": {"path": "${tool_input.word}"}});
    let hooks = json!({event: [{"hooks": [hook]}]});
    let words = Words(answer.map(|it| it.to_string()).map_err(str::to_owned));
    TestHost::with(calls("Look"), |options| {
        options.hooks = vec![hooks];
        options.connector = Some(Arc::new(words));
        let server = McpServerConfig::Stdio(StdioServer::default());
        options.mcp_servers.insert("guard".to_owned(), server.clone().into());
        options.mcp_servers.insert("broken".to_owned(), server.into());
    })
    .await
}

#[tokio::test]
async fn a_tool_of_a_server_receives_the_hooks_input_and_decides() {
    let fields = json!({"permissionDecision": "deny", "permissionDecisionReason": "TOOL INPUT"});
    let deny = specific("PreToolUse", fields);
    // The server's input comes back as JSON inside JSON, so its quotes are gone.
    let deny: Value = serde_json::from_str(&deny.to_string().replace("INPUT", "says no")).unwrap();
    let mut host = guarded("PreToolUse", "guard", Ok(deny)).await;
    let text = result(&mut host).await;
    assert_eq!(text, "Done: PreToolUse:Look hook error: scan says no");
}

#[tokio::test]
async fn a_tool_of_a_server_gets_its_input_from_the_event() {
    let context = specific("PostToolUse", json!({"additionalContext": "seen"}));
    let context: Value = serde_json::from_str(&context.to_string()).unwrap();
    let mut host = guarded("PostToolUse", "guard", Ok(context)).await;
    result(&mut host).await;
    assert!(host.api.requests()[1].transcript().contains("seen"));
}

#[tokio::test]
async fn a_server_that_is_missing_or_fails_denies_where_it_guards() {
    for (server, answer, words) in [
        ("broken", Ok(json!({})), "not connected"),
        ("unknown", Ok(json!({})), "not connected"),
        ("guard", Err("out of order"), "out of order"),
    ] {
        let mut host = guarded("PreToolUse", server, answer.clone()).await;
        let text = result(&mut host).await;
        assert!(text.contains(words), "{server}: {text}");
        let mut host = guarded("PostToolUse", server, answer).await;
        assert_eq!(
            result(&mut host).await,
            "Done: saw it",
            "a hook that only watches changes nothing"
        );
        assert!(
            host.story().contains(&"system informational".to_owned()),
            "and its failure is reported"
        );
    }
}
