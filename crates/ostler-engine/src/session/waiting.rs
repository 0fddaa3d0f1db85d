//! How long a session waits: for MCP servers before a turn, and for background tasks after the last one.

use std::time::Duration;

use ostler_proto::message::User;
use tokio::time::Instant;

use super::Session;
use crate::drive::TurnContext;

/// How long commands in the background may continue once the host has left. They may run for ever, as servers do;
/// subagents come to an end and report, and get [`super::BACKGROUND_WAIT`].
const COMMANDS_WAIT: Duration = Duration::from_secs(5);

impl Session {
    /// The deadline of these prompts.
    ///
    /// A turn about background work has its own deadline while the host is connected. Once the host has left,
    /// everything that still happens belongs to its last prompt; otherwise it could continue for ever.
    pub(super) fn deadline_of(&mut self, prompts: &[User], is_host_there: bool) -> Option<Instant> {
        let is_from_host = prompts.iter().any(|prompt| prompt.is_synthetic != Some(true));
        if is_from_host || is_host_there {
            let limit = self.context.limits.timeout;
            self.deadline = limit.and_then(|limit| Instant::now().checked_add(limit));
        }
        self.deadline
    }

    /// Until when background tasks are waited for, if nothing else has happened since.
    pub(super) fn end_of_wait(&self, since: Instant) -> Option<Instant> {
        let patience = match self.context.cx.tasks.have_agents() {
            true => self.background_wait,
            false => Some(self.background_wait.unwrap_or(COMMANDS_WAIT).min(COMMANDS_WAIT)),
        };
        let end = patience.and_then(|patience| since.checked_add(patience));
        end.into_iter().chain(self.deadline).min()
    }
}

/// Waits until a point in time; for ever without one.
pub(super) async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

/// The context with the tools of the MCP servers. After the deadline, the turn begins without the tools and ends at
/// once, with a result that says so.
pub(super) async fn with_server_tools(
    context: TurnContext,
    deadline: Option<Instant>,
) -> TurnContext {
    let Some(end) = deadline else { return context.with_server_tools().await };
    let ready = tokio::time::timeout_at(end, context.with_server_tools()).await;
    let mut context = ready.unwrap_or(context);
    context.set_deadline(deadline);
    context
}
