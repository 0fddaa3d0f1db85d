//! Questions of a tool to the client: elicitation, sampling, roots.
//!
//! Before MCP 2026-07-28 a question is a request of the server on the stream of the call (`questions.rs`). Since then it
//! is part of the answer to the call, and the client repeats the call with the answers (`rounds.rs`).

use std::fmt;

use serde_json::{Map, Value, json};

use super::Context;
use super::client::Asking;

/// What a client may offer to a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClientCapability {
    /// It asks its user, with a form.
    Elicitation,
    /// It asks its model.
    Sampling,
    /// It names folders.
    Roots,
}

impl ClientCapability {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Elicitation => "elicitation",
            Self::Sampling => "sampling",
            Self::Roots => "roots",
        }
    }

    /// Whether capabilities as the client declared them include this one.
    pub(super) fn is_in(self, declared: &Value) -> bool {
        match (self, declared.get(self.name())) {
            // An empty object means forms, which are older than addresses.
            (Self::Elicitation, Some(Value::Object(kinds))) => {
                kinds.contains_key("form") || !kinds.contains_key("url")
            }
            (_, Some(Value::Object(_))) => true,
            _ => false,
        }
    }
}

/// The user's answer to a form.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Elicited {
    /// The user filled in the form.
    Accepted(Map<String, Value>),
    /// The user refused.
    Declined,
    /// The user closed the form without an answer.
    Cancelled,
}

/// Why a question has no answer.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum AskError {
    /// The client did not declare that it can answer such questions.
    Unsupported(ClientCapability),
    /// The client answered with an error.
    #[non_exhaustive]
    Refused {
        /// The code of the error.
        code: i64,
        /// Its message.
        message: String,
    },
    /// The client's answer is malformed.
    Malformed(String),
    /// Too many questions wait for an answer already.
    TooMany,
    /// The connection ended first.
    Closed,
}

impl fmt::Display for AskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unsupported(capability) => {
                write!(f, "the MCP client does not support {}", capability.name())
            }
            Self::Refused { code, message } => {
                write!(f, "the MCP client answered with an error: {message} (code {code})")
            }
            Self::Malformed(reason) => {
                write!(f, "the answer of the MCP client is malformed: {reason}")
            }
            Self::TooMany => f.write_str("too many questions wait for the MCP client"),
            Self::Closed => f.write_str("the connection to the MCP client ended"),
        }
    }
}

impl std::error::Error for AskError {}

/// A kind of question: its capability, its method, and what an answer looks like.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kind {
    capability: ClientCapability,
    pub(super) method: &'static str,
    check: fn(&Value) -> Result<(), String>,
}

const ELICIT: Kind = Kind {
    capability: ClientCapability::Elicitation,
    method: "elicitation/create",
    check: check_elicited,
};
const SAMPLE: Kind = Kind {
    capability: ClientCapability::Sampling,
    method: "sampling/createMessage",
    check: |answer| match answer["role"].is_string() && answer.get("content").is_some() {
        true => Ok(()),
        false => Err("it has no `role` and `content`".to_owned()),
    },
};
const ROOTS: Kind = Kind {
    capability: ClientCapability::Roots,
    method: "roots/list",
    check: |answer| match answer["roots"].is_array() {
        true => Ok(()),
        false => Err("`roots` is not a list".to_owned()),
    },
};

impl Kind {
    pub(super) fn check(self, answer: &Value) -> Result<(), String> {
        (self.check)(answer)
    }
}

fn check_elicited(answer: &Value) -> Result<(), String> {
    match answer["action"].as_str() {
        Some("decline" | "cancel") => Ok(()),
        Some("accept") => match answer.get("content") {
            None | Some(Value::Object(_)) => Ok(()),
            Some(_) => Err("`content` is not an object".to_owned()),
        },
        _ => Err("`action` is not accept, decline or cancel".to_owned()),
    }
}

impl Context {
    /// Whether the client declared that it can answer such questions.
    pub fn client_supports(&self, capability: ClientCapability) -> bool {
        capability.is_in(&self.client.capabilities)
    }

    /// Whether a question ends this call, and the client repeats the call with the answer (MCP 2026-07-28). The function
    /// then runs again from its beginning, so it must ask before it changes anything.
    pub fn questions_repeat_call(&self) -> bool {
        matches!(self.client.asking, Asking::Rounds(_))
    }

    /// Asks the user to fill in a form; `schema` is a flat JSON schema of an object. `key` names the question: no two
    /// questions of a call may have the same key.
    ///
    /// # Errors
    /// If the client cannot ask its user, or its answer is unusable. A refusal of the user is not an error.
    pub async fn elicit(
        &self,
        key: &str,
        message: impl Into<String>,
        schema: Value,
    ) -> Result<Elicited, AskError> {
        let params = json!({"message": message.into(), "requestedSchema": schema});
        let mut answer = self.ask(key, ELICIT, params).await?;
        Ok(match answer["action"].as_str() {
            Some("accept") => match answer.get_mut("content").map(Value::take) {
                Some(Value::Object(content)) => Elicited::Accepted(content),
                _ => Elicited::Accepted(Map::new()),
            },
            Some("cancel") => Elicited::Cancelled,
            // Everything but a clear yes is a no.
            _ => Elicited::Declined,
        })
    }

    /// Asks the client's model. `params` are those of `sampling/createMessage`, and so is the result.
    ///
    /// # Errors
    /// If the client offers no model, refuses, or its answer is unusable.
    pub async fn sample(&self, key: &str, params: Value) -> Result<Value, AskError> {
        self.ask(key, SAMPLE, params).await
    }

    /// Asks for the client's folders: objects with `uri` and perhaps `name`.
    ///
    /// # Errors
    /// If the client names none, or its answer is unusable.
    pub async fn list_roots(&self, key: &str) -> Result<Vec<Value>, AskError> {
        let mut answer = self.ask(key, ROOTS, json!({})).await?;
        Ok(match answer["roots"].take() {
            Value::Array(roots) => roots,
            _ => Vec::new(),
        })
    }

    async fn ask(&self, key: &str, kind: Kind, params: Value) -> Result<Value, AskError> {
        if !self.client_supports(kind.capability) {
            self.client.note_missing(kind.capability);
            return Err(AskError::Unsupported(kind.capability));
        }
        match &self.client.asking {
            Asking::Requests(questions) => {
                let answer = questions.ask(&self.outgoing, kind.method, params).await?;
                kind.check(&answer).map_err(AskError::Malformed)?;
                Ok(answer)
            }
            Asking::Rounds(rounds) => Ok(rounds.ask(key, kind, params).await),
        }
    }
}
