//! Questions and answers: bytes as operations on the two ends of a connection.

use ostler_proto::RequestId;
use ostler_proto::control::ControlResponse;
use ostler_proto::peer::{CallError, Peer};
use serde_json::json;

/// Enough for every interleaving that matters; the checks after each operation look at all questions.
const MOST_OPERATIONS: usize = 512;

/// Takes two bytes for each operation: which one by whom, and on which question.
pub fn peer(data: &[u8]) {
    let mut pair = Pair::default();
    for operation in data.chunks_exact(2).take(MOST_OPERATIONS) {
        pair.perform(operation[0], operation[1]);
        pair.check_counts();
    }
    for side in 0..2 {
        pair.close(side);
    }
    for question in &pair.questions {
        assert_ne!(question.fate, Fate::Waiting, "{} was forgotten", question.id);
    }
}

struct Pair {
    peers: [Peer<usize, usize>; 2],
    closed: [bool; 2],
    /// Everything ever asked; the tokens are indices into this list.
    questions: Vec<Question>,
}

struct Question {
    asker: usize,
    id: RequestId,
    fate: Fate,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Waiting,
    Resolved,
    Cancelled,
}

impl Default for Pair {
    fn default() -> Self {
        Self {
            peers: [Peer::new("host_"), Peer::new("engine_")],
            closed: [false; 2],
            questions: Vec::new(),
        }
    }
}

impl Pair {
    fn perform(&mut self, operation: u8, choice: u8) {
        let side = usize::from(operation & 1);
        match operation >> 1 & 7 {
            0 | 1 => self.ask(side),
            // Ending a connection is rare, or little would happen before it.
            2 if choice >= 240 => self.close(side),
            2 if choice >= 224 => drop(self.peers[side].stop_serving()),
            2 => {
                let stranger = RequestId::from(format!("stranger_{choice}"));
                assert!(
                    self.peers[side].answered(ControlResponse::success(stranger, None)).is_none()
                );
            }
            kind => {
                let Some(token) = self.pick(choice) else { return };
                match kind {
                    3 => self.cancel(token),
                    4 => self.answer_served(token),
                    5 => self.answer(token, ControlResponse::error(self.id(token), "no")),
                    6 => self.answer(token, unknown_answer(&self.id(token))),
                    _ => self.serve_again(token),
                }
            }
        }
    }

    fn ask(&mut self, asker: usize) {
        let token = self.questions.len();
        let (id, fate) = match self.peers[asker].ask(token) {
            Ok(id) => {
                assert!(!self.closed[asker], "a closed side asks");
                let noted = self.peers[1 - asker].serve(id.clone(), token);
                assert_eq!(noted.is_ok(), !self.closed[1 - asker]);
                (id, Fate::Waiting)
            }
            Err((returned, CallError::Closed { id, .. })) => {
                assert!(self.closed[asker] && returned == token);
                (id, Fate::Resolved)
            }
            Err((_, error)) => panic!("asking failed with {error}"),
        };
        assert!(self.questions.iter().all(|question| question.id != id), "{id} is used twice");
        self.questions.push(Question { asker, id, fate });
    }

    fn cancel(&mut self, token: usize) {
        let Question { asker, ref id, fate } = self.questions[token];
        match self.peers[asker].cancel(id) {
            Some((waiting, frame)) => {
                assert_eq!((waiting, &frame.request_id, fate), (token, id, Fate::Waiting));
                let stopped = self.peers[1 - asker].cancelled(&frame);
                assert!(stopped.is_none_or(|work| work == token));
                self.questions[token].fate = Fate::Cancelled;
            }
            None => assert_ne!(fate, Fate::Waiting, "{id} could not be cancelled"),
        }
    }

    /// The honest way: answer only what is being worked on.
    fn answer_served(&mut self, token: usize) {
        let (id, asker) = (self.id(token), self.questions[token].asker);
        if let Some(work) = self.peers[1 - asker].served(&id) {
            assert_eq!(work, token);
            assert_ne!(self.questions[token].fate, Fate::Cancelled, "{id} was cancelled");
            assert_eq!(self.peers[1 - asker].served(&id), None, "{id} is answered twice");
            self.answer(token, ControlResponse::success(id, Some(json!({}))));
        }
    }

    fn answer(&mut self, token: usize, answer: ControlResponse) {
        let Question { asker, ref id, fate } = self.questions[token];
        match self.peers[asker].answered(answer) {
            Some((waiting, result)) => {
                assert_eq!((waiting, fate), (token, Fate::Waiting), "{id} resolved {waiting}");
                assert!(!matches!(result, Err(CallError::Closed { .. })));
                self.questions[token].fate = Fate::Resolved;
            }
            None => assert_ne!(fate, Fate::Waiting, "the answer to {id} was lost"),
        }
    }

    /// A question that comes again while it is being worked on is refused, and the work continues.
    fn serve_again(&mut self, token: usize) {
        let (id, server) = (self.id(token), 1 - self.questions[token].asker);
        let stranger = usize::MAX;
        if self.peers[server].serve(id.clone(), stranger).is_ok() {
            assert!(!self.closed[server], "a closed side takes work");
            assert_eq!(self.peers[server].served(&id), Some(stranger));
        }
    }

    fn close(&mut self, side: usize) {
        for (token, error) in self.peers[side].close("end") {
            let question = &mut self.questions[token];
            assert_eq!((question.asker, question.fate), (side, Fate::Waiting), "{error}");
            assert!(matches!(error, CallError::Closed { id, .. } if id == question.id));
            question.fate = Fate::Resolved;
        }
        self.closed[side] = true;
    }

    fn check_counts(&self) {
        for (side, peer) in self.peers.iter().enumerate() {
            let waiting = self
                .questions
                .iter()
                .filter(|question| question.asker == side && question.fate == Fate::Waiting)
                .count();
            assert_eq!(peer.waiting(), waiting);
        }
    }

    fn pick(&self, choice: u8) -> Option<usize> {
        // Counted from the end: recent questions are the ones still open.
        let back = usize::from(choice) % self.questions.len().max(1);
        self.questions.len().checked_sub(1 + back)
    }

    fn id(&self, token: usize) -> RequestId {
        self.questions[token].id.clone()
    }
}

fn unknown_answer(id: &RequestId) -> ControlResponse {
    let answer = json!({ "response": { "subtype": "perhaps", "request_id": id.as_str() } });
    serde_json::from_value(answer).expect("an unknown answer is kept")
}
