//! The report of a subagent: text for the model, and the published output for programs.

use ostler_proto::AgentId;
use ostler_proto::api::{ContentBlock, Usage};
use ostler_proto::message::system::TaskOutcome;
use serde_json::json;

use crate::drive::TurnOutcome;
use crate::model::ledger::whole_usage;
use crate::outbox::SubagentIdentity;
use crate::tasks::TaskResult;
use crate::tool::{ToolError, ToolOutput};
use crate::turn::Ending;

/// How a subagent ended, for its parent.
pub(super) struct Report {
    pub(super) outcome: TaskOutcome,
    pub(super) text: String,
}

impl Report {
    /// The report of a finished turn.
    pub(super) fn of(finished: &TurnOutcome) -> Self {
        let text = &finished.text;
        let failed = |text: String| Self { outcome: TaskOutcome::Failed, text };
        match &finished.ending {
            Ending::Completed | Ending::HookStopped | Ending::Blocked(_) => {
                Self { outcome: TaskOutcome::Completed, text: text.clone() }
            }
            Ending::Interrupted { .. } => {
                Self { outcome: TaskOutcome::Stopped, text: "it was stopped".to_owned() }
            }
            Ending::MaxTurns | Ending::OverLimit(_) | Ending::SchemaMissed => {
                failed(format!("it reached a limit; its last message: {text}"))
            }
            // Only users call commands, and a subagent's prompts do not come from a user.
            Ending::Refused | Ending::Command { .. } => {
                failed("it got no answer from the model".to_owned())
            }
            Ending::MaxOutputTokens => {
                failed("its answer was longer than the model may write".to_owned())
            }
            Ending::Failed(error) => failed(format!("it failed: {error}")),
        }
    }

    /// The report for the host.
    pub(super) fn ended(&self, subagent: &SubagentIdentity) -> TaskResult {
        let (outcome, summary) = (self.outcome.clone(), self.text.clone());
        TaskResult { outcome, summary, effort: Some(subagent.effort()) }
    }
}

/// Who made the report.
pub(super) struct Author<'a> {
    pub(super) id: &'a AgentId,
    pub(super) subagent: &'a SubagentIdentity,
    pub(super) prompt: &'a str,
    pub(super) model: &'a str,
}

/// The tool result for the conversation that waited for the subagent.
pub(super) fn output(
    report: Report,
    author: &Author<'_>,
    usage: &Usage,
) -> Result<ToolOutput, ToolError> {
    let Author { id, subagent, prompt, model } = author;
    let Report { outcome, text } = report;
    if outcome != TaskOutcome::Completed {
        return Err(ToolError::Failed(format!("the subagent ({}): {text}", subagent.description)));
    }
    let effort = subagent.effort();
    let millis = u64::try_from(effort.duration.as_millis()).unwrap_or(u64::MAX);
    let structured = json!({
        "status": "completed",
        "prompt": prompt,
        "agentId": id,
        "agentType": subagent.kind,
        "content": [{"type": "text", "text": text}],
        "resolvedModel": model,
        "totalDurationMs": millis,
        "totalTokens": effort.tokens,
        "totalToolUseCount": effort.n_tool_calls,
        "usage": whole_usage(usage.clone()),
    });
    let note = format!("[agent {id}; to continue it, pass its id as `resume`]");
    Ok(ToolOutput::blocks(vec![ContentBlock::text(text), ContentBlock::text(note)], structured))
}
