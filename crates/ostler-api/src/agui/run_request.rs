//! Finds out what a client wants with the conversation that it sends.

use ostler_agui::history::{self, Unseen};
use ostler_agui::message::{Message, MessageBody};
use ostler_core::model::run::Begin;

use super::run::RunStream;
use super::thread::Place;
use super::{frontend_tools, history_page};

/// What the client wants.
pub(super) enum RunRequest<'a> {
    /// Nothing new.
    Nothing,
    /// To continue a turn that waited and has answers now; and then to send these messages.
    GoOn { then: Vec<&'a Message> },
    /// To resume a run that was interrupted by the end of the server.
    TakeUp(String),
    /// A new turn: with the earlier messages, if the agent does not have them, and the new ones.
    Turn { before: Vec<Message>, now: Vec<&'a Message>, begin: Begin },
}

impl<'a> RunStream<'a> {
    /// `answered`: whether the turn received answers for which it waited.
    pub(super) fn run_request(&mut self, answered: bool) -> RunRequest<'a> {
        let messages = &self.input.messages;
        let waiting = self.tool_calls.waiting_calls();
        let goes_on = self.live.is_some();
        if self.thread.known.is_empty() && !goes_on {
            return self.first_wish();
        }
        let lost = self.cut_off.is_some().then_some(&self.thread.client_calls);
        let waits_for = |call: &str| {
            waiting.iter().any(|id| id == call) || lost.is_some_and(|lost| lost.contains(call))
        };
        let left_off = history_page::left_off(messages);
        match self.thread.known.compare(messages, left_off, waits_for) {
            // A turn that continues by itself is followed to the end: its client may have been disconnected.
            Unseen::Nothing | Unseen::Again { .. } if goes_on => {
                if answered || !self.is_waiting() {
                    RunRequest::GoOn { then: Vec::new() }
                } else {
                    RunRequest::Nothing
                }
            }
            Unseen::Nothing | Unseen::Again { .. }
                if self.cut_off.is_some() && !self.is_waiting() =>
            {
                self.cut_off.take().map_or(RunRequest::Nothing, RunRequest::TakeUp)
            }
            Unseen::Nothing => RunRequest::Nothing,
            Unseen::New(new) => self.heard(new, answered),
            Unseen::Again { kept, from } | Unseen::Rewritten { kept, from } => {
                self.go_back(kept, from)
            }
        }
    }

    /// A conversation that is new here, however long it is.
    fn first_wish(&mut self) -> RunRequest<'a> {
        let messages = &self.input.messages;
        let from = history::begin(messages);
        let now: Vec<_> = messages[from..].iter().filter(|it| is_user(it)).collect();
        let ends_with_tool =
            matches!(messages.last().map(|it| &it.body), Some(MessageBody::Tool { .. }));
        if now.is_empty() && !ends_with_tool {
            return RunRequest::Nothing;
        }
        for message in messages {
            self.thread.known.heard(message, None);
        }
        // A conversation that came through another interface need not be repeated.
        let is_known = self.session.has_conversation();
        let before = if is_known { Vec::new() } else { messages[..from].to_vec() };
        RunRequest::Turn { before, now, begin: Begin::Here }
    }

    /// New messages in a known conversation.
    fn heard(&mut self, new: Vec<&'a Message>, answered: bool) -> RunRequest<'a> {
        let here = self.thread.here.as_ref().map(Place::name);
        let mut now = Vec::new();
        let mut before = Vec::new();
        let mut goes_on = answered;
        for message in new {
            self.thread.known.heard(message, here.as_deref());
            match &message.body {
                MessageBody::Tool { tool_call_id, content, error } => {
                    let output = frontend_tools::output(content, error.as_deref());
                    if self.tool_calls.answer_call(tool_call_id, output) {
                        goes_on = true;
                    } else {
                        // The turn that waited for it ended with the server; another turn gets it.
                        before.push(message.clone());
                    }
                }
                _ => now.push(message),
            }
        }
        // The user's messages next to the answers are sent when the turn has processed the answers. A turn that would
        // wait for more is given up: the user has moved on.
        let can_go_on = self.live.is_some() && before.is_empty();
        if can_go_on && (now.is_empty() || (goes_on && !self.is_waiting())) {
            return RunRequest::GoOn { then: now };
        }
        if !self.session.has_conversation()
            && let Some(first) = now.first()
        {
            before = self.before(first);
        }
        RunRequest::Turn { before, now, begin: Begin::Here }
    }

    fn before(&self, message: &Message) -> Vec<Message> {
        let place = self.input.messages.iter().position(|it| it.id == message.id);
        self.input.messages[..place.unwrap_or_default()].to_vec()
    }

    /// The user went back in the conversation.
    fn go_back(&mut self, kept: usize, from: usize) -> RunRequest<'a> {
        let messages = &self.input.messages;
        let name = self.thread.known.go_back(kept);
        // The engine finds the place again; if it cannot, the earlier messages are sent to it.
        let place = name.as_deref().and_then(Place::named);
        let from = if place.is_some() { from } else { from.max(history::begin(messages)) };
        let now: Vec<_> = messages[from..].iter().filter(|it| is_user(it)).collect();
        for message in &now {
            self.thread.known.heard(message, name.as_deref());
        }
        match place {
            Some(Place { conversation, message }) => {
                let begin = Begin::Behind { conversation, message };
                RunRequest::Turn { before: Vec::new(), now, begin }
            }
            None => {
                RunRequest::Turn { before: messages[..from].to_vec(), now, begin: Begin::Blank }
            }
        }
    }
}

fn is_user(message: &Message) -> bool {
    matches!(message.body, MessageBody::User { .. })
}
