//! An answer as stream events: text word by word, arguments in small chunks of JSON.

use ostler_proto::Extra;
use ostler_proto::api::{
    ContentBlock, ContentBlockDelta, ContentBlockStart, ContentBlockStop, Delta, InputJsonDelta,
    Message, MessageChange, MessageDelta, MessageStart, MessageStop, Role, StreamEvent, TextDelta,
    ToolUseBlock, Usage,
};
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
        let start = ContentBlockStart { index, content_block, extra: Extra::default() };
        events.push(StreamEvent::ContentBlockStart(start));
        events.extend(deltas.into_iter().map(|delta| {
            StreamEvent::ContentBlockDelta(ContentBlockDelta {
                index,
                delta,
                extra: Extra::default(),
            })
        }));
        events.push(StreamEvent::ContentBlockStop(ContentBlockStop {
            index,
            ..ContentBlockStop::default()
        }));
    }
    events.push(StreamEvent::MessageDelta(Box::new(MessageDelta {
        delta: MessageChange { stop_reason: Some(answer.stop_reason), ..MessageChange::default() },
        usage: Some(answer.usage),
        ..MessageDelta::default()
    })));
    events.push(StreamEvent::MessageStop(MessageStop::default()));
    events
}

fn start(answer: &OfflineResponse) -> StreamEvent {
    let message = Message {
        id: Some(answer.id.clone()),
        r#type: Some("message".to_owned()),
        role: Role::Assistant,
        model: NAME.to_owned(),
        content: Vec::new(),
        stop_reason: None,
        stop_sequence: None,
        stop_details: None,
        // The API counts a single token at this point; the rest is in `message_delta`.
        usage: Some(Usage { output_tokens: Some(1), ..answer.usage.clone() }),
        container: None,
        context_management: None,
        diagnostics: None,
        extra: Extra::default(),
    };
    StreamEvent::MessageStart(Box::new(MessageStart { message, extra: Extra::default() }))
}

/// A block as it begins, and the deltas that complete it.
fn taken_apart(block: &ContentBlock) -> (ContentBlock, Vec<Delta>) {
    match block {
        ContentBlock::Text(block) => {
            let words = block.text.split_inclusive(char::is_whitespace);
            let deltas = words.map(|word| {
                Delta::TextDelta(TextDelta { text: word.to_owned(), ..TextDelta::default() })
            });
            (ContentBlock::text(""), deltas.collect())
        }
        ContentBlock::ToolUse(block) => {
            let empty = ToolUseBlock { input: json!({}), ..block.clone() };
            let deltas = pieces(&block.input.to_string()).into_iter().map(|partial_json| {
                Delta::InputJsonDelta(InputJsonDelta { partial_json, ..InputJsonDelta::default() })
            });
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
