//! A host for tests: sends prompts, answers questions, prints one line per received frame.

use std::sync::Arc;
use std::time::Duration;

use ostler_engine::model::{ApiConfig, ApiModel, Credential};
use ostler_engine::permission::Policy;
use ostler_engine::session::{self, Connection, SessionOptions};
use ostler_proto::RequestId;
use ostler_proto::api::{Content, ContentBlock};
use ostler_proto::control::{AskEngine, ControlRequest, ControlResponse, Interrupt};
use ostler_proto::frame::{Frame, ToEngine, ToHost};
use ostler_proto::message::{TurnResult, User};
use ostler_proto::permission::PermissionMode;
use ostler_testkit::{Script, ScriptedApi};
use serde_json::Value;

use crate::tools;

/// Far more than any frame takes.
const PATIENCE: Duration = Duration::from_secs(120);

pub(crate) struct TestHost {
    pub(crate) api: ScriptedApi,
    pub(crate) connection: Connection,
    /// The answer to `can_use_tool`; without it the question stays open.
    pub(crate) answer: Option<Result<Value, String>>,
    pub(crate) seen: Vec<ToHost>,
}

impl TestHost {
    pub(crate) async fn start(script: Script) -> Self {
        Self::with(script, |_| {}).await
    }

    pub(crate) async fn with(script: Script, change: impl FnOnce(&mut SessionOptions)) -> Self {
        let api = ScriptedApi::start(script).await;
        let mut options = Self::options(&api);
        change(&mut options);
        let connection = session::start(options).unwrap();
        Self { api, connection, answer: None, seen: Vec::new() }
    }

    /// What a session of these tests runs with.
    pub(crate) fn options(api: &ScriptedApi) -> SessionOptions {
        let credential = Credential::Key("test".into());
        let mut config = ApiConfig::new(api.base_url(), credential, "test-model");
        // Retries follow at once; the tests of the model client check the real delays.
        config.retry.first_delay = Duration::from_millis(1);
        config.retry.longest_delay = Duration::from_millis(1);
        let policy = Policy::new(std::env::temp_dir(), PermissionMode::Default);
        let model = Arc::new(ApiModel::new(config).unwrap());
        SessionOptions { tools: tools::all(), ..SessionOptions::new(model, policy) }
    }

    pub(crate) fn answering(mut self, answer: Value) -> Self {
        self.answer = Some(Ok(answer));
        self
    }

    pub(crate) async fn prompt(&self, text: &str) {
        self.user(User::prompt(text)).await;
    }

    pub(crate) async fn user(&self, user: User) {
        self.send(ToEngine::User(Box::new(user))).await;
    }

    /// Sends nothing more, but continues to read.
    pub(crate) fn leave(&mut self) {
        self.connection.to_engine = tokio::sync::mpsc::channel(1).0;
    }

    pub(crate) async fn interrupt(&self) {
        self.ask("int", AskEngine::Interrupt(Interrupt::default())).await;
    }

    pub(crate) async fn ask(&self, id: &str, request: AskEngine) {
        self.send(ToEngine::ControlRequest(ControlRequest::new(id.into(), request))).await;
    }

    pub(crate) async fn respond(&self, id: RequestId, answer: Result<Value, String>) {
        let response = match answer {
            Ok(payload) => ControlResponse::success(id, Some(payload)),
            Err(error) => ControlResponse::error(id, error),
        };
        self.send(ToEngine::ControlResponse(response)).await;
    }

    async fn send(&self, frame: ToEngine) {
        self.connection.to_engine.send(frame).await.unwrap();
    }

    /// Closes the host's end.
    pub(crate) fn close(&mut self) {
        self.connection.to_engine = tokio::sync::mpsc::channel(1).0;
    }

    /// The next frame. Questions are answered on the way. A frame that never comes fails the test instead of blocking
    /// it.
    pub(crate) async fn next(&mut self) -> Option<ToHost> {
        let coming = tokio::time::timeout(PATIENCE, self.connection.from_engine.recv()).await;
        let frame = coming.unwrap_or_else(|_| panic!("nothing more after {:#?}", self.story()))?;
        if let (ToHost::ControlRequest(request), Some(answer)) = (&frame, &self.answer) {
            self.respond(request.request_id.clone().unwrap(), answer.clone()).await;
        }
        self.seen.push(frame.clone());
        Some(frame)
    }

    /// Reads until a frame whose line starts with `beginning`.
    pub(crate) async fn until(&mut self, beginning: &str) -> ToHost {
        loop {
            let frame = self
                .next()
                .await
                .unwrap_or_else(|| panic!("no {beginning} in {:#?}", self.story()));
            if line(&frame).starts_with(beginning) {
                return frame;
            }
        }
    }

    /// Reads to the end of the turn.
    pub(crate) async fn result(&mut self) -> TurnResult {
        match self.until("result").await {
            ToHost::Result(result) => *result,
            other => panic!("not a result: {other:?}"),
        }
    }

    /// The newest result that was seen.
    pub(crate) fn result_seen(&self) -> &TurnResult {
        let results = self.seen.iter().rev().find_map(|frame| match frame {
            ToHost::Result(result) => Some(result),
            _ => None,
        });
        results.expect("a turn has ended")
    }

    /// Everything seen so far.
    pub(crate) fn story(&self) -> Vec<String> {
        self.seen.iter().map(line).collect()
    }
}

/// A frame in one line.
pub(crate) fn line(frame: &ToHost) -> String {
    match frame {
        ToHost::Assistant(frame) => {
            format!(
                "assistant{}: {}",
                of(&frame.parent_tool_use_id),
                blocks(&frame.message.content)
            )
        }
        ToHost::User(frame) => match &frame.message.content {
            Some(Content::Blocks(content)) => {
                format!("user{}: {}", of(&frame.parent_tool_use_id), blocks(content))
            }
            _ => "user".to_owned(),
        },
        ToHost::Result(result) => {
            let text = result
                .result
                .clone()
                .or_else(|| result.errors.as_ref().map(|errors| errors.join("; ")));
            format!("result {}: {}", result.subtype, text.unwrap_or_default())
        }
        other => other.summary(),
    }
}

fn of(parent: &Option<ostler_proto::ToolUseId>) -> &'static str {
    if parent.is_some() { " of subagent" } else { "" }
}

fn blocks(blocks: &[ContentBlock]) -> String {
    let words = blocks.iter().map(|block| match block {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::ToolUse(call) => format!("{}({})", call.name, call.input),
        ContentBlock::ToolResult(result) => {
            let text = result.content.as_ref().map(Content::text).unwrap_or_default();
            if result.is_error == Some(true) {
                format!("failed: {text}")
            } else {
                format!("= {text}")
            }
        }
        _ => "?".to_owned(),
    });
    words.collect::<Vec<_>>().join(" ")
}
