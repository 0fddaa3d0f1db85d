//! How far prompts have got, told to a host that has given them names.

use std::collections::BTreeMap;
use std::sync::Arc;

use ostler_proto::frame::ToHost;
use ostler_proto::message::system::SessionState;
use ostler_proto::message::{CommandLifecycle, CommandState, User};
use ostler_proto::{Extra, Uuid};

use super::Session;
use crate::commands;
use crate::ids::fresh_uuid;

impl Session {
    /// A prompt waits for its turn.
    pub(super) async fn enqueue(&mut self, prompt: User) {
        // A host that watches the state must not see a prompt in an idle session.
        if prompt.should_query != Some(false) && self.asked_person.is_empty() {
            self.reported_state.tell(&self.context.host, SessionState::Running).await;
        }
        let named = prompt.uuid.clone();
        let is_command = commands::is_call(&self.context.library, &prompt);
        self.queue.push(prompt, is_command);
        self.tell_of_prompts(named.into_iter().collect(), CommandState::Queued).await;
    }

    /// The turn is over, and with it the prompts it has answered.
    pub(super) async fn tell_of_end(&mut self) {
        let named = std::mem::take(&mut self.answering);
        self.tell_of_prompts(named, CommandState::Completed).await;
    }

    /// Tells how far prompts have got.
    pub(super) async fn tell_of_prompts(&self, named: Vec<Uuid>, state: CommandState) {
        let host = &self.context.host;
        for command_uuid in named {
            let frame = CommandLifecycle {
                command_uuid,
                state: state.clone(),
                session_id: host.session_id.clone(),
                uuid: fresh_uuid(),
                extra: Extra::default(),
            };
            host.send(ToHost::CommandLifecycle(frame)).await;
        }
    }

    /// Changes the variables of what tools and hooks start, from the next turn on.
    pub(super) fn update_environment(&mut self, variables: BTreeMap<String, String>) {
        let base = &mut self.setup.base;
        base.host.env = Arc::new(base.host.env.with(variables));
        base.cx.env = Arc::clone(&base.host.env);
        base.host.judge_environment();
        self.context = self.setup.context();
    }
}
