//! Calls to the session's own task from everything that runs next to it: questions to the host, changes of background
//! tasks, reports of hooks in the background, questions of MCP servers. Only the session's task sends them on the wire.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use futures::future::BoxFuture;
use ostler_proto::control::{Ask, AskHost, Elicitation, ElicitationReply, Success};
use ostler_proto::peer::CallError;
use ostler_proto::permission::PermissionUpdate;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use crate::hook_report::HookReport;
use crate::tasks::{TaskChange, TaskReporter};

/// What the session's task does for others.
#[derive(Debug)]
pub(crate) enum HostCall {
    /// Asks the host.
    Ask(Box<Question>),
    /// Withdraws a question: its asker no longer waits for the answer.
    Withdraw(u64),
    /// Notifies the host that a background task has begun, ended or changed.
    Task(TaskChange),
    /// Notifies the host of a hook that runs in the background.
    Hook(HookReport),
    /// Starts a turn with the text of a background hook.
    Wake(String),
    /// Gets the answer to a question that an MCP server has for the user.
    Elicit { question: Box<Elicitation>, answer: oneshot::Sender<ElicitationReply> },
    /// Asks the model for an MCP server, if that is permitted.
    Sample { server: String, params: Value, answer: oneshot::Sender<Result<Value, String>> },
    /// Applies the permission updates that came with an answer.
    ChangePermissions { updates: Vec<PermissionUpdate>, done: oneshot::Sender<()> },
}

/// Sends calls to the session's task. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Calls {
    sender: mpsc::Sender<HostCall>,
    /// Of the question that was asked last.
    last_token: Arc<AtomicU64>,
    /// Whether the session's task has begun to receive calls.
    are_answered: Arc<AtomicBool>,
}

impl Calls {
    pub(crate) fn new(sender: mpsc::Sender<HostCall>) -> Self {
        Self { sender, last_token: Arc::default(), are_answered: Arc::default() }
    }

    /// Notes that the session's task receives calls from now on.
    pub(crate) fn begin(&self) {
        self.are_answered.store(true, Ordering::Relaxed);
    }

    /// Whether the session's task has begun to receive calls. Before, an answer may never come.
    pub(crate) fn are_answered(&self) -> bool {
        self.are_answered.load(Ordering::Relaxed)
    }

    /// Returns whether the session still exists.
    pub(crate) async fn send(&self, call: HostCall) -> bool {
        self.sender.send(call).await.is_ok()
    }

    /// Sends a call that is not important enough to wait for room in the channel.
    pub(crate) fn try_send(&self, call: HostCall) {
        let _ = self.sender.try_send(call);
    }

    /// Asks the host. Dropping the future withdraws the question.
    ///
    /// # Errors
    /// When there is no answer, or one of another form.
    pub(crate) async fn ask<Q: Ask>(
        &self,
        request: AskHost,
        in_background: bool,
    ) -> Result<Q::Reply, String> {
        let token = self.last_token.fetch_add(1, Ordering::Relaxed);
        let (answer, answered) = oneshot::channel();
        let question = Box::new(Question { token, request, in_background, answer });
        let gone = || "the session has ended".to_owned();
        if !self.send(HostCall::Ask(question)).await {
            return Err(gone());
        }
        let mut pending = PendingQuestion { token, calls: self, answered: false };
        let success = answered.await;
        pending.answered = true;
        let success = success.map_err(|_| gone())?.map_err(|error| error.to_string())?;
        Q::read_reply(success.response.as_ref()).map_err(|error| error.to_string())
    }
}

impl TaskReporter for Calls {
    fn report(&self, change: TaskChange) -> BoxFuture<'_, bool> {
        Box::pin(self.send(HostCall::Task(change)))
    }
}

/// A question on its way to the host, and where the answer is awaited.
#[derive(Debug)]
pub(crate) struct Question {
    /// Identifies the question until the session has given it its request id.
    pub(crate) token: u64,
    pub(crate) request: AskHost,
    /// A background task asks: an interruption of the turn does not withdraw it.
    pub(crate) in_background: bool,
    pub(crate) answer: oneshot::Sender<Result<Success, CallError>>,
}

/// Withdraws a question when its asker is dropped before the answer came.
struct PendingQuestion<'a> {
    token: u64,
    calls: &'a Calls,
    answered: bool,
}

impl Drop for PendingQuestion<'_> {
    fn drop(&mut self) {
        if !self.answered {
            // If the channel is full, the host keeps the question; its answer will be ignored.
            self.calls.try_send(HostCall::Withdraw(self.token));
        }
    }
}
