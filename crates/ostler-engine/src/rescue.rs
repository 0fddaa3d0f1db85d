//! Keeps the conversation when the turn that works on it panics.
//!
//! A turn owns the conversation while it runs, so that a long one is never copied. If it were dropped with a turn that
//! panics, the model would answer the next prompt without the conversation.

use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::model::ChatMessage;
use crate::turn::Turn;

/// Where a turn that panics leaves the conversation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rescue(Arc<Mutex<Vec<ChatMessage>>>);

impl Rescue {
    /// The conversation that the turn left behind. Empty when the turn ended in the usual way.
    pub(crate) fn take(&self) -> Vec<ChatMessage> {
        std::mem::take(&mut *self.0.lock())
    }

    fn put(&self, conversation: Vec<ChatMessage>) {
        *self.0.lock() = conversation;
    }
}

/// A conversation lent to a turn that has not begun. It goes to the rescue when it is dropped.
#[derive(Debug)]
pub(crate) struct LentConversation {
    conversation: Vec<ChatMessage>,
    rescue: Rescue,
}

impl LentConversation {
    pub(crate) fn new(conversation: Vec<ChatMessage>, rescue: Rescue) -> Self {
        Self { conversation, rescue }
    }

    /// Takes the conversation, which the caller must return by itself from now on.
    pub(crate) fn take(mut self) -> Vec<ChatMessage> {
        std::mem::take(&mut self.conversation)
    }

    /// The turn that continues the conversation.
    pub(crate) fn begin(mut self, turn: impl FnOnce(Vec<ChatMessage>) -> Turn) -> LentTurn {
        let turn = turn(std::mem::take(&mut self.conversation));
        LentTurn { turn: Some(turn), rescue: self.rescue.clone() }
    }
}

impl Deref for LentConversation {
    type Target = [ChatMessage];

    fn deref(&self) -> &[ChatMessage] {
        &self.conversation
    }
}

impl Drop for LentConversation {
    fn drop(&mut self) {
        if !self.conversation.is_empty() {
            self.rescue.put(std::mem::take(&mut self.conversation));
        }
    }
}

/// A turn that works on a lent conversation. The conversation goes to the rescue when the turn is dropped.
#[derive(Debug)]
pub(crate) struct LentTurn {
    /// `None` once it is taken.
    turn: Option<Turn>,
    rescue: Rescue,
}

impl LentTurn {
    /// The conversation after the turn.
    pub(crate) fn into_conversation(mut self) -> Vec<ChatMessage> {
        self.turn.take().map(Turn::into_conversation).unwrap_or_default()
    }
}

impl Deref for LentTurn {
    type Target = Turn;

    fn deref(&self) -> &Turn {
        self.turn.as_ref().expect("only taken with the whole")
    }
}

impl DerefMut for LentTurn {
    fn deref_mut(&mut self) -> &mut Turn {
        self.turn.as_mut().expect("only taken with the whole")
    }
}

impl Drop for LentTurn {
    fn drop(&mut self) {
        if let Some(turn) = self.turn.take() {
            self.rescue.put(turn.abandon());
        }
    }
}
