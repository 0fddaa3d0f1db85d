//! [`Peer`]: the pending requests of one side of a connection. Pure: no IO, no clock.
//!
//! Both sides of the control protocol send and answer many requests concurrently. A `Peer` has the two tables for
//! this: *asked*, our pending requests, each with a token of type `A` (such as a channel to the caller); and
//! *serving*, requests of the other side that we are working on, each with a token of type `S` (such as a handle that
//! stops the work).
//!
//! ```
//! use ostler_proto::control::ControlResponse;
//! use ostler_proto::peer::Peer;
//!
//! let mut peer = Peer::<&str, ()>::new("req_");
//! let first = peer.ask("first").unwrap();
//! let second = peer.ask("second").unwrap();
//! // Answers come in any order, and only once.
//! let answer = ControlResponse::success(second.clone(), None);
//! let (who, result) = peer.answered(answer.clone()).unwrap();
//! assert_eq!((who, result.unwrap().response), ("second", None));
//! assert!(peer.answered(answer).is_none());
//! // When the stream ends, all pending requests get an error.
//! let (who, error) = peer.close("the engine exited").pop().unwrap();
//! assert_eq!((who, error.to_string()), ("first", "no answer to req_1: the engine exited".to_owned()));
//! ```

use std::collections::HashMap;

use crate::control::{ControlCancelRequest, ControlResponse, Response, Success};
use crate::{Extra, RequestId};

/// The request table of one side; see the module documentation.
#[derive(Debug)]
pub struct Peer<A, S> {
    prefix: &'static str,
    last_id: u64,
    asked: HashMap<RequestId, A>,
    serving: HashMap<RequestId, S>,
    closed: Option<String>,
}

impl<A, S> Peer<A, S> {
    /// An empty table. `prefix` is the prefix of our request ids, for readers of logs.
    pub fn new(prefix: &'static str) -> Self {
        Self { prefix, last_id: 0, asked: HashMap::new(), serving: HashMap::new(), closed: None }
    }

    /// Registers a request of ours and returns its id. Send the request afterwards.
    ///
    /// # Errors
    /// If the stream is closed.
    pub fn ask(&mut self, waiting: A) -> Result<RequestId, (A, CallError)> {
        self.last_id += 1;
        let id = RequestId::from(format!("{}{}", self.prefix, self.last_id));
        if let Some(reason) = &self.closed {
            let error = CallError::Closed { id, reason: reason.clone() };
            return Err((waiting, error));
        }
        self.asked.insert(id.clone(), waiting);
        Ok(id)
    }

    /// Handles an answer: returns the waiting token and the result. `None` for an id that is not awaited (any more).
    pub fn answered(&mut self, answer: ControlResponse) -> Option<(A, Result<Success, CallError>)> {
        let id = answer.response.request_id()?;
        let waiting = self.asked.remove(&id)?;
        let result = match answer.response {
            Response::Success(success) => Ok(success),
            Response::Error(failure) => {
                Err(CallError::Refused { id, error: failure.error, code: failure.error_code })
            }
            Response::Unknown(_) => Err(CallError::Refused {
                id,
                error: format!(
                    "unknown kind of answer: {}",
                    answer.response.tag().unwrap_or("none")
                ),
                code: None,
            }),
        };
        Some((waiting, result))
    }

    /// Cancels a request of ours: returns its token, and the frame that notifies the other side.
    pub fn cancel(&mut self, id: &RequestId) -> Option<(A, ControlCancelRequest)> {
        let waiting = self.asked.remove(id)?;
        Some((waiting, ControlCancelRequest { request_id: id.clone(), extra: Extra::default() }))
    }

    /// Cancels all requests of ours, oldest first.
    pub fn cancel_all(&mut self) -> Vec<(A, ControlCancelRequest)> {
        let mut ids: Vec<_> = self.asked.keys().cloned().collect();
        ids.sort_by_key(|id| (id.as_str().len(), id.clone()));
        ids.iter().filter_map(|id| self.cancel(id)).collect()
    }

    /// Registers a request of the other side that is being served.
    ///
    /// # Errors
    /// When a request with that id is being worked on already, or the stream is closed. The token comes back.
    pub fn serve(&mut self, id: RequestId, work: S) -> Result<(), S> {
        if self.closed.is_some() || self.serving.contains_key(&id) {
            return Err(work);
        }
        self.serving.insert(id, work);
        Ok(())
    }

    /// Whether a request of the other side is being served.
    pub fn is_serving(&self, id: &RequestId) -> bool {
        self.serving.contains_key(id)
    }

    /// Ends the work on a request. Send the answer only if this returns the token: a cancelled request, or one of a
    /// closed stream, gets none.
    pub fn served(&mut self, id: &RequestId) -> Option<S> {
        self.serving.remove(id)
    }

    /// The other side cancelled a request. Returns the token to stop the work with.
    pub fn cancelled(&mut self, cancel: &ControlCancelRequest) -> Option<S> {
        self.serving.remove(&cancel.request_id)
    }

    /// Ends the stream. All pending requests get an error with the reason; from now on `ask` fails.
    ///
    /// Work for the other side stays registered until [`Peer::stop_serving`]: a host that closed its end may still
    /// want the results.
    pub fn close(&mut self, reason: impl Into<String>) -> Vec<(A, CallError)> {
        let reason = self.closed.get_or_insert(reason.into()).clone();
        let mut waiting: Vec<_> = self.asked.drain().collect();
        waiting.sort_by_key(|(id, _)| (id.as_str().len(), id.clone()));
        waiting
            .into_iter()
            .map(|(id, waiting)| (waiting, CallError::Closed { id, reason: reason.clone() }))
            .collect()
    }

    /// Returns the tokens of all work for the other side, to be stopped by the caller.
    pub fn stop_serving(&mut self) -> Vec<S> {
        self.serving.drain().map(|(_, work)| work).collect()
    }

    /// How many of our requests are pending.
    pub fn waiting(&self) -> usize {
        self.asked.len()
    }

    /// How many requests of the other side are being served.
    pub fn working(&self) -> usize {
        self.serving.len()
    }
}

/// Why a request of ours has no payload.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The other side refused.
    #[error("{id} was refused: {error}")]
    #[non_exhaustive]
    Refused {
        /// The request.
        id: RequestId,
        /// As text.
        error: String,
        /// For programs.
        code: Option<String>,
    },
    /// The stream ended first.
    #[error("no answer to {id}: {reason}")]
    Closed {
        /// The request.
        id: RequestId,
        /// Why it ended.
        reason: String,
    },
}

#[cfg(test)]
mod tests {
    use super::{CallError, Peer};
    use crate::control::ControlResponse;

    #[test]
    fn a_cancelled_request_is_no_longer_waited_for() {
        let mut peer = Peer::<u8, ()>::new("r");
        let id = peer.ask(1).unwrap();
        let (who, frame) = peer.cancel(&id).unwrap();
        assert_eq!((who, &frame.request_id), (1, &id));
        assert!(peer.answered(ControlResponse::error(id.clone(), "late")).is_none());
        assert!(peer.cancel(&id).is_none());
    }

    #[test]
    fn cancelling_all_starts_with_the_oldest() {
        let mut peer = Peer::<u8, ()>::new("r");
        (1..=11).for_each(|token| _ = peer.ask(token).unwrap());
        let cancelled: Vec<_> = peer.cancel_all().into_iter().map(|(token, _)| token).collect();
        assert_eq!(cancelled, (1..=11).collect::<Vec<_>>());
        assert_eq!(peer.waiting(), 0);
    }

    #[test]
    fn an_answer_to_an_unknown_id_is_ignored() {
        let mut peer = Peer::<u8, ()>::new("r");
        assert!(peer.answered(ControlResponse::success("unknown".into(), None)).is_none());
    }

    #[test]
    fn a_refusal_carries_the_message_and_the_code() {
        let mut peer = Peer::<u8, ()>::new("r");
        let id = peer.ask(1).unwrap();
        let (_, result) =
            peer.answered(ControlResponse::error(id.clone(), "no such server")).unwrap();
        assert_eq!(
            result,
            Err(CallError::Refused { id, error: "no such server".into(), code: None })
        );
    }

    #[test]
    fn after_the_end_requests_fail() {
        let mut peer = Peer::<u8, ()>::new("r");
        peer.ask(1).unwrap();
        assert_eq!(peer.close("gone").len(), 1);
        assert_eq!(peer.close("again").len(), 0);
        let (token, error) = peer.ask(2).unwrap_err();
        assert_eq!((token, error.to_string()), (2, "no answer to r2: gone".to_owned()));
    }

    #[test]
    fn a_cancelled_request_gets_no_answer() {
        let mut peer = Peer::<(), &str>::new("r");
        peer.serve("1".into(), "one").unwrap();
        peer.serve("2".into(), "two").unwrap();
        assert_eq!(peer.serve("2".into(), "again"), Err("again"));
        let cancel =
            crate::control::ControlCancelRequest { request_id: "1".into(), ..Default::default() };
        assert_eq!(peer.cancelled(&cancel), Some("one"));
        assert_eq!(peer.served(&"1".into()), None);
        assert_eq!(peer.served(&"2".into()), Some("two"));
        assert_eq!(peer.working(), 0);
    }
}
