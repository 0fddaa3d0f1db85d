//! Queued prompts. Those that wait together are answered in one turn.

use std::collections::VecDeque;

use ostler_proto::Uuid;
use ostler_proto::message::{Origin, User};

/// The queued prompts, in the order of their arrival.
#[derive(Debug, Default)]
pub(super) struct Queue(VecDeque<QueuedPrompt>);

#[derive(Debug)]
struct QueuedPrompt {
    prompt: User,
    /// It calls a command, which gets its own turn.
    is_command: bool,
}

impl Queue {
    pub(super) fn push(&mut self, prompt: User, is_command: bool) {
        self.0.push_back(QueuedPrompt { prompt, is_command });
    }

    /// Finds out again which prompts call a command.
    pub(super) fn find_commands(&mut self, is_call: impl Fn(&User) -> bool) {
        for waiting in &mut self.0 {
            waiting.is_command = is_call(&waiting.prompt);
        }
    }

    /// The prompts of the next turn, as soon as one of them wants an answer. A command gets its own turn.
    pub(super) fn take(&mut self) -> Option<Vec<User>> {
        let wants_answer = |waiting: &QueuedPrompt| waiting.prompt.should_query != Some(false);
        let command = self.0.iter().position(|waiting| waiting.is_command);
        let n_prompts = command.unwrap_or(self.0.len());
        if self.0.iter().take(n_prompts).any(wants_answer) {
            return Some(self.0.drain(..n_prompts).map(|waiting| waiting.prompt).collect());
        }
        self.0.remove(command?).map(|command| vec![command.prompt])
    }

    /// How many turns it takes to answer the queued prompts.
    pub(super) fn n_turns(&self) -> u64 {
        // Follows the logic of `take` without copying: prompts may be large, and this runs after every turn.
        let (mut n_turns, mut wants_answer) = (0, false);
        for waiting in &self.0 {
            if waiting.is_command {
                n_turns += u64::from(wants_answer) + 1;
                // Prompts that want no answer wait until after the command.
                wants_answer = false;
            } else {
                wants_answer |= waiting.prompt.should_query != Some(false);
            }
        }
        n_turns + u64::from(wants_answer)
    }

    /// The ids of the prompts, where the host gave them one.
    pub(super) fn named(&self) -> Vec<Uuid> {
        named(self.0.iter().map(|waiting| &waiting.prompt))
    }

    /// Withdraws a prompt. Returns whether it was still queued.
    pub(super) fn withdraw(&mut self, uuid: &Uuid) -> bool {
        let n_before = self.0.len();
        self.0.retain(|waiting| waiting.prompt.uuid.as_ref() != Some(uuid));
        self.0.len() < n_before
    }

    /// Removes all prompts and returns their ids.
    pub(super) fn clear(&mut self) -> Vec<Uuid> {
        let named = self.named();
        self.0.clear();
        named
    }
}

/// The ids of prompts, where the host gave them one.
pub(super) fn named<'p>(prompts: impl IntoIterator<Item = &'p User>) -> Vec<Uuid> {
    prompts.into_iter().filter_map(|prompt| prompt.uuid.clone()).collect()
}

/// What a turn answers, for its result.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answers {
    /// The ids of its prompts, where the host gave them one.
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
    fn prompts_that_wait_together_are_one_turn_and_those_that_want_no_answer_start_none() {
        let prompt = || User::new(Content::Text("x".to_owned()), None);
        let mut queue = Queue::default();
        assert_eq!(queue.n_turns(), 0);
        queue.push(User { should_query: Some(false), ..prompt() }, false);
        assert_eq!(queue.n_turns(), 0);
        queue.push(prompt(), false);
        queue.push(prompt(), false);
        assert_eq!(queue.n_turns(), 1);
    }

    #[test]
    fn a_command_gets_its_own_turn() {
        let mut queue = Queue::default();
        let quiet = User { should_query: Some(false), ..User::prompt("by the way") };
        for (prompt, is_command) in [("a", false), ("b", false), ("/compact", true)] {
            queue.push(User::prompt(prompt), is_command);
        }
        queue.push(quiet, false);
        assert_eq!(queue.n_turns(), 2);
        assert_eq!(queue.take().map(|prompts| prompts.len()), Some(2));
        queue.push(User::prompt("/compact again"), true);
        assert_eq!(queue.n_turns(), 2);
        assert_eq!(queue.take(), Some(vec![User::prompt("/compact")]));
        // A prompt that wants no answer goes with the next prompt, not with a command.
        assert_eq!(queue.take(), Some(vec![User::prompt("/compact again")]));
        assert_eq!(queue.take(), None);
        queue.push(User::prompt("c"), false);
        assert_eq!(queue.take().map(|prompts| prompts.len()), Some(2));
    }
}
