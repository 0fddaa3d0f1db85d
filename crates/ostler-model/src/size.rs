//! The size limit of one response.
//!
//! A model that repeats itself, or a broken or hostile gateway, can send without end. Every part of a response is in
//! memory several times on its way to the host, the transcript and the next request, so the limit is far below the
//! memory of a small machine and far above what a model can write: 16 MiB are some 4 million tokens.

use ostler_proto::api::{Delta, StreamEvent};

use super::ModelError;

/// The most bytes of text, thinking, arguments and other content of one response.
pub const MAX_RESPONSE_BYTES: usize = 16 * 1024 * 1024;

/// The most bytes of the stream. A delta of a few characters takes a hundred bytes and more.
const MAX_STREAM_BYTES: u64 = 32 * MAX_RESPONSE_BYTES as u64;

/// The bytes that count for a block in addition to its content: otherwise millions of empty blocks would fit.
const BLOCK_BYTES: usize = 512;

/// Counts the received part of a response.
#[derive(Debug, Default)]
pub(super) struct ResponseSize {
    n_content: usize,
    n_raw: u64,
}

impl ResponseSize {
    /// Counts received bytes, decompressed.
    pub(super) fn add_raw(&mut self, n_bytes: usize) -> Result<(), ModelError> {
        self.n_raw = self.n_raw.saturating_add(n_bytes as u64);
        if self.n_raw > MAX_STREAM_BYTES { Err(too_large()) } else { Ok(()) }
    }

    /// Counts an event. `n_data` is the length of its JSON.
    pub(super) fn add(&mut self, event: &StreamEvent, n_data: usize) -> Result<(), ModelError> {
        let n_content = match event {
            StreamEvent::ContentBlockDelta(delta) => match &delta.delta {
                Delta::TextDelta(delta) => delta.text.len(),
                Delta::ThinkingDelta(delta) => delta.thinking.len(),
                Delta::SignatureDelta(delta) => delta.signature.len(),
                Delta::InputJsonDelta(delta) => delta.partial_json.len(),
                _ => n_data,
            },
            StreamEvent::ContentBlockStart(_) => n_data.saturating_add(BLOCK_BYTES),
            StreamEvent::MessageStart(_) | StreamEvent::MessageDelta(_) => n_data,
            // The other events are not stored.
            _ => 0,
        };
        self.add_content(n_content)
    }

    /// Counts content that came without a stream.
    pub(super) fn add_content(&mut self, n_bytes: usize) -> Result<(), ModelError> {
        self.n_content = self.n_content.saturating_add(n_bytes);
        if self.n_content > MAX_RESPONSE_BYTES { Err(too_large()) } else { Ok(()) }
    }
}

fn too_large() -> ModelError {
    let most = MAX_RESPONSE_BYTES / (1024 * 1024);
    ModelError::TooLarge(format!(
        "it has more than {most} MiB, and the rest was not read. Ask for a shorter answer, or for the work in parts"
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event(value: serde_json::Value) -> StreamEvent {
        serde_json::from_value(value).unwrap()
    }

    fn delta(delta: serde_json::Value) -> StreamEvent {
        event(json!({"type": "content_block_delta", "index": 0, "delta": delta}))
    }

    #[test]
    fn every_kind_of_content_counts() {
        let text = "x".repeat(MAX_RESPONSE_BYTES / 4);
        for kind in [
            json!({"type": "text_delta", "text": text}),
            json!({"type": "thinking_delta", "thinking": text}),
            json!({"type": "signature_delta", "signature": text}),
            json!({"type": "input_json_delta", "partial_json": text}),
            json!({"type": "citations_delta", "citation": {"cited_text": text}}),
            json!({"type": "never_seen", "anything": text}),
        ] {
            let (event, n_data) = (delta(kind.clone()), kind.to_string().len());
            let mut size = ResponseSize::default();
            let n_taken = (0..10).take_while(|_| size.add(&event, n_data).is_ok()).count();
            assert!((3..=4).contains(&n_taken), "{n_taken} of {}", kind["type"]);
        }
    }

    #[test]
    fn empty_blocks_count_and_pings_do_not() {
        let block = json!({"type": "content_block_start", "index": 0,
            "content_block": {"type": "text", "text": ""}});
        let (block, ping) = (event(block), event(json!({"type": "ping"})));
        let mut size = ResponseSize::default();
        assert!((0..1_000_000).all(|_| size.add(&ping, 16).is_ok()));
        let n_blocks = (0..1_000_000).take_while(|_| size.add(&block, 80).is_ok()).count();
        assert!((10_000..40_000).contains(&n_blocks), "{n_blocks}");
    }

    #[test]
    fn a_stream_without_content_ends_too() {
        let mut size = ResponseSize::default();
        let n_taken = (0..1_000).take_while(|_| size.add_raw(1024 * 1024).is_ok()).count();
        assert_eq!(n_taken, 512);
    }
}
