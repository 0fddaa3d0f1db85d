//! Questions about hosts that a program in the sandbox wants to reach: what they say, and how hooks and MCP servers ask them.
//! Those of commands are asked by `call/host_question.rs`, because hooks may answer them.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use ostler_proto::build;
use ostler_proto::control::{AskHost, CanUseTool, DECISION_STEPS};
use ostler_proto::launch::Answerer;
use ostler_proto::permission::{Allow, PermissionResult};
use ostler_proto::{AgentId, Extra};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::host_calls::{Calls, HostCall};
use crate::ids::fresh_uuid;
use crate::model::ledger::Ledger;
use crate::permission::{Decision, Policy, Step};
use crate::permissions::Permissions;
use crate::sandbox::{HostAnswer, HostAsker, HostQuestion, NETWORK_TOOL};

/// How much of a command a question shows, in characters.
const LONGEST_COMMAND: usize = 200;

/// The program that wants to reach a host.
#[derive(Clone, Debug)]
pub(crate) enum Requester {
    Command(String),
    Hook { event: String, command: String },
    Server(String),
}

impl fmt::Display for Requester {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Command(command) => write!(f, "The command `{}`", shortened(command)),
            Self::Hook { event, command } => {
                write!(f, "The {event} hook `{}`", shortened(command))
            }
            Self::Server(name) => write!(f, "The MCP server {name}"),
        }
    }
}

fn shortened(command: &str) -> String {
    let line: String = command.chars().take(LONGEST_COMMAND).collect();
    if line.len() < command.len() { format!("{line}…") } else { line }
}

/// The question for the host.
pub(crate) fn request(
    question: &HostQuestion,
    decision: &Decision,
    requester: &Requester,
    agent: Option<&AgentId>,
) -> CanUseTool {
    let HostQuestion { host, port } = question;
    let mut extra = Extra::default();
    let steps: Vec<Value> = decision.chain.iter().map(Step::to_json).collect();
    extra.insert(DECISION_STEPS, Value::Array(steps));
    build!(CanUseTool {
        tool_name: NETWORK_TOOL.to_owned(),
        display_name: Some(NETWORK_TOOL.to_owned()),
        title: Some(format!("Connect to {host}?")),
        description: Some(format!(
            "{requester} runs in the sandbox and wants to connect to {host}, port {port}."
        )),
        input: json!({"host": host}),
        tool_use_id: Some(fresh_uuid().to_string().into()),
        decision_reason: Some(decision.reason.clone()),
        decision_reason_type: Some(decision.reason_type.clone()),
        permission_suggestions: Some(decision.suggestions.clone()).filter(|list| !list.is_empty()),
        suppress_always_allow_rule: decision.suggestions.is_empty().then_some(true),
        agent_id: agent.cloned(),
        extra
    })
}

/// Asks for a hook or an MCP server. Only the host answers: a hook that answered in its place might itself want to reach a
/// host, without end.
#[derive(Debug)]
pub(crate) struct ProgramAsker {
    // Not the outbox: a reference to it would keep the session's frames open.
    pub(crate) calls: Calls,
    pub(crate) permissions: Permissions,
    pub(crate) ledger: Ledger,
    pub(crate) requester: Requester,
    pub(crate) agent: Option<AgentId>,
    pub(crate) in_background: AtomicBool,
    /// Whether it may wait for a session that has not begun yet. A hook that the session itself waits for may not.
    pub(crate) may_wait_for_session: bool,
}

impl HostAsker for ProgramAsker {
    fn policy(&self) -> Policy {
        self.permissions.policy()
    }

    fn ask(&self, question: HostQuestion, decision: Decision) -> BoxFuture<'static, HostAnswer> {
        match &*self.permissions.answerer {
            Answerer::Host => {}
            Answerer::NoOne => return std::future::ready(HostAnswer::NoOneToAsk).boxed(),
            _ => {
                let reason = format!(
                    "no setting and no rule names {}, and the permission prompt tool answers for commands only",
                    question.host
                );
                return std::future::ready(HostAnswer::Refused(reason)).boxed();
            }
        }
        if !self.may_wait_for_session && !self.calls.are_answered() {
            let reason = "the session has not begun, so the user cannot be asked".to_owned();
            return std::future::ready(HostAnswer::Refused(reason)).boxed();
        }
        self.ledger.ask();
        let request = request(&question, &decision, &self.requester, self.agent.as_ref());
        let calls = self.calls.clone();
        let in_background = self.in_background.load(Ordering::Relaxed);
        async move {
            let question = AskHost::CanUseTool(Box::new(request.clone()));
            match calls.ask::<CanUseTool>(question, in_background).await {
                Ok(PermissionResult::Allow(allow)) if names_another(&request, &allow) => {
                    unanswered("the answer names another host")
                }
                Ok(PermissionResult::Allow(allow)) => {
                    let updates = allow.updated_permissions.unwrap_or_default();
                    let (done, applied) = oneshot::channel();
                    if !updates.is_empty() {
                        calls.send(HostCall::ChangePermissions { updates, done }).await;
                        // If the session ends meanwhile, they are not applied.
                        let _ = applied.await;
                    }
                    HostAnswer::Allow
                }
                Ok(PermissionResult::Deny(_)) => HostAnswer::Deny,
                Ok(_) => unanswered("the answer is neither allow nor deny"),
                Err(error) => unanswered(&error),
            }
        }
        .boxed()
    }

    fn moved_to_background(&self) {
        self.in_background.store(true, Ordering::Relaxed);
    }
}

/// Whether an answer changed the host. A yes to another one is not a yes to this one.
pub(crate) fn names_another(request: &CanUseTool, allow: &Allow) -> bool {
    let named = allow.updated_input.as_ref().and_then(|input| input.get("host"));
    named.is_some_and(|named| *named != request.input["host"])
}

/// The answer to a question that failed.
pub(crate) fn unanswered(why: &str) -> HostAnswer {
    HostAnswer::Refused(format!("the user was asked and did not answer ({why})"))
}
