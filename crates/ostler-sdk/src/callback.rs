//! Runs callbacks of the host: panics and timeouts become errors that can be reported.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;

/// What a callback may return: its answer, or a future of it. Programs need not implement this trait.
pub trait Reply<T, K>: Send + 'static {
    #[doc(hidden)]
    fn into_future(self) -> BoxFuture<'static, T>;
}

/// A callback that answers at once; see [`Reply`].
#[derive(Debug)]
pub struct AtOnce;

/// A callback that answers with a future; see [`Reply`].
#[derive(Debug)]
pub struct Later;

impl<T: Send + 'static> Reply<T, AtOnce> for T {
    fn into_future(self) -> BoxFuture<'static, T> {
        std::future::ready(self).boxed()
    }
}

impl<T, F: Future<Output = T> + Send + 'static> Reply<T, Later> for F {
    fn into_future(self) -> BoxFuture<'static, T> {
        self.boxed()
    }
}

/// Why a callback did not answer.
#[derive(Debug)]
pub(crate) enum Failure {
    /// It panicked, with this message.
    Panicked(String),
    /// It took longer than this.
    TimedOut(Duration),
}

impl Failure {
    /// A sentence for the host about a callback with this name.
    pub(crate) fn of(&self, callback: &str) -> String {
        format!("The {callback} {}.", self.text())
    }

    pub(crate) fn text(&self) -> String {
        match self {
            Self::Panicked(message) => format!("panicked: {message}"),
            Self::TimedOut(limit) => format!("did not answer within {} s", limit.as_secs_f64()),
        }
    }

    /// The reason that the model reads. It does not contain the message of a panic.
    pub(crate) fn denial(&self) -> String {
        match self {
            Self::Panicked(_) => "The permission callback panicked.".to_owned(),
            Self::TimedOut(limit) => {
                format!("The permission request was not answered within {} s.", limit.as_secs_f64())
            }
        }
    }
}

/// Runs a callback, catches its panic, and ends it after its time limit.
pub(crate) async fn called<T>(
    running: impl Future<Output = T>,
    limit: Option<Duration>,
) -> Result<T, Failure> {
    let running = AssertUnwindSafe(running).catch_unwind();
    let ended = match limit {
        Some(limit) => {
            tokio::time::timeout(limit, running).await.map_err(|_| Failure::TimedOut(limit))?
        }
        None => running.await,
    };
    ended.map_err(|panic| Failure::Panicked(message(panic.as_ref())))
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("without a message").to_owned()
}
