//! Hooks: what the user's commands and the host's callbacks have to say about what is going on.
//!
//! All hooks of an event run side by side; what they say is folded into one [`Verdict`]. Hooks that guard something
//! (a tool call, a prompt, a permission) fail closed: one that breaks, hangs or disappears is an objection. Hooks that
//! only watch fail open, and their failure is told.

mod command;
pub(crate) mod registry;
pub(crate) mod verdict;

use std::path::Path;
use std::sync::Arc;

use futures::future::join_all;
use ostler_proto::ToolUseId;
use ostler_proto::control::{AskHost, HookCallback};
use ostler_proto::hook::{HookEvent, HookOutput};
use serde_json::{Value, json};

use self::command::Ran;
use self::registry::{Hook, Kind};
use self::verdict::{Verdict, Word};
use crate::host::{Host, fresh_uuid};

/// The hooks of a session.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hooks(Arc<Vec<Hook>>);

/// What happened, for hooks to look at.
pub(crate) struct Event<'a> {
    pub(crate) event: HookEvent,
    /// The tool, for events around a call.
    pub(crate) tool: Option<&'a str>,
    /// The call, for events around one.
    pub(crate) call: Option<&'a ToolUseId>,
    /// The fields of the event beyond those all have.
    pub(crate) fields: Value,
}

impl Hooks {
    pub(crate) fn new(hooks: Vec<Hook>) -> Self {
        Self(Arc::new(hooks))
    }

    /// The same and more.
    pub(crate) fn with(&self, more: Vec<Hook>) -> Self {
        Self::new([(*self.0).clone(), more].concat())
    }

    /// Tells all hooks that want to hear of it, and waits for what they say.
    pub(crate) async fn run(&self, host: &Host, cwd: &Path, event: Event<'_>) -> Verdict {
        let hooks: Vec<&Hook> =
            self.0.iter().filter(|hook| hook.is_for(&event.event, event.tool)).collect();
        let mut verdict = Verdict::default();
        if hooks.is_empty() {
            return verdict;
        }
        let input = input(host, cwd, &event);
        let outcomes =
            join_all(hooks.iter().map(|hook| one(hook, host, cwd, &event, &input))).await;
        for (hook, outcome) in hooks.into_iter().zip(outcomes) {
            match outcome {
                Ok(output) => verdict.add(output),
                Err(why) => failed(&mut verdict, hook, &event.event, &why),
            }
        }
        for warning in &verdict.warnings {
            host.inform(warning.clone(), "warning", None).await;
        }
        verdict
    }
}

/// One hook, to its answer or to the words why there is none.
async fn one(
    hook: &Hook,
    host: &Host,
    cwd: &Path,
    event: &Event<'_>,
    input: &Value,
) -> Result<HookOutput, String> {
    let answer = async {
        match &hook.kind {
            Kind::Callback(id) => {
                let call = event.call.cloned();
                let request = HookCallback {
                    callback_id: id.clone(),
                    input: serde_json::from_value(input.clone())
                        .map_err(|error| error.to_string())?,
                    tool_use_id: Some(
                        call.unwrap_or_else(|| ToolUseId::from(fresh_uuid().as_str())),
                    ),
                    extra: ostler_proto::Extra::default(),
                };
                host.ask::<HookCallback>(AskHost::HookCallback(Box::new(request))).await
            }
            Kind::Command(command) => {
                match command::run(command, cwd, &host.env, &event.event, &input.to_string())
                    .await?
                {
                    Ran::Answered(output) => Ok(output),
                    Ran::Remarked(remark) => {
                        let text = format!("{} hook failed: {remark}", event.event);
                        host.inform(text, "warning", Some("hook_failed")).await;
                        Ok(HookOutput::none())
                    }
                }
            }
        }
    };
    match hook.timeout {
        None => answer.await,
        Some(timeout) => tokio::time::timeout(timeout, answer)
            .await
            .unwrap_or_else(|_| Err("did not respond before its timeout".to_owned())),
    }
}

/// A hook that gave no answer: an objection where it guards, a warning where it watches.
fn failed(verdict: &mut Verdict, hook: &Hook, event: &HookEvent, why: &str) {
    let text = format!("{event} hook {why}");
    let guards = matches!(
        event,
        HookEvent::PreToolUse | HookEvent::PermissionRequest | HookEvent::UserPromptSubmit
    );
    if guards && !hook.may_fail {
        verdict.decide(Word::Deny, text.clone());
        verdict.block.get_or_insert(text);
    } else {
        verdict.warnings.push(text);
    }
}

/// What hooks are told: what all events have in common, and the event's own fields.
fn input(host: &Host, cwd: &Path, event: &Event<'_>) -> Value {
    let mut input = json!({
        "session_id": host.session_id,
        "transcript_path": host.transcript.as_ref().map(|transcript| transcript.path()).unwrap_or_default(),
        "cwd": cwd.display().to_string(),
        "permission_mode": host.mode(),
        "hook_event_name": event.event,
    });
    if let (Value::Object(input), Value::Object(fields)) = (&mut input, &event.fields) {
        input.extend(fields.clone());
    }
    input
}
