//! Folds the events of a streamed response into blocks and, at the end, the whole message.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{ContentBlock, Delta, Message, StreamEvent, TextDelta, Usage};

/// Follows one response. Feed it every event in order.
///
/// ```
/// use ostler_proto::api::{Accumulator, Folded, StreamEvent};
///
/// let mut response = Accumulator::default();
/// for event in [
///     r#"{"type":"message_start","message":{"role":"assistant","model":"m","content":[]}}"#,
///     r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
///     r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi"}}"#,
/// ] {
///     let event: StreamEvent = serde_json::from_str(event).unwrap();
///     assert_eq!(response.push(&event), Ok(Folded::Nothing));
/// }
/// let stop = serde_json::from_str(r#"{"type":"content_block_stop","index":0}"#).unwrap();
/// let Ok(Folded::Block(block)) = response.push(&stop) else { panic!("the block is complete") };
/// assert_eq!(block.as_text(), Some("Hi"));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Accumulator {
    message: Option<Message>,
    open: BTreeMap<u64, OpenBlock>,
}

/// What an event completed.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "made once per event and taken apart at once")]
#[non_exhaustive]
pub enum Folded {
    /// Nothing yet.
    Nothing,
    /// A block.
    Block(ContentBlock),
    /// The response, with all its blocks.
    Message(Box<Message>),
}

/// An event out of order.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unexpected {event} in the model's stream: {reason}")]
pub struct OutOfOrder {
    event: &'static str,
    reason: String,
}

#[derive(Clone, Debug)]
struct OpenBlock {
    block: ContentBlock,
    /// Arguments of a tool call received so far.
    json: String,
}

impl Accumulator {
    /// Handles the next event and returns what it completed.
    ///
    /// # Errors
    /// If the event is out of order, such as a delta for a block that has not started.
    pub fn push(&mut self, event: &StreamEvent) -> Result<Folded, OutOfOrder> {
        match event {
            StreamEvent::MessageStart(start) => {
                if self.message.is_some() {
                    return Err(out_of_order("message_start", "the message has started already"));
                }
                self.message = Some(start.message.clone());
            }
            StreamEvent::ContentBlockStart(start) => {
                self.begun("content_block_start")?;
                let block = OpenBlock { block: start.content_block.clone(), json: String::new() };
                if self.open.insert(start.index, block).is_some() {
                    return Err(out_of_order(
                        "content_block_start",
                        format!("block {} is open", start.index),
                    ));
                }
            }
            StreamEvent::ContentBlockDelta(delta) => {
                self.open_block("content_block_delta", delta.index)?.extend(&delta.delta)?;
            }
            StreamEvent::ContentBlockStop(stop) => {
                self.open_block("content_block_stop", stop.index)?;
                let block = self.open.remove(&stop.index).map(OpenBlock::finish);
                let message = self.begun("content_block_stop")?;
                message.content.extend(block.clone());
                return Ok(block.map_or(Folded::Nothing, Folded::Block));
            }
            StreamEvent::MessageDelta(delta) => {
                let message = self.begun("message_delta")?;
                message.stop_reason.clone_from(&delta.delta.stop_reason);
                message.stop_sequence.clone_from(&delta.delta.stop_sequence);
                message.stop_details.clone_from(&delta.delta.stop_details);
                if let Some(usage) = &delta.usage {
                    merge(message.usage.get_or_insert_default(), usage);
                }
            }
            StreamEvent::MessageStop(_) => {
                self.begun("message_stop")?;
                if let Some(index) = self.open.keys().next() {
                    return Err(out_of_order("message_stop", format!("block {index} is open")));
                }
                return Ok(self
                    .message
                    .take()
                    .map_or(Folded::Nothing, |message| Folded::Message(Box::new(message))));
            }
            StreamEvent::Ping(_) | StreamEvent::Error(_) | StreamEvent::Unknown(_) => {}
        }
        Ok(Folded::Nothing)
    }

    /// The message received so far: finished blocks, then unfinished ones. The arguments of a call are included once
    /// they are complete.
    pub fn so_far(&self) -> Option<Message> {
        let mut message = self.message.clone()?;
        message.content.extend(self.open.values().map(|open| open.block.clone()));
        Some(message)
    }

    /// The received part of the arguments of an unfinished call.
    pub fn unfinished_arguments(&self) -> Option<&str> {
        self.open.values().map(|open| open.json.as_str()).find(|json| !json.is_empty())
    }

    /// The text of an unfinished block, for an interrupted response.
    pub fn unfinished_text(&self) -> Option<&str> {
        self.open.values().find_map(|open| open.block.as_text()).filter(|text| !text.is_empty())
    }

    fn begun(&mut self, event: &'static str) -> Result<&mut Message, OutOfOrder> {
        self.message.as_mut().ok_or_else(|| out_of_order(event, "message_start is missing"))
    }

    fn open_block(
        &mut self,
        event: &'static str,
        index: u64,
    ) -> Result<&mut OpenBlock, OutOfOrder> {
        self.open
            .get_mut(&index)
            .ok_or_else(|| out_of_order(event, format!("block {index} is not open")))
    }
}

impl OpenBlock {
    fn extend(&mut self, delta: &Delta) -> Result<(), OutOfOrder> {
        match (&mut self.block, delta) {
            (ContentBlock::Text(block), Delta::TextDelta(TextDelta { text, .. })) => {
                block.text.push_str(text)
            }
            (ContentBlock::Thinking(block), Delta::ThinkingDelta(delta)) => {
                block.thinking.push_str(&delta.thinking)
            }
            (ContentBlock::Thinking(block), Delta::SignatureDelta(delta)) => {
                block.signature.get_or_insert_default().push_str(&delta.signature);
            }
            (ContentBlock::Text(block), Delta::CitationsDelta(delta)) => {
                let citations = block.citations.get_or_insert(Value::Array(Vec::new()));
                if let Value::Array(citations) = citations {
                    citations.push(delta.citation.clone());
                } else {
                    *citations = Value::Array(vec![delta.citation.clone()]);
                }
            }
            (
                ContentBlock::ToolUse(_) | ContentBlock::ServerToolUse(_),
                Delta::InputJsonDelta(delta),
            ) => {
                self.json.push_str(&delta.partial_json);
            }
            // Unknown deltas are ignored.
            (ContentBlock::Unknown(_), _) | (_, Delta::Unknown(_)) => {}
            (block, delta) => {
                let (block, delta) = (block.tag().unwrap_or("?"), delta.tag().unwrap_or("?"));
                return Err(out_of_order(
                    "content_block_delta",
                    format!("{delta} for a {block} block"),
                ));
            }
        }
        Ok(())
    }

    fn finish(mut self) -> ContentBlock {
        if let ContentBlock::ToolUse(call) | ContentBlock::ServerToolUse(call) = &mut self.block {
            if !self.json.is_empty() {
                call.input = read_arguments(self.json);
            } else if call.input.is_null() {
                call.input = Value::Object(Map::new());
            }
        }
        self.block
    }
}

/// The only key of a call's input if the model's text is not a JSON object; the value is that text.
///
/// Invalid arguments are the model's mistake, not the stream's: the call stays part of the conversation (which the
/// API accepts back only with an object here), and the model gets an error as the result.
pub const INVALID_INPUT: &str = "invalid_json";

fn read_arguments(json: String) -> Value {
    match serde_json::from_str(&json) {
        Ok(Value::Object(arguments)) => Value::Object(arguments),
        _ => serde_json::json!({INVALID_INPUT: json}),
    }
}

fn out_of_order(event: &'static str, reason: impl Into<String>) -> OutOfOrder {
    OutOfOrder { event, reason: reason.into() }
}

/// Later counts replace earlier ones; absent numbers stay.
fn merge(usage: &mut Usage, later: &Usage) {
    let Usage {
        input_tokens,
        cache_creation_input_tokens,
        cache_read_input_tokens,
        output_tokens,
        server_tool_use,
        ..
    } = later;
    replace(&mut usage.input_tokens, input_tokens);
    replace(&mut usage.cache_creation_input_tokens, cache_creation_input_tokens);
    replace(&mut usage.cache_read_input_tokens, cache_read_input_tokens);
    replace(&mut usage.output_tokens, output_tokens);
    replace(&mut usage.server_tool_use, server_tool_use);
}

fn replace<T: Clone>(old: &mut Option<T>, new: &Option<T>) {
    if new.is_some() {
        old.clone_from(new);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn push(response: &mut Accumulator, event: Value) -> Result<Folded, OutOfOrder> {
        response.push(&serde_json::from_value(event).unwrap())
    }

    fn begun() -> Accumulator {
        let mut response = Accumulator::default();
        let message =
            json!({"role": "assistant", "model": "m", "content": [], "usage": {"input_tokens": 9}});
        push(&mut response, json!({"type": "message_start", "message": message})).unwrap();
        response
    }

    fn tool_call(pieces: &[&str]) -> Value {
        let mut response = begun();
        let block = json!({"type": "tool_use", "id": "t", "name": "Bash", "input": {}});
        push(
            &mut response,
            json!({"type": "content_block_start", "index": 0, "content_block": block}),
        )
        .unwrap();
        for piece in pieces {
            let delta = json!({"type": "input_json_delta", "partial_json": piece});
            push(&mut response, json!({"type": "content_block_delta", "index": 0, "delta": delta}))
                .unwrap();
        }
        let Ok(Folded::Block(ContentBlock::ToolUse(call))) =
            push(&mut response, json!({"type": "content_block_stop", "index": 0}))
        else {
            panic!("no call")
        };
        call.input
    }

    #[test]
    fn arguments_are_read_once_they_are_complete() {
        assert_eq!(tool_call(&["", "{\"a\"", ":1}"]), json!({"a": 1}));
        assert_eq!(tool_call(&[]), json!({}));
        assert_eq!(
            tool_call(&["{\"a\":"]),
            json!({INVALID_INPUT: "{\"a\":"}),
            "the model's mistake is kept"
        );
    }

    #[test]
    fn the_message_has_the_final_counts() {
        let mut response = begun();
        let delta = json!({"stop_reason": "end_turn", "stop_sequence": null});
        push(
            &mut response,
            json!({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 3}}),
        )
        .unwrap();
        let Ok(Folded::Message(message)) = push(&mut response, json!({"type": "message_stop"}))
        else {
            panic!("no message")
        };
        let usage = message.usage.unwrap();
        assert_eq!((usage.input_tokens, usage.output_tokens), (Some(9), Some(3)));
    }

    #[test]
    fn events_out_of_order_are_errors_that_say_why() {
        let stop = json!({"type": "content_block_stop", "index": 3});
        let error = push(&mut begun(), stop.clone()).unwrap_err().to_string();
        assert_eq!(
            error,
            "unexpected content_block_stop in the model's stream: block 3 is not open"
        );
        assert!(push(&mut Accumulator::default(), json!({"type": "message_stop"})).is_err());
        assert!(
            push(
                &mut begun(),
                json!({"type": "message_start", "message":
            {"role": "assistant", "model": "m", "content": []}})
            )
            .is_err()
        );
    }

    #[test]
    fn an_interrupted_response_has_the_text_of_its_unfinished_block() {
        let mut response = begun();
        assert_eq!(response.unfinished_text(), None);
        let block = json!({"type": "text", "text": "so far"});
        push(
            &mut response,
            json!({"type": "content_block_start", "index": 0, "content_block": block}),
        )
        .unwrap();
        assert_eq!(response.unfinished_text(), Some("so far"));
        push(&mut response, json!({"type": "content_block_stop", "index": 0})).unwrap();
        assert_eq!(response.unfinished_text(), None);
    }
}
