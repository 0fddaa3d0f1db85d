//! Prompts that wait for their turn. Those that wait together are answered together.

use std::collections::VecDeque;

use ostler_proto::Uuid;
use ostler_proto::message::{Origin, User};

/// What waits, in the order it came.
#[derive(Debug, Default)]
pub(super) struct Queue(VecDeque<User>);

impl Queue {
    pub(super) fn push(&mut self, prompt: User) {
        self.0.push_back(prompt);
    }

    /// Everything that waits, as soon as something of it wants an answer.
    pub(super) fn take(&mut self) -> Option<Vec<User>> {
        let wants_answer = |prompt: &User| prompt.should_query != Some(false);
        self.0.iter().any(wants_answer).then(|| self.0.drain(..).collect())
    }

    /// The prompts the host has given names to.
    pub(super) fn named(&self) -> Vec<Uuid> {
        self.0.iter().filter_map(|prompt| prompt.uuid.clone()).collect()
    }

    /// Forgets everything; the names of what is forgotten.
    pub(super) fn clear(&mut self) -> Vec<Uuid> {
        let named = self.named();
        self.0.clear();
        named
    }
}

/// What a turn answers, as its result tells.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answers {
    /// The prompts the host has given names to.
    pub(crate) named: Vec<Uuid>,
    /// Who caused the turn, when it was not a person.
    pub(crate) origin: Option<Origin>,
}

impl Answers {
    pub(super) fn to(prompts: &[User]) -> Self {
        let is_prompt = |prompt: &User| !matches!(prompt.origin, Some(Origin::TaskNotification(_)));
        let by_person = prompts.iter().any(is_prompt);
        let origin = prompts.last().and_then(|prompt| prompt.origin.clone());
        Self {
            named: prompts.iter().filter_map(|prompt| prompt.uuid.clone()).collect(),
            origin: origin.filter(|_| !by_person),
        }
    }
}
