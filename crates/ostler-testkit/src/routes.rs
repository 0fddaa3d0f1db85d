//! The endpoints of the Messages API: reads a request, records it, and answers it by the script.

use std::time::Duration;

use axum::body::{self, Body};
use axum::extract::{Request, State as Shared};
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use serde_json::{Value, json};

use crate::conversation::Conversation;
use crate::journal::{Entry, Failure, FailureKind};
use crate::message::{Message, estimate_input_tokens};
use crate::plan::{Step, stream_steps, whole_steps};
use crate::playback;
use crate::record::{Endpoint, Outcome, RecordedRequest, model_id};
use crate::reply::Reply;
use crate::rulebook::{Choice, uncovered_report};
use crate::state::State;
use crate::status::{Status, error_body};
use crate::transcript::render_conversation;
use crate::validate::{check_countable_request, check_message_request};

/// The largest request body, in bytes: enough for long conversations with images.
const LARGEST_BODY: usize = 256 * 1024 * 1024;

/// Answers every request that is not for the control endpoints.
pub(crate) async fn answer(Shared(state): Shared<State>, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let endpoint = Endpoint::of(&head.method, head.uri.path());
    let bytes = body::to_bytes(body, LARGEST_BODY).await;
    let (body, defect) = read_json(bytes.as_deref().unwrap_or_default());
    let record = RecordedRequest::new(endpoint, &head, body.clone());
    let model = model_id(head.uri.path()).map(str::to_owned);
    let exchange = Exchange { entry: state.journal.record(record), state, body, defect, model };
    match bytes {
        Err(error) => {
            let message =
                format!("the body cannot be read, or is larger than {LARGEST_BODY} bytes: {error}");
            exchange.error(StatusCode::PAYLOAD_TOO_LARGE, "request_too_large", &message)
        }
        Ok(_) => exchange.answer(endpoint).await,
    }
}

/// One request that is being answered.
struct Exchange {
    state: State,
    entry: Entry,
    body: Value,
    /// The parse error, if the body is not JSON.
    defect: Option<String>,
    /// The model that the path asks about.
    model: Option<String>,
}

impl Exchange {
    async fn answer(self, endpoint: Endpoint) -> Response {
        match endpoint {
            Endpoint::Messages => self.message().await,
            Endpoint::CountTokens => self.count_tokens(),
            Endpoint::Models => self.models(),
            Endpoint::Probe => {
                self.json(StatusCode::OK, &json!({"ostler-testkit": "scripted Messages API"}))
            }
            Endpoint::Unknown => self.error(
                StatusCode::NOT_FOUND,
                "not_found_error",
                "this endpoint is not part of the scripted API",
            ),
        }
    }

    async fn message(self) -> Response {
        if let Err(reason) = self.check(check_message_request) {
            return self.refuse(&reason);
        }
        let chosen = self.state.rulebook().choose(&self.body);
        match chosen {
            Ok(Choice { rule, name, reply }) => {
                self.entry.matched(rule, name);
                self.deliver(&reply).await
            }
            Err(reasons) => {
                let report = uncovered_report(self.entry.sequence, &self.body, &reasons);
                self.fail(FailureKind::Unmatched, report.clone());
                self.error(StatusCode::BAD_REQUEST, "invalid_request_error", &report)
            }
        }
    }

    async fn deliver(self, reply: &Reply) -> Response {
        if reply.delay_before_first_byte_ms > 0 {
            tokio::time::sleep(Duration::from_millis(reply.delay_before_first_byte_ms)).await;
        }
        if let Some(gate) = &reply.hold {
            self.state.gates.named(gate).pass().await;
        }
        if let Some(status) = &reply.status {
            return self.status(status);
        }
        let message = Message::compose(reply, &self.body, &self.state.ids);
        if Conversation::of(&self.body).streaming() {
            let mut response =
                self.play("text/event-stream; charset=utf-8", stream_steps(reply, &message));
            response.headers_mut().insert("cache-control", HeaderValue::from_static("no-cache"));
            response
        } else {
            self.play("application/json", whole_steps(reply, &message))
        }
    }

    fn play(self, content_type: &'static str, steps: Vec<Step>) -> Response {
        self.entry.answered(StatusCode::OK.as_u16());
        let request_id = self.request_id();
        let body = playback::body(steps, self.state.gates, self.entry);
        response(StatusCode::OK, content_type, &request_id, body)
    }

    fn status(mut self, status: &Status) -> Response {
        let request_id = self.request_id();
        let (text, content_type) = status.payload(&request_id);
        self.entry.answered(status.code.as_u16());
        self.entry.end(Outcome::Complete);
        let mut response = response(status.code, content_type, &request_id, Body::from(text));
        for (name, value) in &status.headers {
            response.headers_mut().insert(name, value.clone());
        }
        response
    }

    fn count_tokens(self) -> Response {
        if let Err(reason) = self.check(check_countable_request) {
            return self.refuse(&reason);
        }
        let scripted = self.state.rulebook().count_tokens;
        let input_tokens = scripted.unwrap_or_else(|| estimate_input_tokens(&self.body));
        self.json(StatusCode::OK, &json!({"input_tokens": input_tokens}))
    }

    fn models(self) -> Response {
        let model = |id: &str, name: &str| {
            let created_at = "2025-01-01T00:00:00Z";
            json!({"type": "model", "id": id, "display_name": name, "created_at": created_at})
        };
        // Every model exists, because a rule can answer as any model.
        if let Some(id) = &self.model {
            let description = model(id, id);
            return self.json(StatusCode::OK, &description);
        }
        let models = [
            model("claude-scripted-large", "Scripted Large"),
            model("claude-scripted-small", "Scripted Small"),
        ];
        let (first, last) = (&models[0]["id"], &models[1]["id"]);
        self.json(
            StatusCode::OK,
            &json!({"data": models, "has_more": false, "first_id": first, "last_id": last}),
        )
    }

    fn check(&self, is_valid: fn(&Value) -> Result<(), String>) -> Result<(), String> {
        match &self.defect {
            Some(defect) => Err(format!("the request body is not valid JSON: {defect}")),
            None => is_valid(&self.body),
        }
    }

    /// Answers like the real API and records the invalid request.
    fn refuse(self, reason: &str) -> Response {
        let conversation = render_conversation(Conversation::of(&self.body).messages());
        let sequence = self.entry.sequence;
        let report =
            format!("request {sequence} is not valid: {reason}\n\nconversation:\n{conversation}");
        self.fail(FailureKind::Invalid, report);
        self.error(StatusCode::BAD_REQUEST, "invalid_request_error", reason)
    }

    fn fail(&self, kind: FailureKind, report: String) {
        self.state.journal.fail(Failure { sequence: self.entry.sequence, kind, report });
    }

    fn error(self, code: StatusCode, error_type: &str, message: &str) -> Response {
        let body = error_body(error_type, message, &self.request_id());
        self.json(code, &body)
    }

    fn json(mut self, code: StatusCode, body: &Value) -> Response {
        self.entry.answered(code.as_u16());
        self.entry.end(Outcome::Complete);
        response(code, "application/json", &self.request_id(), Body::from(body.to_string()))
    }

    fn request_id(&self) -> String {
        format!("req_{:024}", self.entry.sequence + 1)
    }
}

/// The body as JSON. A body that is not JSON becomes a string, returned with the parse error; an empty body becomes
/// null.
fn read_json(bytes: &[u8]) -> (Value, Option<String>) {
    match serde_json::from_slice(bytes) {
        Ok(body) => (body, None),
        Err(error) if bytes.is_empty() => (Value::Null, Some(error.to_string())),
        Err(error) => {
            (Value::String(String::from_utf8_lossy(bytes).into_owned()), Some(error.to_string()))
        }
    }
}

fn response(
    code: StatusCode,
    content_type: &'static str,
    request_id: &str,
    body: Body,
) -> Response {
    let response = Response::builder()
        .status(code)
        .header("content-type", content_type)
        .header("request-id", request_id);
    response.body(body).expect("the headers are made here and valid")
}
