//! A permission question, with all that is known about the call.

use ostler_proto::Extra;
use ostler_proto::build;
use ostler_proto::control::{CanUseTool, DECISION_STEPS, SERVER_TEXT};
use serde_json::Value;

use super::permit::CallContext;
use crate::mcp::{for_people, server_text};
use crate::permission::Effect;
use crate::permission::{Decision, Step};

/// The question that a host is asked.
pub(super) fn request(
    at: &CallContext<'_>,
    input: Value,
    decision: &Decision,
    effect: &Effect,
) -> CanUseTool {
    let call = at.call;
    let tool = at.context.tools.get(&call.name);
    let mcp_server = tool.and_then(|tool| tool.provenance());
    let shown = tool.and_then(|tool| tool.shown()).and_then(|it| it.tool_name);
    let display_name = shown.map_or_else(|| call.name.clone(), |name| for_people(&name));
    let mut extra = Extra::default();
    let steps: Vec<Value> = decision.chain.iter().map(Step::to_json).collect();
    extra.insert(DECISION_STEPS, Value::Array(steps));
    if let (Some(tool), Some(_)) = (tool, &mcp_server) {
        extra.insert(SERVER_TEXT, Value::String(server_text(&tool.spec())));
    }
    build!(CanUseTool {
        tool_name: call.name.clone(),
        display_name: Some(display_name),
        description: input.get("description").and_then(Value::as_str).map(str::to_owned),
        input,
        tool_use_id: Some(call.id.clone()),
        decision_reason: Some(decision.reason.clone()),
        decision_reason_type: Some(decision.reason_type.clone()),
        blocked_path: decision.blocked_path.as_ref().map(|path| path.display().to_string()),
        permission_suggestions: Some(decision.suggestions.clone()).filter(|list| !list.is_empty()),
        // Without a suggested rule, "always allow" would not answer the next question of this kind.
        suppress_always_allow_rule: decision.suggestions.is_empty().then_some(true),
        agent_id: at.context.outbox.agent().cloned(),
        requires_user_interaction: (*effect == Effect::AskUser).then_some(true),
        mcp_server,
        extra
    })
}
