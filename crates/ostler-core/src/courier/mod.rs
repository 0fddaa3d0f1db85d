//! Delivers signed messages: retries for about a minute, and then gives up with a line in the log and in the metrics.

pub(crate) mod sign;

use std::sync::Arc;
use std::time::Duration;

use reqwest::{Client, ClientBuilder, StatusCode, Url};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::clock::Clock;
use crate::metrics::Metrics;

/// How long the receiver may take to answer.
const ANSWER: Duration = Duration::from_secs(10);
/// The delay before the first retry; it doubles with each retry.
const FIRST_WAIT: Duration = Duration::from_millis(500);
/// How often a message is sent at most: for about a minute.
const TRIES: u32 = 8;
/// How many messages are sent at the same time. Further ones wait, up to [`WAITING`].
const AT_ONCE: usize = 8;
const WAITING: usize = 1_000;

/// Sends messages to other programs.
pub(crate) struct Courier {
    client: Client,
    clock: Clock,
    metrics: Arc<Metrics>,
    at_once: Semaphore,
    tracker: TaskTracker,
    stopping: CancellationToken,
}

/// A message and its address.
pub(crate) struct Letter {
    pub id: String,
    pub to: Url,
    /// The secret that signs it.
    pub(crate) secret: String,
    /// JSON.
    pub body: String,
}

impl Courier {
    /// # Errors
    /// A message, if no HTTP client can be created.
    pub(crate) fn new(
        client: ClientBuilder,
        clock: Clock,
        metrics: Arc<Metrics>,
    ) -> Result<Arc<Self>, String> {
        // Redirects are not followed: the message is only for the named receiver.
        let client = client.redirect(reqwest::redirect::Policy::none()).timeout(ANSWER).build();
        let client = client
            .map_err(|error| format!("cannot create an HTTP client for webhooks: {error}"))?;
        Ok(Arc::new(Self {
            client,
            clock,
            metrics,
            at_once: Semaphore::new(AT_ONCE),
            tracker: TaskTracker::new(),
            stopping: CancellationToken::new(),
        }))
    }

    /// Runs a future until [`Courier::shut_down`].
    pub(crate) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        let stopping = self.stopping.clone();
        self.tracker.spawn(async move {
            tokio::select! {
                () = work => {}
                () = stopping.cancelled() => {}
            }
        });
    }

    /// Stops all tasks, and drops messages that were not delivered.
    pub(crate) async fn shut_down(&self) {
        self.stopping.cancel();
        self.tracker.close();
        self.tracker.wait().await;
    }

    /// Delivers a message in the background.
    pub(crate) fn send(self: &Arc<Self>, letter: Letter) {
        if self.tracker.len() >= WAITING {
            tracing::error!("too many messages wait for webhooks; this one is dropped");
            self.metrics.webhook_failed(1);
            return;
        }
        let courier = Arc::clone(self);
        self.spawn(async move { courier.deliver(&letter).await });
    }

    /// Delivers a message, or gives up.
    pub(crate) async fn deliver(&self, letter: &Letter) {
        let id = &letter.id;
        let mut wait = FIRST_WAIT;
        for n in 1..=TRIES {
            let problem = {
                // Held for one attempt: a message that waits for its retry does not block others.
                let Ok(_turn) = self.at_once.acquire().await else { return };
                match self.try_once(letter).await {
                    Ok(()) => return self.metrics.webhook_delivered(),
                    Err(problem) => problem,
                }
            };
            tracing::warn!(
                delivery = id,
                n,
                problem = problem.what,
                "a webhook did not accept a message"
            );
            if problem.is_final {
                break;
            }
            if n < TRIES {
                tokio::time::sleep(wait).await;
                wait *= 2;
            }
        }
        tracing::error!(delivery = id, "a message for a webhook was not delivered");
        self.metrics.webhook_failed(1);
    }

    async fn try_once(&self, letter: &Letter) -> Result<(), Problem> {
        let seconds = self.clock.now() / 1_000;
        let signature = sign::signature(&letter.secret, seconds, letter.body.as_bytes());
        let request = self
            .client
            .post(letter.to.clone())
            .header("content-type", "application/json")
            .header("user-agent", concat!("ostler/", env!("CARGO_PKG_VERSION")))
            .header("x-ostler-delivery", &letter.id)
            .header("x-ostler-timestamp", seconds.to_string())
            .header("x-ostler-signature", signature)
            .body(letter.body.clone());
        match request.send().await {
            Ok(answer) if answer.status().is_success() => Ok(()),
            Ok(answer) => Err(Problem::of(answer.status())),
            // Without the address, which may contain a secret.
            Err(error) => Err(Problem { what: error.without_url().to_string(), is_final: false }),
        }
    }

    pub(crate) fn missed(&self, count: u64) {
        self.metrics.webhook_failed(count);
    }
}

/// Why a message was not accepted.
struct Problem {
    what: String,
    /// Whether a retry would fail too.
    is_final: bool,
}

impl Problem {
    fn of(status: StatusCode) -> Self {
        let may_pass = status.is_server_error()
            || matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT);
        Self { what: status.to_string(), is_final: !may_pass }
    }
}
