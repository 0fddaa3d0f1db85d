//! The stream of events that a host sees.

use std::sync::Arc;

use futures::{FutureExt, StreamExt};
use ostler_proto::api::{ContentBlock, Delta, StopReason, StreamEvent};
use serde_json::Value;

use super::super::OfflineModel;
use super::{Conversation, TestReply};
use crate::{Model, Request};

/// Assembles an answer from its events and checks their order.
pub(super) fn assembled(events: &[StreamEvent]) -> (Vec<ContentBlock>, StopReason) {
    let [
        StreamEvent::MessageStart(start),
        middle @ ..,
        StreamEvent::MessageDelta(delta),
        StreamEvent::MessageStop(_),
    ] = events
    else {
        panic!("wrong frame: {events:?}")
    };
    assert_eq!(start.message.model, "offline-demo");
    assert!(start.message.content.is_empty() && start.message.stop_reason.is_none());
    assert!(delta.usage.as_ref().unwrap().output_tokens.unwrap() > 0);

    let mut blocks: Vec<ContentBlock> = Vec::new();
    let mut open: Option<(ContentBlock, String)> = None;
    for event in middle {
        match event {
            StreamEvent::ContentBlockStart(start) => {
                assert_eq!(start.index, blocks.len() as u64);
                assert!(open.replace((start.content_block.clone(), String::new())).is_none());
            }
            StreamEvent::ContentBlockDelta(delta) => {
                assert_eq!(delta.index, blocks.len() as u64);
                let (block, text) = open.as_mut().unwrap();
                match (block, &delta.delta) {
                    (ContentBlock::Text(_), Delta::TextDelta(piece)) => text.push_str(&piece.text),
                    (ContentBlock::ToolUse(_), Delta::InputJsonDelta(piece)) => {
                        text.push_str(&piece.partial_json)
                    }
                    (block, delta) => panic!("{delta:?} in {block:?}"),
                }
            }
            StreamEvent::ContentBlockStop(stop) => {
                assert_eq!(stop.index, blocks.len() as u64);
                let (mut block, text) = open.take().unwrap();
                match &mut block {
                    ContentBlock::Text(block) => block.text.push_str(&text),
                    ContentBlock::ToolUse(block) => {
                        assert_eq!(block.input, serde_json::json!({}));
                        block.input = serde_json::from_str::<Value>(&text).unwrap();
                    }
                    other => panic!("{other:?}"),
                }
                blocks.push(block);
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(open.is_none());
    (blocks, delta.delta.stop_reason.clone().unwrap())
}

pub(super) fn stream(request: Request) -> Vec<StreamEvent> {
    let events = OfflineModel::new().respond(request).map(|event| match event.unwrap() {
        crate::ModelEvent::Stream(event) => event,
        other => panic!("not an event of a stream: {other:?}"),
    });
    events.collect().now_or_never().expect("the demo never waits")
}

#[test]
fn the_events_of_the_stream_assemble_to_the_answer() {
    let mut talk = Conversation::new();
    let TestReply(answer) =
        talk.say("write 'ein \"großes\" Stück Text 🦀, lang genug' to \"my notes.txt\"");
    Arc::make_mut(&mut talk.request.messages).pop();
    let events = stream(talk.request);
    assert_eq!(assembled(&events), (answer.blocks, StopReason::ToolUse));
}

#[test]
fn text_and_arguments_come_in_several_deltas() {
    let mut talk = Conversation::new();
    talk.say("replace foo with bar in a/rather/long/path/to/notes.txt");
    talk.returns("foo");
    Arc::make_mut(&mut talk.request.messages).pop();
    let events = stream(talk.request);
    let (mut n_text, mut n_json) = (0, 0);
    for event in &events {
        if let StreamEvent::ContentBlockDelta(delta) = event {
            match delta.delta {
                Delta::TextDelta(_) => n_text += 1,
                _ => n_json += 1,
            }
        }
    }
    assert!(n_text > 2 && n_json > 2, "{n_text} {n_json}");
}

#[test]
fn the_model_has_its_own_name() {
    assert_eq!(OfflineModel::new().name(), "offline-demo");
}
