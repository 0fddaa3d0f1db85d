//! The events of a stream, as the public Messages API documents them, and their bytes on the wire.

use serde_json::{Value, json};

use crate::message::{ComposedBlock, Message};

/// One event of a stream. Its name is the `type` of its data.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Event(pub(crate) Value);

impl Event {
    pub(crate) fn ping() -> Self {
        Self(json!({"type": "ping"}))
    }

    pub(crate) fn message_stop() -> Self {
        Self(json!({"type": "message_stop"}))
    }

    pub(crate) fn block_delta(index: usize, delta: &Value) -> Self {
        Self(json!({"type": "content_block_delta", "index": index, "delta": delta}))
    }

    pub(crate) fn block_stop(index: usize) -> Self {
        Self(json!({"type": "content_block_stop", "index": index}))
    }

    pub(crate) fn error(error_type: &str, message: &str) -> Self {
        Self(json!({"type": "error", "error": {"type": error_type, "message": message}}))
    }

    pub(crate) fn name(&self) -> &str {
        self.0["type"].as_str().expect("every constructor sets the type")
    }

    /// The event as lines of an event stream.
    pub(crate) fn encode(&self) -> String {
        format!("event: {}\ndata: {}\n\n", self.name(), self.0)
    }
}

/// All events of a message, from `message_start` to `message_stop`, without pings.
pub(crate) fn events_of(message: &Message) -> Vec<Event> {
    let blocks =
        message.blocks.iter().enumerate().flat_map(|(index, block)| block_events(index, block));
    let mut delta =
        json!({"stop_reason": message.stop_reason, "stop_sequence": message.stop_sequence});
    if let Some(details) = &message.stop_details {
        delta["stop_details"] = details.clone();
    }
    let end = Event(json!({"type": "message_delta", "delta": delta, "usage": message.usage}));
    [message_start(message)].into_iter().chain(blocks).chain([end, Event::message_stop()]).collect()
}

/// The opening event: the message without content, and with the single output token counted so far.
pub(crate) fn message_start(message: &Message) -> Event {
    let mut empty = message.whole();
    empty["content"] = json!([]);
    empty["stop_reason"] = Value::Null;
    empty["stop_sequence"] = Value::Null;
    empty.as_object_mut().map(|empty| empty.shift_remove("stop_details"));
    empty["usage"]["output_tokens"] = json!(1);
    Event(json!({"type": "message_start", "message": empty}))
}

fn block_events(index: usize, block: &ComposedBlock) -> Vec<Event> {
    let start =
        Event(json!({"type": "content_block_start", "index": index, "content_block": block.start}));
    let deltas = block.deltas.iter().map(|delta| Event::block_delta(index, delta));
    [start].into_iter().chain(deltas).chain([Event::block_stop(index)]).collect()
}
