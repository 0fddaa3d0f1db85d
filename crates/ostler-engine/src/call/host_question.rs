//! Questions about hosts: a command in the sandbox connects to one that no setting names.
//!
//! The answer holds until the command ends. For longer, the user adds a rule with it: `WebFetch(domain:example.com)`.

use std::collections::HashMap;
use std::sync::Arc;

use ostler_process::Guard;
use ostler_proto::api::ToolUseBlock;
use ostler_proto::build;
use ostler_proto::launch::Answerer;
use ostler_proto::permission::PermissionResult;
use serde_json::json;

use super::permit::CallContext;
use super::{answer, question};
use crate::drive::TurnContext;
use crate::ids::fresh_uuid;
use crate::permission::{Decision, Outcome};
use crate::sandbox::HostAnswer;
use crate::tool::Effect;

/// The name of the tool in such questions: that of the vendor's program.
const TOOL: &str = "SandboxNetworkAccess";

/// Answers questions about hosts as long as the guard lives, if the call runs a command and there is a sandbox.
pub(super) fn answer_while_running(
    context: &TurnContext,
    effect: &Effect,
) -> Option<Box<dyn Guard>> {
    let sandbox = context.sandbox.as_ref()?;
    if !matches!(effect, Effect::Execute(_) | Effect::ExecuteIn { .. }) {
        return None;
    }
    let questions = Arc::new(HostQuestions {
        context: context.clone(),
        answers: tokio::sync::Mutex::default(),
    });
    let asker = move |host: String| {
        let questions = Arc::clone(&questions);
        let answer: futures::future::BoxFuture<'static, HostAnswer> =
            Box::pin(async move { questions.may_reach(&host).await });
        answer
    };
    sandbox.ask_about_hosts(Arc::new(asker))
}

/// The questions of one command.
struct HostQuestions {
    context: TurnContext,
    /// The answers of the user. Locked while a question is open, so that there is one at a time.
    answers: tokio::sync::Mutex<HashMap<String, HostAnswer>>,
}

impl HostQuestions {
    async fn may_reach(&self, host: &str) -> HostAnswer {
        if let Some(answer) = self.decide(host).1 {
            return answer;
        }
        let mut answers = self.answers.lock().await;
        // The answer to the question before may have added a rule.
        let (decision, known) = self.decide(host);
        if let Some(answer) = known.or_else(|| answers.get(host).copied()) {
            return answer;
        }
        let answer = self.ask(host, &decision).await;
        answers.insert(host.to_owned(), answer);
        match self.decide(host).0.outcome {
            Outcome::Deny => HostAnswer::Deny,
            Outcome::Allow | Outcome::Ask => answer,
        }
    }

    /// What rules and mode say, and the answer if they need no user.
    fn decide(&self, host: &str) -> (Decision, Option<HostAnswer>) {
        let decision = self.context.permissions.policy().decide_host(host);
        let answer = match decision.outcome {
            Outcome::Allow => Some(HostAnswer::Allow),
            Outcome::Deny => Some(HostAnswer::NoOneToAsk),
            Outcome::Ask => None,
        };
        (decision, answer)
    }

    async fn ask(&self, host: &str, decision: &Decision) -> HostAnswer {
        let context = &self.context;
        let call = build!(ToolUseBlock {
            id: fresh_uuid().to_string().into(),
            name: TOOL.to_owned(),
            input: json!({"host": host}),
        });
        let at = CallContext { context, call: &call };
        let effect = Effect::Fetch(format!("https://{host}/"));
        let mut request = question::request(&at, call.input.clone(), decision, &effect);
        request.description = Some(format!("A command in the sandbox wants to connect to {host}."));
        let has_answerer = !matches!(*context.permissions.answerer, Answerer::NoOne);
        if has_answerer {
            context.records.ledger.ask();
        }
        match answer::ask(&at, &request, &effect, decision, true).await {
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
            Ok(_) | Err(_) if has_answerer => HostAnswer::Deny,
            Ok(_) | Err(_) => HostAnswer::NoOneToAsk,
        }
    }
}
