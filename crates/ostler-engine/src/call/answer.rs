//! The answer to a permission question, and what becomes of a call that the answer changed.
//!
//! An answer may change the input. The changed call is decided again before anything that came with the answer takes
//! effect: a deny rule refuses it although the answer is yes. A host, a person or the permission prompt tool may allow
//! everything else. A hook may not: where the call that it changed needs a person, the person is asked.
//!
//! PreToolUse hooks see the call as it would run: where an answer changed it, they run again. A change that they make
//! then is decided like a change before the question, and may lead to another question.

use ostler_proto::control::{AskHost, CanUseTool, DecisionReasonType};
use ostler_proto::hook::{HookEvent, PermissionRequestDecision};
use ostler_proto::launch::Answerer;
use ostler_proto::permission::{Allow, Deny, PermissionResult, PermissionUpdate};
use ostler_proto::quirks;
use serde_json::{Value, json};

use super::decision_source::DecisionSource;
use super::permit::{self, CallContext, Refusal, needs_person};
use super::{prompt_tool, question};
use crate::drive::TurnContext;
use crate::hooks::Event;
use crate::hooks::verdict::HookPermission;
use crate::permission::{Decision, Outcome};
use crate::tool::{Effect, PermittedPath, Prepared};

/// A call that requires approval.
pub(super) struct PendingCall {
    pub(super) input: Value,
    pub(super) prepared: Prepared,
    pub(super) decision: Decision,
}

/// A call that was approved.
pub(super) struct ApprovedCall {
    pub(super) input: Value,
    pub(super) prepared: Prepared,
    pub(super) by: DecisionSource,
    pub(super) remarks: Remarks,
    /// The path that it may open.
    pub(super) path: PermittedPath,
}

/// What PreToolUse hooks add to a call that an answer changed, in addition to yes or no.
#[derive(Default)]
pub(super) struct Remarks {
    pub(super) context: Vec<String>,
    pub(super) stop: Option<String>,
}

/// How often answers may change a call. Hooks see each change, which may lead to another question.
const MOST_CHANGES: usize = 3;

/// Who gave an answer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum AnsweredBy {
    Host,
    Hook,
}

/// Asks until a call is decided: once, or again where hooks changed it into one that requires another approval.
///
/// # Errors
/// When the answer, a rule or the mode refuses the call.
pub(super) async fn ask_until_settled(
    at: &CallContext<'_>,
    asked: PendingCall,
) -> Result<ApprovedCall, Refusal> {
    let PendingCall { mut input, mut prepared, mut decision } = asked;
    let mut hooks_answer = true;
    let mut remarks = Remarks::default();
    for _ in 0..=MOST_CHANGES {
        let effect = prepared.effect.clone();
        let request = question::request(at, input.clone(), &decision, &effect);
        let (answer, by) = ask(at, &request, &effect, &decision, hooks_answer).await?;
        let allow = allowed(answer, by)?;
        let mut judge = if by == AnsweredBy::Hook {
            DecisionSource::hook()
        } else {
            DecisionSource::host(&allow)
        };
        let updates = allow.updated_permissions.clone();
        let answered = quirks::input_to_run(&request, allow);
        let is_changed = answered != input;
        let mut hook = None;
        if is_changed {
            prepared = at.read(&answered)?;
            let before = std::mem::replace(&mut input, answered);
            if at.without_host_only(&input) != at.without_host_only(&before) {
                hook = show_hooks(at, &mut input, &mut prepared, &mut remarks).await?;
            }
        }
        let mut again = at.decide(&input, &prepared.effect).await;
        if let Some(HookReaction::Changed) = hook
            && again.outcome == Outcome::Ask
        {
            decision = again;
            continue;
        }
        if let (Some(HookReaction::Asks(reason)), AnsweredBy::Hook, Outcome::Ask | Outcome::Allow) =
            (&hook, by, again.outcome)
        {
            let reason_type = DecisionReasonType::Hook;
            let suggestions = Vec::new();
            let outcome = Outcome::Ask;
            again = Decision { outcome, reason: reason.clone(), reason_type, suggestions, ..again };
        }
        // The mode may have changed while the question was open; a yes to exactly this call still counts.
        let is_refused = is_changed || again.reason_type == DecisionReasonType::Rule;
        match again.outcome {
            Outcome::Deny if is_refused => {
                return Err(refuse_answer(at, &input, &prepared.effect, again).await);
            }
            Outcome::Ask
                if is_changed
                    && by == AnsweredBy::Hook
                    && needs_person(&again, &prepared.effect) =>
            {
                decision = again;
                hooks_answer = false;
            }
            _ => {
                if let Some(HookReaction::Changed) = hook {
                    judge = DecisionSource::hook();
                }
                apply_updates(at.context, updates.as_deref().unwrap_or_default()).await;
                // The answer is about the path as it was when the question was asked, however long that took.
                let path = permit::permitted_path(if is_changed { &again } else { &decision });
                return Ok(ApprovedCall { input, prepared, by: judge, remarks, path });
            }
        }
    }
    Err(unanswered(
        "answers and hooks changed the call again and again; call it with the final input",
    ))
}

/// How PreToolUse hooks react to a call that an answer changed, if they do not deny it.
enum HookReaction {
    /// They changed it once more.
    Changed,
    /// They want a person to be asked.
    Asks(String),
}

/// Shows PreToolUse hooks what an answer made of a call.
///
/// # Errors
/// When they deny it, or change it into one that the tool cannot read.
async fn show_hooks(
    at: &CallContext<'_>,
    input: &mut Value,
    prepared: &mut Prepared,
    remarks: &mut Remarks,
) -> Result<Option<HookReaction>, Refusal> {
    let mut verdict = permit::ask_hooks(at, input, &prepared.effect).await;
    let word = match verdict.decision.take() {
        Some((HookPermission::Deny, reason)) => {
            return Err(permit::denied_by_hook(at.call, &verdict, &reason));
        }
        Some((HookPermission::Ask, reason)) => Some(HookReaction::Asks(reason)),
        Some((HookPermission::Allow, _)) | None => None,
    };
    remarks.context.append(&mut verdict.context);
    remarks.stop = verdict.stop.take().or(remarks.stop.take());
    match verdict.updated_input.filter(|updated| updated != input) {
        Some(updated) => {
            *prepared = at.read(&updated)?;
            *input = updated;
            Ok(Some(HookReaction::Changed))
        }
        None => Ok(word),
    }
}

/// Refuses a call that the answer changed into a denied one, or that is denied by now.
async fn refuse_answer(
    at: &CallContext<'_>,
    input: &Value,
    effect: &Effect,
    decision: Decision,
) -> Refusal {
    let by = DecisionSource::config(&decision.reason_type);
    let reason =
        format!("It was approved, but the call as it would run is denied: {}", decision.reason);
    at.refuse(input, effect, Decision { reason, ..decision }, by).await
}

/// Asks the host or the permission prompt tool, and at the same time the hooks that answer in their place. The first
/// answer wins.
pub(super) async fn ask(
    at: &CallContext<'_>,
    request: &CanUseTool,
    effect: &Effect,
    decision: &Decision,
    hooks_answer: bool,
) -> Result<(PermissionResult, AnsweredBy), Refusal> {
    let hooks = async {
        match hooks_answer {
            true => ask_hooks(at, request, effect).await,
            false => None,
        }
    };
    let answer = match &*at.context.permissions.answerer {
        Answerer::NoOne => match hooks.await {
            Some(answer) => return Ok((answer, AnsweredBy::Hook)),
            None => return Err(refuse_unasked(at, request, effect, decision).await),
        },
        Answerer::Tool(name) => tokio::select! {
            answer = prompt_tool::ask(&at.context.tools, &at.context.cx, name, request) => answer,
            Some(answer) = hooks => return Ok((answer, AnsweredBy::Hook)),
        },
        _ => {
            tell_of_question(at, &request.tool_name);
            tokio::select! {
                answer = may_use(at, request.clone()) => answer,
                Some(answer) = hooks => return Ok((answer, AnsweredBy::Hook)),
            }
        }
    };
    match answer {
        Ok(answer) => Ok((answer, AnsweredBy::Host)),
        Err(error) => {
            // The model reads it as a refusal; the author of the host must see that the answer does not arrive.
            let call = request.tool_use_id.clone().unwrap_or_default();
            let tool = &request.tool_name;
            let text = format!(
                "The permission request for {tool} ({call}) failed: {error}. The call was denied."
            );
            at.context.outbox.inform(text, "warning", Some("permission_request_failed")).await;
            Err(unanswered(&error))
        }
    }
}

/// Asks the host whether a tool may run.
async fn may_use(at: &CallContext<'_>, request: CanUseTool) -> Result<PermissionResult, String> {
    at.context.outbox.ask::<CanUseTool>(AskHost::CanUseTool(Box::new(request))).await
}

/// The yes in an answer.
fn allowed(answer: PermissionResult, by: AnsweredBy) -> Result<Allow, Refusal> {
    match answer {
        PermissionResult::Allow(allow) => Ok(allow),
        PermissionResult::Deny(deny) => {
            let interrupt = deny.interrupt.unwrap_or(false);
            let by = match (by, interrupt) {
                (AnsweredBy::Hook, _) => DecisionSource::hook(),
                (AnsweredBy::Host, true) => DecisionSource::stopping_host(),
                (AnsweredBy::Host, false) => DecisionSource::refusing_host(),
            };
            Err(Refusal::Denied { message: deny.message, interrupt, by })
        }
        _ => Err(unanswered("the host's answer is neither allow nor deny")),
    }
}

/// No one answers questions: a call that requires approval does not run.
async fn refuse_unasked(
    at: &CallContext<'_>,
    request: &CanUseTool,
    effect: &Effect,
    decision: &Decision,
) -> Refusal {
    let reason = format!(
        "No user is available to approve {} ({}). Allow it beforehand with a rule, or choose another \
         --permission-mode.",
        at.call.name, decision.reason
    );
    let decision = Decision { reason, ..decision.clone() };
    at.refuse(&request.input, effect, decision, DecisionSource::no_one()).await
}

/// Notifies hooks that a question is open. They are not waited for: the question is there already.
fn tell_of_question(at: &CallContext<'_>, tool: &str) {
    let fields = json!({
        "message": format!("Your permission is needed to use {tool}"),
        "title": "Permission needed",
        "notification_type": "permission_prompt",
    });
    at.context.hooks.tell(Event::new(HookEvent::Notification, fields));
}

/// The answer of hooks to a permission question; `None` when they leave it to the host.
async fn ask_hooks(
    at: &CallContext<'_>,
    request: &CanUseTool,
    effect: &Effect,
) -> Option<PermissionResult> {
    let mut fields = json!({"tool_name": request.tool_name, "tool_input": request.input});
    if let Some(suggestions) = &request.permission_suggestions {
        fields["permission_suggestions"] = json!(suggestions);
    }
    let event = at.event(HookEvent::PermissionRequest, effect, fields);
    let verdict = at.context.hooks.run(event).await;
    let deny = |message: String, interrupt| {
        PermissionResult::Deny(Deny { message, interrupt, ..Deny::default() })
    };
    match (verdict.permission, verdict.block) {
        (_, Some(reason)) => Some(deny(reason, None)),
        (Some(PermissionRequestDecision::Allow(allow)), None) => {
            Some(PermissionResult::Allow(Allow {
                updated_input: allow.updated_input,
                updated_permissions: allow.updated_permissions,
                ..Allow::default()
            }))
        }
        (Some(PermissionRequestDecision::Deny(no)), None) => Some(deny(
            no.message.unwrap_or_else(|| "A hook denied the call.".to_owned()),
            no.interrupt,
        )),
        (Some(_), None) => Some(deny("a hook's answer is neither allow nor deny".to_owned(), None)),
        (None, None) => None,
    }
}

fn unanswered(why: &str) -> Refusal {
    let message = format!("Tool permission request failed: {why}");
    let by = DecisionSource::config(&DecisionReasonType::Unspecified);
    Refusal::Denied { message, interrupt: false, by }
}

/// Applies the permission updates of a yes. An update that cannot be applied is reported and left out; the user is then
/// asked again.
pub(crate) async fn apply_updates(context: &TurnContext, updates: &[PermissionUpdate]) {
    let TurnContext { outbox, permissions, .. } = context;
    for update in updates {
        match context.change_permissions(update).await {
            Ok(()) if matches!(update, PermissionUpdate::SetMode(_)) => {
                outbox.send_mode(permissions.mode()).await;
            }
            Ok(()) => {}
            Err(error) => {
                outbox.inform(error.to_string(), "warning", Some("permission_update_failed")).await;
            }
        }
    }
}
