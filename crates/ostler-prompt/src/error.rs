//! Why a run failed, and whether a retry may help.

use std::time::Duration;

use ostler_sdk::ErrorKind;
use ostler_sdk::proto::DecodeError;
use ostler_sdk::proto::message::{ResultSubtype, TurnResult};

use crate::budget::Exhausted;
use crate::output::AnswerError;

/// Why a run has no answer.
///
/// | what happened | error | retry? |
/// |---|---|---|
/// | there is no engine | [`EngineMissing`](Self::EngineMissing) | no: install one |
/// | the connection to it broke, or it was killed | [`Throttled`](Self::Throttled) | yes |
/// | the API is overloaded, or limits the rate | [`Throttled`](Self::Throttled) | yes |
/// | the engine failed | [`EngineFailed`](Self::EngineFailed) | no: see its exit code and stderr |
/// | the engine sent an invalid message | [`Malformed`](Self::Malformed) | no: see the line |
/// | too many turns | [`MaxTurns`](Self::MaxTurns) | no: allow more |
/// | the model gave no valid answer | [`AnswerRetries`](Self::AnswerRetries) | no: loosen the type |
/// | the turn was interrupted, or broke | [`Execution`](Self::Execution) | no |
/// | the API refused the request | [`Api`](Self::Api) | no |
/// | the run succeeded without an answer | [`AnswerMissing`](Self::AnswerMissing) | no |
/// | the answer does not have the requested type | [`AnswerShape`](Self::AnswerShape) | no |
/// | the deadline passed | [`DeadlineExceeded`](Self::DeadlineExceeded) | no, unless the API was failing |
/// | the budget in dollars or tokens is used up | [`Budget`](Self::Budget) | no: allow more |
/// | the caller cancelled it | [`Cancelled`](Self::Cancelled) | no |
/// | the options are wrong | [`Refused`](Self::Refused) | no: correct them |
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no engine, or it cannot be started.
    #[error("{prompt}: {source}")]
    #[non_exhaustive]
    EngineMissing {
        /// The prompt.
        prompt: String,
        /// The SDK's error, with what to install.
        source: Box<ostler_sdk::Error>,
    },
    /// The connection to the engine broke, or the API is overloaded. A retry may succeed.
    #[error("{prompt}: {source}")]
    #[non_exhaustive]
    Throttled {
        /// The prompt.
        prompt: String,
        /// The SDK's error.
        source: Box<ostler_sdk::Error>,
    },
    /// The engine exited with a failure.
    #[error("{prompt}: {source}")]
    #[non_exhaustive]
    EngineFailed {
        /// The prompt.
        prompt: String,
        /// Its exit code.
        exit_code: Option<i32>,
        /// The end of its stderr.
        stderr: String,
        /// The SDK's error.
        source: Box<ostler_sdk::Error>,
    },
    /// The engine sent an invalid message.
    #[error("{prompt}: {source}")]
    #[non_exhaustive]
    Malformed {
        /// The prompt.
        prompt: String,
        /// The invalid line, shortened.
        line: String,
        /// The SDK's error.
        source: Box<ostler_sdk::Error>,
    },
    /// The limit on turns was reached (`error_max_turns`).
    #[error("{prompt}: {}", joined_or(.errors, "the limit on turns was reached"))]
    #[non_exhaustive]
    MaxTurns {
        /// The prompt.
        prompt: String,
        /// The engine's messages.
        errors: Vec<String>,
    },
    /// The model did not give an answer that matches the schema (`error_max_structured_output_retries`).
    #[error("{prompt}: {}", joined_or(.errors, "the model gave no answer that matches the schema"))]
    #[non_exhaustive]
    AnswerRetries {
        /// The prompt.
        prompt: String,
        /// The engine's messages.
        errors: Vec<String>,
    },
    /// The turn was interrupted or failed (`error_during_execution`, or a subtype unknown to this version).
    #[error("{prompt}: {}", joined_or(.errors, .subtype))]
    #[non_exhaustive]
    Execution {
        /// The prompt.
        prompt: String,
        /// The engine's subtype.
        subtype: String,
        /// The engine's messages.
        errors: Vec<String>,
    },
    /// The API refused the request.
    #[error("{prompt}: the API refused the request: {text}")]
    #[non_exhaustive]
    Api {
        /// The prompt.
        prompt: String,
        /// Its HTTP status, if the engine reports it.
        status: Option<u16>,
        /// Its message.
        text: String,
    },
    /// The run succeeded without an answer.
    #[error(
        "{prompt}: the run succeeded, but the model gave no answer that matches the schema; its last text: {text}"
    )]
    #[non_exhaustive]
    AnswerMissing {
        /// The prompt.
        prompt: String,
        /// The model's last text.
        text: String,
    },
    /// The answer does not have the requested type.
    #[error("{prompt}: the answer is not valid{}: {reason}", at(.field))]
    #[non_exhaustive]
    AnswerShape {
        /// The prompt.
        prompt: String,
        /// The invalid field; `None` for the whole answer.
        field: Option<String>,
        /// Why it is invalid.
        reason: String,
    },
    /// The deadline has passed.
    #[error("{prompt}: Deadline exceeded, after {} s{}", .after.as_secs_f64(), meanwhile(.trouble))]
    #[non_exhaustive]
    DeadlineExceeded {
        /// The prompt.
        prompt: String,
        /// How long the run took.
        after: Duration,
        /// The API's last error, if the engine was retrying when the deadline passed. A later retry may then succeed.
        trouble: Option<String>,
    },
    /// A limit on dollars or tokens was reached: the run's [`Budget`](crate::Budget), or the engine's own
    /// (`error_max_budget_usd`).
    #[error("{prompt}: {}", joined_or(.errors, &.exhausted.to_string()))]
    #[non_exhaustive]
    Budget {
        /// The prompt.
        prompt: String,
        /// The limit.
        exhausted: Exhausted,
        /// The engine's messages, if it stopped the run.
        errors: Vec<String>,
    },
    /// The caller cancelled the run.
    #[error("{prompt}: the run was cancelled")]
    #[non_exhaustive]
    Cancelled {
        /// The prompt.
        prompt: String,
    },
    /// The engine or the SDK refused the request: the options are invalid, or the engine is too old.
    #[error("{prompt}: {source}")]
    #[non_exhaustive]
    Refused {
        /// The prompt.
        prompt: String,
        /// The SDK's error.
        source: Box<ostler_sdk::Error>,
    },
}

/// The two categories of the Python original: failed evaluations, and throttling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Category {
    /// `PromptEvaluationError`: this evaluation failed.
    Evaluation,
    /// `ThrottleError`: try again later.
    Throttle,
}

impl Error {
    /// The category of the error.
    pub fn category(&self) -> Category {
        match self {
            Self::Throttled { .. } => Category::Throttle,
            _ => Category::Evaluation,
        }
    }

    /// Whether a retry may succeed.
    pub fn is_retryable(&self) -> bool {
        self.category() == Category::Throttle
            || matches!(self, Self::DeadlineExceeded { trouble: Some(_), .. })
    }

    /// The name of the prompt.
    pub fn prompt_name(&self) -> &str {
        match self {
            Self::EngineMissing { prompt, .. }
            | Self::Throttled { prompt, .. }
            | Self::EngineFailed { prompt, .. }
            | Self::Malformed { prompt, .. }
            | Self::MaxTurns { prompt, .. }
            | Self::AnswerRetries { prompt, .. }
            | Self::Execution { prompt, .. }
            | Self::Api { prompt, .. }
            | Self::AnswerMissing { prompt, .. }
            | Self::AnswerShape { prompt, .. }
            | Self::DeadlineExceeded { prompt, .. }
            | Self::Budget { prompt, .. }
            | Self::Cancelled { prompt }
            | Self::Refused { prompt, .. } => prompt,
        }
    }

    /// A short code for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::EngineMissing { .. } => "engine_missing",
            Self::Throttled { .. } => "throttled",
            Self::EngineFailed { .. } => "engine_failed",
            Self::Malformed { .. } => "malformed",
            Self::MaxTurns { .. } => "max_turns",
            Self::AnswerRetries { .. } => "answer_retries",
            Self::Execution { .. } => "execution",
            Self::Api { .. } => "api",
            Self::AnswerMissing { .. } => "answer_missing",
            Self::AnswerShape { .. } => "answer_shape",
            Self::DeadlineExceeded { .. } => "deadline_exceeded",
            Self::Budget { .. } => "budget_exhausted",
            Self::Cancelled { .. } => "cancelled",
            Self::Refused { .. } => "refused",
        }
    }

    /// The kind of error, as in the SDK.
    ///
    /// ```
    /// use ostler_prompt::Error;
    /// use ostler_sdk::ErrorKind;
    ///
    /// fn may_continue_tomorrow(error: &Error) -> bool {
    ///     error.kind() == ErrorKind::Budget
    /// }
    /// ```
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::EngineMissing { source, .. }
            | Self::Throttled { source, .. }
            | Self::EngineFailed { source, .. }
            | Self::Malformed { source, .. }
            | Self::Refused { source, .. } => source.kind(),
            Self::MaxTurns { .. } => ErrorKind::MaxTurns,
            Self::Budget { .. } => ErrorKind::Budget,
            Self::AnswerRetries { .. } | Self::AnswerMissing { .. } | Self::AnswerShape { .. } => {
                ErrorKind::Answer
            }
            Self::Execution { .. } => ErrorKind::Turn,
            Self::Api { .. } => ErrorKind::Api,
            Self::DeadlineExceeded { .. } => ErrorKind::Timeout,
            Self::Cancelled { .. } => ErrorKind::Cancelled,
        }
    }

    /// Converts an error of the SDK.
    pub fn of(prompt: impl Into<String>, error: ostler_sdk::Error) -> Self {
        use ostler_sdk::Error as Sdk;

        let prompt = prompt.into();
        match &error {
            Sdk::Turn(_) if error.is_retryable() => {
                Self::Throttled { prompt, source: Box::new(error) }
            }
            Sdk::Turn(result) => Self::of_turn(prompt, result),
            Sdk::NoEngine(_) | Sdk::Start { .. } => {
                Self::EngineMissing { prompt, source: Box::new(error) }
            }
            Sdk::Exited { code: Some(_), .. } => Self::EngineFailed {
                prompt,
                exit_code: error.exit_code(),
                stderr: error.stderr().unwrap_or_default().to_owned(),
                source: Box::new(error),
            },
            Sdk::Exited { .. } | Sdk::Lost { .. } | Sdk::Closed(_) | Sdk::TimedOut { .. } => {
                Self::Throttled { prompt, source: Box::new(error) }
            }
            Sdk::Malformed(cause) => {
                Self::Malformed { prompt, line: line(cause), source: Box::new(error) }
            }
            Sdk::Answer { message, .. } => {
                Self::AnswerShape { prompt, field: None, reason: message.clone() }
            }
            Sdk::Cancelled => Self::Cancelled { prompt },
            _ => Self::Refused { prompt, source: Box::new(error) },
        }
    }

    fn of_turn(prompt: String, result: &TurnResult) -> Self {
        let errors = result.errors.clone().unwrap_or_default();
        match &result.subtype {
            ResultSubtype::ErrorMaxTurns => Self::MaxTurns { prompt, errors },
            ResultSubtype::ErrorMaxBudgetUsd => {
                let is_tokens = result.extra.get("limit_reached").is_some_and(|it| it == "tokens");
                let exhausted = if is_tokens { Exhausted::Tokens } else { Exhausted::Usd };
                Self::Budget { prompt, exhausted, errors }
            }
            ResultSubtype::ErrorMaxStructuredOutputRetries => {
                Self::AnswerRetries { prompt, errors }
            }
            // A successful turn marked as an error reports an error of the API.
            ResultSubtype::Success => Self::Api {
                prompt,
                status: result.api_error_status,
                text: result.result.clone().unwrap_or_default(),
            },
            other => Self::Execution { prompt, subtype: other.to_string(), errors },
        }
    }

    pub(crate) fn of_answer(prompt: impl Into<String>, error: AnswerError) -> Self {
        Self::AnswerShape { prompt: prompt.into(), field: error.field, reason: error.reason }
    }
}

/// The invalid text.
fn line(error: &DecodeError) -> String {
    match error {
        DecodeError::NotJson { text, .. }
        | DecodeError::NotAnObject { text, .. }
        | DecodeError::Malformed { text, .. }
        | DecodeError::NotUtf8 { text, .. }
        | DecodeError::TooLong { text, .. } => text.clone(),
        other => other.to_string(),
    }
}

/// The API's last error, appended to the message.
fn meanwhile(trouble: &Option<String>) -> String {
    trouble.as_ref().map(|trouble| format!("; {trouble}")).unwrap_or_default()
}

fn joined_or(errors: &[String], otherwise: &str) -> String {
    if errors.is_empty() { otherwise.to_owned() } else { errors.join("; ") }
}

fn at(field: &Option<String>) -> String {
    field.as_ref().map(|field| format!(" at `{field}`")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_exhausted_budget_is_a_budget_error_of_the_sdk() {
        let (prompt, exhausted) = ("review".to_owned(), Exhausted::Tokens);
        let error = Error::Budget { prompt, exhausted, errors: Vec::new() };
        assert_eq!(error.kind(), ErrorKind::Budget);
    }
}
