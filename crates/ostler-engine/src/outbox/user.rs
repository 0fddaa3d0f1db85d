//! `user` frames: prompts, results of calls, and texts of the engine.

use ostler_proto::api::{Content, ContentBlock, Message, ToolResultBlock};
use ostler_proto::frame::ToHost;
use ostler_proto::message::{ToolResultMeta, User};

use super::Outbox;
use crate::ids::{fresh_uuid, timestamp};

impl Outbox {
    /// Sends the result of a call.
    pub(crate) async fn send_tool_result(
        &self,
        result: ToolResultBlock,
        structured: Option<serde_json::Value>,
        meta: Option<ToolResultMeta>,
    ) {
        let mut user = self.user(vec![ContentBlock::ToolResult(result)].into());
        user.tool_use_result = structured;
        user.tool_result_meta = meta.map(|meta| vec![meta]);
        self.send(ToHost::User(Box::new(user))).await;
    }

    /// Sends a user message of the engine: a marker, the output of a command.
    pub(crate) async fn send_user(&self, content: Vec<ContentBlock>) {
        self.send(ToHost::User(Box::new(self.user(content.into())))).await;
    }

    /// Records a prompt that the host knows already.
    pub(crate) async fn record_prompt(&self, content: Vec<ContentBlock>) {
        let frame = ToHost::User(Box::new(self.user(content.into())));
        self.record_only(&frame).await;
    }

    fn user(&self, content: Content) -> User {
        User {
            parent_tool_use_id: self.parent(),
            agent_id: self.agent().cloned(),
            uuid: Some(fresh_uuid()),
            timestamp: Some(timestamp()),
            ..User::new(content, Some(self.session_id.clone()))
        }
    }

    /// Sends a prompt back as it is taken up.
    pub(crate) async fn send_replay(&self, prompt: User) {
        let replay = User {
            session_id: Some(self.session_id.clone()),
            timestamp: Some(timestamp()),
            is_replay: Some(true),
            ..prompt
        };
        self.send(ToHost::User(Box::new(replay))).await;
    }

    /// Sends text of the engine itself as a user message.
    pub(crate) async fn send_synthetic(&self, words: String) {
        self.send(ToHost::User(Box::new(self.synthetic(words)))).await;
    }

    /// A user message that only the model reads.
    pub(crate) fn for_model(&self, content: Vec<ContentBlock>) -> User {
        User { is_synthetic: Some(true), ..self.user(content.into()) }
    }

    fn synthetic(&self, words: String) -> User {
        User { is_synthetic: Some(true), ..self.user(Content::Text(words)) }
    }

    /// Sends that a response was stopped as unsafe and the model is asked once more: a notice for the user, a text for
    /// the model.
    pub(crate) async fn send_refused_once(&self, refused: &Message, words: String) {
        let text =
            format!("{} was stopped by its safeguards; it is asked once more.", refused.model);
        self.inform(text, "notice", None).await;
        let user = User { refused_message_id: refused.id.clone(), ..self.synthetic(words) };
        self.send(ToHost::User(Box::new(user))).await;
    }
}
