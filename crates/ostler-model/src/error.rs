//! Errors of a model: the kinds that hosts know, and the texts for people.

use ostler_proto::message::AssistantError;

/// Why a model did not answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// The API answered with an error status.
    #[error("{}", refusal(*.status, .kind, .message))]
    Status {
        /// HTTP status.
        status: u16,
        /// The API's error type, such as `overloaded_error`.
        kind: String,
        /// For people.
        message: String,
    },
    /// The API could not be reached, or the connection broke.
    #[error("connection to the model failed: {0}")]
    Connection(String),
    /// The stream broke off, or became invalid, after the answer had begun.
    #[error("the model's answer broke off: {0}")]
    Broken(String),
    /// The answer is malformed.
    #[error("the model's answer is malformed: {0}")]
    Protocol(String),
    /// The answer is larger than the limit.
    #[error("the model's answer is too large: {0}")]
    TooLarge(String),
    /// A recording has no answer, or cannot be written.
    #[error("{0}")]
    Recording(String),
    /// There is no key or token, so nothing was sent.
    #[error("{NOT_LOGGED_IN}")]
    NotLoggedIn,
}

/// Begins as hosts expect it, and says how to continue.
const NOT_LOGGED_IN: &str = "Not logged in · Set ANTHROPIC_API_KEY, ANTHROPIC_AUTH_TOKEN or CLAUDE_CODE_OAUTH_TOKEN, or log \
    in with Claude Code; to try Ostler without a model, choose --model offline-demo or set OSTLER_OFFLINE=1";

impl ModelError {
    /// A connection that failed, with all causes: reqwest's own text stops at "error sending request".
    pub(crate) fn no_connection(error: &reqwest::Error) -> Self {
        let mut text = error.to_string();
        let mut cause = std::error::Error::source(error);
        while let Some(error) = cause {
            text = format!("{text}: {error}");
            cause = error.source();
        }
        Self::Connection(text)
    }

    /// Whether the request itself is wrong, so that sending it again cannot help.
    pub fn is_fault_of_request(&self) -> bool {
        matches!(self, Self::Status { status: 400 | 413, .. })
    }

    /// Whether the answer had begun when it failed. Asking again without a stream may help.
    pub fn is_broken_stream(&self) -> bool {
        matches!(self, Self::Broken(_))
    }

    /// Whether the conversation does not fit the model's context window any more.
    pub fn is_prompt_too_long(&self) -> bool {
        matches!(self, Self::Status { status: 400, message, .. } if is_prompt_too_long(message))
    }

    /// Whether another model would fail in the same way: the key, the account, or a conversation that is too long.
    pub(crate) fn is_same_for_every_model(&self) -> bool {
        let is_billing = matches!(self, Self::Status { status, kind, message } if is_billing(*status, kind, message));
        is_billing
            || self.is_prompt_too_long()
            || matches!(self, Self::NotLoggedIn)
            || matches!(self.status(), Some(401 | 403 | 413))
    }

    /// The API's error type, if it gave one.
    pub fn api_type(&self) -> Option<&str> {
        match self {
            Self::Status { kind, .. } if kind != "unknown" => Some(kind),
            _ => None,
        }
    }

    /// The HTTP status, if there was an answer.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Status { status, .. } => Some(*status),
            _ => None,
        }
    }

    /// The kind of failure, as hosts know them, once there will be no other attempt.
    pub fn kind(&self) -> AssistantError {
        match self {
            Self::Status { status, kind, message } => match *status {
                _ if is_billing(*status, kind, message) => AssistantError::BillingError,
                400 if is_prompt_too_long(message) => AssistantError::InvalidRequest,
                401 | 403 => AssistantError::AuthenticationFailed,
                404 => AssistantError::ModelNotFound,
                413 => AssistantError::InvalidRequest,
                429 => AssistantError::RateLimit,
                408 | 409 | 500.. => AssistantError::ServerError,
                _ => AssistantError::Unknown,
            },
            Self::Connection(_) | Self::Broken(_) | Self::Protocol(_) | Self::TooLarge(_) => {
                AssistantError::ServerError
            }
            Self::Recording(_) => AssistantError::InvalidRequest,
            Self::NotLoggedIn => AssistantError::AuthenticationFailed,
        }
    }

    /// The kind of failure while there will be another attempt; only then hosts receive an overload as such.
    pub fn kind_of_attempt(&self) -> AssistantError {
        if self.is_overloaded() { AssistantError::Overloaded } else { self.kind() }
    }

    /// Whether the API has no capacity right now.
    pub(crate) fn is_overloaded(&self) -> bool {
        matches!(self, Self::Status { status, kind, .. } if *status == 529 || kind == "overloaded_error")
    }

    /// The reason alone, without the text around it.
    pub(crate) fn reason(self) -> String {
        match self {
            Self::Connection(reason)
            | Self::Broken(reason)
            | Self::Protocol(reason)
            | Self::TooLarge(reason)
            | Self::Recording(reason) => reason,
            Self::Status { .. } | Self::NotLoggedIn => self.to_string(),
        }
    }
}

/// The text for an HTTP error. Hosts display it unchanged, and some look for the known beginnings.
fn refusal(status: u16, kind: &str, message: &str) -> String {
    match status {
        _ if is_billing(status, kind, message) => "Credit balance is too low".to_owned(),
        400 if is_prompt_too_long(message) => "Prompt is too long".to_owned(),
        401 => "Invalid API key · Fix external API key".to_owned(),
        404 => format!(
            "There's an issue with the selected model: it may not exist, or you may not have access to it \
             (API Error: 404 {message})"
        ),
        300..400 => format!(
            "API Error: {status} the API redirects, which is not followed so that no key goes elsewhere; \
             check ANTHROPIC_BASE_URL"
        ),
        _ => format!("API Error: {status} {message}"),
    }
}

fn is_billing(status: u16, kind: &str, message: &str) -> bool {
    let low = || message.to_ascii_lowercase().contains("credit balance is too low");
    kind == "billing_error" || status == 402 || (matches!(status, 400 | 403) && low())
}

/// The API has no error type for this, only these two texts.
fn is_prompt_too_long(message: &str) -> bool {
    let message = message.to_ascii_lowercase();
    message.contains("prompt is too long")
        || (message.contains("input length") && message.contains("exceed context limit"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(status: u16, message: &str, expected: AssistantError, text: &str) {
        let error = ModelError::Status { status, kind: "x".into(), message: message.into() };
        assert_eq!(error.kind(), expected, "{status} {message}");
        assert!(error.to_string().starts_with(text), "{error}");
    }

    #[test]
    fn every_status_has_a_kind_and_a_text() {
        use AssistantError as Kind;
        check(400, "bad field", Kind::Unknown, "API Error: 400 bad field");
        check(400, "prompt is too long: 9 > 8", Kind::InvalidRequest, "Prompt is too long");
        check(
            400,
            "input length and `max_tokens` exceed context limit: 9 + 1 > 8",
            Kind::InvalidRequest,
            "Prompt is too long",
        );
        check(400, "Your credit balance is too low to", Kind::BillingError, "Credit balance");
        check(401, "invalid x-api-key", Kind::AuthenticationFailed, "Invalid API key · Fix");
        check(402, "pay", Kind::BillingError, "Credit balance is too low");
        check(403, "no", Kind::AuthenticationFailed, "API Error: 403 no");
        check(404, "model: x", Kind::ModelNotFound, "There's an issue with the selected model");
        check(413, "big", Kind::InvalidRequest, "API Error: 413 big");
        check(429, "slow", Kind::RateLimit, "API Error: 429 slow");
        check(500, "oops", Kind::ServerError, "API Error: 500 oops");
        check(529, "Overloaded", Kind::ServerError, "API Error: 529 Overloaded");
        check(418, "tea", Kind::Unknown, "API Error: 418 tea");
    }

    #[test]
    fn an_overload_is_reported_as_such_only_between_attempts() {
        let error =
            ModelError::Status { status: 529, kind: "overloaded_error".into(), message: "".into() };
        assert_eq!(error.kind_of_attempt(), AssistantError::Overloaded);
        assert_eq!(error.kind(), AssistantError::ServerError);
    }

    #[test]
    fn only_a_full_context_is_a_prompt_too_long() {
        let error = |status| ModelError::Status {
            status,
            kind: "invalid_request_error".into(),
            message: "prompt is too long".into(),
        };
        assert!(error(400).is_prompt_too_long());
        assert!(!error(500).is_prompt_too_long());
        assert!(!ModelError::Connection("prompt is too long".into()).is_prompt_too_long());
    }
}
