//! An HTTP error as a reply: code, body and headers, in the format of the API's errors.

use std::collections::BTreeMap;
use std::fmt::Display;

use axum::http::{HeaderName, HeaderValue, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::object::Object;

/// An HTTP error instead of a message.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "Object<StatusShape>")]
pub struct Status {
    pub(crate) code: StatusCode,
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    error_type: Option<String>,
    message: Option<String>,
    body: Option<Value>,
}

impl Status {
    /// An error with this code, and the error type and message that the API uses for it.
    ///
    /// # Panics
    /// If `code` is not a final HTTP status code: 200 to 999.
    pub fn new(code: u16) -> Self {
        let code = final_code(code).expect("the status code is between 200 and 999");
        Self { code, headers: Vec::new(), error_type: None, message: None, body: None }
    }

    /// Sets `error.type` of the body.
    pub fn error_type(mut self, error_type: impl Into<String>) -> Self {
        self.error_type = Some(error_type.into());
        self
    }

    /// Sets `error.message` of the body.
    pub fn message(mut self, message: impl Into<String>) -> Self {
        self.message = Some(message.into());
        self
    }

    /// Replaces the whole body. A string is sent unchanged, any other value as JSON.
    pub fn body(mut self, body: impl Into<Value>) -> Self {
        self.body = Some(body.into());
        self
    }

    /// Sets the `retry-after` header, to seconds or to a date.
    ///
    /// # Panics
    /// If the value is not valid in a header.
    pub fn retry_after(self, value: impl Display) -> Self {
        self.header("retry-after", &value.to_string())
    }

    /// Adds a header.
    ///
    /// # Panics
    /// If the name or the value is not valid in a header.
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push(header(name, value).expect("the header of a scripted status is valid"));
        self
    }

    /// The body to send and its content type.
    pub(crate) fn payload(&self, request_id: &str) -> (String, &'static str) {
        match &self.body {
            Some(Value::String(text)) => (text.clone(), "text/plain"),
            Some(body) => (body.to_string(), "application/json"),
            None => {
                let error_type = self.error_type.as_deref().unwrap_or(usual_error_type(self.code));
                let message = self.message.as_deref().unwrap_or_else(|| usual_message(self.code));
                (error_body(error_type, message, request_id).to_string(), "application/json")
            }
        }
    }
}

/// The body of every error of the API.
pub(crate) fn error_body(error_type: &str, message: &str, request_id: &str) -> Value {
    json!({"type": "error", "error": {"type": error_type, "message": message}, "request_id": request_id})
}

fn usual_error_type(code: StatusCode) -> &'static str {
    match code.as_u16() {
        401 => "authentication_error",
        402 => "billing_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        504 => "timeout_error",
        529 => "overloaded_error",
        500.. => "api_error",
        _ => "invalid_request_error",
    }
}

fn usual_message(code: StatusCode) -> &'static str {
    match code.as_u16() {
        529 => "Overloaded",
        _ => code.canonical_reason().unwrap_or("scripted error"),
    }
}

/// Codes below 200 are interim: the client would keep waiting for the final answer.
fn final_code(code: u16) -> Option<StatusCode> {
    StatusCode::from_u16(code).ok().filter(|code| code.as_u16() >= 200)
}

fn header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), String> {
    let parsed_name =
        name.parse().map_err(|_| format!("headers: {name:?} is not a header name"))?;
    let parsed_value =
        value.parse().map_err(|_| format!("headers: {value:?} cannot be the value of {name}"))?;
    Ok((parsed_name, parsed_value))
}

/// A status as it is written in JSON.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StatusShape {
    code: u16,
    error_type: Option<String>,
    message: Option<String>,
    body: Option<Value>,
    retry_after: Option<RetryAfter>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected seconds or a date")]
enum RetryAfter {
    Seconds(serde_json::Number),
    Date(String),
}

impl TryFrom<Object<StatusShape>> for Status {
    type Error = String;

    fn try_from(Object(shape): Object<StatusShape>) -> Result<Self, Self::Error> {
        let code = final_code(shape.code)
            .ok_or_else(|| format!("code: {} is not between 200 and 999", shape.code))?;
        let mut headers = Vec::new();
        if let Some(retry_after) = shape.retry_after {
            let value = match retry_after {
                RetryAfter::Seconds(seconds) => seconds.to_string(),
                RetryAfter::Date(date) => date,
            };
            headers.push(header("retry-after", &value)?);
        }
        for (name, value) in &shape.headers {
            headers.push(header(name, value)?);
        }
        Ok(Self {
            code,
            headers,
            error_type: shape.error_type,
            message: shape.message,
            body: shape.body,
        })
    }
}
