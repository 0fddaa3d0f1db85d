//! Calls of a session's tools by the program around the engine, outside of the conversation. No model is involved.
//!
//! Such a call is decided and run like any other: hooks, rules, the question to the host, sandbox, checkpoints.

use std::fmt;

use ostler_proto::ToolUseId;
use ostler_proto::api::{Content, ToolUseBlock};
use ostler_proto::build;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::call;
use crate::drive::TurnContext;
use crate::model::ToolSpec;

/// Calls the tools of a session.
#[derive(Clone)]
pub struct ToolCaller {
    context: TurnContext,
}

/// The result of a call.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct CalledTool {
    /// What a model would read.
    pub content: Option<Content>,
    /// Whether the call failed, or did not run.
    pub is_error: bool,
}

impl ToolCaller {
    pub(super) fn new(context: TurnContext) -> Self {
        Self { context }
    }

    /// The built-in tools, without those that a rule denies altogether.
    pub fn tools(&self) -> Vec<ToolSpec> {
        let policy = self.context.permissions.policy();
        let specs = self.context.specs.iter();
        specs.filter(|spec| !policy.denies_all_of(&spec.name)).cloned().collect()
    }

    /// Calls a tool. Where a permission question is asked, it has this id. Dropping the future stops the call.
    pub async fn call(&self, id: ToolUseId, name: &str, input: Value) -> CalledTool {
        let call = build!(ToolUseBlock { id, name: name.to_owned(), input });
        let mut context = self.context.for_call(&call);
        context.cx.cancelled = CancellationToken::new();
        let _stopped = context.cx.cancelled.clone().drop_guard();
        let result = call::run(&context, call).await.in_one();
        CalledTool { content: result.block.content, is_error: result.block.is_error == Some(true) }
    }
}

impl fmt::Debug for ToolCaller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ToolCaller")
    }
}
