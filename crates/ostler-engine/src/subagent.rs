//! `Agent`: hand a piece of work to a subagent and wait for its report.
//!
//! A subagent is a turn of its own in a conversation of its own. It works with the same model, the same tools
//! (except this one) and the same permissions, so it can never do more than its parent.

use ostler_proto::api::ContentBlock;
use ostler_proto::hook::HookEvent;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::compact::Gauge;
use crate::drive::{Finished, World, drive};
use crate::hooks::Event;
use crate::tool::{Effect, Tool, ToolCx, ToolError, ToolOutput};
use crate::turn::Ending;

/// The only kind of subagent there is yet.
pub(crate) const KIND: &str = "general-purpose";

/// The tool, with the world its subagents live in.
pub(crate) struct Agent(pub(crate) World);

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Args {
    /// The work in three to five words.
    description: String,
    /// Everything the subagent needs to know; it sees nothing of this conversation.
    prompt: String,
    /// The kind of subagent; `general-purpose` when left out.
    #[serde(default)]
    subagent_type: Option<String>,
}

impl Tool for Agent {
    const NAME: &'static str = "Agent";
    const DESCRIPTION: &'static str = "Hands a self-contained piece of work to a subagent with the same tools and returns its report.";
    type Args = Args;

    fn effect(&self, _: &ToolCx, _: &Args) -> Effect {
        // What the subagent touches is decided call by call.
        Effect::Nothing
    }

    async fn run(&self, cx: &ToolCx, args: Args) -> Result<ToolOutput, ToolError> {
        if let Some(kind) = args.subagent_type.as_deref().filter(|kind| *kind != KIND) {
            return Err(ToolError::Refused(format!(
                "there is no subagent of type {kind}; use {KIND}"
            )));
        }
        let host = self.0.host.for_subagent(&cx.call);
        let world = World { host, cx: cx.clone(), gauge: Gauge::default(), ..self.0.clone() };
        let world = world.with_server_tools().await;
        let mut prompt = vec![ContentBlock::text(args.prompt.as_str())];
        world.host.say_as_user(prompt.clone(), None).await;
        let fields = json!({"agent_id": world.host.agent, "agent_type": KIND});
        let event = Event::new(HookEvent::SubagentStart, fields);
        let verdict = world.host.hooks().run(&world.host, &cx.cwd, event).await;
        prompt.extend(verdict.context.into_iter().map(ContentBlock::text));
        // The type of this future would contain itself without the box.
        let finished = Box::pin(drive(&world, Vec::new(), prompt)).await;
        report(&args, finished)
    }
}

fn report(args: &Args, finished: Finished) -> Result<ToolOutput, ToolError> {
    let prompt = &args.prompt;
    let text = finished.text;
    match finished.ending {
        Ending::Completed | Ending::HookStopped | Ending::Blocked(_) => Ok(ToolOutput::new(
            text.clone(),
            json!({
                "status": "completed",
                "agentType": KIND,
                "prompt": prompt,
                "content": [{"type": "text", "text": text}],
                "totalToolUseCount": finished.n_tool_calls,
                "totalTokens": finished.usage.total_input() + finished.usage.output_tokens.unwrap_or(0),
                "usage": finished.usage,
            }),
        )),
        Ending::Interrupted { .. } => failed(args, "was stopped".to_owned()),
        Ending::MaxTurns | Ending::OverLimit(_) | Ending::SchemaMissed => {
            failed(args, format!("reached a limit; its last words: {text}"))
        }
        // Commands are for the user, who does not speak here.
        Ending::Refused | Ending::Command { .. } => {
            failed(args, "got no answer from the model".to_owned())
        }
        Ending::MaxOutputTokens => failed(args, "answered at too great a length".to_owned()),
        Ending::Failed(error) => failed(args, format!("failed: {error}")),
    }
}

fn failed(args: &Args, what: String) -> Result<ToolOutput, ToolError> {
    Err(ToolError::Failed(format!("the subagent ({}) {what}", args.description)))
}
