//! One answer out of several attempts.
//!
//! No event of an attempt is passed on before its first block has begun. Until then a failed attempt can be repeated,
//! and the reader never sees two beginnings. Afterwards the reader has seen part of an answer and must handle a failure
//! itself.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, stream};
use ostler_proto::api::{Accumulator, Folded, Message, StreamEvent};

use super::http::{Api, Attempt};
use super::retry::{AttemptCounter, FailedAttempt, RetryDecision};
use super::{EventStream, Fallback, ModelError, ModelEvent, Request, Retry, pricing};

/// Answers a request.
pub(crate) fn respond(api: Arc<Api>, mut request: Request) -> EventStream {
    while api.is_given_up(&request.model)
        && let Some(fallback) = api.fallback_for(&request.model)
    {
        request.model = fallback.to_owned();
    }
    let tries = AttemptCounter::new(api.config.retry, api.fallback_for(&request.model).is_some());
    let max_tokens = api.config.max_output_tokens.unwrap_or(request.max_tokens);
    let answer = RetriedResponse {
        api,
        request,
        max_tokens,
        tries,
        phase: Phase::Send,
        order: Accumulator::default(),
        beginning: None,
        named: None,
        begun: false,
        ready: VecDeque::new(),
        credential: 0,
        is_refused: false,
    };
    stream::unfold(answer, async |mut answer| Some((answer.next().await?, answer))).boxed()
}

struct RetriedResponse {
    api: Arc<Api>,
    request: Request,
    /// The requested limit of tokens; the model may allow less.
    max_tokens: u64,
    tries: AttemptCounter,
    phase: Phase,
    /// Checks that the events are in a valid order.
    order: Accumulator,
    /// `message_start`, while no block has followed.
    beginning: Option<StreamEvent>,
    /// The API's id of the request, until the first event of the answer is passed on.
    named: Option<ModelEvent>,
    /// Whether the reader has seen anything of the answer.
    begun: bool,
    ready: VecDeque<ModelEvent>,
    /// The credential of the last attempt.
    credential: u64,
    /// Whether the API refused it.
    is_refused: bool,
}

enum Phase {
    Wait(Duration),
    Send,
    Read(Attempt),
    Done,
}

impl RetriedResponse {
    async fn next(&mut self) -> Option<Result<ModelEvent, ModelError>> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(Ok(event));
            }
            let failure = match &mut self.phase {
                Phase::Done => return None,
                Phase::Wait(delay) => {
                    tokio::time::sleep(*delay).await;
                    if std::mem::take(&mut self.is_refused) {
                        self.api.keyring.renew(self.credential).await;
                    }
                    self.phase = Phase::Send;
                    continue;
                }
                Phase::Send => {
                    self.api.keyring.freshen().await;
                    self.send();
                    continue;
                }
                Phase::Read(attempt) => match attempt.next().await {
                    Some(Ok(event)) => self.heard(event).err(),
                    Some(Err(failure)) => Some(failure),
                    None => Some(ModelError::Protocol("it has no end".to_owned()).into()),
                },
            };
            if let Some(failure) = failure
                && let Err(error) = self.failed(failure)
            {
                self.phase = Phase::Done;
                return Some(Err(error));
            }
        }
    }

    fn send(&mut self) {
        self.order = Accumulator::default();
        self.beginning = None;
        self.named = None;
        let most =
            pricing::family(&self.request.model).map_or(u64::MAX, |family| family.max_output);
        self.request.max_tokens = self.max_tokens.min(most);
        // A long prompt takes long to read: with a fixed timeout, every attempt could fail.
        let patience = self.tries.n_failed() + 1;
        let (number, headers) = self.api.keyring.headers();
        self.credential = number;
        self.phase = Phase::Read(self.api.send(&self.request, headers, patience));
    }

    fn heard(&mut self, event: ModelEvent) -> Result<(), FailedAttempt> {
        let event = match event {
            ModelEvent::Stream(event) => event,
            ModelEvent::Named(_) => {
                self.named = Some(event);
                return Ok(());
            }
            whole => {
                self.ready.extend(self.named.take());
                self.ready.push_back(whole);
                self.phase = Phase::Done;
                return Ok(());
            }
        };
        let folded =
            self.order.push(&event).map_err(|error| ModelError::Protocol(error.to_string()))?;
        if let Folded::Message(message) = &folded {
            check_end(message)?;
            self.phase = Phase::Done;
        }
        match event {
            StreamEvent::MessageStart(_) => self.beginning = Some(event),
            StreamEvent::Ping(_) | StreamEvent::Unknown(_) if !self.begun => {}
            event => {
                self.begun = true;
                self.ready.extend(self.named.take());
                let events = self.beginning.take().into_iter().chain([event]);
                self.ready.extend(events.map(ModelEvent::Stream));
            }
        }
        Ok(())
    }

    /// Prepares the next attempt, or returns the error if there is none.
    fn failed(&mut self, failure: FailedAttempt) -> Result<(), ModelError> {
        if self.begun {
            let is_final = failure.error.status().is_some_and(|status| status < 429)
                || matches!(failure.error, ModelError::TooLarge(_));
            let FailedAttempt { error, .. } = failure;
            return Err(if is_final { error } else { ModelError::Broken(error.reason()) });
        }
        match self.tries.failed(&failure, fastrand::f64()) {
            RetryDecision::GiveUp => Err(failure.error),
            RetryDecision::Retry { delay } => {
                self.ready.push_back(ModelEvent::Retry(Retry {
                    attempt: self.tries.n_failed().into(),
                    max_retries: self.api.config.retry.max_retries.into(),
                    delay,
                    status: failure.error.status(),
                    error: failure.error.kind_of_attempt(),
                }));
                self.is_refused = failure.error.status() == Some(401);
                self.phase = Phase::Wait(delay);
                Ok(())
            }
            RetryDecision::FallBack(trigger) => {
                let Some(to) = self.api.fallback_for(&self.request.model).map(str::to_owned) else {
                    return Err(failure.error);
                };
                self.api.give_up(&self.request.model);
                let from = std::mem::replace(&mut self.request.model, to.clone());
                self.ready.push_back(ModelEvent::Fallback(Fallback { from, to, trigger }));
                let has_fallback = self.api.fallback_for(&self.request.model).is_some();
                self.tries = AttemptCounter::new(self.api.config.retry, has_fallback);
                self.phase = Phase::Send;
                Ok(())
            }
        }
    }
}

/// Refuses an answer without content and without a stop reason: it was cut.
fn check_end(message: &Message) -> Result<(), ModelError> {
    if message.content.is_empty() && message.stop_reason.is_none() {
        return Err(ModelError::Protocol("it ended before it began".to_owned()));
    }
    Ok(())
}
