//! The callback that answers questions of MCP servers to the user (elicitation).

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use futures::future::BoxFuture;
use ostler_proto::control::{Elicitation, ElicitationReply};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::callback::{Failure, Reply, called};

/// A question of an MCP server to the user: `request.message`, with `request.requested_schema` for a form or
/// `request.url` for an address to visit.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ElicitationRequest {
    /// The question as received.
    pub question: Elicitation,
    /// Fires when the server no longer waits for an answer.
    pub cancelled: CancellationToken,
}

impl Deref for ElicitationRequest {
    type Target = Elicitation;

    fn deref(&self) -> &Elicitation {
        &self.question
    }
}

/// The user's answer to an MCP server.
///
/// ```
/// use ostler_sdk::{Elicited, Options};
///
/// let options = Options::new().on_elicitation(|asked| match asked.mode.as_deref() {
///     Some("url") => Elicited::decline(),
///     _ => Elicited::accept().with_content(serde_json::json!({"name": "Ada"})),
/// });
/// ```
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub struct Elicited(ElicitationReply);

impl Elicited {
    /// Yes; for a form, together with [`Elicited::with_content`].
    pub fn accept() -> Self {
        Self::of("accept")
    }

    /// No.
    pub fn decline() -> Self {
        Self::of("decline")
    }

    /// Neither yes nor no: the user dismissed the question.
    pub fn cancel() -> Self {
        Self::of("cancel")
    }

    /// The values that the user entered: an object that matches the requested schema. Ignored unless the answer is yes.
    pub fn with_content(mut self, content: impl Into<Value>) -> Self {
        if self.0.action == "accept" {
            self.0.content = Some(content.into());
        }
        self
    }

    fn of(action: &str) -> Self {
        Self(ElicitationReply { action: action.to_owned(), ..ElicitationReply::default() })
    }
}

/// A callback that answers MCP servers.
pub(crate) type OnElicitation =
    Arc<dyn Fn(ElicitationRequest) -> BoxFuture<'static, Elicited> + Send + Sync>;

pub(crate) fn on_elicitation<F, R, K>(callback: F) -> OnElicitation
where
    F: Fn(ElicitationRequest) -> R + Send + Sync + 'static,
    R: Reply<Elicited, K>,
{
    Arc::new(move |request| callback(request).into_future())
}

/// Answers a server's question. Without a callback, or if it panics, the answer is `decline`; if it takes too long,
/// `cancel`.
pub(crate) async fn answer(
    callback: Option<OnElicitation>,
    request: ElicitationRequest,
    timeout: Option<Duration>,
) -> Result<ElicitationReply, (ElicitationReply, Failure)> {
    let Some(callback) = callback else { return Ok(Elicited::decline().0) };
    // A callback may panic before it returns its future, too.
    match called(async { callback(request).await }, timeout).await {
        Ok(answer) => Ok(answer.0),
        Err(failure @ Failure::Panicked(_)) => Err((Elicited::decline().0, failure)),
        Err(failure @ Failure::TimedOut(_)) => Err((Elicited::cancel().0, failure)),
    }
}
