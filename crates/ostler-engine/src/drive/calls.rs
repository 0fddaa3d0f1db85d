//! The tool calls of a turn: each runs in a separate task, and has one result.

use std::sync::Arc;

use ostler_proto::api::{Content, ToolResultBlock, ToolUseBlock};
use ostler_proto::build;
use ostler_proto::message::{PermissionDenial, ToolResultMeta};
use serde_json::json;
use tokio::task::{self, JoinError};

use super::Driver;
use crate::call::{self, CallResult};
use crate::turn::{Input, StopAfter, Turn};
use crate::{agents, structured};

impl Driver {
    pub(super) fn run(&mut self, call: ToolUseBlock) {
        let call = Arc::new(agents::by_name(&call, &self.context.tools));
        let context = self.context.for_call(&call);
        let job = {
            let call = Arc::clone(&call);
            async move { (call::run(&context, (*call).clone()).await, call) }
        };
        let job = self.jobs.spawn(job);
        self.running.insert(job.id(), call);
    }

    /// A task of a call has ended, also by a panic: the turn waits for a result of every call.
    pub(super) async fn joined(
        &mut self,
        done: Result<(task::Id, (CallResult, Arc<ToolUseBlock>)), JoinError>,
        turn: &mut Turn,
    ) {
        match done {
            Ok((id, (result, call))) => {
                self.running.remove(&id);
                self.ran(result, &call, turn).await;
            }
            Err(error) => {
                // Calls catch their panics; this one panicked while it was dropped.
                let Some(call) = self.running.remove(&error.id()) else { return };
                let why = match error.try_into_panic() {
                    Ok(panic) => panic,
                    Err(error) => Box::new(error.to_string()),
                };
                let result = call::broken_call(call.id.clone(), &call.name, &*why);
                self.ran(result, &call, turn).await;
            }
        }
    }

    pub(super) async fn ran(&mut self, result: CallResult, call: &ToolUseBlock, turn: &mut Turn) {
        let ToolUseBlock { name: tool_name, input: tool_input, .. } = call;
        let CallResult { block, structured, denied, stop, stop_reason, meta, follow_up } = result;
        self.stopped_by_hook(stop_reason);
        if self.tells_of_batch {
            self.batch.push(json!({
                "tool_name": tool_name, "tool_input": tool_input, "tool_use_id": block.tool_use_id,
                "tool_response": block.content,
            }));
        }
        self.finished.n_user_messages += 1;
        self.finished.n_tool_calls += 1;
        if denied {
            let tool_use_id = block.tool_use_id.clone();
            self.finished.denials.push(build!(PermissionDenial {
                tool_name: tool_name.clone(),
                tool_use_id,
                tool_input: tool_input.clone(),
            }));
        }
        self.context.outbox.send_tool_result(block.clone(), structured, meta).await;
        let stop = match tool_name.as_str() {
            structured::NAME if block.is_error == Some(true) => {
                self.finished.miss = block.content.as_ref().map(Content::text);
                stop.or(Some(StopAfter::Miss))
            }
            structured::NAME => {
                self.finished.text = tool_input.to_string();
                self.finished.structured = Some(tool_input.clone());
                stop.or(Some(StopAfter::Answer))
            }
            _ => stop,
        };
        if let Some(text) = follow_up {
            turn.handle(Input::FollowUp(text));
        }
        turn.handle(Input::ToolDone { result: block, stop });
    }

    /// Sends the result of a call that ends with the turn. Running calls are stopped first, so that no frame of a call
    /// comes after its result.
    pub(super) async fn stopped(&mut self, result: ToolResultBlock) {
        self.jobs.shutdown().await;
        self.finished.n_user_messages += 1;
        let text = result.content.as_ref().map(Content::text).unwrap_or_default();
        let structured = json!(format!("Error: {text}"));
        let meta = build!(ToolResultMeta {
            id: result.tool_use_id.clone(),
            non_execution_kind: Some("user-rejected".to_owned())
        });
        self.context.outbox.send_tool_result(result, Some(structured), Some(meta)).await;
    }
}
