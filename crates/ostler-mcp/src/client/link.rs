//! A way to a server, whatever it is made of: messages out, messages in, and a reason when it ends.

use serde_json::Value;
use tokio::sync::mpsc;

use super::endpoint::Channel;

/// How many messages wait in each direction.
pub(super) const CAPACITY: usize = 64;

/// Why a link ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ended {
    /// The other side wants to know who we are.
    #[cfg_attr(
        not(feature = "http"),
        allow(dead_code, reason = "only servers behind an address ask for it")
    )]
    NeedsAuth(String),
    Other(String),
}

impl Ended {
    pub(super) fn new(reason: impl Into<String>) -> Self {
        Self::Other(reason.into())
    }
}

/// A way to a server.
pub(super) struct Link {
    pub(super) outgoing: mpsc::Sender<Value>,
    pub(super) incoming: Incoming,
    /// What carries the messages; it ends when this is dropped.
    pub(super) carrier: Option<Carrier>,
}

pub(super) enum Incoming {
    Plain(mpsc::Receiver<Value>),
    WithReason(mpsc::Receiver<Result<Value, Ended>>),
}

impl Incoming {
    /// The next message. After an error there is nothing more.
    pub(super) async fn next(&mut self) -> Result<Value, Ended> {
        match self {
            Self::Plain(receiver) => receiver.recv().await.ok_or_else(|| Ended::new(HUNG_UP)),
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

    /// Lets the task come to its own end, which it does when nothing more can be sent.
    pub(super) async fn finish(mut self) {
        (&mut self.task).await.ok();
    }
}

impl Drop for Carrier {
    fn drop(&mut self) {
        self.task.abort();
    }
}
