//! Requests of the server to the client of a session, and their answers.

use std::collections::HashMap;

use parking_lot::{Mutex, MutexGuard};
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot};

use super::AskError;
use crate::rpc;

/// How many questions of one session may wait for an answer.
const MOST_QUESTIONS: usize = 64;

/// The questions of a session that wait for an answer, by the id of their request.
#[derive(Debug, Default)]
pub(super) struct Questions {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    asked: u64,
    waiting: HashMap<String, oneshot::Sender<Result<Value, AskError>>>,
}

impl Questions {
    /// Sends a request on the stream of a call, and waits for its answer. Dropping the future withdraws it.
    pub(super) async fn ask(
        &self,
        outgoing: &mpsc::Sender<Value>,
        method: &str,
        params: Value,
    ) -> Result<Value, AskError> {
        let (answer, answered) = oneshot::channel();
        let id = {
            let mut state = self.state();
            if state.waiting.len() >= MOST_QUESTIONS {
                return Err(AskError::TooMany);
            }
            state.asked += 1;
            let id = format!("server-{}", state.asked);
            state.waiting.insert(id.clone(), answer);
            id
        };
        let question = Waiting { questions: self, outgoing, id: &id };
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        outgoing.send(request).await.map_err(|_| AskError::Closed)?;
        let outcome = answered.await.unwrap_or(Err(AskError::Closed));
        drop(question);
        outcome
    }

    /// Takes the client's answer to one of the questions. Answers to others are ignored.
    pub(super) fn answered(&self, message: &mut Value) {
        let Some(id) = message["id"].as_str().map(str::to_owned) else { return };
        let Some(waiting) = self.state().waiting.remove(&id) else { return };
        let outcome = match message.get_mut("result").map(Value::take) {
            Some(result) => Ok(result),
            None => Err(AskError::Refused {
                code: message["error"]["code"].as_i64().unwrap_or(-32603),
                message: message["error"]["message"].as_str().unwrap_or_default().to_owned(),
            }),
        };
        // The tool may have stopped waiting.
        waiting.send(outcome).ok();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

/// A question that waits. Dropped without an answer, it is withdrawn, so that no user is asked in vain.
struct Waiting<'a> {
    questions: &'a Questions,
    outgoing: &'a mpsc::Sender<Value>,
    id: &'a str,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if self.questions.state().waiting.remove(self.id).is_some() {
            let params = json!({"requestId": self.id, "reason": "the call has ended"});
            let message = rpc::notification("notifications/cancelled", Some(params));
            self.outgoing.try_send(message).ok();
        }
    }
}
