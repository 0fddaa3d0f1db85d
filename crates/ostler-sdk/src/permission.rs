//! Permission questions and the agent's own questions, as callbacks.

use std::ops::Deref;
use std::sync::Arc;

use futures::future::BoxFuture;
use ostler_proto::control::CanUseTool;
use ostler_proto::permission::{Allow, Deny, PermissionResult, PermissionUpdate};
use ostler_proto::tool::{AskUserQuestionInput, Question};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::callback::Reply;

/// A tool wants to run. Everything the engine says about it is here: `request.tool_name`, `request.input`, ….
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct PermissionRequest {
    /// The question as it came.
    pub question: CanUseTool,
    /// Fires when the engine no longer wants an answer.
    pub cancelled: CancellationToken,
}

impl Deref for PermissionRequest {
    type Target = CanUseTool;

    fn deref(&self) -> &CanUseTool {
        &self.question
    }
}

impl PermissionRequest {
    /// The changes that would make this question unnecessary next time, to be handed to [`Decision::with_rules`].
    pub fn suggestions(&self) -> Vec<PermissionUpdate> {
        self.question.permission_suggestions.clone().unwrap_or_default()
    }
}

/// Whether a tool may run.
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

/// A change of the input that the call asked for.
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
    /// Yes, exactly as asked.
    pub fn allow() -> Self {
        Self::of(PermissionResult::Allow(Allow::default()))
    }

    /// No. The model reads why, and goes on.
    pub fn deny(message: impl Into<String>) -> Self {
        Self::of(PermissionResult::Deny(Deny { message: message.into(), ..Deny::default() }))
    }

    /// An allow that runs the tool with another input. The whole input is replaced.
    pub fn with_input(mut self, input: impl Into<Value>) -> Self {
        if let PermissionResult::Allow(allow) = &mut self.result {
            allow.updated_input = Some(input.into());
        }
        self
    }

    /// An allow that runs the tool with a changed input. The closure gets the input of the call, or that of
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

    /// An allow that also changes the permissions, so that the same is not asked again.
    pub fn with_rules(mut self, rules: impl IntoIterator<Item = PermissionUpdate>) -> Self {
        if let PermissionResult::Allow(allow) = &mut self.result {
            allow.updated_permissions.get_or_insert_default().extend(rules);
        }
        self
    }

    /// A deny that also ends the turn.
    pub fn and_stop(mut self) -> Self {
        if let PermissionResult::Deny(deny) = &mut self.result {
            deny.interrupt = Some(true);
        }
        self
    }

    /// The answer to a question of the engine about a call with this input.
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

/// An answer with everything the protocol has for it, such as whether the user meant it for good.
impl From<PermissionResult> for Decision {
    fn from(answer: PermissionResult) -> Self {
        Self::of(answer)
    }
}

/// The agent asks the user something.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct QuestionRequest {
    /// The questions, each with its options.
    pub questions: Vec<Question>,
    /// The call as it came.
    pub question: CanUseTool,
    /// Fires when the engine no longer wants an answer.
    pub cancelled: CancellationToken,
}

/// What the user answers.
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
    /// Answers that are still to be given.
    pub fn new() -> Self {
        Self(Ok(Vec::new()))
    }

    /// Answers a question, named by its text: with one of its labels, with several, or with words of one's own.
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

    /// No answers; the model reads why.
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

/// The tool with which the agent asks.
pub(crate) const ASKS: &str = "AskUserQuestion";

/// Has the agent's questions answered.
pub(crate) async fn answer(
    callback: Option<OnQuestion>,
    question: CanUseTool,
    cancelled: CancellationToken,
) -> Decision {
    let Some(callback) = callback else {
        return Decision::deny(
            "Nobody is there to answer questions; decide for yourself, or say what you need.",
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
            // The model must never go on with an answer it only believes the user gave.
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
