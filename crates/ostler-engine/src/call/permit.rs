//! May this call run, and with which input? Hooks first, then the rules, then the host (`answer.rs`).
//!
//! An input that was changed is read and decided again, whether a PreToolUse hook changed it before the rules were
//! consulted or an answer afterwards. PreToolUse hooks also see input that an answer changed.

use ostler_proto::api::ToolUseBlock;
use ostler_proto::control::DecisionReasonType;
use ostler_proto::hook::HookEvent;
use ostler_proto::launch::Answerer;
use serde_json::{Value, json};

use super::answer::{self, PendingCall};
use super::decision_source::DecisionSource;
use super::prepare;
use crate::disk::on_disk;
use crate::drive::TurnContext;
use crate::hooks::Event;
use crate::hooks::verdict::{HookPermission, Verdict};
use crate::permission::{CallFacts, Decision, Outcome, Policy, Step};
use crate::tool::{Effect, PermittedPath, Prepared};

/// The longest command, in bytes, that is parsed on a thread of the runtime.
const LONGEST_AT_ONCE: usize = 4096;

/// A call that may run.
pub(super) struct Permit {
    pub(super) prepared: Prepared,
    /// The input it runs with.
    pub(super) input: Value,
    /// Text of hooks that the model reads with the result.
    pub(super) added_context: Vec<String>,
    /// Why a hook wants the turn to end after it; the reason may be empty.
    pub(super) stop: Option<String>,
    /// Who said that it may run.
    pub(super) by: DecisionSource,
    /// A command that was called harmless: it runs with a reduced environment.
    pub(super) is_harmless: bool,
    /// The path that it may open.
    pub(super) path: PermittedPath,
}

/// Why a call does not run.
pub(super) enum Refusal {
    /// The call itself is wrong.
    Mistake(String),
    /// A rule, the host or a hook said no.
    Denied { message: String, interrupt: bool, by: DecisionSource },
    /// A hook said no, and that the turn is to end with it.
    Stopped { message: String, reason: String },
}

/// A call, and the context in which it is decided.
#[derive(Clone, Copy)]
pub(super) struct CallContext<'a> {
    pub(super) context: &'a TurnContext,
    pub(super) call: &'a ToolUseBlock,
}

impl CallContext<'_> {
    /// Reads an input of the call.
    pub(super) fn read(&self, input: &Value) -> Result<Prepared, Refusal> {
        prepare(&self.context.tools, &self.context.cx, &self.call.name, input)
            .map_err(Refusal::Mistake)
    }

    /// An input of the call without what only the host may fill in.
    pub(super) fn without_host_only(&self, input: &Value) -> Value {
        let tool = self.context.tools.get(&self.call.name);
        tool.map_or_else(|| input.clone(), |tool| tool.without_host_only(input))
    }

    /// What rules and mode say about an input of the call, as they are now.
    pub(super) async fn decide(&self, input: &Value, effect: &Effect) -> Decision {
        self.ask_policy(input, effect, |policy, facts| policy.decide(facts)).await
    }

    /// Asks the policy. For some calls it resolves links and looks at repositories, on a disk that may be slow.
    async fn ask_policy<T: Send + 'static>(
        &self,
        input: &Value,
        effect: &Effect,
        ask: fn(&Policy, &CallFacts<'_>) -> T,
    ) -> T {
        let (policy, tool) = (self.context.permissions.policy(), self.call.name.clone());
        // Two changes of threads would cost more than most decisions. Long commands take long to parse.
        let is_long = matches!(
            effect,
            Effect::Execute(command) | Effect::ExecuteIn { command, .. } if command.len() > LONGEST_AT_ONCE
        );
        let facts = CallFacts { tool: &tool, input, effect };
        if !is_long && let Some(answer) = policy.without_disk(&facts, ask) {
            return answer;
        }
        let (input, effect) = (input.clone(), effect.clone());
        on_disk(move || ask(&policy, &CallFacts { tool: &tool, input: &input, effect: &effect }))
            .await
    }

    /// An event about the call, for hooks.
    pub(super) fn event<'e>(
        &'e self,
        event: HookEvent,
        effect: &'e Effect,
        fields: Value,
    ) -> Event<'e> {
        let (tool, call) = (Some(self.call.name.as_str()), Some(&self.call.id));
        Event { event, tool, call, effect: Some(effect), fields }
    }

    /// A rule or the mode says no: the host and hooks are notified, and the model reads why.
    pub(super) async fn refuse(
        &self,
        input: &Value,
        effect: &Effect,
        decision: Decision,
        by: DecisionSource,
    ) -> Refusal {
        self.context.outbox.send_denied(self.call, &decision).await;
        let reason = decision.reason;
        let fields = json!({
            "tool_name": self.call.name, "tool_input": input, "tool_use_id": self.call.id,
            "reason": reason,
        });
        let event = self.event(HookEvent::PermissionDenied, effect, fields);
        let verdict = self.context.hooks.run(event).await;
        let message = match verdict.may_retry {
            true => format!("{reason}\nA hook says that you may try this call again."),
            false => reason,
        };
        Refusal::Denied { message, interrupt: false, by }
    }
}

/// Decides on a call. Everything but a clear yes is a no.
pub(super) async fn permit(context: &TurnContext, call: &ToolUseBlock) -> Result<Permit, Refusal> {
    let at = CallContext { context, call };
    let TurnContext { tools, permissions, records, .. } = context;
    let mut input =
        tools.get(&call.name).map_or(Value::Null, |tool| tool.without_host_only(&call.input));
    let mut prepared = at.read(&input)?;

    let mut verdict = ask_hooks(&at, &input, &prepared.effect).await;
    let hook = verdict.decision.take();
    if let Some((HookPermission::Deny, reason)) = hook {
        return Err(denied_by_hook(call, &verdict, &reason));
    }
    if let Some(updated) = verdict.updated_input {
        prepared = at.read(&updated)?;
        input = updated;
    }
    let (mut added_context, mut stop) = (verdict.context, verdict.stop);
    let decision = at.decide(&input, &prepared.effect).await;
    let is_harmless = decision.outcome == Outcome::Allow && decision.is_harmless;
    let path = permitted_path(&decision);
    let decision = match settle(&at, &input, &prepared.effect, decision, hook).await? {
        PreliminaryDecision::Runs(by) => {
            return Ok(Permit { prepared, input, added_context, stop, by, is_harmless, path });
        }
        PreliminaryDecision::Asks(decision) => decision,
    };
    if !matches!(*permissions.answerer, Answerer::NoOne) {
        records.ledger.ask();
    }
    let permitted =
        answer::ask_until_settled(&at, PendingCall { input, prepared, decision }).await?;
    let answer::ApprovedCall { input, prepared, by, remarks, path } = permitted;
    added_context.extend(remarks.context);
    stop = remarks.stop.or(stop);
    Ok(Permit { prepared, input, added_context, stop, by, is_harmless: false, path })
}

/// The path that a call may open if this decision permits it.
pub(super) fn permitted_path(decision: &Decision) -> PermittedPath {
    decision.real_path.clone().map_or(PermittedPath::Nowhere, PermittedPath::Real)
}

/// What rules, mode and PreToolUse hooks say together.
enum PreliminaryDecision {
    Runs(DecisionSource),
    Asks(Decision),
}

async fn settle(
    at: &CallContext<'_>,
    input: &Value,
    effect: &Effect,
    decision: Decision,
    hook: Option<(HookPermission, String)>,
) -> Result<PreliminaryDecision, Refusal> {
    let ledger = &at.context.records.ledger;
    Ok(match (decision.outcome, hook) {
        (Outcome::Deny, _) => {
            let by = DecisionSource::config(&decision.reason_type);
            return Err(at.refuse(input, effect, decision, by).await);
        }
        (_, Some((HookPermission::Ask, reason))) => {
            let mut chain = decision.chain;
            chain.push(Step::hooks(format!("say to ask: {reason}")));
            let reason_type = DecisionReasonType::Hook;
            // The hook asks every time, so no rule makes the question unnecessary.
            let suggestions = Vec::new();
            PreliminaryDecision::Asks(Decision {
                reason,
                reason_type,
                chain,
                suggestions,
                ..decision
            })
        }
        (Outcome::Ask, Some((HookPermission::Allow, _))) if !needs_person(&decision, effect) => {
            ledger.spare();
            PreliminaryDecision::Runs(DecisionSource::hook())
        }
        (Outcome::Allow, hook) => {
            if at.ask_policy(input, effect, Policy::would_ask_by_default).await {
                ledger.spare();
            }
            PreliminaryDecision::Runs(match hook {
                Some((HookPermission::Allow, _)) => DecisionSource::hook(),
                _ => DecisionSource::config(&decision.reason_type),
            })
        }
        (Outcome::Ask, Some((HookPermission::Allow, _))) => {
            let mut chain = vec![Step::hooks("say yes, which does not count for this")];
            chain.extend(decision.chain);
            PreliminaryDecision::Asks(Decision { chain, ..decision })
        }
        (Outcome::Ask, _) => PreliminaryDecision::Asks(decision),
    })
}

/// Whether only a person can answer, not a hook: questions for the user, and calls that no rule may allow.
pub(super) fn needs_person(decision: &Decision, effect: &Effect) -> bool {
    *effect == Effect::AskUser || !decision.can_be_granted()
}

pub(super) async fn ask_hooks(at: &CallContext<'_>, input: &Value, effect: &Effect) -> Verdict {
    let call = at.call;
    let fields = json!({"tool_name": call.name, "tool_input": input, "tool_use_id": call.id});
    let event = at.event(HookEvent::PreToolUse, effect, fields);
    at.context.hooks.run(event).await
}

pub(super) fn denied_by_hook(call: &ToolUseBlock, verdict: &Verdict, reason: &str) -> Refusal {
    let message = format!("PreToolUse:{} hook error: {reason}", call.name);
    if let Some(reason) = verdict.stop.clone() {
        return Refusal::Stopped { message, reason };
    }
    Refusal::Denied { message, interrupt: false, by: DecisionSource::hook() }
}
