//! The progress of prompts, for a host that gave them ids.

use std::collections::BTreeMap;

use ostler_proto::Uuid;
use ostler_proto::build;
use ostler_proto::frame::ToHost;
use ostler_proto::message::system::SessionState;
use ostler_proto::message::{CommandLifecycle, CommandState, User};

use super::Session;
use crate::commands;
use crate::ids::fresh_uuid;

impl Session {
    /// Queues a prompt.
    pub(super) async fn enqueue(&mut self, prompt: User) {
        // A host that watches the state must not see a prompt in an idle session.
        if prompt.should_query != Some(false) && self.asked_person.is_empty() {
            self.reported_state.tell(&self.context.outbox, SessionState::Running).await;
        }
        let named = prompt.uuid.clone();
        let is_command = commands::is_call(&self.context.library, &prompt);
        self.queue.push(prompt, is_command);
        self.tell_of_prompts(named.into_iter().collect(), CommandState::Queued).await;
    }

    /// Sends that the turn's prompts are answered.
    pub(super) async fn tell_of_end(&mut self) {
        let named = std::mem::take(&mut self.answering);
        self.tell_of_prompts(named, CommandState::Completed).await;
    }

    /// Sends the state of prompts.
    pub(super) async fn tell_of_prompts(&self, named: Vec<Uuid>, state: CommandState) {
        let outbox = &self.context.outbox;
        for command_uuid in named {
            let frame = build!(CommandLifecycle {
                session_id: outbox.session_id.clone(),
                uuid: fresh_uuid(),
                ..CommandLifecycle::new(command_uuid, state.clone())
            });
            outbox.send(ToHost::CommandLifecycle(frame)).await;
        }
    }

    /// Changes the environment of programs that tools and hooks start, from the next turn on.
    pub(super) fn update_environment(&mut self, variables: BTreeMap<String, String>) {
        let base = &mut self.setup.base;
        base.set_environment(base.cx.env.with(variables));
        self.context = self.setup.context();
    }
}
