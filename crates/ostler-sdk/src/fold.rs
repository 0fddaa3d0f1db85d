//! [`Fold`]: joins the deltas of a response.

use std::collections::HashMap;

use ostler_proto::ToolUseId;
use ostler_proto::api::{self, Accumulator, Folded, StreamEvent};

use crate::message::Message;

/// Joins the deltas of partial messages, for programs that show a response while it is written.
///
/// Pass it every message; messages that are not deltas change nothing. Subagents answer at the same time as the main
/// conversation: their responses are kept apart by the call that started them.
///
/// ```no_run
/// # async fn example() -> Result<(), ostler_sdk::Error> {
/// use ostler_sdk::{Fold, Options, query};
///
/// let mut fold = Fold::new();
/// let mut messages = query("Write a poem", Options::new().partial_messages());
/// while let Some(message) = messages.next().await {
///     if let Some(whole) = fold.push(&message?) {
///         println!("{} blocks, {:?}", whole.content.len(), whole.stop_reason);
///     } else if let Some(growing) = fold.so_far() {
///         println!("{} blocks so far", growing.content.len());
///     }
/// }
/// # Ok(()) }
/// ```
#[derive(Clone, Debug, Default)]
pub struct Fold {
    /// One response at a time for the conversation and for every subagent.
    responses: HashMap<Option<ToolUseId>, Accumulator>,
}

impl Fold {
    /// A fold without any deltas.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a message. Returns the whole response if this was its last delta.
    ///
    /// A response that is retried after a failure begins again. A response whose deltas do not fit together is dropped;
    /// its finished blocks still arrive as [`Message::Assistant`].
    pub fn push(&mut self, message: &Message) -> Option<api::Message> {
        let Message::StreamEvent(delta) = message else { return None };
        let parent = &delta.parent_tool_use_id;
        if matches!(delta.event, StreamEvent::MessageStart(_)) {
            self.responses.insert(parent.clone(), Accumulator::default());
        }
        match self.responses.get_mut(parent)?.push(&delta.event) {
            Ok(Folded::Message(mut whole)) => {
                self.responses.remove(parent);
                // The model did not finish these blocks; the engine closed them so that every start has an end.
                if let Some(abandoned) = &delta.abandoned_blocks {
                    let finished =
                        usize::try_from(abandoned.from_block_index).unwrap_or(usize::MAX);
                    whole.content.truncate(finished);
                }
                (!whole.content.is_empty()).then_some(*whole)
            }
            Ok(_) => None,
            Err(_) => {
                self.responses.remove(parent);
                None
            }
        }
    }

    /// A copy of the main conversation's response as received so far; `None` between responses.
    ///
    /// An interrupted response stays until the next one begins.
    pub fn so_far(&self) -> Option<api::Message> {
        self.responses.get(&None)?.so_far()
    }

    /// [`Fold::so_far`] for the subagent that a call started.
    pub fn so_far_of(&self, call: &ToolUseId) -> Option<api::Message> {
        self.responses.get(&Some(call.clone()))?.so_far()
    }

    /// The arguments, received so far, of the tool call that the model is writing. Not valid JSON until they are
    /// complete.
    pub fn unfinished_arguments(&self) -> Option<&str> {
        self.responses.get(&None)?.unfinished_arguments()
    }
}
