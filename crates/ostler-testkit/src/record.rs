//! A recorded request, for assertions in tests.

use std::collections::BTreeMap;

use axum::http::request::Parts;
use axum::http::{HeaderMap, Method};
use serde::Serialize;
use serde_json::Value;

use crate::conversation::{Conversation, ToolResult};

/// A request, and how it was answered.
#[derive(Clone, Debug, Serialize)]
pub struct RecordedRequest {
    /// The index in the order of arrival, from 0. It counts every request to the server.
    pub sequence: usize,
    /// The endpoint.
    pub endpoint: Endpoint,
    /// The HTTP method.
    pub method: String,
    /// The path, without the query.
    pub path: String,
    /// The query string without the question mark; may be empty.
    pub query: String,
    /// The headers by lower-case name; repeated ones are joined by commas, secrets replaced by `[redacted]`.
    pub headers: BTreeMap<String, String>,
    /// Whether the request carried an API key or a bearer token.
    pub has_api_key: bool,
    /// The JSON body; a string when the body was not JSON, null when there was none.
    pub body: Value,
    /// The rule that answered, by its index in the script.
    pub rule: Option<usize>,
    /// The name of that rule, if it has one.
    pub rule_name: Option<String>,
    /// The HTTP status of the answer, once there is one.
    pub status: Option<u16>,
    /// How the exchange ended.
    pub outcome: Outcome,
}

impl RecordedRequest {
    pub(crate) fn new(endpoint: Endpoint, head: &Parts, body: Value) -> Self {
        let Parts { method, uri, headers, .. } = head;
        Self {
            // Set by the journal.
            sequence: 0,
            endpoint,
            method: method.to_string(),
            path: uri.path().to_owned(),
            query: uri.query().unwrap_or_default().to_owned(),
            headers: readable_headers(headers),
            has_api_key: headers.keys().any(|name| is_secret(name.as_str())),
            body,
            rule: None,
            rule_name: None,
            status: None,
            outcome: Outcome::Open,
        }
    }

    /// The messages of the conversation.
    pub fn messages(&self) -> &[Value] {
        self.conversation().messages()
    }

    /// The model asked for.
    pub fn model(&self) -> &str {
        self.conversation().model()
    }

    /// How many assistant messages the conversation has.
    pub fn turn(&self) -> usize {
        self.conversation().turn()
    }

    /// The prompt, as [`When::prompt_contains`](crate::When::prompt_contains) defines it.
    pub fn last_user_text(&self) -> String {
        self.conversation().prompt()
    }

    /// The tool results in the last message.
    pub fn tool_results(&self) -> Vec<ToolResult> {
        self.conversation().tool_results()
    }

    /// The text of the system prompt, its blocks joined by newlines.
    pub fn system_text(&self) -> String {
        self.conversation().system_text()
    }

    /// The names of the tools offered to the model, in order.
    pub fn tool_names(&self) -> Vec<&str> {
        self.conversation().tool_names()
    }

    /// The conversation as lines, as [`render_conversation`](crate::render_conversation) writes it.
    pub fn transcript(&self) -> String {
        crate::render_conversation(self.messages())
    }

    /// Whether the client closed the connection before the answer was complete.
    pub fn client_left(&self) -> bool {
        self.outcome == Outcome::ClientLeft
    }

    fn conversation(&self) -> Conversation<'_> {
        Conversation::of(&self.body)
    }
}

/// The endpoint of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Endpoint {
    /// `POST …/v1/messages`, which rules answer.
    Messages,
    /// `POST …/v1/messages/count_tokens`.
    CountTokens,
    /// `GET …/v1/models`, or `GET …/v1/models/<model>`.
    Models,
    /// `HEAD` of any path, and `GET` of the root or of `…/api/hello`: a client checks whether the server runs.
    Probe,
    /// Anything else; answered with 404.
    Unknown,
}

impl Endpoint {
    /// The endpoint of a path with any prefix: the base URL of a client may have a path.
    pub(crate) fn of(method: &Method, path: &str) -> Self {
        let path = path.trim_end_matches('/');
        match *method {
            Method::POST if path.ends_with("/v1/messages") => Self::Messages,
            Method::POST if path.ends_with("/v1/messages/count_tokens") => Self::CountTokens,
            Method::GET if path.ends_with("/v1/models") => Self::Models,
            Method::GET if model_id(path).is_some() => Self::Models,
            Method::HEAD => Self::Probe,
            Method::GET if path.is_empty() || path.ends_with("/api/hello") => Self::Probe,
            _ => Self::Unknown,
        }
    }
}

/// The model in `…/v1/models/<model>`.
pub(crate) fn model_id(path: &str) -> Option<&str> {
    let (_, id) = path.trim_end_matches('/').rsplit_once("/v1/models/")?;
    (!id.is_empty() && !id.contains('/')).then_some(id)
}

/// How an exchange ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It has not ended yet.
    Open,
    /// The whole answer was written to the connection.
    Complete,
    /// The script broke the connection.
    Cut,
    /// The client closed the connection first.
    ClientLeft,
}

fn readable_headers(headers: &HeaderMap) -> BTreeMap<String, String> {
    let mut readable: BTreeMap<String, String> = BTreeMap::new();
    for (name, value) in headers {
        let value = if is_secret(name.as_str()) {
            "[redacted]".into()
        } else {
            String::from_utf8_lossy(value.as_bytes())
        };
        readable
            .entry(name.to_string())
            .and_modify(|known| *known = format!("{known}, {value}"))
            .or_insert_with(|| value.into_owned());
    }
    readable
}

fn is_secret(header: &str) -> bool {
    matches!(header, "x-api-key" | "authorization")
}
