//! `system` frames: what happens next to the conversation.

use ostler_proto::api::ToolUseBlock;
use ostler_proto::build;
use ostler_proto::frame::ToHost;
use ostler_proto::message::System;
use ostler_proto::message::system::{
    ApiRetry, Informational, ModelFallback, PermissionDenied, Status,
};
use ostler_proto::permission::PermissionMode;
use ostler_proto::{Num, Uuid};

use super::{Notice, Outbox};
use crate::ids::fresh_uuid;
use crate::model::{Fallback, FallbackTrigger, Retry};
use crate::permission::Decision;

impl Outbox {
    /// Notifies a host that follows responses of a request to the model.
    pub(crate) async fn send_requesting(&self, answers: &[Uuid]) {
        if !self.partial_messages || self.subagent.is_some() {
            return;
        }
        let status = build!(Status {
            status: Some("requesting".to_owned()),
            user_message_uuids: Some(answers.to_vec()).filter(|answers| !answers.is_empty()),
            session_id: self.session_id.clone(),
            uuid: fresh_uuid()
        });
        self.send(ToHost::System(System::Status(status))).await;
    }

    /// Sends the current permission mode.
    pub(crate) async fn send_mode(&self, mode: PermissionMode) {
        let status = build!(Status {
            permission_mode: Some(mode),
            session_id: self.session_id.clone(),
            uuid: fresh_uuid()
        });
        self.send(ToHost::System(System::Status(status))).await;
    }

    /// Sends that a request to the model will be retried.
    pub(crate) async fn send_retry(&self, retry: &Retry) {
        let frame = build!(ApiRetry {
            attempt: retry.attempt,
            max_retries: retry.max_retries,
            retry_delay_ms: Num::from(retry.delay.as_millis() as u64),
            error_status: retry.status,
            session_id: self.session_id.clone(),
            uuid: fresh_uuid(),
            ..ApiRetry::new(retry.error.clone())
        });
        self.send(ToHost::System(System::ApiRetry(frame))).await;
    }

    /// Sends that another model takes over.
    pub(crate) async fn send_fallback(&self, fallback: Fallback) {
        let reason = match fallback.trigger {
            FallbackTrigger::Overloaded => "is overloaded",
            FallbackTrigger::ServerError => "failed with a server error",
            FallbackTrigger::ModelNotFound => "is not available",
            _ => "refused the request",
        };
        let content = format!("{} {reason}; {} takes over", fallback.from, fallback.to);
        let frame = build!(ModelFallback {
            trigger: fallback.trigger.as_str().to_owned(),
            original_model: fallback.from,
            fallback_model: fallback.to,
            content,
            session_id: self.session_id.clone(),
            uuid: fresh_uuid()
        });
        self.send(ToHost::System(System::ModelFallback(frame))).await;
    }

    /// Sends that a call was denied without asking the user.
    pub(crate) async fn send_denied(&self, call: &ToolUseBlock, decision: &Decision) {
        let frame = build!(PermissionDenied {
            tool_name: call.name.clone(),
            tool_use_id: call.id.clone(),
            agent_id: self.agent().cloned(),
            decision_reason_type: Some(decision.reason_type.to_string()),
            decision_reason: Some(decision.reason.clone()),
            message: decision.reason.clone(),
            session_id: self.session_id.clone(),
            uuid: fresh_uuid()
        });
        self.send(ToHost::System(System::PermissionDenied(frame))).await;
    }

    /// Sends the user a message, through the host.
    pub(crate) async fn inform(&self, content: String, level: &str, tag: Option<&str>) {
        let frame = build!(Informational {
            content,
            level: level.to_owned(),
            tag: tag.map(str::to_owned),
            session_id: self.session_id.clone(),
            uuid: fresh_uuid()
        });
        self.send(ToHost::System(System::Informational(frame))).await;
    }

    /// Adds notices for the user, which are sent after the next `init`.
    pub(crate) fn notify(&self, notices: impl Iterator<Item = Notice>) {
        self.notices.lock().extend(notices);
    }

    /// Sends the notices about the start, once.
    pub(super) async fn send_notices(&self) {
        let notices = std::mem::take(&mut *self.notices.lock());
        for Notice { content, level } in notices {
            Box::pin(self.inform(content, level, Some("startup"))).await;
        }
    }
}
