//! A whole session with the built-in tools and a scripted API, for one prompt and one tool call.

use std::path::Path;
use std::sync::Arc;

use ostler_engine::model::{ApiConfig, ApiModel, Credential, Model};
use ostler_engine::permission::{Behavior, Policy, Source};
use ostler_engine::session::{self, SessionOptions};
use ostler_proto::api::{Content, ContentBlock};
use ostler_proto::frame::{ToEngine, ToHost};
use ostler_proto::message::{TurnResult, User};
use ostler_proto::permission::PermissionMode;
use ostler_testkit::ScriptedApi;
use serde_json::Value;

pub(crate) fn model(api: &ScriptedApi) -> Arc<dyn Model> {
    let config = ApiConfig::new(api.base_url(), Credential::Key("test".into()), "test-model");
    Arc::new(ApiModel::new(config).unwrap())
}

/// The outcome of one prompt: the structured result and the text of the only tool call, and the turn's result.
pub(crate) struct Outcome {
    pub(crate) structured: Value,
    pub(crate) text: String,
    pub(crate) is_error: bool,
    pub(crate) result: TurnResult,
}

/// Runs a session in a folder, with rules like `allow WebSearch`, until it has answered a prompt.
pub(crate) async fn run(
    folder: &Path,
    rules: &[&str],
    model: Arc<dyn Model>,
    prompt: &str,
) -> Outcome {
    let mut policy = Policy::new(folder, PermissionMode::Default);
    for rule in rules {
        let (word, rule) = rule.split_once(' ').unwrap();
        let behavior = if word == "allow" { Behavior::Allow } else { Behavior::Deny };
        policy.add_rule(behavior, rule.parse().unwrap(), Source::CliArg);
    }
    let options = SessionOptions::new(model, policy);
    let options = SessionOptions { tools: ostler_tools::session_tools(), ..options };
    let mut connection = session::start(options).unwrap();
    connection.to_engine.send(ToEngine::User(Box::new(User::prompt(prompt)))).await.unwrap();
    let mut called = None;
    while let Some(frame) = connection.from_engine.recv().await {
        match frame {
            ToHost::User(user) => {
                let content = user.message.content.clone();
                let Some(Content::Blocks(blocks)) = content else { continue };
                if let [ContentBlock::ToolResult(block)] = &blocks[..] {
                    let text = block.content.as_ref().unwrap().text();
                    called = Some((user.tool_use_result, text, block.is_error == Some(true)));
                }
            }
            ToHost::Result(result) => {
                let (structured, text, is_error) = called.expect("a tool was called");
                let structured = structured.unwrap_or_default();
                return Outcome { structured, text, is_error, result: *result };
            }
            _ => {}
        }
    }
    panic!("the session ended without a result")
}
