//! Asking: creates a request, or finds an earlier one, and waits for the decision.

use std::time::Duration;

use ostler::CancellationToken;
use ostler::proto::control::{CanUseTool, DECISION_STEPS, DecisionReasonType};
use ostler_base::error::{self, ApiError, Fallible};
use ostler_base::ids;
use ostler_store::{Expected, Filter};
use tokio::sync::oneshot;

use super::record::{Answer, Approval, ApprovalKind, ApprovalState, Step};
use super::rule::{self, Granted};
use super::{Approvals, Asker, digest, labels, summary, unattended};
use crate::confine::redact::Redactor;
use crate::model::run::{Run, RunState};

/// How often the record is read, in case another server received the answer.
const LOOK: Duration = Duration::from_secs(2);
/// The delay before the store is tried again.
const AGAIN: Duration = Duration::from_millis(500);

impl Approvals {
    /// Asks, and waits until the request is decided, however long that takes. The result is never pending. `waits` is
    /// called when the request is listed; its result is dropped when the waiting ends.
    pub async fn ask<W>(
        &self,
        asker: &Asker,
        kind: ApprovalKind,
        call: &CanUseTool,
        cancelled: &CancellationToken,
        waits: impl FnOnce() -> W,
    ) -> Fallible<Approval> {
        let mut asked = self.describe(asker, kind, call);
        let granted = self.granted_for(&asked).await?;
        if !granted.is_empty() {
            return patiently(cancelled, || self.allowed_by(asked.clone(), &granted)).await;
        }
        if let Some(earlier) = self.earlier(&asked).await? {
            if !earlier.is_pending() {
                return Ok(earlier);
            }
            asked = earlier;
        }
        let decided = patiently(cancelled, || self.register(&asked)).await?;
        let _waiting = waits();
        // A rule granted since the check above may have missed this request.
        let granted = self.granted_for(&asked).await?;
        if !granted.is_empty() {
            self.settle_by(&asked.id, &granted).await;
        }
        self.wait(&asked, decided, cancelled).await
    }

    fn describe(&self, asker: &Asker, kind: ApprovalKind, call: &CanUseTool) -> Approval {
        let asked = self.clock.now();
        let origin = asker.origin.clone();
        let offers = match kind {
            ApprovalKind::Permission => {
                rule::offers(call, &origin, &self.everywhere, &self.redactor)
            }
            ApprovalKind::Question => Vec::new(),
        };
        let shown = |text: &String| self.redactor.text(text).into_owned();
        let summary = summary::of(&call.tool_name, &call.input);
        Approval {
            id: ids::new("approval"),
            kind,
            session: asker.session.clone(),
            run: asker.run.clone(),
            owner: asker.owner.clone(),
            tool_name: call.tool_name.clone(),
            tool_use_id: call.tool_use_id.as_ref().map(ToString::to_string),
            agent_id: call.agent_id.as_ref().map(ToString::to_string),
            input: call.input.clone(),
            digest: digest::of(&call.tool_name, &call.input),
            redacted: false,
            summary: shown(&summary),
            description: call.description.as_ref().map(shown),
            reason: call.decision_reason.as_ref().map(shown),
            why: steps(call, &self.redactor),
            reason_type: call.decision_reason_type.as_ref().and_then(word),
            blocked_path: call.blocked_path.as_ref().map(shown),
            rules: offers.iter().map(|offer| offer.label.clone()).collect(),
            offers,
            origin,
            asked,
            expires: self.limit.map(|limit| asked + millis(limit)),
            state: ApprovalState::Pending,
            answer: None,
            delivered: false,
        }
    }

    /// The granted rules that answer the request; empty if there are none.
    pub(super) async fn granted_for(&self, asked: &Approval) -> Fallible<Vec<Granted>> {
        if asked.offers.is_empty() {
            return Ok(Vec::new());
        }
        let mut granted: Vec<Granted> = self.records.all(of_session(asked)).await?;
        if let Some(filter) = in_folder(asked) {
            granted.extend(self.records.all::<Granted>(filter).await?);
        }
        let covering = rule::covering(granted, asked, &self.everywhere);
        if !covering.is_empty() && self.denied_by_space(asked, &asked.input).await?.is_some() {
            return Ok(Vec::new());
        }
        Ok(covering)
    }

    async fn allowed_by(&self, mut asked: Approval, granted: &[Granted]) -> Fallible<Approval> {
        let now = self.clock.now();
        asked.state = ApprovalState::Allowed;
        asked.delivered = true;
        asked.answer = Some(Answer { rule: Some(labels(granted)), ..unattended("rule", now) });
        self.write(&asked, Expected::Absent).await?;
        for granted in granted {
            let used = self.records.update::<Granted, ()>(&granted.id, |granted| {
                granted.last_used = Some(now);
                Ok(())
            });
            // The rule may have been revoked at this moment; then it applied until now.
            let _ = used.await;
        }
        self.tell(&asked);
        Ok(asked)
    }

    /// The same request from before a restart of the server: still pending, or answered in the meantime. An answer is
    /// used once.
    async fn earlier(&self, asked: &Approval) -> Fallible<Option<Approval>> {
        let of_session = Filter {
            owner: Some(asked.owner.clone()),
            field: Some(("digest".to_owned(), asked.digest.clone())),
            ..Filter::default()
        };
        let found: Vec<Approval> = self.records.all(of_session).await?;
        for earlier in found {
            let is_left = earlier.session == asked.session
                && earlier.kind == asked.kind
                && !earlier.delivered
                && !matches!(earlier.state, ApprovalState::Withdrawn | ApprovalState::Expired);
            // An approval that came when its run had just ended was for that run, and is not used for another.
            if is_left
                && !self.is_waited_for(&earlier.id)
                && self.was_interrupted(&earlier.run).await?
            {
                return self.adopt(&earlier.id, asked).await.map(Some);
            }
        }
        Ok(None)
    }

    async fn was_interrupted(&self, run: &str) -> Fallible<bool> {
        let found = self.records.find::<Run>(run).await?;
        Ok(found.is_some_and(|(run, _)| run.state == RunState::Interrupted))
    }

    /// Assigns the request to the run that asks again.
    async fn adopt(&self, id: &str, asked: &Approval) -> Fallible<Approval> {
        let (adopted, exact) = self
            .records
            .update::<Approval, Approval>(id, |earlier| {
                earlier.run.clone_from(&asked.run);
                earlier.tool_use_id.clone_from(&asked.tool_use_id);
                let exact = earlier.clone();
                if !earlier.is_pending() {
                    earlier.delivered = true;
                    *earlier = earlier.to_keep(&self.redactor);
                }
                Ok(exact)
            })
            .await?;
        Ok(Approval { delivered: adopted.delivered, ..exact })
    }

    fn is_waited_for(&self, id: &str) -> bool {
        self.waiting.lock().contains_key(id)
    }

    /// Stores the request, notifies clients, and returns the channel for the decision.
    async fn register(&self, asked: &Approval) -> Fallible<oneshot::Receiver<Approval>> {
        let (decided, receiver) = oneshot::channel();
        self.waiting.lock().insert(asked.id.clone(), decided);
        let known = self.records.find::<Approval>(&asked.id).await?;
        let expected = known.map_or(Expected::Absent, |(_, version)| Expected::Version(version));
        if let Err(error) = self.write(asked, expected).await {
            self.forget(&asked.id);
            return Err(error.into());
        }
        // There may be no watching clients.
        let _ = self.news.send(std::sync::Arc::new(asked.shown(&self.redactor)));
        Ok(receiver)
    }

    fn forget(&self, id: &str) {
        self.waiting.lock().remove(id);
    }

    async fn wait(
        &self,
        asked: &Approval,
        mut decided: oneshot::Receiver<Approval>,
        cancelled: &CancellationToken,
    ) -> Fallible<Approval> {
        let _forgotten = Forget { approvals: self, id: &asked.id };
        let mut look = tokio::time::interval(LOOK);
        look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let expiry = self.limit.map(|_| until(asked, self.clock.now()));
        let expires = tokio::time::sleep(expiry.unwrap_or_default());
        tokio::pin!(expires);
        loop {
            tokio::select! {
                answer = &mut decided => if let Ok(approval) = answer {
                    return self.delivered(approval, cancelled).await;
                },
                () = cancelled.cancelled() => {
                    self.end(&asked.id, ApprovalState::Withdrawn, "the run no longer needs it").await;
                    // If that could not be written, the end of the run withdraws it.
                    return Err(no_longer_needed());
                }
                () = &mut expires, if expiry.is_some() => {
                    self.end(&asked.id, ApprovalState::Expired, "there was no answer in time").await;
                    // Tries again if that could not be written.
                    expires.as_mut().reset(tokio::time::Instant::now() + LOOK);
                }
                _ = look.tick() => {}
            }
            if let Some((approval, _)) = self.records.find::<Approval>(&asked.id).await?
                && !approval.is_pending()
            {
                return self.delivered(approval, cancelled).await;
            }
        }
    }

    /// Marks the answer as delivered to the engine, so that it is not used for another call, and removes the exact
    /// arguments. While that cannot be written, the answer waits: it is in the record, and must not turn into a denial.
    async fn delivered(
        &self,
        approval: Approval,
        cancelled: &CancellationToken,
    ) -> Fallible<Approval> {
        patiently(cancelled, || self.mark_delivered(&approval.id)).await?;
        Ok(Approval { delivered: true, ..approval })
    }

    async fn mark_delivered(&self, id: &str) -> Fallible<()> {
        let marked = self.records.update::<Approval, ()>(id, |kept| {
            kept.delivered = true;
            *kept = kept.to_keep(&self.redactor);
            Ok(())
        });
        marked.await.map(drop)
    }

    /// Whether an answer for the run was not delivered yet.
    pub(crate) async fn has_undelivered(&self, run: &str) -> Fallible<bool> {
        let of_run = Some(("run".to_owned(), run.to_owned()));
        let found: Vec<Approval> =
            self.records.all(Filter { field: of_run, ..Filter::default() }).await?;
        Ok(found.iter().any(|approval| {
            let is_answered =
                matches!(approval.state, ApprovalState::Allowed | ApprovalState::Denied);
            let stops = approval.answer.as_ref().is_some_and(|answer| answer.stop);
            is_answered && !approval.delivered && !stops
        }))
    }
}

/// Retries while the store fails and the call is still needed.
async fn patiently<T, F: Future<Output = Fallible<T>>>(
    cancelled: &CancellationToken,
    attempt: impl Fn() -> F,
) -> Fallible<T> {
    loop {
        match attempt().await {
            Err(error) if error::is_of_store(&error) => {
                tracing::warn!(%error, "a request waits for the store");
            }
            done => return done,
        }
        tokio::select! {
            () = tokio::time::sleep(AGAIN) => {}
            () = cancelled.cancelled() => return Err(no_longer_needed()),
        }
    }
}

fn no_longer_needed() -> ApiError {
    ApiError::conflict("withdrawn", "the run no longer needs an answer")
}

/// Removes the waiting entry on drop, also when the waiting is cancelled.
struct Forget<'a> {
    approvals: &'a Approvals,
    id: &'a str,
}

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        self.approvals.forget(self.id);
    }
}

/// The checks that the engine reports. Not all engines do; unreadable ones are left out.
fn steps(call: &CanUseTool, redactor: &Redactor) -> Vec<Step> {
    let mut reported = call.extra.get(DECISION_STEPS).cloned().unwrap_or_default();
    redactor.value(&mut reported);
    let mut steps: Vec<Step> = serde_json::from_value(reported).unwrap_or_default();
    if let Some(last) = steps.last_mut() {
        last.decided = true;
    }
    steps
}

/// Selects the rules that were granted for the session.
fn of_session(asked: &Approval) -> Filter {
    Filter { field: Some(("session".to_owned(), asked.session.clone())), ..Filter::default() }
}

/// Selects the rules that the user granted for the folder. The record of a rule has the folder as text.
fn in_folder(asked: &Approval) -> Option<Filter> {
    let folder = asked.origin.folder.to_str()?.to_owned();
    let field = Some(("folder".to_owned(), folder));
    Some(Filter { owner: Some(asked.owner.clone()), field, ..Filter::default() })
}

/// The kind of a reason, as on the wire.
fn word(reason: &DecisionReasonType) -> Option<String> {
    Some(serde_json::to_value(reason).ok()?.as_str()?.to_owned())
}

fn until(asked: &Approval, now: u64) -> Duration {
    Duration::from_millis(asked.expires.unwrap_or(now).saturating_sub(now))
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
