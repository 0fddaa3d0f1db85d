//! Questions about hosts: a command in the sandbox connects to one that no setting names.
//!
//! The answer holds until the command ends. For longer, the user adds a rule with it: `WebFetch(domain:example.com)`.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::FutureExt as _;
use futures::future::BoxFuture;
use ostler_proto::api::ToolUseBlock;
use ostler_proto::build;
use ostler_proto::launch::Answerer;
use ostler_proto::permission::PermissionResult;
use tokio_util::sync::CancellationToken;

use super::answer;
use super::permit::{CallContext, Refusal};
use crate::drive::TurnContext;
use crate::host_question::{Requester, names_another, request, unanswered};
use crate::permission::{Decision, Policy};
use crate::sandbox::{HostAnswer, HostAsker, HostQuestion, NETWORK_TOOL};
use crate::tool::Effect;

/// Asks for a command of a turn.
pub(crate) struct CommandAsker {
    context: TurnContext,
    requester: Requester,
    in_background: AtomicBool,
}

impl CommandAsker {
    pub(crate) fn new(context: TurnContext, command: &str) -> Arc<Self> {
        let requester = Requester::Command(command.to_owned());
        Arc::new(Self { context, requester, in_background: AtomicBool::new(false) })
    }

    /// The context of a question: that of the turn, or one that no turn affects.
    fn context(&self) -> TurnContext {
        let mut context = self.context.clone();
        if self.in_background.load(Ordering::Relaxed) {
            context.cx.cancelled = CancellationToken::new();
            context.leave_turn();
        }
        context
    }
}

impl fmt::Debug for CommandAsker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CommandAsker").field("requester", &self.requester).finish_non_exhaustive()
    }
}

impl HostAsker for CommandAsker {
    fn policy(&self) -> Policy {
        self.context.permissions.policy()
    }

    fn ask(&self, question: HostQuestion, decision: Decision) -> BoxFuture<'static, HostAnswer> {
        let (context, requester) = (self.context(), self.requester.clone());
        async move { ask(&context, &requester, &question, &decision).await }.boxed()
    }

    fn moved_to_background(&self) {
        self.in_background.store(true, Ordering::Relaxed);
    }
}

async fn ask(
    context: &TurnContext,
    requester: &Requester,
    question: &HostQuestion,
    decision: &Decision,
) -> HostAnswer {
    let request = request(question, decision, requester, context.outbox.agent());
    let call = build!(ToolUseBlock {
        id: request.tool_use_id.clone().unwrap_or_default(),
        name: NETWORK_TOOL.to_owned(),
        input: request.input.clone(),
    });
    let at = CallContext { context, call: &call };
    let effect = Effect::Fetch(format!("https://{}/", question.host));
    let has_answerer = !matches!(*context.permissions.answerer, Answerer::NoOne);
    if has_answerer {
        context.records.ledger.ask();
    }
    match answer::ask(&at, &request, &effect, decision, true).await {
        Ok((PermissionResult::Allow(allow), _)) if names_another(&request, &allow) => {
            unanswered("the answer names another host")
        }
        Ok((PermissionResult::Allow(allow), _)) => {
            let updates = allow.updated_permissions.unwrap_or_default();
            answer::apply_updates(context, &updates).await;
            HostAnswer::Allow
        }
        Ok((PermissionResult::Deny(deny), _)) => {
            if deny.interrupt == Some(true) {
                context.cx.cancelled.cancel();
            }
            HostAnswer::Deny
        }
        Ok(_) => unanswered("the answer is neither allow nor deny"),
        Err(Refusal::Denied { message, .. }) if has_answerer => unanswered(&message),
        Err(_) => HostAnswer::NoOneToAsk,
    }
}
