//! `assistant` frames and the events of a response.

use ostler_proto::Num;
use ostler_proto::api::{
    ContentBlock, Message, Role, SYNTHETIC_MODEL, StopReason, StreamEvent, Usage,
};
use ostler_proto::build;
use ostler_proto::frame::ToHost;
use ostler_proto::message::system::ModelRefusalNoFallback;
use ostler_proto::message::{Assistant, AssistantError, StreamEventMessage, System};

use super::Outbox;
use crate::ids::{fresh_uuid, timestamp};
use crate::model::ModelError;
use crate::model::ledger::whole_usage;
use crate::response::{ResponseHeader, StreamEventMeta};

impl Outbox {
    /// Sends one finished block of a response.
    pub(crate) async fn send_block(&self, response: &ResponseHeader, block: ContentBlock) {
        self.send_block_with(response, block, None).await;
    }

    /// Sends the received part of a block that an interruption cut.
    pub(crate) async fn send_cut_block(&self, response: &ResponseHeader, block: ContentBlock) {
        self.send_block_with(response, block, Some(true)).await;
    }

    /// Sends one finished block with other text than the model's; the session's file keeps the model's.
    pub(crate) async fn send_replaced_block(
        &self,
        response: &ResponseHeader,
        block: ContentBlock,
        text: String,
    ) {
        let mut said = self.assistant(response, block, None);
        self.record_only(&ToHost::Assistant(Box::new(said.clone()))).await;
        said.message.content = vec![ContentBlock::text(text)];
        self.show(ToHost::Assistant(Box::new(said))).await;
    }

    async fn send_block_with(
        &self,
        response: &ResponseHeader,
        block: ContentBlock,
        aborted: Option<bool>,
    ) {
        let progress = match (&self.subagent, &block) {
            (Some(subagent), ContentBlock::ToolUse(call)) => {
                Some(subagent.progress(&self.session_id, call))
            }
            _ => None,
        };
        let assistant = self.assistant(response, block, aborted);
        self.send(ToHost::Assistant(Box::new(assistant))).await;
        if let Some(progress) = progress {
            self.send(progress).await;
        }
    }

    fn assistant(
        &self,
        response: &ResponseHeader,
        block: ContentBlock,
        aborted: Option<bool>,
    ) -> Assistant {
        let ResponseHeader { message, request_id, answers, call } = response.clone();
        build!(Assistant {
            message: build!(Message { content: vec![block], ..message }),
            request_id,
            user_message_uuid: answers.last().cloned(),
            user_message_uuids: Some(answers).filter(|answers| !answers.is_empty()),
            timestamp: Some(timestamp()),
            tool_use_meta: call.map(|call| vec![call]),
            parent_tool_use_id: self.parent(),
            session_id: self.session_id.clone(),
            uuid: fresh_uuid(),
            agent_id: self.agent().cloned(),
            aborted
        })
    }

    /// Sends text of the engine itself in the model's place, because the model has no answer.
    pub(crate) async fn send_error(&self, words: String, error: AssistantError) {
        let failure = self.failure(words, error, StopReason::StopSequence);
        self.send(ToHost::Assistant(Box::new(failure))).await;
    }

    /// Sends that the model declined to answer and no other model takes over.
    pub(crate) async fn send_refusal(&self, refused: &Message, words: &str) {
        let detail = |name: &str| {
            let details = refused.stop_details.as_ref()?;
            details.get(name)?.as_str().map(str::to_owned)
        };
        let frame = build!(ModelRefusalNoFallback {
            original_model: refused.model.clone(),
            api_refusal_category: detail("category"),
            api_refusal_explanation: detail("explanation"),
            refused_user_message_uuid: self.transcript.as_ref().and_then(|it| it.prompt_line()),
            content: words.to_owned(),
            session_id: self.session_id.clone(),
            uuid: fresh_uuid()
        });
        self.send(ToHost::System(System::ModelRefusalNoFallback(frame))).await;
        let failure = build!(Assistant {
            refused_message_id: refused.id.clone(),
            ..self.failure(words.to_owned(), AssistantError::InvalidRequest, StopReason::Refusal)
        });
        self.send(ToHost::Assistant(Box::new(failure))).await;
    }

    /// Sends an error of the API with its status: a resumed session must know what was refused.
    pub(crate) async fn send_api_error(&self, error: &ModelError) {
        let failure = build!(Assistant {
            api_error_status: error.status(),
            api_error_type: error.api_type().map(str::to_owned),
            ..self.failure(error.to_string(), error.kind(), StopReason::StopSequence)
        });
        self.send(ToHost::Assistant(Box::new(failure))).await;
    }

    fn failure(&self, words: String, error: AssistantError, stop_reason: StopReason) -> Assistant {
        let message = build!(Message {
            id: Some(fresh_uuid().to_string()),
            r#type: Some("message".to_owned()),
            role: Role::Assistant,
            model: SYNTHETIC_MODEL.to_owned(),
            content: vec![ContentBlock::text(words)],
            stop_reason: Some(stop_reason),
            stop_sequence: Some(String::new()),
            usage: Some(whole_usage(Usage::default()))
        });
        build!(Assistant {
            message,
            timestamp: Some(timestamp()),
            parent_tool_use_id: self.parent(),
            session_id: self.session_id.clone(),
            uuid: fresh_uuid(),
            agent_id: self.agent().cloned(),
            error: Some(error),
            is_api_error_message: Some(true)
        })
    }

    /// Sends an event of the response, if the host wants to see events. Events of subagents and the API's pings are not
    /// sent.
    pub(crate) async fn send_event(&self, event: StreamEvent, about: StreamEventMeta) {
        if !self.partial_messages
            || self.subagent.is_some()
            || matches!(event, StreamEvent::Ping(_))
        {
            return;
        }
        let StreamEventMeta { message_id, time_to_first, answers, abandoned_blocks } = about;
        let event = build!(StreamEventMessage {
            api_message_id: message_id,
            ttft_ms: time_to_first.map(|time| Num::from(time.as_millis() as u64)),
            user_message_uuid: answers.last().cloned(),
            user_message_uuids: Some(answers).filter(|answers| !answers.is_empty()),
            abandoned_blocks,
            ..StreamEventMessage::new(event, self.session_id.clone(), fresh_uuid())
        });
        self.send(ToHost::StreamEvent(Box::new(event))).await;
    }
}
