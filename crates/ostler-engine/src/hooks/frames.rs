//! What the host sees of a hook that runs: `hook_started`, `hook_progress`, `hook_response`.
//!
//! Hooks at the start of a session are always shown, others when the host asked for it. Callbacks are not: the host
//! runs them itself.

use ostler_proto::build;
use ostler_proto::frame::ToHost;
use ostler_proto::hook::HookEvent;
use ostler_proto::message::System;
use ostler_proto::message::system::{HookOutcome, HookProgress, HookResponse, HookStarted};

use crate::ids::fresh_uuid;
use crate::outbox::Outbox;

/// One run of a hook, as the host sees it. If it is dropped before its response, it sends that it was cancelled.
pub(super) struct HookRunFrames {
    outbox: Outbox,
    is_shown: bool,
    id: String,
    name: String,
    event: String,
    /// Its output so far, and how much of it the host has seen.
    output: HookOutputText,
    noted: usize,
    seen: usize,
    is_done: bool,
}

/// The output of a hook.
#[derive(Clone, Debug, Default)]
pub(super) struct HookOutputText {
    pub(super) stdout: String,
    pub(super) stderr: String,
}

impl HookRunFrames {
    pub(super) async fn start(
        outbox: &Outbox,
        event: &HookEvent,
        subject: Option<&str>,
        is_shown: bool,
    ) -> Self {
        let name =
            subject.map_or_else(|| event.to_string(), |subject| format!("{event}:{subject}"));
        let shown = Self {
            outbox: outbox.clone(),
            is_shown: is_shown || *event == HookEvent::SessionStart,
            id: fresh_uuid().to_string(),
            name,
            event: event.to_string(),
            output: HookOutputText::default(),
            noted: 0,
            seen: 0,
            is_done: false,
        };
        let started = build!(HookStarted {
            hook_id: shown.id.clone(),
            hook_name: shown.name.clone(),
            hook_event: shown.event.clone(),
            session_id: outbox.session_id.clone(),
            uuid: fresh_uuid()
        });
        shown.send(System::HookStarted(started)).await;
        shown
    }

    /// Whether the host wants to see the output, and there is more than before. `n_bytes`: the length of the output
    /// now.
    pub(super) fn lags(&mut self, n_bytes: usize) -> bool {
        self.is_shown && std::mem::replace(&mut self.noted, n_bytes) != n_bytes
    }

    /// Notes the output so far.
    pub(super) fn printed(&mut self, stdout: String, stderr: String) {
        self.output = HookOutputText { stdout, stderr };
    }

    /// Sends the new output, if there is any.
    pub(super) async fn progress(&mut self) {
        let HookOutputText { stdout, stderr } = &self.output;
        let length = stdout.len() + stderr.len();
        if length <= self.seen {
            return;
        }
        self.seen = length;
        let progress = build!(HookProgress {
            hook_id: self.id.clone(),
            hook_name: self.name.clone(),
            hook_event: self.event.clone(),
            output: format!("{stdout}{stderr}"),
            stdout: stdout.clone(),
            stderr: stderr.clone(),
            session_id: self.outbox.session_id.clone(),
            uuid: fresh_uuid()
        });
        self.send(System::HookProgress(progress)).await;
    }

    /// Sends how it ended. `hides_output`: the hook asks not to show its output.
    pub(super) async fn finish(
        mut self,
        exit_code: Option<i32>,
        outcome: HookOutcome,
        hides_output: bool,
    ) {
        self.is_done = true;
        if hides_output {
            self.output.stdout.clear();
        }
        self.send(System::HookResponse(self.response(exit_code, outcome))).await;
    }

    fn response(&self, exit_code: Option<i32>, outcome: HookOutcome) -> HookResponse {
        let HookOutputText { stdout, stderr } = self.output.clone();
        build!(HookResponse {
            hook_name: self.name.clone(),
            hook_event: self.event.clone(),
            output: format!("{stdout}{stderr}"),
            stdout,
            stderr,
            exit_code: exit_code.map(i64::from),
            session_id: self.outbox.session_id.clone(),
            uuid: fresh_uuid(),
            ..HookResponse::new(&self.id, outcome)
        })
    }

    async fn send(&self, frame: System) {
        if self.is_shown {
            self.outbox.send(ToHost::System(frame)).await;
        }
    }
}

impl Drop for HookRunFrames {
    fn drop(&mut self) {
        if self.is_shown && !self.is_done {
            let response = self.response(None, HookOutcome::Cancelled);
            // If the channel is full, the host is too far behind to need this frame.
            let _ = self.outbox.frames.try_send(ToHost::System(System::HookResponse(response)));
        }
    }
}
