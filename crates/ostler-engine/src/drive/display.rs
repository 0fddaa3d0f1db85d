//! Text of the model that hooks replace on the user's display. The conversation and its file keep the original.

use ostler_proto::Uuid;
use ostler_proto::api::{
    ContentBlock, ContentBlockDelta, Delta, StreamEvent, TextDelta, ToolUseBlock,
};
use ostler_proto::build;
use ostler_proto::hook::HookEvent;
use ostler_proto::message::ToolUseMeta;
use serde_json::json;

use crate::drive::TurnContext;
use crate::hooks::Event;
use crate::ids::fresh_uuid;

/// Whether hooks see the model's text before the user does. The text of subagents is not shown to the user.
pub(crate) fn is_judged(context: &TurnContext) -> bool {
    context.outbox.subagent.is_none() && context.hooks.any_for(&HookEvent::MessageDisplay)
}

/// Whether an event is a text delta.
pub(crate) fn is_text(event: &StreamEvent) -> bool {
    matches!(event, StreamEvent::ContentBlockDelta(delta) if matches!(delta.delta, Delta::TextDelta(_)))
}

/// How a call of an MCP server's tool is shown.
pub(crate) fn of_call(context: &TurnContext, call: &ToolUseBlock) -> Option<ToolUseMeta> {
    let meta = context.tools.get(&call.name)?.shown()?;
    Some(build!(ToolUseMeta { id: call.id.clone(), ..meta }))
}

/// The text that hooks show in place of a block; `None` for the original.
pub(crate) async fn ask(
    context: &TurnContext,
    turn: &Uuid,
    block: &ContentBlock,
) -> Option<String> {
    let text = block.as_text().filter(|text| !text.is_empty())?;
    if !is_judged(context) {
        return None;
    }
    let fields = json!({
        "turn_id": turn, "message_id": fresh_uuid(), "index": 0, "final": true, "delta": text,
    });
    let hooks = &context.hooks;
    let event = Event::new(HookEvent::MessageDisplay, fields);
    tokio::select! {
        verdict = hooks.run(event) => verdict.display,
        () = context.cx.cancelled.cancelled() => None,
    }
}

/// The withheld deltas as one, for the block that `end` finishes.
pub(crate) fn delta(
    context: &TurnContext,
    end: &StreamEvent,
    block: &ContentBlock,
    shown: &Option<String>,
) -> Option<StreamEvent> {
    let StreamEvent::ContentBlockStop(stop) = end else { return None };
    let said = block.as_text().filter(|text| !text.is_empty() && is_judged(context))?;
    let text = shown.clone().unwrap_or_else(|| said.to_owned());
    let delta = Delta::TextDelta(build!(TextDelta { text }));
    Some(StreamEvent::ContentBlockDelta(ContentBlockDelta::new(stop.index, delta)))
}
