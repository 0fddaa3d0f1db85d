//! The journal: every request in order of arrival, every failure, and a way to wait for either.

use std::sync::Arc;

use serde::Serialize;
use tokio::sync::watch;

use crate::patience::Patience;
use crate::record::{Endpoint, Outcome, RecordedRequest};

/// Records requests and failures. Clones share the same journal.
#[derive(Clone)]
pub(crate) struct Journal {
    pages: Arc<watch::Sender<Pages>>,
    patience: Patience,
}

impl Journal {
    pub(crate) fn new(patience: Patience) -> Self {
        Self { pages: Arc::default(), patience }
    }

    /// Records a request. The returned entry records how it is answered and how it ends.
    pub(crate) fn record(&self, mut request: RecordedRequest) -> Entry {
        let mut sequence = 0;
        self.pages.send_modify(|pages| {
            sequence = pages.requests.len();
            request.sequence = sequence;
            pages.requests.push(request);
        });
        Entry { journal: self.clone(), sequence, ended: false }
    }

    pub(crate) fn fail(&self, failure: Failure) {
        self.pages.send_modify(|pages| pages.failures.push(failure));
    }

    pub(crate) fn requests(&self) -> Vec<RecordedRequest> {
        self.pages.borrow().requests.clone()
    }

    pub(crate) fn failures(&self) -> Vec<Failure> {
        self.pages.borrow().failures.clone()
    }

    pub(crate) fn take_failures(&self) -> Vec<Failure> {
        let mut taken = Vec::new();
        self.pages.send_modify(|pages| taken = std::mem::take(&mut pages.failures));
        taken
    }

    /// Waits until the message requests so far satisfy `enough`; `None` after a timeout.
    pub(crate) async fn wait_for(
        &self,
        enough: impl Fn(&[&RecordedRequest]) -> bool,
    ) -> Option<Vec<RecordedRequest>> {
        let mut pages = self.pages.subscribe();
        let satisfied =
            self.patience.wait(pages.wait_for(|pages| enough(&pages.message_requests()))).await?;
        let pages = satisfied.expect("the journal holds the sender, so the channel is open");
        Some(pages.message_requests().into_iter().cloned().collect())
    }
}

/// The record of a request that is being answered. If it is dropped early, it records that the client left.
pub(crate) struct Entry {
    journal: Journal,
    pub(crate) sequence: usize,
    ended: bool,
}

impl Entry {
    pub(crate) fn matched(&self, rule: usize, name: Option<String>) {
        self.update(|request| {
            request.rule = Some(rule);
            request.rule_name = name;
        });
    }

    pub(crate) fn answered(&self, status: u16) {
        self.update(|request| request.status = Some(status));
    }

    pub(crate) fn end(&mut self, outcome: Outcome) {
        self.ended = true;
        self.update(|request| request.outcome = outcome);
    }

    fn update(&self, change: impl FnOnce(&mut RecordedRequest)) {
        self.journal.pages.send_modify(|pages| change(&mut pages.requests[self.sequence]));
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        if !self.ended {
            self.end(Outcome::ClientLeft);
        }
    }
}

/// A request that should not have been sent.
#[derive(Clone, Debug, Serialize)]
pub struct Failure {
    /// The [`RecordedRequest::sequence`] of the request.
    pub sequence: usize,
    /// What was wrong with it.
    pub kind: FailureKind,
    /// The full report: the reason, the conversation and, for an unmatched request, why no rule applied.
    pub report: String,
}

/// What was wrong with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// No rule covers it.
    Unmatched,
    /// The real API would refuse it.
    Invalid,
}

#[derive(Default)]
struct Pages {
    requests: Vec<RecordedRequest>,
    failures: Vec<Failure>,
}

impl Pages {
    fn message_requests(&self) -> Vec<&RecordedRequest> {
        self.requests.iter().filter(|request| request.endpoint == Endpoint::Messages).collect()
    }
}
