//! Callbacks that answer permission requests and the agent's questions.

use std::ops::Deref;
use std::sync::Arc;

use futures::future::BoxFuture;
use ostler_proto::control::CanUseTool;
use ostler_proto::permission::{Allow, Deny, PermissionResult, PermissionUpdate};
use ostler_proto::tool::{AskUserQuestionInput, Question};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::callback::Reply;

/// The engine asks whether a tool call may run. It derefs to the engine's request: `request.tool_name`,
/// `request.input`, ….
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PermissionRequest {
    /// The request as received.
    pub question: CanUseTool,
    /// Fires when the engine no longer waits for an answer.
    pub cancelled: CancellationToken,
}

impl Deref for PermissionRequest {
    type Target = CanUseTool;

    fn deref(&self) -> &CanUseTool {
        &self.question
    }
}

impl PermissionRequest {
    /// Permission changes, for [`Decision::with_rules`], after which such a call needs no approval any more.
    pub fn suggestions(&self) -> Vec<PermissionUpdate> {
        self.question.permission_suggestions.clone().unwrap_or_default()
    }
}

/// Whether a tool call may run.
///
/// ```
/// use ostler_sdk::{Decision, Options};
///
/// let options = Options::new().on_permission(|call| match call.input["command"].as_str() {
///     Some("make") => Decision::allow().edit(|input| input["command"] = "make --dry-run".into()),
///     Some(command) if command.starts_with("git ") => Decision::allow().with_rules(call.suggestions()),
///     _ => Decision::deny("only make and git").and_stop(),
/// });
/// ```
#[derive(Clone)]
#[must_use]
pub struct Decision {
    result: PermissionResult,
    edits: Vec<Edit>,
}

/// A change of the call's input.
type Edit = Arc<dyn Fn(&mut Value) + Send + Sync>;

impl std::fmt::Debug for Decision {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let n_edits = self.edits.len();
        f.debug_struct("Decision").field("result", &self.result).field("n_edits", &n_edits).finish()
    }
}

/// Edits are equal if they are the same closure.
impl PartialEq for Decision {
    fn eq(&self, other: &Self) -> bool {
        let same = |(a, b): (&Edit, &Edit)| Arc::ptr_eq(a, b);
        self.result == other.result
            && self.edits.len() == other.edits.len()
            && self.edits.iter().zip(&other.edits).all(same)
    }
}

impl Decision {
    /// Allows the call unchanged.
    pub fn allow() -> Self {
        Self::of(PermissionResult::Allow(Allow::default()))
    }

    /// Denies the call. The model reads the message and continues.
    pub fn deny(message: impl Into<String>) -> Self {
        Self::of(PermissionResult::Deny(Deny { message: message.into(), ..Deny::default() }))
    }

    /// Replaces the whole input of an allowed call.
    pub fn with_input(mut self, input: impl Into<Value>) -> Self {
        if let PermissionResult::Allow(allow) = &mut self.result {
            allow.updated_input = Some(input.into());
        }
        self
    }

    /// Changes the input of an allowed call. The closure gets the input of the call, or that of
    /// [`Decision::with_input`]; if it panics, the call is denied.
    ///
    /// ```
    /// use ostler_sdk::{Decision, Options};
    ///
    /// let options = Options::new().on_permission(|call| match call.tool_name.as_str() {
    ///     "Bash" => Decision::allow().edit(|input| input["timeout"] = 10_000.into()),
    ///     _ => Decision::deny("only commands"),
    /// });
    /// ```
    pub fn edit(mut self, change: impl Fn(&mut Value) + Send + Sync + 'static) -> Self {
        self.edits.push(Arc::new(change));
        self
    }

    /// Also changes the permissions, so that the same call needs no approval again.
    pub fn with_rules(mut self, rules: impl IntoIterator<Item = PermissionUpdate>) -> Self {
        if let PermissionResult::Allow(allow) = &mut self.result {
            allow.updated_permissions.get_or_insert_default().extend(rules);
        }
        self
    }

    /// Also ends the turn of a denied call.
    pub fn and_stop(mut self) -> Self {
        if let PermissionResult::Deny(deny) = &mut self.result {
            deny.interrupt = Some(true);
        }
        self
    }

    /// The answer for a call with this input, with all edits applied.
    pub(crate) fn into_result(mut self, asked: &Value) -> PermissionResult {
        if let PermissionResult::Allow(allow) = &mut self.result
            && !self.edits.is_empty()
        {
            let mut input = allow.updated_input.take().unwrap_or_else(|| asked.clone());
            self.edits.iter().for_each(|edit| edit(&mut input));
            allow.updated_input = Some(input);
        }
        self.result
    }

    fn of(result: PermissionResult) -> Self {
        Self { result, edits: Vec::new() }
    }
}

/// For answers with further fields of the protocol, such as whether the user allowed the call permanently.
impl From<PermissionResult> for Decision {
    fn from(answer: PermissionResult) -> Self {
        Self::of(answer)
    }
}

/// Questions of the agent to the user.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct QuestionRequest {
    /// The questions, each with its options.
    pub questions: Vec<Question>,
    /// The request as received.
    pub question: CanUseTool,
    /// Fires when the engine no longer waits for an answer.
    pub cancelled: CancellationToken,
}

/// The user's answers.
///
/// ```
/// use ostler_sdk::{Answers, Options};
///
/// // Always the first option.
/// let options = Options::new().on_question(|asked| {
///     asked.questions.iter().fold(Answers::new(), |answers, question| {
///         answers.answer(&question.question, [&question.options[0].label])
///     })
/// });
/// ```
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub struct Answers(Result<Vec<(String, Vec<String>)>, String>);

impl Answers {
    /// No answers yet; add them with [`Answers::answer`].
    pub fn new() -> Self {
        Self(Ok(Vec::new()))
    }

    /// Answers the question with this text: with one or several of its labels, or with free text.
    pub fn answer<L: Into<String>>(
        mut self,
        question: impl Into<String>,
        labels: impl IntoIterator<Item = L>,
    ) -> Self {
        if let Ok(answers) = &mut self.0 {
            answers.push((question.into(), labels.into_iter().map(Into::into).collect()));
        }
        self
    }

    /// Declines to answer; the model reads the message.
    pub fn decline(message: impl Into<String>) -> Self {
        Self(Err(message.into()))
    }
}

impl Default for Answers {
    fn default() -> Self {
        Self::new()
    }
}

/// A callback that decides on tool calls.
pub(crate) type OnPermission =
    Arc<dyn Fn(PermissionRequest) -> BoxFuture<'static, Decision> + Send + Sync>;
/// A callback that answers questions.
pub(crate) type OnQuestion =
    Arc<dyn Fn(QuestionRequest) -> BoxFuture<'static, Answers> + Send + Sync>;

pub(crate) fn on_permission<F, R, K>(callback: F) -> OnPermission
where
    F: Fn(PermissionRequest) -> R + Send + Sync + 'static,
    R: Reply<Decision, K>,
{
    Arc::new(move |request| callback(request).into_future())
}

pub(crate) fn on_question<F, R, K>(callback: F) -> OnQuestion
where
    F: Fn(QuestionRequest) -> R + Send + Sync + 'static,
    R: Reply<Answers, K>,
{
    Arc::new(move |request| callback(request).into_future())
}

/// The tool with which the agent asks questions.
pub(crate) const ASKS: &str = "AskUserQuestion";

/// Passes the agent's questions to the callback and turns its answers into a decision.
pub(crate) async fn answer(
    callback: Option<OnQuestion>,
    question: CanUseTool,
    cancelled: CancellationToken,
) -> Decision {
    let Some(callback) = callback else {
        return Decision::deny(
            "No user is available to answer questions; decide for yourself, or say what you need.",
        );
    };
    let asked: AskUserQuestionInput = match serde_json::from_value(question.input.clone()) {
        Ok(asked) => asked,
        Err(error) => return Decision::deny(format!("the questions cannot be read: {error}")),
    };
    let questions = asked.questions.clone();
    match callback(QuestionRequest { questions, question, cancelled }).await.0 {
        Err(message) => Decision::deny(message),
        Ok(answers) => {
            let unanswered = asked.questions.iter().find(|question| {
                !answers
                    .iter()
                    .any(|(text, labels)| *text == question.question && !labels.is_empty())
            });
            // The model must not continue with an answer that the user did not give.
            if let Some(question) = unanswered {
                return Decision::deny(format!("The user did not answer: {}", question.question));
            }
            let answered = answers
                .into_iter()
                .fold(asked, |asked, (question, labels)| asked.answered(question, labels));
            match serde_json::to_value(answered) {
                Ok(input) => Decision::allow().with_input(input),
                Err(error) => Decision::deny(format!("the answers cannot be written: {error}")),
            }
        }
    }
}
