//! An answer as stream events: text word by word, arguments in small chunks of JSON.

use ostler_proto::api::{
    ContentBlock, ContentBlockDelta, ContentBlockStart, ContentBlockStop, Delta, InputJsonDelta,
    Message, MessageChange, MessageDelta, MessageStart, MessageStop, Role, StreamEvent, TextDelta,
    ToolUseBlock, Usage,
};
use ostler_proto::build;
use serde_json::json;

use super::NAME;
use super::reply::OfflineResponse;

/// Characters of JSON per delta.
const PIECE: usize = 24;

/// All events of an answer, from `message_start` to `message_stop`.
pub(super) fn events(answer: OfflineResponse) -> Vec<StreamEvent> {
    let mut events = vec![start(&answer)];
    for (index, block) in (0..).zip(&answer.blocks) {
        let (content_block, deltas) = taken_apart(block);
        let start = ContentBlockStart::new(index, content_block);
        events.push(StreamEvent::ContentBlockStart(start));
        events.extend(
            deltas
                .into_iter()
                .map(|delta| StreamEvent::ContentBlockDelta(ContentBlockDelta::new(index, delta))),
        );
        events.push(StreamEvent::ContentBlockStop(build!(ContentBlockStop { index })));
    }
    events.push(StreamEvent::MessageDelta(Box::new(build!(MessageDelta {
        delta: build!(MessageChange { stop_reason: Some(answer.stop_reason) }),
        usage: Some(answer.usage)
    }))));
    events.push(StreamEvent::MessageStop(MessageStop::default()));
    events
}

fn start(answer: &OfflineResponse) -> StreamEvent {
    let message = build!(Message {
        id: Some(answer.id.clone()),
        r#type: Some("message".to_owned()),
        role: Role::Assistant,
        model: NAME.to_owned(),
        // The API counts a single token at this point; the rest is in `message_delta`.
        usage: Some(build!(Usage { output_tokens: Some(1), ..answer.usage.clone() })),
    });
    StreamEvent::MessageStart(Box::new(MessageStart::new(message)))
}

/// A block as it begins, and the deltas that complete it.
fn taken_apart(block: &ContentBlock) -> (ContentBlock, Vec<Delta>) {
    match block {
        ContentBlock::Text(block) => {
            let words = block.text.split_inclusive(char::is_whitespace);
            let deltas =
                words.map(|word| Delta::TextDelta(build!(TextDelta { text: word.to_owned() })));
            (ContentBlock::text(""), deltas.collect())
        }
        ContentBlock::ToolUse(block) => {
            let empty = build!(ToolUseBlock { input: json!({}), ..block.clone() });
            let deltas = pieces(&block.input.to_string())
                .into_iter()
                .map(|partial_json| Delta::InputJsonDelta(build!(InputJsonDelta { partial_json })));
            (ContentBlock::ToolUse(empty), deltas.collect())
        }
        // Answers contain no other blocks; they would be sent whole.
        other => (other.clone(), Vec::new()),
    }
}

fn pieces(text: &str) -> Vec<String> {
    let letters: Vec<char> = text.chars().collect();
    letters.chunks(PIECE).map(|piece| piece.iter().collect()).collect()
}
