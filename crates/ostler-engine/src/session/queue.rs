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
        self.wants_answer().then(|| self.0.drain(..).collect())
    }

    /// How many turns it would take to answer what waits.
    pub(super) fn n_turns(&self) -> u64 {
        u64::from(self.wants_answer())
    }

    fn wants_answer(&self) -> bool {
        self.0.iter().any(|prompt| prompt.should_query != Some(false))
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

#[cfg(test)]
mod tests {
    use ostler_proto::api::Content;

    use super::*;

    #[test]
    fn what_waits_together_is_one_turn_and_what_wants_no_answer_none() {
        let prompt = || User::new(Content::Text("x".to_owned()), None);
        let mut queue = Queue::default();
        assert_eq!(queue.n_turns(), 0);
        queue.push(User { should_query: Some(false), ..prompt() });
        assert_eq!(queue.n_turns(), 0);
        queue.push(prompt());
        queue.push(prompt());
        assert_eq!(queue.n_turns(), 1);
    }
}
