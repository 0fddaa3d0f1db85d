//! The engine's own notices. Some start and end subagents; the others become custom events named `ostler:…`.
//!
//! Session ids and file paths are left out: clients need not know them.

use ostler_proto::message::System;
use ostler_proto::message::system::{TaskNotification, TaskOutcome};
use serde_json::{Value, json};

use super::Translator;
use super::subagent::SubagentEnd;
use crate::event::Body;

impl Translator {
    pub(super) fn notice(&mut self, system: &System) {
        match system {
            System::TaskStarted(task) if task.task_type.as_deref() == Some("local_agent") => {
                if let Some(call) = &task.tool_use_id {
                    let kind = task.subagent_type.as_deref();
                    self.begin_subagent(call.as_str(), kind, Some(&task.description));
                }
            }
            System::TaskNotification(task) => {
                self.end_background(task);
                let value = json!({"status": task.status, "summary": task.summary});
                self.custom_event("task_notification", value);
            }
            System::CompactBoundary(boundary) => {
                let metadata = &boundary.compact_metadata;
                let value = json!({"trigger": metadata.trigger, "preTokens": metadata.pre_tokens});
                self.custom_event("compact_boundary", value);
            }
            System::ApiRetry(retry) => {
                let value = json!({
                    "attempt": retry.attempt, "maxRetries": retry.max_retries,
                    "delayMs": retry.retry_delay_ms, "error": retry.error,
                });
                self.custom_event("api_retry", value);
            }
            System::PermissionDenied(denied) => {
                let value = json!({
                    "toolCallId": denied.tool_use_id, "toolName": denied.tool_name, "message": denied.message,
                });
                self.custom_event("permission_denied", value);
            }
            System::HookStarted(hook) => {
                let value = json!({"name": hook.hook_name, "event": hook.hook_event});
                self.custom_event("hook_started", value);
            }
            System::HookResponse(hook) => {
                let value = json!({
                    "name": hook.hook_name, "event": hook.hook_event, "outcome": hook.outcome,
                });
                self.custom_event("hook_response", value);
            }
            System::ModelFallback(fallback) => {
                let value = json!({
                    "from": fallback.original_model, "to": fallback.fallback_model, "message": fallback.content,
                });
                self.custom_event("model_fallback", value);
            }
            System::Informational(information) => {
                let value = json!({"message": information.content, "level": information.level});
                self.custom_event("informational", value);
            }
            _ => {}
        }
    }

    fn custom_event(&mut self, name: &str, value: Value) {
        if !self.settings.quiet {
            self.out.push(Body::Custom { name: format!("ostler:{name}"), value }.into());
        }
    }

    fn end_background(&mut self, task: &TaskNotification) {
        let Some(call) = &task.tool_use_id else { return };
        let failed = |code: &str| SubagentEnd::Failed {
            message: task.summary.clone(),
            code: Some(code.to_owned()),
        };
        let end = match task.status {
            TaskOutcome::Completed => SubagentEnd::Done,
            TaskOutcome::Failed => failed("failed"),
            _ => failed("stopped"),
        };
        self.end_subagent(call.as_str(), end);
    }
}
