//! A transport: messages out, messages in, and a reason when it ends.

use serde_json::Value;
use tokio::sync::mpsc;

use super::endpoint::Channel;

/// How many messages may wait in each direction.
pub(super) const CAPACITY: usize = 64;

/// Why a link ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// The server requires authentication.
    #[cfg_attr(
        not(feature = "http"),
        allow(dead_code, reason = "only servers with a URL require authentication")
    )]
    NeedsAuth(String),
    /// Nothing was reached at the server's address.
    #[cfg_attr(not(feature = "http"), allow(dead_code, reason = "only a URL can lead nowhere"))]
    Unreachable(String),
    Other(String),
}

impl Ended {
    pub(super) fn new(reason: impl Into<String>) -> Self {
        Self::Other(reason.into())
    }
}

/// What a link brings.
#[derive(Debug)]
pub(super) enum Arrival {
    Message(Value),
    /// The server did not accept the request with this id. The connection continues.
    #[cfg_attr(not(feature = "http"), allow(dead_code, reason = "only HTTP refuses one request"))]
    Undelivered(Value, Ended),
}

/// The channel into which a carrier puts what it reads.
pub(super) type Arrivals = mpsc::Sender<Result<Arrival, Ended>>;

/// A transport to a server.
pub(super) struct Link {
    pub(super) outgoing: mpsc::Sender<Value>,
    pub(super) incoming: Incoming,
    /// The task that carries the messages; it ends when this is dropped.
    pub(super) carrier: Option<Carrier>,
}

pub(super) enum Incoming {
    Plain(mpsc::Receiver<Value>),
    WithReason(mpsc::Receiver<Result<Arrival, Ended>>),
}

impl Incoming {
    /// What arrives next. Nothing follows after an error.
    pub(super) async fn next(&mut self) -> Result<Arrival, Ended> {
        match self {
            Self::Plain(receiver) => {
                receiver.recv().await.map(Arrival::Message).ok_or_else(|| Ended::new(HUNG_UP))
            }
            Self::WithReason(receiver) => {
                receiver.recv().await.unwrap_or_else(|| Err(Ended::new(HUNG_UP)))
            }
        }
    }
}

const HUNG_UP: &str = "the other side closed the connection";

impl From<Channel> for Link {
    fn from(channel: Channel) -> Self {
        let incoming = Incoming::Plain(channel.incoming);
        Self { outgoing: channel.outgoing, incoming, carrier: None }
    }
}

/// A task that carries messages, and ends with this value.
pub(super) struct Carrier {
    task: tokio::task::JoinHandle<()>,
}

impl Carrier {
    pub(super) fn spawn(task: impl Future<Output = ()> + Send + 'static) -> Self {
        Self { task: tokio::spawn(task) }
    }

    pub(super) fn stop(&self) {
        self.task.abort();
    }

    /// Waits for the task to end by itself, which it does when its input is closed.
    pub(super) async fn finish(mut self) {
        (&mut self.task).await.ok();
    }
}

impl Drop for Carrier {
    fn drop(&mut self) {
        self.task.abort();
    }
}
