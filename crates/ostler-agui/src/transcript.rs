//! The conversation that a client has after a list of events.

use serde_json::Value;

use crate::event::{Body, EncryptedSubtype, Event};
use crate::message::{FunctionCall, FunctionType, Message, MessageBody, ToolCall};
use crate::patch;

/// The messages that a client has.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Transcript(Vec<Message>);

impl Transcript {
    /// Adds a message.
    pub fn said(&mut self, message: Message) {
        self.0.push(message);
    }

    /// How many messages there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no messages.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Removes all but the first `len` messages.
    pub fn truncate(&mut self, len: usize) {
        self.0.truncate(len);
    }

    /// The ids of all messages, in order.
    pub fn ids(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.0.iter().map(|message| message.id.as_str())
    }

    /// All messages, in order.
    pub fn into_messages(self) -> Vec<Message> {
        self.0
    }

    /// Applies an event, as a client does.
    pub fn apply(&mut self, event: &Event) {
        match &event.body {
            Body::TextMessageStart { message_id, .. } => {
                let body =
                    MessageBody::Assistant { content: Some(String::new()), tool_calls: None };
                self.begin(event, message_id, body);
            }
            Body::ReasoningMessageStart { message_id, .. } => {
                self.begin(event, message_id, MessageBody::Reasoning { content: String::new() });
            }
            Body::TextMessageContent { message_id, delta }
            | Body::ReasoningMessageContent { message_id, delta } => self.more(message_id, delta),
            Body::ToolCallStart { tool_call_id, tool_call_name, parent_message_id } => {
                self.call(event, tool_call_id, tool_call_name, parent_message_id.as_deref());
            }
            Body::ToolCallArgs { tool_call_id, delta } => {
                if let Some(call) = self.find_call(tool_call_id) {
                    call.function.arguments.push_str(delta);
                }
            }
            Body::ToolCallResult { message_id, tool_call_id, content, .. } => {
                let is_error = |metadata: &crate::Metadata| metadata.contains_key("isError");
                let failed = event.metadata.as_ref().is_some_and(is_error);
                let body = MessageBody::Tool {
                    content: content.clone(),
                    tool_call_id: tool_call_id.clone(),
                    error: failed.then(|| content.text()),
                };
                self.begin(event, message_id, body);
            }
            Body::ReasoningEncryptedValue { subtype, entity_id, encrypted_value } => {
                self.encrypted(*subtype, entity_id, encrypted_value);
            }
            Body::ActivitySnapshot { message_id, activity_type, content, .. } => {
                let (activity_type, content) = (activity_type.clone(), content.clone());
                let body = MessageBody::Activity { activity_type, content };
                match self.find(message_id) {
                    Some(message) => message.body = body,
                    None => self.begin(event, message_id, body),
                }
            }
            Body::ActivityDelta { message_id, patch, .. } => self.activity(message_id, patch),
            _ => {}
        }
    }

    fn begin(&mut self, event: &Event, id: &str, body: MessageBody) {
        let mut message = Message::new(id, body);
        message.subagent_run_id = event.subagent_run_id().map(str::to_owned);
        self.0.push(message);
    }

    fn find(&mut self, id: &str) -> Option<&mut Message> {
        // Searches from the end, because events change recent messages.
        self.0.iter_mut().rev().find(|message| message.id == id)
    }

    fn more(&mut self, id: &str, delta: &str) {
        match self.find(id).map(|message| &mut message.body) {
            Some(MessageBody::Assistant { content, .. }) => {
                content.get_or_insert_default().push_str(delta);
            }
            Some(MessageBody::Reasoning { content }) => content.push_str(delta),
            _ => {}
        }
    }

    fn call(&mut self, event: &Event, id: &str, name: &str, parent: Option<&str>) {
        let call = ToolCall {
            id: id.to_owned(),
            r#type: FunctionType::Function,
            function: FunctionCall { name: name.to_owned(), arguments: String::new() },
            encrypted_value: None,
            metadata: None,
        };
        let parent = parent.unwrap_or(id);
        if let Some(MessageBody::Assistant { tool_calls, .. }) =
            self.find(parent).map(|message| &mut message.body)
        {
            return tool_calls.get_or_insert_default().push(call);
        }
        let body = MessageBody::Assistant { content: None, tool_calls: Some(vec![call]) };
        self.begin(event, parent, body);
    }

    fn find_call(&mut self, id: &str) -> Option<&mut ToolCall> {
        self.0.iter_mut().rev().find_map(|message| match &mut message.body {
            MessageBody::Assistant { tool_calls: Some(calls), .. } => {
                calls.iter_mut().find(|call| call.id == id)
            }
            _ => None,
        })
    }

    fn encrypted(&mut self, subtype: EncryptedSubtype, id: &str, value: &str) {
        let place = match subtype {
            EncryptedSubtype::Message => self.find(id).map(|it| &mut it.encrypted_value),
            EncryptedSubtype::ToolCall => self.find_call(id).map(|it| &mut it.encrypted_value),
        };
        if let Some(place) = place {
            *place = Some(value.to_owned());
        }
    }

    fn activity(&mut self, id: &str, delta: &[patch::Operation]) {
        let Some(MessageBody::Activity { content, .. }) =
            self.find(id).map(|message| &mut message.body)
        else {
            return;
        };
        // A patch that cannot be applied is ignored, as clients do.
        if let Ok(Value::Object(changed)) = patch::apply(&Value::Object(content.clone()), delta) {
            *content = changed;
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn messages_after(events: Value) -> Value {
        let events: Vec<Event> = serde_json::from_value(events).unwrap();
        let mut transcript = Transcript::default();
        events.iter().for_each(|event| transcript.apply(event));
        json!(transcript.into_messages())
    }

    #[test]
    fn text_reasoning_calls_and_results_become_messages() {
        let messages = messages_after(json!([
            {"type": "REASONING_MESSAGE_START", "messageId": "r", "role": "reasoning"},
            {"type": "REASONING_MESSAGE_CONTENT", "messageId": "r", "delta": "Hm"},
            {"type": "REASONING_ENCRYPTED_VALUE", "subtype": "message", "entityId": "r", "encryptedValue": "c2ln"},
            {"type": "TEXT_MESSAGE_START", "messageId": "a", "role": "assistant"},
            {"type": "TEXT_MESSAGE_CONTENT", "messageId": "a", "delta": "Look"},
            {"type": "TEXT_MESSAGE_CONTENT", "messageId": "a", "delta": "ing"},
            {"type": "TEXT_MESSAGE_END", "messageId": "a"},
            {"type": "TOOL_CALL_START", "toolCallId": "c", "toolCallName": "Glob", "parentMessageId": "a"},
            {"type": "TOOL_CALL_ARGS", "toolCallId": "c", "delta": "{\"a\":"},
            {"type": "TOOL_CALL_ARGS", "toolCallId": "c", "delta": "1}"},
            {"type": "TOOL_CALL_END", "toolCallId": "c"},
            {"type": "TOOL_CALL_RESULT", "messageId": "c-result", "toolCallId": "c", "content": "none", "metadata": {"isError": true}},
            {"type": "TOOL_CALL_START", "toolCallId": "d", "toolCallName": "Read"},
        ]));
        let call = |id: &str, name: &str, arguments: &str| json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}});
        assert_eq!(
            messages,
            json!([
                {"id": "r", "role": "reasoning", "content": "Hm", "encryptedValue": "c2ln"},
                {"id": "a", "role": "assistant", "content": "Looking", "toolCalls": [call("c", "Glob", "{\"a\":1}")]},
                {"id": "c-result", "role": "tool", "content": "none", "toolCallId": "c", "error": "none"},
                {"id": "d", "role": "assistant", "toolCalls": [call("d", "Read", "")]},
            ])
        );
    }

    #[test]
    fn an_activity_is_updated_in_place() {
        let messages = messages_after(json!([
            {"type": "ACTIVITY_SNAPSHOT", "messageId": "p", "activityType": "PLAN", "content": {"done": 1}},
            {"type": "ACTIVITY_DELTA", "messageId": "p", "activityType": "PLAN", "patch": [{"op": "replace", "path": "/done", "value": 2}]},
            {"type": "ACTIVITY_DELTA", "messageId": "p", "activityType": "PLAN", "patch": [{"op": "remove", "path": "/nothing"}]},
        ]));
        assert_eq!(
            messages,
            json!([{"id": "p", "role": "activity", "activityType": "PLAN", "content": {"done": 2}}])
        );
    }
}
