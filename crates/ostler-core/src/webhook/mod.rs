//! Notifies a program of the operator: a run waits for a user, or a run ended.
//!
//! It never blocks other work: events come from broadcasts and are sent by separate tasks (`courier`). The receiver may
//! get the same notification twice.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use ostler_base::ids;
use ostler_http::Certificates;
use reqwest::Url;
use serde_json::{Value, json};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use crate::approvals::Approvals;
use crate::approvals::record::Approval;
use crate::config::{Webhook, WebhookEvent};
use crate::courier::{Courier, Letter};
use crate::model::run::Run;
use crate::runs::Sessions;

/// How many notified requests are remembered.
const MAX_NOTIFIED: usize = 10_000;
/// A shorter secret could be guessed.
const SHORTEST_SECRET: usize = 16;

/// Checks the configuration, and returns the URL.
///
/// # Errors
/// A message, if the address is invalid or the secret is too short.
pub fn check(webhook: &Webhook) -> Result<Url, String> {
    let url = Url::parse(&webhook.url)
        .map_err(|error| format!("the webhook {} is not a valid address: {error}", webhook.url))?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err(format!("the webhook {} is not the address of a web server", webhook.url));
    }
    if webhook.secret.len() < SHORTEST_SECRET {
        return Err(format!(
            "the webhook needs a secret of at least {SHORTEST_SECRET} characters: set OSTLER_WEBHOOK_SECRET"
        ));
    }
    Ok(url)
}

/// Notifies the webhook of approvals and ends of runs.
pub struct WebhookSender {
    courier: Arc<Courier>,
    url: Url,
    secret: String,
    events: Vec<WebhookEvent>,
    /// The address of this server for users.
    base: String,
    sessions: Arc<Sessions>,
    approvals: Arc<Approvals>,
}

impl WebhookSender {
    /// # Errors
    /// A message, if it cannot be used.
    pub fn new(
        webhook: &Webhook,
        base: String,
        sessions: Arc<Sessions>,
        approvals: Arc<Approvals>,
    ) -> Result<Arc<Self>, String> {
        let url = check(webhook)?;
        let client =
            ostler_http::client(Certificates::System).map_err(|error| error.to_string())?;
        let courier = Courier::new(client, sessions.clock.clone(), Arc::clone(&sessions.metrics))?;
        let (secret, events) = (webhook.secret.clone(), webhook.events.clone());
        Ok(Arc::new(Self { courier, url, secret, events, base, sessions, approvals }))
    }

    /// Sends notifications, until [`WebhookSender::shut_down`].
    pub fn start(self: &Arc<Self>) {
        if self.events.contains(&WebhookEvent::Waiting) {
            let (webhook_sender, news) = (Arc::clone(self), self.approvals.news());
            self.courier.spawn(async move { webhook_sender.notify_of_waiting(news).await });
        }
        if self.events.contains(&WebhookEvent::Ended) {
            let (webhook_sender, news) = (Arc::clone(self), self.sessions.news());
            self.courier.spawn(async move { webhook_sender.notify_of_ends(news).await });
        }
    }

    /// Stops, and drops messages that were not delivered.
    pub async fn shut_down(&self) {
        self.courier.shut_down().await;
    }

    async fn notify_of_waiting(&self, mut news: broadcast::Receiver<Arc<Approval>>) {
        let mut notified = Notified::default();
        // Requests of an earlier server are still pending; it may have stopped before it sent them.
        self.notify_all_pending(&mut notified).await;
        loop {
            match news.recv().await {
                Ok(approval) if approval.is_pending() => self.waiting(&approval, &mut notified),
                Ok(_) => {}
                Err(RecvError::Lagged(_)) => self.notify_all_pending(&mut notified).await,
                Err(RecvError::Closed) => return,
            }
        }
    }

    async fn notify_all_pending(&self, notified: &mut Notified) {
        match self.approvals.all_pending().await {
            Ok(pending) => pending.iter().for_each(|approval| self.waiting(approval, notified)),
            Err(error) => tracing::error!(%error, "pending requests could not be read"),
        }
    }

    fn waiting(&self, approval: &Approval, notified: &mut Notified) {
        if !notified.add(&approval.id) {
            return;
        }
        let summary = self.sessions.redacted(&approval.summary);
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
        self.send(body);
    }

    async fn notify_of_ends(&self, mut news: broadcast::Receiver<Arc<Run>>) {
        loop {
            match news.recv().await {
                Ok(run) => self.send(self.ended(&run)),
                Err(RecvError::Lagged(missed)) => {
                    tracing::warn!(missed, "the webhook was not notified of the ends of some runs");
                    self.courier.missed(missed);
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

    /// Sends a message in the background.
    fn send(&self, mut body: Value) {
        let id = ids::new("delivery");
        body["id"] = id.clone().into();
        let (to, secret) = (self.url.clone(), self.secret.clone());
        self.courier.send(Letter { id, to, secret, body: body.to_string() });
    }
}

/// The ids of requests that were notified, as far back as needed.
#[derive(Default)]
struct Notified {
    known: HashSet<String>,
    order: VecDeque<String>,
}

impl Notified {
    /// Whether the id is new.
    fn add(&mut self, id: &str) -> bool {
        if !self.known.insert(id.to_owned()) {
            return false;
        }
        self.order.push_back(id.to_owned());
        if self.order.len() > MAX_NOTIFIED
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
        true
    }
}
