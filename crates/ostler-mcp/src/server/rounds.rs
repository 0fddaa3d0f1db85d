//! Questions to a client without a session (MCP 2026-07-28).
//!
//! A question ends the call: its answer is the question, and the client repeats the call with the user's answer. The
//! tool's function then runs again from its beginning, and finds the answers to its questions by their keys. Answers of
//! earlier rounds travel in `requestState`, which is signed and holds for exactly the same request.

use std::pin::pin;
use std::task::Poll;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use futures::task::AtomicWaker;
use hmac::{Hmac, Mac as _};
use parking_lot::{Mutex, MutexGuard};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use super::ask::Kind;
use super::refusal::Refusal;
use crate::rpc::Failure;

/// How many answers one request may bring, those of earlier rounds included.
const MOST_ANSWERS: usize = 64;

/// Signs the state of requests.
pub(super) struct Signer([u8; 32]);

impl std::fmt::Debug for Signer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Signer")
    }
}

impl Signer {
    /// # Panics
    /// If the system has no random numbers.
    pub(super) fn new() -> Self {
        let mut key = [0; 32];
        getrandom::fill(&mut key).expect("the system has random numbers");
        Self(key)
    }

    fn code(&self, text: &str) -> Hmac<Sha256> {
        let mut code =
            Hmac::<Sha256>::new_from_slice(&self.0).expect("HMAC takes keys of any length");
        code.update(text.as_bytes());
        code
    }

    fn seal(&self, state: &Value) -> String {
        let text = BASE64.encode(state.to_string());
        let code = BASE64.encode(self.code(&text).finalize().into_bytes());
        format!("{text}.{code}")
    }

    fn open(&self, sealed: &str) -> Option<Value> {
        let (text, code) = sealed.split_once('.')?;
        self.code(text).verify_slice(&BASE64.decode(code).ok()?).ok()?;
        serde_json::from_slice(&BASE64.decode(text).ok()?).ok()
    }
}

/// The answers that a request brings, and the questions that its tool asks.
#[derive(Debug)]
pub(super) struct Rounds {
    /// Which request it is: the state of another one is not accepted.
    digest: String,
    answers: Map<String, Value>,
    asked: Mutex<Asked>,
    waker: AtomicWaker,
}

#[derive(Debug, Default)]
struct Asked {
    questions: Map<String, Value>,
    /// An answer that is malformed.
    refusal: Option<Refusal>,
}

/// How a round ends.
pub(super) enum Round<T> {
    Done(T),
    /// The result with the questions.
    Asks(Value),
    Refused(Refusal),
}

impl Rounds {
    /// Reads and removes the answers of the client from the parameters of a request.
    pub(super) fn take(signer: &Signer, method: &str, params: &mut Value) -> Result<Self, Refusal> {
        let refuse = |message: &str| Refusal::from(Failure::invalid_params(message));
        let (mut state, mut fresh) = (None, None);
        if let Some(params) = params.as_object_mut() {
            state = params.remove("requestState");
            fresh = params.remove("inputResponses");
        }
        let digest = digest(method, params);
        let mut answers = Map::new();
        if let Some(state) = state {
            let opened = state.as_str().and_then(|sealed| signer.open(sealed));
            let mut opened =
                opened.ok_or_else(|| refuse("`requestState` is not one that this server sent"))?;
            if opened["digest"] != digest.as_str() {
                return Err(refuse("`requestState` belongs to another request"));
            }
            if let Value::Object(earlier) = opened["answers"].take() {
                answers = earlier;
            }
        }
        match fresh {
            None => {}
            Some(Value::Object(fresh)) => answers.extend(fresh),
            Some(_) => return Err(refuse("`inputResponses` must be an object")),
        }
        if answers.len() > MOST_ANSWERS {
            return Err(refuse("`inputResponses` has too many answers"));
        }
        Ok(Self { digest, answers, asked: Mutex::default(), waker: AtomicWaker::new() })
    }

    /// The answer to a question. Without one this never returns: the question ends the call.
    pub(super) async fn ask(&self, key: &str, kind: Kind, params: Value) -> Value {
        match self.answers.get(key) {
            Some(answer) => match kind.check(answer) {
                Ok(()) => return answer.clone(),
                Err(reason) => {
                    let message = format!("`inputResponses.{key}` is malformed: {reason}");
                    self.asked().refusal = Some(Failure::invalid_params(message).into());
                }
            },
            None => {
                let question = json!({"method": kind.method, "params": params});
                self.asked().questions.insert(key.to_owned(), question);
            }
        }
        self.waker.wake();
        std::future::pending().await
    }

    /// Runs a function until it is done, or until it waits for answers. Questions that it asks together are sent together.
    pub(super) async fn run<T>(&self, signer: &Signer, work: impl Future<Output = T>) -> Round<T> {
        let mut work = pin!(work);
        std::future::poll_fn(|cx| {
            self.waker.register(cx.waker());
            if let Poll::Ready(done) = work.as_mut().poll(cx) {
                return Poll::Ready(Round::Done(done));
            }
            let mut asked = self.asked();
            if let Some(refusal) = asked.refusal.take() {
                return Poll::Ready(Round::Refused(refusal));
            }
            match asked.questions.is_empty() {
                true => Poll::Pending,
                false => Poll::Ready(Round::Asks(
                    self.input_required(signer, std::mem::take(&mut asked.questions)),
                )),
            }
        })
        .await
    }

    fn input_required(&self, signer: &Signer, questions: Map<String, Value>) -> Value {
        let state = signer.seal(&json!({"digest": self.digest, "answers": self.answers}));
        json!({"resultType": "input_required", "inputRequests": questions, "requestState": state})
    }

    fn asked(&self) -> MutexGuard<'_, Asked> {
        self.asked.lock()
    }
}

fn digest(method: &str, params: &Value) -> String {
    let text = json!([method, sorted(params)]).to_string();
    BASE64.encode(Sha256::digest(text))
}

/// The same value with the keys of objects in order: a client may write them in another order when it repeats a request.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(object) => {
            let fields: std::collections::BTreeMap<_, _> =
                object.iter().map(|(key, value)| (key.clone(), sorted(value))).collect();
            fields.into_iter().collect::<Map<_, _>>().into()
        }
        Value::Array(items) => items.iter().map(sorted).collect(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(params: Value, signer: &Signer) -> String {
        let mut params = params;
        Rounds::take(signer, "tools/call", &mut params).unwrap_err().failure.message
    }

    // Mutants: `open` without `verify_slice`; `take` without the comparison of digests.
    #[test]
    fn a_state_is_accepted_only_unchanged_and_for_the_same_request() {
        let signer = Signer::new();
        let mut params = json!({"name": "a"});
        let rounds = Rounds::take(&signer, "tools/call", &mut params).unwrap();
        let state = rounds.input_required(&signer, Map::new())["requestState"].clone();
        let mut same = json!({"name": "a", "requestState": state});
        assert!(Rounds::take(&signer, "tools/call", &mut same).is_ok());
        assert_eq!(same, json!({"name": "a"}));

        let other = json!({"name": "b", "requestState": state});
        assert!(refused(other, &signer).contains("another request"));
        let text = state.as_str().unwrap();
        let (body, code) = text.split_once('.').unwrap();
        let forged =
            BASE64.encode(json!({"digest": rounds.digest, "answers": {"x": 1}}).to_string());
        for changed in [format!("{text}x"), format!("{forged}.{code}"), body.to_owned()] {
            let params = json!({"name": "a", "requestState": changed});
            assert!(
                refused(params, &signer).contains("not one that this server sent"),
                "{changed}"
            );
        }
        let own = json!({"name": "a", "requestState": state});
        assert!(refused(own, &Signer::new()).contains("not one that this server sent"));
        assert!(refused(json!({"inputResponses": null}), &signer).contains("must be an object"));
    }
}
