//! May this call run, and with which input? Hooks first, then the rules, then the host.

use ostler_proto::Extra;
use ostler_proto::api::ToolUseBlock;
use ostler_proto::control::{CanUseTool, DECISION_STEPS, DecisionReasonType};
use ostler_proto::hook::{HookEvent, PermissionRequestDecision};
use ostler_proto::launch::Answerer;
use ostler_proto::permission::{Allow, Deny, PermissionResult, PermissionUpdate};
use ostler_proto::quirks;
use serde_json::{Value, json};

use super::judge::Judge;
use super::{Tools, prepare, prompt_tool};
use crate::hooks::Event;
use crate::hooks::verdict::{Verdict, Word};
use crate::host::Host;
use crate::mcp::for_people;
use crate::permission::{CallFacts, Decision, Outcome, Step};
use crate::tool::{Effect, Prepared, ToolCx};

/// A call that may run.
pub(super) struct Permit {
    pub(super) prepared: Prepared,
    /// The input it runs with.
    pub(super) input: Value,
    /// What hooks want the model to read with the result.
    pub(super) context: Vec<String>,
    /// A hook wants the turn to end after it.
    pub(super) stop: bool,
    /// Who said that it may run.
    pub(super) by: Judge,
}

/// Why a call does not run.
pub(super) enum Refusal {
    /// The call itself is wrong.
    Mistake(String),
    /// Somebody said no.
    Denied { message: String, interrupt: bool, by: Judge },
    /// A hook said no, and that the turn is to end with it.
    Stopped(String),
}

/// Decides on a call. Whoever changes its input has it read anew; everything but a clear yes is a no.
pub(super) async fn permit(
    tools: &Tools,
    cx: &ToolCx,
    host: &Host,
    call: &ToolUseBlock,
) -> Result<Permit, Refusal> {
    let input =
        tools.get(&call.name).map_or(Value::Null, |tool| tool.without_host_only(&call.input));
    let read = |input: &Value| prepare(tools, cx, &call.name, input).map_err(Refusal::Mistake);
    let mut prepared = read(&input)?;

    let verdict = ask_hooks(cx, host, call, &input).await;
    let hook = verdict.decision.as_ref().map(|(word, reason)| (*word, reason.clone()));
    if let Some((Word::Deny, reason)) = &hook {
        let message = format!("PreToolUse:{} hook error: {reason}", call.name);
        if verdict.stop.is_some() {
            return Err(Refusal::Stopped(message));
        }
        return Err(Refusal::Denied { message, interrupt: false, by: Judge::hook() });
    }
    let mut input = input;
    if let Some(updated) = verdict.updated_input {
        prepared = read(&updated)?;
        input = updated;
    }
    let (context, stop) = (verdict.context, verdict.stop.is_some());

    let facts = CallFacts { tool: &call.name, input: &input, effect: &prepared.effect };
    let decision = host.policy().decide(&facts);
    let decision = match (decision.outcome, hook) {
        (Outcome::Deny, _) => {
            host.denied(call, &decision).await;
            let by = Judge::config(&decision.reason_type);
            let message = tell_of_denial(cx, host, call, &input, decision.reason).await;
            return Err(Refusal::Denied { message, interrupt: false, by });
        }
        (_, Some((Word::Ask, reason))) => {
            let mut chain = decision.chain;
            chain.push(Step::hooks(format!("say to ask: {reason}")));
            Decision { reason, reason_type: DecisionReasonType::Hook, chain, ..decision }
        }
        // A hook can stand in for a permission, not for a person's answer, nor for a rule that says to ask.
        (Outcome::Ask, Some((Word::Allow, _)))
            if prepared.effect != Effect::AskUser
                && decision.reason_type != DecisionReasonType::Rule =>
        {
            host.spent.spare();
            return Ok(Permit { prepared, input, context, stop, by: Judge::hook() });
        }
        (Outcome::Allow, hook) => {
            if host.policy().would_ask_by_default(&facts) {
                host.spent.spare();
            }
            let by = match hook {
                Some((Word::Allow, _)) => Judge::hook(),
                _ => Judge::config(&decision.reason_type),
            };
            return Ok(Permit { prepared, input, context, stop, by });
        }
        (Outcome::Ask, Some((Word::Allow, _))) => {
            let mut chain = vec![Step::hooks("say yes, which does not count for this")];
            chain.extend(decision.chain);
            Decision { chain, ..decision }
        }
        (Outcome::Ask, _) => decision,
    };
    host.spent.ask();
    let is_for_person = prepared.effect == Effect::AskUser;
    let request = request(tools, host, call, input.clone(), &decision, is_for_person);
    let (answered, by) = ask(tools, cx, host, call, request, decision).await?;
    // What was asked about is what runs, unless the answer changed it.
    if answered != input {
        prepared = read(&answered)?;
    }
    Ok(Permit { prepared, input: answered, context, stop, by })
}

async fn ask_hooks(cx: &ToolCx, host: &Host, call: &ToolUseBlock, input: &Value) -> Verdict {
    let fields = json!({"tool_name": call.name, "tool_input": input, "tool_use_id": call.id});
    let event = Event {
        event: HookEvent::PreToolUse,
        tool: Some(&call.name),
        call: Some(&call.id),
        fields,
    };
    host.hooks().run(host, &cx.cwd, event).await
}

/// Tells hooks that a rule or the mode refused a call. Returns what the model reads.
async fn tell_of_denial(
    cx: &ToolCx,
    host: &Host,
    call: &ToolUseBlock,
    input: &Value,
    reason: String,
) -> String {
    let fields = json!({
        "tool_name": call.name, "tool_input": input, "tool_use_id": call.id, "reason": reason,
    });
    let (tool, call) = (Some(call.name.as_str()), Some(&call.id));
    let event = Event { event: HookEvent::PermissionDenied, tool, call, fields };
    let verdict = host.hooks().run(host, &cx.cwd, event).await;
    match verdict.may_retry {
        true => format!("{reason}\nA hook says that you may try this call again."),
        false => reason,
    }
}

/// Tells hooks that somebody has to answer. They are not waited for: the question is there already.
fn tell_of_question(cx: &ToolCx, host: &Host, tool: &str) {
    let fields = json!({
        "message": format!("Your permission is needed to use {tool}"),
        "title": "Permission needed",
        "notification_type": "permission_prompt",
    });
    host.hooks().tell(host, &cx.cwd, Event::new(HookEvent::Notification, fields));
}

/// The question, with all that is known about the call.
fn request(
    tools: &Tools,
    host: &Host,
    call: &ToolUseBlock,
    input: Value,
    decision: &Decision,
    is_for_person: bool,
) -> CanUseTool {
    let mcp_server = tools.get(&call.name).and_then(|tool| tool.provenance());
    let shown = tools.get(&call.name).and_then(|tool| tool.shown()).and_then(|it| it.tool_name);
    let display_name = shown.map_or_else(|| call.name.clone(), |name| for_people(&name));
    let mut extra = Extra::default();
    let steps: Vec<Value> = decision.chain.iter().map(Step::told).collect();
    extra.insert(DECISION_STEPS, Value::Array(steps));
    CanUseTool {
        tool_name: call.name.clone(),
        display_name: Some(display_name),
        description: input.get("description").and_then(Value::as_str).map(str::to_owned),
        input,
        tool_use_id: Some(call.id.clone()),
        decision_reason: Some(decision.reason.clone()),
        decision_reason_type: Some(decision.reason_type.clone()),
        blocked_path: decision.blocked_path.as_ref().map(|path| path.display().to_string()),
        permission_suggestions: Some(decision.suggestions.clone()).filter(|list| !list.is_empty()),
        agent_id: host.agent.clone(),
        requires_user_interaction: is_for_person.then_some(true),
        mcp_server,
        extra,
        ..CanUseTool::default()
    }
}

/// Asks whoever answers questions, and at the same time the hooks that answer in their place. The first answer counts.
async fn ask(
    tools: &Tools,
    cx: &ToolCx,
    host: &Host,
    call: &ToolUseBlock,
    request: CanUseTool,
    decision: Decision,
) -> Result<(Value, Judge), Refusal> {
    let mut by_hook = false;
    let answer = match &*host.answerer {
        Answerer::Nobody => match ask_permission_hooks(cx, host, &request).await {
            Some(answer) => {
                by_hook = true;
                Ok(answer)
            }
            None => return Err(refuse(cx, host, call, &request.input, decision).await),
        },
        Answerer::Tool(name) => tokio::select! {
            answer = prompt_tool::ask(tools, cx, name, &request) => answer,
            Some(answer) = ask_permission_hooks(cx, host, &request) => {
                by_hook = true;
                Ok(answer)
            }
        },
        _ => {
            tell_of_question(cx, host, &request.tool_name);
            tokio::select! {
                answer = host.may_use(request.clone()) => answer,
                Some(answer) = ask_permission_hooks(cx, host, &request) => {
                    by_hook = true;
                    Ok(answer)
                }
            }
        }
    };
    match answer {
        Ok(PermissionResult::Allow(allow)) => {
            apply_updates(host, &allow).await;
            let by = if by_hook { Judge::hook() } else { Judge::host(&allow) };
            Ok((quirks::input_to_run(&request, allow), by))
        }
        Ok(PermissionResult::Deny(deny)) => {
            let interrupt = deny.interrupt.unwrap_or(false);
            let by = match (by_hook, interrupt) {
                (true, _) => Judge::hook(),
                (false, true) => Judge::stopping_host(),
                (false, false) => Judge::refusing_host(),
            };
            Err(Refusal::Denied { message: deny.message, interrupt, by })
        }
        Ok(_) => Err(unanswered("the host's answer is neither allow nor deny")),
        Err(error) => Err(unanswered(&error)),
    }
}

/// Nobody answers questions: what would have to be asked does not run.
async fn refuse(
    cx: &ToolCx,
    host: &Host,
    call: &ToolUseBlock,
    input: &Value,
    decision: Decision,
) -> Refusal {
    let reason = format!(
        "Nobody can be asked here whether {} may run ({}). Allow it beforehand with a rule, or choose another \
         --permission-mode.",
        call.name, decision.reason
    );
    let decision = Decision { reason, ..decision };
    host.denied(call, &decision).await;
    let message = tell_of_denial(cx, host, call, input, decision.reason).await;
    Refusal::Denied { message, interrupt: false, by: Judge::nobody() }
}

/// What hooks answer to a permission question; `None` when they leave it to the host.
async fn ask_permission_hooks(
    cx: &ToolCx,
    host: &Host,
    request: &CanUseTool,
) -> Option<PermissionResult> {
    let mut fields = json!({"tool_name": request.tool_name, "tool_input": request.input});
    if let Some(suggestions) = &request.permission_suggestions {
        fields["permission_suggestions"] = json!(suggestions);
    }
    let event = Event {
        event: HookEvent::PermissionRequest,
        tool: Some(&request.tool_name),
        call: request.tool_use_id.as_ref(),
        fields,
    };
    let verdict = host.hooks().run(host, &cx.cwd, event).await;
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
        (Some(PermissionRequestDecision::Deny(no)), None) => {
            Some(deny(no.message.unwrap_or_else(|| "A hook said no.".to_owned()), no.interrupt))
        }
        (Some(_), None) => Some(deny("a hook's answer is neither allow nor deny".to_owned(), None)),
        (None, None) => None,
    }
}

fn unanswered(why: &str) -> Refusal {
    let message = format!("Tool permission request failed: {why}");
    let by = Judge::config(&DecisionReasonType::Unspecified);
    Refusal::Denied { message, interrupt: false, by }
}

/// Applies what came along with a yes. A change that cannot be made is told and left out, which means being asked
/// again.
async fn apply_updates(host: &Host, allow: &Allow) {
    for update in allow.updated_permissions.iter().flatten() {
        match host.change_policy(update) {
            Ok(()) if matches!(update, PermissionUpdate::SetMode(_)) => host.tell_mode().await,
            Ok(()) => {}
            Err(error) => {
                host.inform(error.to_string(), "warning", Some("permission_update_failed")).await
            }
        }
    }
}
