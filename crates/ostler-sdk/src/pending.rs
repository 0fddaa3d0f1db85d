//! Matches results to prompts.
//!
//! An engine also sends results that no caller waits for: for background work that has ended, and for prompts whose
//! caller has given up. Prompts therefore have a uuid, and results name the prompts that they answer. Older engines
//! name none; their next result counts as the answer.

use parking_lot::{Mutex, MutexGuard};
use std::collections::VecDeque;

use ostler_proto::Uuid;
use ostler_proto::frame::ToHost;
use ostler_proto::message::{CommandState, Origin, TurnResult, User};

use crate::message::Message;

/// Gives a prompt a uuid if it has none, and returns it.
pub(crate) fn name(prompt: &mut User) -> Uuid {
    let fresh = || Uuid::from(uuid::Uuid::new_v4().to_string());
    prompt.uuid.get_or_insert_with(fresh).clone()
}

/// Whether a result answers a prompt, according to the uuids that the engine sent.
pub(crate) fn answers(result: &TurnResult, prompt: &Uuid) -> bool {
    let several = result.user_message_uuids.iter().flatten();
    let mut named = several.chain(&result.user_message_uuid).peekable();
    match named.peek() {
        Some(_) => named.any(|answered| answered == prompt),
        // Turns that the engine began by itself have another origin.
        None => matches!(result.origin, None | Some(Origin::Human(_))),
    }
}

/// Whether a message reports that a prompt was withdrawn before its turn.
pub(crate) fn withdraws(message: &Message, prompt: &Uuid) -> bool {
    let Message::Other(frame) = message else { return false };
    matches!(&**frame, ToHost::CommandLifecycle(change)
        if change.command_uuid == *prompt && change.state == CommandState::Cancelled)
}

/// Prompts that were sent and have no result yet, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Pending(Mutex<VecDeque<Uuid>>);

impl Pending {
    pub(crate) fn sent(&self, prompt: Uuid) {
        self.lock().push_back(prompt);
    }

    /// Removes the prompts that a message answers or withdraws. True if it ends the turn of the oldest prompt, or any
    /// turn if no prompt is pending.
    pub(crate) fn heard(&self, message: &Message) -> bool {
        let mut pending = self.lock();
        let ends = match (message, pending.front()) {
            (Message::Result(result), Some(oldest)) => answers(result, oldest),
            (Message::Result(_), None) => true,
            (message, Some(oldest)) => withdraws(message, oldest),
            _ => false,
        };
        match message {
            Message::Result(result) if is_named(result) => {
                pending.retain(|prompt| !answers(result, prompt));
            }
            Message::Result(_) if ends => _ = pending.pop_front(),
            message => pending.retain(|prompt| !withdraws(message, prompt)),
        }
        ends
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Uuid>> {
        self.0.lock()
    }
}

/// Whether a result names the prompts that it answers.
fn is_named(result: &TurnResult) -> bool {
    result.user_message_uuid.is_some()
        || result.user_message_uuids.as_ref().is_some_and(|named| !named.is_empty())
}
