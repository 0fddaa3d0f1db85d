//! What the host sees of a hook that runs: `hook_started`, `hook_progress`, `hook_response`.
//!
//! Hooks at the start of a session are always shown, others when the host asked for it. Callbacks are not: the host
//! runs them itself. A hook that a turn waits for sends its frames itself; one in the background reports to the session's
//! task, so that its frames come between the steps of that task, and before the session's end.

use std::sync::Arc;

use ostler_proto::hook::HookEvent;
use ostler_proto::message::system::HookOutcome;

use crate::hook_report::{HookNews, HookOutputText, HookReport, HookRun};
use crate::host_calls::HostCall;
use crate::ids::fresh_uuid;
use crate::outbox::Outbox;

/// One run of a hook, as the host sees it. If it is dropped before its response, it sends that it was cancelled.
pub(super) struct HookRunFrames {
    outbox: Outbox,
    is_shown: bool,
    in_background: bool,
    run: Arc<HookRun>,
    /// Its output so far, and how much of it the host has seen.
    output: HookOutputText,
    noted: usize,
    seen: usize,
    is_done: bool,
}

impl HookRunFrames {
    pub(super) async fn start(
        outbox: &Outbox,
        event: &HookEvent,
        subject: Option<&str>,
        is_shown: bool,
        in_background: bool,
    ) -> Self {
        let name =
            subject.map_or_else(|| event.to_string(), |subject| format!("{event}:{subject}"));
        let run = HookRun {
            session_id: outbox.session_id.clone(),
            id: fresh_uuid().to_string(),
            name,
            event: event.to_string(),
        };
        let shown = Self {
            outbox: outbox.clone(),
            is_shown: is_shown || *event == HookEvent::SessionStart,
            in_background,
            run: Arc::new(run),
            output: HookOutputText::default(),
            noted: 0,
            seen: 0,
            is_done: false,
        };
        shown.send(HookNews::Started).await;
        shown
    }

    /// From now on no turn waits for the hook.
    pub(super) fn in_background(mut self) -> Self {
        self.in_background = true;
        self
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
        let length = self.output.stdout.len() + self.output.stderr.len();
        if length <= self.seen {
            return;
        }
        self.seen = length;
        self.send(HookNews::Progress(self.output.clone())).await;
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
        let output = self.output.clone();
        self.send(HookNews::Ended { output, exit_code, outcome }).await;
    }

    async fn send(&self, news: HookNews) {
        if !self.is_shown {
            return;
        }
        if self.in_background {
            self.outbox.report(HookReport::Run(Arc::clone(&self.run), news)).await;
        } else {
            self.outbox.send(self.run.frame(news)).await;
        }
    }
}

impl Drop for HookRunFrames {
    fn drop(&mut self) {
        if !self.is_shown || self.is_done {
            return;
        }
        let output = self.output.clone();
        let news = HookNews::Ended { output, exit_code: None, outcome: HookOutcome::Cancelled };
        // If the channel is full, the host is too far behind to need this frame.
        if self.in_background {
            let report = HookReport::Run(Arc::clone(&self.run), news);
            self.outbox.calls.try_send(HostCall::Hook(report));
        } else {
            let _ = self.outbox.frames.try_send(self.run.frame(news));
        }
    }
}

#[cfg(test)]
mod tests {
    use ostler_proto::frame::ToHost;
    use ostler_proto::message::System;
    use tokio::sync::mpsc;

    use super::*;
    use crate::host_calls::Calls;

    /// The subtypes that a run of a hook sent to the host, and those it reported to the session's task.
    async fn check(in_background: bool, is_finished: bool) -> (Vec<String>, Vec<String>) {
        let (frames, mut sent) = mpsc::channel(9);
        let (calls, mut called) = mpsc::channel(9);
        let outbox = Outbox {
            in_background: false,
            session_id: "s".into(),
            transcript: None,
            frames,
            calls: Calls::new(calls),
            subagent: None,
            partial_messages: false,
            notices: Arc::default(),
        };
        let event = HookEvent::Stop;
        let mut shown = HookRunFrames::start(&outbox, &event, None, true, in_background).await;
        shown.printed("a".to_owned(), String::new());
        shown.progress().await;
        match is_finished {
            true => shown.finish(Some(0), HookOutcome::Success, false).await,
            false => drop(shown),
        }
        drop(outbox);
        let subtype = |frame: ToHost| match frame {
            ToHost::System(System::HookResponse(ended)) => format!("ended {}", ended.outcome),
            ToHost::System(system) => system.tag().unwrap_or_default().to_owned(),
            other => panic!("{other:?}"),
        };
        let (mut direct, mut reported) = (Vec::new(), Vec::new());
        while let Some(frame) = sent.recv().await {
            direct.push(subtype(frame));
        }
        while let Some(call) = called.recv().await {
            let HostCall::Hook(HookReport::Run(run, news)) = call else { panic!("{call:?}") };
            reported.push(subtype(run.frame(news)));
        }
        (direct, reported)
    }

    // Mutant: `send` or `drop` of a hook in the background uses `frames`.
    #[tokio::test]
    async fn only_hooks_that_a_turn_waits_for_send_frames_themselves() {
        for (is_finished, end) in [(true, "ended success"), (false, "ended cancelled")] {
            let all = vec!["hook_started".to_owned(), "hook_progress".to_owned(), end.to_owned()];
            assert_eq!(check(false, is_finished).await, (all.clone(), Vec::new()));
            assert_eq!(check(true, is_finished).await, (Vec::new(), all));
        }
    }
}
