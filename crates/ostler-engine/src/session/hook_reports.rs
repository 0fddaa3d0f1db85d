//! Sends what hooks in the background report. Only the session's own task does this.

use std::pin::pin;

use ostler_proto::hook::ExitReason;
use tokio::sync::mpsc;

use super::Session;
use crate::hook_report::HookReport;
use crate::host_calls::HostCall;
use crate::outbox::Outbox;

/// Notifies the host of a hook that runs in the background.
pub(super) async fn send(outbox: &Outbox, report: HookReport) {
    match report {
        HookReport::Run(run, news) => outbox.send(run.frame(news)).await,
        HookReport::Message { session_id, content, level, tag } => {
            // The conversation may have been cleared since the hook began.
            let outbox = Outbox { session_id, ..outbox.clone() };
            outbox.inform(content, level, tag).await;
        }
    }
}

impl Session {
    /// Ends the session's hooks, and sends what those in the background report until then. The host may wait for the end
    /// of the frames, which must come after the last hooks.
    pub(super) async fn end_hooks(self, reason: &ExitReason, mut called: mpsc::Receiver<HostCall>) {
        let Self { watcher, context, .. } = self;
        let mut ending = pin!(async {
            watcher.abort();
            // Only then its hooks have reported that they were cancelled.
            let _ = watcher.await;
            context.hooks.finish(reason).await;
        });
        loop {
            tokio::select! {
                () = &mut ending => break,
                Some(call) = called.recv() => send_of_hook(&context.outbox, call).await,
            }
        }
        while let Ok(call) = called.try_recv() {
            send_of_hook(&context.outbox, call).await;
        }
    }
}

/// After the end of a session only reports of hooks are sent. Others who call learn that it has ended, because their
/// call is dropped.
async fn send_of_hook(outbox: &Outbox, call: HostCall) {
    if let HostCall::Hook(report) = call {
        send(outbox, report).await;
    }
}
