//! A run in a test: frames in, events out, each verified for its order.

use ostler_agui::event::{Body, Event};
use ostler_agui::translate::{Settings, Translator};
use ostler_agui::verify::Verifier;
use ostler_proto::frame::ToHost;
use serde_json::{Value, json};

pub(crate) struct Run {
    pub(crate) translator: Translator,
    verifier: Verifier,
    pub(crate) events: Vec<Event>,
}

impl Run {
    pub(crate) fn new(settings: Settings) -> Self {
        let translator = Translator::new(settings);
        let start = translator.start();
        let mut run = Self { translator, verifier: Verifier::default(), events: Vec::new() };
        run.take(vec![start]);
        run
    }

    pub(crate) fn plain() -> Self {
        Self::new(Settings::new("thread", "run"))
    }

    pub(crate) fn take(&mut self, events: Vec<Event>) {
        for event in events {
            let json = event.to_json();
            let read: Event = serde_json::from_str(&json).expect("a written event can be read");
            assert_eq!(read, event, "{json}");
            self.events.push(event.clone());
            if let Err(violation) = self.verifier.check(&event) {
                panic!("{violation}\n{}", self.story());
            }
        }
    }

    pub(crate) fn frame(&mut self, frame: &ToHost) {
        let events = self.translator.frame(frame);
        self.take(events);
    }

    pub(crate) fn frames(&mut self, frames: impl IntoIterator<Item = Value>) {
        for frame in frames {
            let frame = serde_json::from_value(with_usual(frame)).expect("a frame");
            self.frame(&frame);
        }
    }

    /// Ends the run if it has not ended, as a server must.
    pub(crate) fn end(&mut self) {
        let events = self.translator.fail("the agent is gone", "truncated");
        self.take(events);
        self.verifier.finish().expect("the run has an end");
    }

    pub(crate) fn story(&self) -> String {
        self.events.iter().map(|event| event.to_json() + "\n").collect()
    }

    /// The events after the first, abbreviated.
    pub(crate) fn short(&self) -> Vec<String> {
        self.events[1..].iter().map(short).collect()
    }
}

/// Adds the fields that every frame has and that no test is about.
fn with_usual(mut frame: Value) -> Value {
    let usual = json!({"session_id": "s", "uuid": "u", "parent_tool_use_id": null});
    let object = frame.as_object_mut().expect("a frame is an object");
    for (name, value) in usual.as_object().expect("an object") {
        object.entry(name.clone()).or_insert(value.clone());
    }
    frame
}

/// An event in one line: its type and field values.
pub(crate) fn short(event: &Event) -> String {
    let value = serde_json::to_value(event).expect("events are JSON");
    let object = value.as_object().expect("an event is an object");
    let mut parts = vec![object["type"].as_str().expect("a type").to_owned()];
    let omitted = ["type", "threadId", "runId", "role"];
    for (name, value) in object.iter().filter(|(name, _)| !omitted.contains(&name.as_str())) {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let named = matches!(
            name.as_str(),
            "metadata" | "subagentRunId" | "parentSubagentRunId" | "usage" | "code" | "result"
        );
        parts.push(if named { format!("{name}={text}") } else { text });
    }
    parts.join(" ")
}

pub(crate) fn delta_text(event: &Event) -> Option<&str> {
    match &event.body {
        Body::TextMessageContent { delta, .. } => Some(delta),
        _ => None,
    }
}

// --- frames

pub(crate) fn stream(event: Value) -> Value {
    json!({"type": "stream_event", "event": event})
}

pub(crate) fn message_start(id: &str) -> Value {
    let usage = json!({"input_tokens": 10, "cache_read_input_tokens": 5, "cache_creation_input_tokens": 2, "output_tokens": 1});
    stream(json!({"type": "message_start", "message":
        {"id": id, "role": "assistant", "model": "m", "content": [], "usage": usage}}))
}

pub(crate) fn block_start(index: u64, block: Value) -> Value {
    stream(json!({"type": "content_block_start", "index": index, "content_block": block}))
}

pub(crate) fn delta(index: u64, delta: Value) -> Value {
    stream(json!({"type": "content_block_delta", "index": index, "delta": delta}))
}

pub(crate) fn text_delta(index: u64, text: &str) -> Value {
    delta(index, json!({"type": "text_delta", "text": text}))
}

pub(crate) fn block_stop(index: u64) -> Value {
    stream(json!({"type": "content_block_stop", "index": index}))
}

pub(crate) fn message_delta(stop: &str) -> Value {
    stream(
        json!({"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": null}, "usage": {"output_tokens": 7}}),
    )
}

pub(crate) fn message_stop() -> Value {
    stream(json!({"type": "message_stop"}))
}

pub(crate) fn assistant(id: &str, block: Value) -> Value {
    json!({"type": "assistant", "message": {"id": id, "role": "assistant", "model": "m", "content": [block]}})
}

pub(crate) fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

pub(crate) fn tool_use(id: &str, name: &str, input: Value) -> Value {
    json!({"type": "tool_use", "id": id, "name": name, "input": input})
}

pub(crate) fn tool_result(call: &str, content: Value) -> Value {
    let block = json!({"type": "tool_result", "tool_use_id": call, "content": content});
    json!({"type": "user", "message": {"role": "user", "content": [block]}})
}

pub(crate) fn tool_error(call: &str, message: &str) -> Value {
    let block =
        json!({"type": "tool_result", "tool_use_id": call, "content": message, "is_error": true});
    json!({"type": "user", "message": {"role": "user", "content": [block]}})
}

pub(crate) fn of_subagent(mut frame: Value, call: &str) -> Value {
    frame["parent_tool_use_id"] = json!(call);
    frame
}

pub(crate) fn result(more: Value) -> Value {
    let mut frame = json!({
        "type": "result", "subtype": "success", "is_error": false, "duration_ms": 1, "duration_api_ms": 1,
        "num_turns": 1, "result": "said already", "stop_reason": "end_turn", "total_cost_usd": 0, "usage": {},
        "modelUsage": {}, "permission_denials": [],
    });
    frame.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
    frame
}
