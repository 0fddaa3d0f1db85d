//! The state of a session, for a host that wants to receive it.

use ostler_proto::build;
use ostler_proto::frame::ToHost;
use ostler_proto::message::System;
use ostler_proto::message::system::{SessionState, SessionStateChanged};

use crate::ids::fresh_uuid;
use crate::outbox::Outbox;

/// Who receives `session_state_changed`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StateEvents {
    /// Only the host, which does not pass it on.
    ForHost,
    /// Every reader of the host's messages.
    ForEverybody,
}

/// The state that was sent last.
#[derive(Debug)]
pub(super) struct ReportedState {
    events: Option<StateEvents>,
    state: SessionState,
    /// It must be sent again, even if it is the same.
    is_stale: bool,
}

impl ReportedState {
    pub(super) fn new(events: Option<StateEvents>) -> Self {
        Self { events, state: SessionState::Idle, is_stale: false }
    }

    /// A background task ended: the host may wait for `idle` again.
    pub(super) fn again(&mut self) {
        self.is_stale = true;
    }

    /// Sends the state, if it changed.
    pub(super) async fn tell(&mut self, outbox: &Outbox, state: SessionState) {
        // A host that waits for `idle` has to receive it again; `running` is not repeated.
        let is_awaited = state == SessionState::Idle && std::mem::take(&mut self.is_stale);
        let is_news = is_awaited || self.state != state;
        let Some(events) = self.events.filter(|_| is_news) else { return };
        self.state = state.clone();
        let frame = build!(SessionStateChanged {
            sdk_host_only: (events == StateEvents::ForHost).then_some(true),
            session_id: outbox.session_id.clone(),
            uuid: fresh_uuid(),
            ..SessionStateChanged::new(state)
        });
        outbox.send(ToHost::System(System::SessionStateChanged(frame))).await;
    }
}
