//! [`Fold`]: the pieces of a response put together again.

use std::collections::HashMap;

use ostler_proto::ToolUseId;
use ostler_proto::api::{self, Accumulator, Folded, StreamEvent};

use crate::message::Message;

/// Puts the pieces of partial messages together, for whoever shows a response while it is written.
///
/// Feed it every message; what is no piece of a response changes nothing. Subagents answer beside the conversation,
/// each for itself: their responses are kept apart by the call that started them.
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
    /// Nothing has come yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes a message; the whole response if this was its last piece.
    ///
    /// A response that is tried again after a failure begins anew. One whose pieces do not fit together is given up:
    /// its finished blocks come as [`Message::Assistant`] all the same.
    pub fn push(&mut self, message: &Message) -> Option<api::Message> {
        let Message::StreamEvent(piece) = message else { return None };
        let whose = &piece.parent_tool_use_id;
        if matches!(piece.event, StreamEvent::MessageStart(_)) {
            self.responses.insert(whose.clone(), Accumulator::default());
        }
        match self.responses.get_mut(whose)?.push(&piece.event) {
            Ok(Folded::Message(mut whole)) => {
                self.responses.remove(whose);
                // Closed by the engine for the sake of order; the model never finished these.
                if let Some(abandoned) = &piece.abandoned_blocks {
                    let finished =
                        usize::try_from(abandoned.from_block_index).unwrap_or(usize::MAX);
                    whole.content.truncate(finished);
                }
                (!whole.content.is_empty()).then_some(*whole)
            }
            Ok(_) => None,
            Err(_) => {
                self.responses.remove(whose);
                None
            }
        }
    }

    /// The response of the conversation as far as it has come; `None` between responses. A copy, made when asked for.
    ///
    /// What was interrupted stays until the next response begins.
    pub fn so_far(&self) -> Option<api::Message> {
        self.responses.get(&None)?.so_far()
    }

    /// The same for the subagent that a call started.
    pub fn so_far_of(&self, call: &ToolUseId) -> Option<api::Message> {
        self.responses.get(&Some(call.clone()))?.so_far()
    }

    /// What has come of the arguments of the call that the model is writing, as it writes them: not yet valid JSON.
    pub fn unfinished_arguments(&self) -> Option<&str> {
        self.responses.get(&None)?.unfinished_arguments()
    }
}
