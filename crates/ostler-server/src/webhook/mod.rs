//! Tells a program of the operator's what happens: somebody is waited for, or a run is over.
//!
//! Never in anybody's way: what happens is taken from broadcasts, sent from a task of its own, tried again for a while,
//! and then given up with a line in the log and in the metrics. The receiver may hear of the same thing twice.

pub(crate) mod sign;

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use reqwest::redirect::Policy;
use reqwest::{Client, StatusCode, Url};
use serde_json::{Value, json};
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{Semaphore, broadcast};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::approvals::Approvals;
use crate::approvals::record::Approval;
use crate::clock::Clock;
use crate::config::{Webhook, WebhookEvent};
use crate::ids;
use crate::metrics::Metrics;
use crate::runs::Hub;
use crate::runs::record::Run;

/// How long the receiver may take to answer.
const ANSWER: Duration = Duration::from_secs(10);
/// How long is waited before the first time that something is sent again; then twice as long each time.
const FIRST_WAIT: Duration = Duration::from_millis(500);
/// How often something is sent at most: for about a minute.
const TRIES: u32 = 8;
/// How much is under way at the same time. What comes beyond that waits, up to [`WAITING`].
const AT_ONCE: usize = 8;
const WAITING: usize = 1_000;
/// How many requests are remembered as told.
const TOLD: usize = 10_000;
/// A secret that is shorter can be guessed.
const SHORTEST_SECRET: usize = 16;

/// Where it is, if it can be used.
///
/// # Errors
/// In words, when the address is none or the secret is too short.
pub(crate) fn check(webhook: &Webhook) -> Result<Url, String> {
    let url = Url::parse(&webhook.url)
        .map_err(|error| format!("the webhook {} is no address: {error}", webhook.url))?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err(format!("the webhook {} is no address of a web server", webhook.url));
    }
    if webhook.secret.len() < SHORTEST_SECRET {
        return Err(format!(
            "the webhook needs a secret of at least {SHORTEST_SECRET} characters: set OSTLER_WEBHOOK_SECRET"
        ));
    }
    Ok(url)
}

/// The one who tells.
pub(crate) struct Teller {
    client: Client,
    url: Url,
    secret: String,
    events: Vec<WebhookEvent>,
    /// How people reach this server.
    base: String,
    hub: Arc<Hub>,
    approvals: Arc<Approvals>,
    metrics: Arc<Metrics>,
    clock: Clock,
    at_once: Semaphore,
    tracker: TaskTracker,
    stopping: CancellationToken,
}

impl Teller {
    /// # Errors
    /// In words, when it cannot be used.
    pub(crate) fn new(
        webhook: &Webhook,
        base: String,
        hub: Arc<Hub>,
        approvals: Arc<Approvals>,
    ) -> Result<Arc<Self>, String> {
        let url = check(webhook)?;
        // Somebody has to choose how TLS is done; whoever comes first has done so already.
        _ = rustls::crypto::ring::default_provider().install_default();
        // Nobody sends us elsewhere: what is told is for the operator's program.
        let client = Client::builder().redirect(Policy::none()).timeout(ANSWER).build();
        let client = client.map_err(|error| format!("no client for the webhook: {error}"))?;
        let (metrics, clock) = (Arc::clone(&hub.metrics), hub.clock.clone());
        Ok(Arc::new(Self {
            client,
            url,
            secret: webhook.secret.clone(),
            events: webhook.events.clone(),
            base,
            hub,
            approvals,
            metrics,
            clock,
            at_once: Semaphore::new(AT_ONCE),
            tracker: TaskTracker::new(),
            stopping: CancellationToken::new(),
        }))
    }

    /// Listens and tells, until [`Teller::shut_down`].
    pub(crate) fn start(self: &Arc<Self>) {
        if self.events.contains(&WebhookEvent::Waiting) {
            let (teller, news) = (Arc::clone(self), self.approvals.news());
            self.tracker.spawn(async move {
                tokio::select! {
                    () = teller.tell_of_waiting(news) => {}
                    () = teller.stopping.cancelled() => {}
                }
            });
        }
        if self.events.contains(&WebhookEvent::Ended) {
            let (teller, news) = (Arc::clone(self), self.hub.news());
            self.tracker.spawn(async move {
                tokio::select! {
                    () = teller.tell_of_ends(news) => {}
                    () = teller.stopping.cancelled() => {}
                }
            });
        }
    }

    /// Ends it; what is under way is let go.
    pub(crate) async fn shut_down(&self) {
        self.stopping.cancel();
        self.tracker.close();
        self.tracker.wait().await;
    }

    async fn tell_of_waiting(self: &Arc<Self>, mut news: broadcast::Receiver<Arc<Approval>>) {
        let mut told = Told::default();
        // What waited when an earlier server ended still waits; that one may not have come to tell it.
        self.tell_all_pending(&mut told).await;
        loop {
            match news.recv().await {
                Ok(approval) if approval.is_pending() => self.waiting(&approval, &mut told),
                Ok(_) => {}
                Err(RecvError::Lagged(_)) => self.tell_all_pending(&mut told).await,
                Err(RecvError::Closed) => return,
            }
        }
    }

    async fn tell_all_pending(self: &Arc<Self>, told: &mut Told) {
        match self.approvals.all_pending().await {
            Ok(pending) => pending.iter().for_each(|approval| self.waiting(approval, told)),
            Err(error) => tracing::error!(%error, "what waits could not be found out"),
        }
    }

    fn waiting(self: &Arc<Self>, approval: &Approval, told: &mut Told) {
        if !told.add(&approval.id) {
            return;
        }
        let summary = self.hub.redacted(&approval.summary);
        let body = json!({
            "event": "waiting",
            "approval": {
                "id": approval.id,
                "kind": approval.kind,
                "session": approval.session,
                "run": approval.run,
                "owner": approval.owner,
                "toolName": approval.tool_name,
                "summary": summary,
                "asked": approval.asked,
                "expires": approval.expires,
            },
            "link": format!("{}/api/approvals/{}", self.base, approval.id),
        });
        self.tell(body);
    }

    async fn tell_of_ends(self: &Arc<Self>, mut news: broadcast::Receiver<Arc<Run>>) {
        loop {
            match news.recv().await {
                Ok(run) if run.state.is_over() => self.tell(self.ended(&run)),
                Ok(_) => {}
                Err(RecvError::Lagged(missed)) => {
                    tracing::warn!(missed, "ends of runs were not told to the webhook");
                    self.metrics.webhook_failed(missed);
                }
                Err(RecvError::Closed) => return,
            }
        }
    }

    fn ended(&self, run: &Run) -> Value {
        let error = run.outcome.as_ref().and_then(|outcome| outcome.error.as_ref());
        json!({
            "event": "ended",
            "run": {
                "id": run.id,
                "session": run.session,
                "owner": run.owner,
                "state": run.state,
                "created": run.created,
                "started": run.started,
                "ended": run.ended,
                "error": error.map(|error| json!({"code": error.code})),
            },
            "link": format!("{}/api/runs/{}", self.base, run.id),
        })
    }

    /// Has it sent, without waiting for that.
    fn tell(self: &Arc<Self>, mut body: Value) {
        if self.tracker.len() >= WAITING {
            tracing::error!("too much waits for the webhook; this is not told");
            self.metrics.webhook_failed(1);
            return;
        }
        let id = ids::new("delivery");
        body["id"] = id.clone().into();
        let teller = Arc::clone(self);
        self.tracker.spawn(async move {
            tokio::select! {
                () = teller.deliver(&id, &body) => {}
                () = teller.stopping.cancelled() => {}
            }
        });
    }

    async fn deliver(&self, id: &str, body: &Value) {
        let text = body.to_string();
        let mut wait = FIRST_WAIT;
        for n in 1..=TRIES {
            let problem = {
                // Held for one try: what waits for the next does not keep others waiting.
                let Ok(_turn) = self.at_once.acquire().await else { return };
                match self.send(id, &text).await {
                    Ok(()) => return self.metrics.webhook_delivered(),
                    Err(problem) => problem,
                }
            };
            tracing::warn!(delivery = id, n, problem = problem.what, "the webhook did not take it");
            if problem.is_final {
                break;
            }
            if n < TRIES {
                tokio::time::sleep(wait).await;
                wait *= 2;
            }
        }
        tracing::error!(delivery = id, "the webhook was not told");
        self.metrics.webhook_failed(1);
    }

    async fn send(&self, id: &str, body: &str) -> Result<(), Problem> {
        let seconds = self.clock.now() / 1_000;
        let request = self
            .client
            .post(self.url.clone())
            .header("content-type", "application/json")
            .header("user-agent", concat!("ostler/", env!("CARGO_PKG_VERSION")))
            .header("x-ostler-delivery", id)
            .header("x-ostler-timestamp", seconds.to_string())
            .header("x-ostler-signature", sign::signature(&self.secret, seconds, body.as_bytes()))
            .body(body.to_owned());
        match request.send().await {
            Ok(answer) if answer.status().is_success() => Ok(()),
            Ok(answer) => Err(Problem::of(answer.status())),
            // Without the address, which may have a secret in it.
            Err(error) => Err(Problem { what: error.without_url().to_string(), is_final: false }),
        }
    }
}

/// Why something was not taken.
struct Problem {
    what: String,
    /// It would not be taken another time.
    is_final: bool,
}

impl Problem {
    fn of(status: StatusCode) -> Self {
        let may_pass = status.is_server_error()
            || matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT);
        Self { what: status.to_string(), is_final: !may_pass }
    }
}

/// What was told already, as far back as that matters.
#[derive(Default)]
struct Told {
    known: HashSet<String>,
    order: VecDeque<String>,
}

impl Told {
    /// Whether it is new.
    fn add(&mut self, id: &str) -> bool {
        if !self.known.insert(id.to_owned()) {
            return false;
        }
        self.order.push_back(id.to_owned());
        if self.order.len() > TOLD
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
        true
    }
}
