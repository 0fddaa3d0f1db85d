//! Answers of users, parsed and checked against the request.

use ostler_base::error::{ApiError, Fallible};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::record::{Answer, Approval, ApprovalKind, ApprovalState, Scope};
use super::rule::Offer;

/// A decision about a tool call.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DecisionRequest {
    /// Whether the call may run.
    pub approved: bool,
    /// How far an approval reaches.
    #[serde(default)]
    pub scope: Scope,
    /// The label of the offered rule to grant; the first if absent. Only with a scope beyond this call.
    #[serde(default)]
    pub rule: Option<String>,
    /// Confirms the grant of a rule that allows every use of its tool. Without this such a rule is refused.
    #[serde(default)]
    pub whole_tool: bool,
    /// Whether the rule also applies to runs that hooks and schedules start, whose prompts others may have written.
    #[serde(default)]
    pub unattended: bool,
    /// A message for the model; only with a denial.
    #[serde(default)]
    pub note: Option<String>,
    /// Whether the run ends; only with a denial.
    #[serde(default)]
    pub stop: bool,
    /// Arguments that replace the requested ones entirely.
    #[serde(default)]
    pub input: Option<Value>,
    /// The digest of the request that the user saw. If it does not match the request, nothing is decided.
    #[serde(default)]
    pub digest: Option<String>,
}

/// Answers to the agent's questions.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AnswersRequest {
    /// Maps the text of each question to the chosen labels, or to free text.
    #[serde(default)]
    pub answers: Map<String, Value>,
    /// Whether the user declines to answer. The agent is notified.
    #[serde(default)]
    pub declined: bool,
    /// A message for the model; only when declined.
    #[serde(default)]
    pub note: Option<String>,
    /// The digest of the request that the user saw.
    #[serde(default)]
    pub digest: Option<String>,
}

/// Who answers, and through which interface.
#[derive(Clone, Debug)]
pub struct Answering {
    pub user: String,
    pub via: &'static str,
    pub at: u64,
}

impl Answering {
    fn answer(&self) -> Answer {
        Answer {
            by: self.user.clone(),
            via: self.via.to_owned(),
            at: self.at,
            rule: None,
            granted: Vec::new(),
            scope: Scope::Once,
            unattended: false,
            note: None,
            stop: false,
            input: None,
        }
    }
}

/// The decision, if it is valid for the request. `checks_changes` says whether the engine decides again about changed
/// arguments.
pub fn decide(
    approval: &Approval,
    request: DecisionRequest,
    who: &Answering,
    checks_changes: bool,
) -> Fallible<(ApprovalState, Answer)> {
    fits(approval, ApprovalKind::Permission, request.digest.as_deref())?;
    let mut answer = who.answer();
    if !request.approved {
        (answer.note, answer.stop) = (request.note, request.stop);
        return Ok((ApprovalState::Denied, answer));
    }
    if let Some(input) = &request.input {
        check_changed(input, checks_changes)?;
    }
    answer.scope = request.scope;
    if request.scope != Scope::Once {
        if request.input.is_some() {
            return Err(ApiError::invalid(
                "scope",
                "a call with changed arguments can only be allowed once",
            ));
        }
        let offer = picked(approval, request.rule.as_deref())?;
        if offer.whole_tool && !request.whole_tool {
            let message = format!("the rule {} allows every use of the tool", offer.label);
            return Err(ApiError::invalid("wholeTool", message)
                .hint("send \"wholeTool\": true to grant it anyway, or allow the call once"));
        }
        answer.rule = Some(offer.label.clone());
        answer.granted.clone_from(&offer.rules);
        answer.unattended = request.unattended;
    }
    answer.input = request.input;
    Ok((ApprovalState::Allowed, answer))
}

/// Refuses changed arguments that no engine would check, or that were made from a redacted copy.
fn check_changed(input: &Value, checks_changes: bool) -> Fallible<()> {
    if !input.is_object() {
        return Err(ApiError::invalid("input", "the arguments must be an object"));
    }
    if !checks_changes {
        let message = "the engine of this server is another program (--engine), which does not decide again about \
                       changed arguments";
        let error = ApiError::invalid("input", message);
        return Err(
            error.hint("allow the call as it is, or deny it with a note that says what to change")
        );
    }
    if has_redaction(input) {
        let message = "the changed arguments contain [redacted …] in place of a secret";
        return Err(ApiError::invalid("input", message)
            .hint("write the value itself, or allow the call as it is"));
    }
    Ok(())
}

fn has_redaction(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains("[redacted"),
        Value::Array(items) => items.iter().any(has_redaction),
        Value::Object(fields) => fields.values().any(has_redaction),
        _ => false,
    }
}

fn picked<'a>(approval: &'a Approval, label: Option<&str>) -> Fallible<&'a Offer> {
    let Some(first) = approval.offers.first() else {
        return Err(ApiError::invalid("scope", "this call can only be allowed once"));
    };
    let Some(label) = label else { return Ok(first) };
    approval.offers.iter().find(|offer| offer.label == label).ok_or_else(|| {
        let offered = approval.rules.join("`, `");
        let message = format!("`{label}` is not one of the offered rules: `{offered}`");
        ApiError::invalid("rule", message)
    })
}

/// The answers in the format of the tool, if every question has one.
pub fn answers(
    approval: &Approval,
    request: AnswersRequest,
    who: &Answering,
) -> Fallible<(ApprovalState, Answer)> {
    fits(approval, ApprovalKind::Question, request.digest.as_deref())?;
    let mut answer = who.answer();
    if request.declined {
        answer.note = request.note;
        return Ok((ApprovalState::Denied, answer));
    }
    let mut given = Map::new();
    for question in questions(&approval.input) {
        let said = request.answers.get(question).map(labels).unwrap_or_default();
        if said.is_empty() {
            let missing =
                format!("the question {question:?} is not answered; answer all, or decline");
            return Err(ApiError::invalid("answers", missing));
        }
        given.insert(question.to_owned(), json!(said));
    }
    if let Some(unknown) = request.answers.keys().find(|asked| !given.contains_key(*asked)) {
        return Err(ApiError::invalid(
            "answers",
            format!("{unknown:?} is not one of the questions"),
        ));
    }
    answer.input = Some(Value::Object(given));
    Ok((ApprovalState::Allowed, answer))
}

/// The texts of a call's questions.
pub fn questions(input: &Value) -> impl Iterator<Item = &str> {
    let list = input.get("questions").and_then(Value::as_array);
    list.into_iter().flatten().filter_map(|question| question.get("question")?.as_str())
}

/// One answer or several; empty ones do not count.
fn labels(given: &Value) -> Vec<String> {
    let one = given.as_str().map(str::to_owned);
    let several =
        given.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned);
    one.into_iter().chain(several).filter(|label| !label.trim().is_empty()).collect()
}

fn fits(approval: &Approval, kind: ApprovalKind, digest: Option<&str>) -> Fallible<()> {
    if approval.kind != kind {
        let other = match approval.kind {
            ApprovalKind::Permission => "this is a permission request; allow or deny it",
            ApprovalKind::Question => "these are questions; answer or decline them",
        };
        return Err(ApiError::conflict("other_kind", other));
    }
    if digest.is_some_and(|digest| digest != approval.digest) {
        let message = "the answer is for different arguments than the request";
        return Err(ApiError::conflict("other_arguments", message).hint("load the request again"));
    }
    Ok(())
}
