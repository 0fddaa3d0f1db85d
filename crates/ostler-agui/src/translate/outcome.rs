//! Translates tool results.

use ostler_proto::api::{self, ContentBlock, ToolResultBlock};
use ostler_proto::message::User;
use serde_json::Value;

use super::subagent::SubagentEnd;
use super::{Speaker, Translator};
use crate::event::{Body, Event, ToolRole};
use crate::message::{Content, Part, PartBody, Source};

impl Translator {
    pub(super) fn results(&mut self, user: &User) {
        let Some(api::Content::Blocks(blocks)) = &user.message.content else { return };
        for block in blocks {
            let ContentBlock::ToolResult(result) = block else { continue };
            let speaker = user.parent_tool_use_id.as_ref();
            let speaker = self.speaker(speaker, user.subagent_type.as_deref());
            self.tool_result(&speaker, result, user.tool_use_result.as_ref());
        }
    }

    fn tool_result(&mut self, sender: &Speaker, block: &ToolResultBlock, output: Option<&Value>) {
        let id = block.tool_use_id.as_str();
        let failed = block.is_error == Some(true);
        let content = content(block.content.as_ref());
        if self.calls.get(id).is_some_and(|call| call.answered) {
            return;
        }
        self.close_call(id);
        self.end_of_agent(id, failed, &content, output);
        let call = self.calls.get_mut(id);
        let hidden = call.as_ref().is_some_and(|call| call.is_hidden());
        // A result for a call of an earlier run belongs to the sender of the message.
        let speaker = call.as_ref().map_or_else(|| sender.clone(), |call| call.speaker.clone());
        if let Some(call) = call {
            call.answered = true;
        }
        if !hidden && !self.is_answered_by_client(id) {
            self.send_result(&speaker, id, content, failed);
        }
        if !failed {
            self.update_todos(&speaker, id, output);
        }
    }

    /// Whether the client itself answered a call, so that it has the result already.
    fn is_answered_by_client(&self, id: &str) -> bool {
        let settings = &self.settings;
        settings.answered_by_client.contains(id)
            || self.calls.get(id).is_some_and(|call| settings.client_tools.contains(&call.name))
    }

    /// Ends a subagent with the result of its call, unless the result only reports that it runs in the background.
    fn end_of_agent(&mut self, id: &str, failed: bool, content: &Content, output: Option<&Value>) {
        let is_agent = self.calls.get(id).is_some_and(super::call::Call::is_agent);
        if !is_agent && !self.is_active(id) {
            return;
        }
        let field = |name: &str| output.and_then(|output| output.get(name));
        let in_background = field("isAsync").and_then(Value::as_bool) == Some(true)
            || field("status").and_then(Value::as_str) == Some("async_launched");
        if in_background {
            return;
        }
        if failed {
            let end = SubagentEnd::Failed { message: content.text(), code: None };
            return self.end_subagent(id, end);
        }
        self.begin_subagent_once(id);
        self.end_subagent(id, SubagentEnd::Done);
    }

    /// Starts a subagent that sent no message before its result.
    fn begin_subagent_once(&mut self, id: &str) {
        if !self.subagents.contains_key(id) {
            self.begin_subagent(id, None, None);
        }
    }

    fn send_result(&mut self, speaker: &Speaker, id: &str, content: Content, failed: bool) {
        let message_id = format!("{id}-result");
        self.message_ids.push(message_id.clone());
        let mut event = Event::new(Body::ToolCallResult {
            message_id,
            tool_call_id: id.to_owned(),
            content,
            role: Some(ToolRole::Tool),
        });
        if failed {
            event = event.with_metadata("isError", true);
        }
        self.emit_event(speaker, event);
    }

    /// Sends the result of a tool that the provider ran.
    pub(super) fn server_result(&mut self, speaker: &Speaker, id: &str, content: &Value) {
        if self.calls.get(id).is_some_and(|call| call.answered) {
            return;
        }
        self.close_text(speaker);
        self.close_call(id);
        if let Some(call) = self.calls.get_mut(id) {
            call.answered = true;
        }
        let failed = content.get("error_code").is_some();
        let text = content.as_str().map_or_else(|| content.to_string(), str::to_owned);
        self.send_result(speaker, id, Content::Text(text), failed);
    }
}

/// Converts a result: a string if it is all text, else parts.
pub(super) fn content(content: Option<&api::Content>) -> Content {
    let blocks = match content {
        None => return Content::Text(String::new()),
        Some(api::Content::Text(text)) => return Content::Text(text.clone()),
        Some(api::Content::Blocks(blocks)) => blocks,
    };
    let content = Content::Parts(blocks.iter().filter_map(part).collect());
    if content.has_media() { content } else { Content::Text(content.text()) }
}

fn part(block: &ContentBlock) -> Option<Part> {
    let body = match block {
        ContentBlock::Text(text) => return Some(Part::text(&text.text)),
        ContentBlock::Image(image) => PartBody::Image { source: source(&image.source)? },
        ContentBlock::Document(document) => {
            PartBody::Document { source: source(&document.source)? }
        }
        _ => return None,
    };
    Some(Part { body, id: None, metadata: None })
}

fn source(source: &api::Source) -> Option<Source> {
    match source {
        api::Source::Base64(data) => {
            Some(Source::Data { value: data.data.clone(), mime_type: data.media_type.clone() })
        }
        api::Source::Url(url) => Some(Source::Url { value: url.url.clone(), mime_type: None }),
        _ => None,
    }
}
