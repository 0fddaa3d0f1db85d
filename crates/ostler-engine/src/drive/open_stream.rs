//! The events of a response that the host has seen, so that the stream can be closed when the response never ends.

use std::collections::BTreeSet;

use ostler_proto::api::{ContentBlockStop, MessageStop, StreamEvent};
use ostler_proto::build;
use ostler_proto::message::AbandonedBlocks;

/// The events of the response under way.
#[derive(Debug, Default)]
pub(crate) struct OpenStream {
    /// The response's id; `None` when none is open.
    message: Option<String>,
    open: BTreeSet<u64>,
    n_blocks: u64,
}

impl OpenStream {
    /// Notes an event.
    pub(crate) fn saw(&mut self, event: &StreamEvent) {
        match event {
            StreamEvent::MessageStart(start) => {
                let message = start.message.id.clone().unwrap_or_default();
                *self = Self { message: Some(message), ..Self::default() };
            }
            StreamEvent::ContentBlockStart(start) => {
                self.open.insert(start.index);
                self.n_blocks = self.n_blocks.max(start.index + 1);
            }
            StreamEvent::ContentBlockStop(stop) => _ = self.open.remove(&stop.index),
            StreamEvent::MessageStop(_) => self.message = None,
            _ => {}
        }
    }

    /// The events that close what is open, and with the last of them the blocks that will never be finished. `kept`:
    /// the received part of the open block stays in the conversation.
    pub(crate) fn close(&mut self, kept: bool) -> Vec<(StreamEvent, Option<AbandonedBlocks>)> {
        let Some(message) = self.message.take() else { return Vec::new() };
        let open = std::mem::take(&mut self.open);
        let from = open.first().filter(|_| !kept).copied().unwrap_or(self.n_blocks);
        let abandoned = build!(AbandonedBlocks { api_message_id: message, from_block_index: from });
        let stops = open.into_iter().map(|index| {
            let stop = build!(ContentBlockStop { index });
            (StreamEvent::ContentBlockStop(stop), None)
        });
        let end = (StreamEvent::MessageStop(MessageStop::default()), Some(abandoned));
        stops.chain([end]).collect()
    }
}
