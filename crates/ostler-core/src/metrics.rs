//! Counters for `/metrics`.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering::Relaxed};

use crate::model::run::RunState;

/// The counters of the server.
#[derive(Debug, Default)]
pub struct Metrics {
    messages: AtomicU64,
    queued: AtomicU64,
    started: AtomicU64,
    completed: AtomicU64,
    failed: AtomicU64,
    cancelled: AtomicU64,
    interrupted: AtomicU64,
    webhooks_delivered: AtomicU64,
    webhooks_failed: AtomicU64,
    pub subscribers: AtomicI64,
    pub sockets: AtomicI64,
}

impl Metrics {
    pub fn message(&self) {
        self.messages.fetch_add(1, Relaxed);
    }

    pub(crate) fn webhook_delivered(&self) {
        self.webhooks_delivered.fetch_add(1, Relaxed);
    }

    pub(crate) fn webhook_failed(&self, count: u64) {
        self.webhooks_failed.fetch_add(count, Relaxed);
    }

    pub fn run_changed(&self, state: RunState) {
        let count = match state {
            RunState::Queued => &self.queued,
            RunState::Running => &self.started,
            RunState::Completed => &self.completed,
            RunState::Failed => &self.failed,
            RunState::Cancelled => &self.cancelled,
            RunState::Interrupted => &self.interrupted,
            // A run alternates between these.
            RunState::Waiting => return,
        };
        count.fetch_add(1, Relaxed);
    }

    /// The text format of Prometheus.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let mut line = |name: &str, kind: &str, help: &str, value: i64| {
            // Writing to a string cannot fail.
            let _ = write!(text, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}\n");
        };
        let count = |value: &AtomicU64| i64::try_from(value.load(Relaxed)).unwrap_or(i64::MAX);
        line(
            "ostler_messages_total",
            "counter",
            "Messages of engines that were logged",
            count(&self.messages),
        );
        line(
            "ostler_runs_queued_total",
            "counter",
            "Runs that were requested",
            count(&self.queued),
        );
        line(
            "ostler_runs_completed_total",
            "counter",
            "Runs that succeeded",
            count(&self.completed),
        );
        line("ostler_runs_failed_total", "counter", "Runs that failed", count(&self.failed));
        line(
            "ostler_runs_cancelled_total",
            "counter",
            "Runs that were cancelled",
            count(&self.cancelled),
        );
        line(
            "ostler_webhooks_delivered_total",
            "counter",
            "Messages that the webhook accepted",
            count(&self.webhooks_delivered),
        );
        line(
            "ostler_webhooks_failed_total",
            "counter",
            "Messages that the webhook did not receive",
            count(&self.webhooks_failed),
        );
        line("ostler_subscribers", "gauge", "Open event streams", self.subscribers.load(Relaxed));
        line("ostler_sockets", "gauge", "Open WebSockets", self.sockets.load(Relaxed));
        text
    }
}

/// Counts something for as long as it lives.
pub struct Gauged<'a>(&'a AtomicI64);

impl<'a> Gauged<'a> {
    pub fn count(gauge: &'a AtomicI64) -> Self {
        gauge.fetch_add(1, Relaxed);
        Self(gauge)
    }
}

impl Drop for Gauged<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}
