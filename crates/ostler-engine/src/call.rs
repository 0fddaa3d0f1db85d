//! One tool call: read its input, decide whether it may run, maybe ask, run it. Whatever happens, one result.

use std::collections::HashMap;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt;
use ostler_proto::api::{Content, INVALID_INPUT, ToolResultBlock, ToolUseBlock};
use ostler_proto::control::CanUseTool;
use ostler_proto::permission::{Allow, PermissionResult, PermissionUpdate};
use ostler_proto::quirks;
use serde_json::Value;

use crate::host::Host;
use crate::permission::{Decision, decide};
use crate::tool::{AnyTool, Prepared, ToolCx, ToolError, ToolOutput};

/// The tools of a session by name.
pub(crate) type Tools = HashMap<String, Arc<dyn AnyTool>>;

/// A call's result, for the model and for programs.
#[derive(Debug)]
pub(crate) struct CallResult {
    pub(crate) block: ToolResultBlock,
    pub(crate) structured: Option<Value>,
    pub(crate) denied: bool,
    /// The host wants the whole turn to end.
    pub(crate) interrupt: bool,
}

/// Why a call did not run.
enum Refusal {
    /// The call itself is wrong.
    Mistake(String),
    /// Somebody said no.
    Denied { message: String, interrupt: bool },
}

/// Whether a call may run beside others. A call that cannot be read runs alone, and fails.
pub(crate) fn is_parallel(tools: &Tools, cx: &ToolCx, call: &ToolUseBlock) -> bool {
    prepare(tools, cx, &call.name, &call.input).is_ok_and(|prepared| prepared.effect.is_read_only())
}

/// Runs a call to its result.
pub(crate) async fn run(tools: &Tools, cx: ToolCx, host: &Host, call: ToolUseBlock) -> CallResult {
    let id = call.id.clone();
    let outcome = match permitted(tools, &cx, host, &call).await {
        Ok(prepared) => {
            let running = AssertUnwindSafe((prepared.run)(cx.clone())).catch_unwind();
            tokio::select! {
                outcome = running => outcome.unwrap_or_else(|panic| Err(broken(&call.name, &*panic))),
                // Dropping the future stops the tool; the turn has answered the call by then.
                () = cx.cancelled.cancelled() => Err(ToolError::Failed(crate::turn::INTERRUPTED_CALL.to_owned())),
            }
        }
        Err(Refusal::Mistake(message)) => {
            Err(ToolError::Refused(format!("<tool_use_error>{message}</tool_use_error>")))
        }
        Err(Refusal::Denied { message, interrupt }) => {
            return CallResult { denied: true, interrupt, ..failed(id, message) };
        }
    };
    match outcome {
        Ok(ToolOutput { content, structured }) => {
            let block = ToolResultBlock {
                tool_use_id: id,
                content: Some(content),
                ..ToolResultBlock::default()
            };
            CallResult { block, structured, denied: false, interrupt: false }
        }
        Err(error) => failed(id, error.to_string()),
    }
}

fn failed(id: ostler_proto::ToolUseId, message: String) -> CallResult {
    let structured = Some(Value::String(format!("Error: {message}")));
    let block = ToolResultBlock {
        tool_use_id: id,
        content: Some(Content::Text(message)),
        is_error: Some(true),
        ..ToolResultBlock::default()
    };
    CallResult { block, structured, denied: false, interrupt: false }
}

/// Decides on a call, asking the host where that is needed. The host may change the input, which is then read anew.
async fn permitted(
    tools: &Tools,
    cx: &ToolCx,
    host: &Host,
    call: &ToolUseBlock,
) -> Result<Prepared, Refusal> {
    let input =
        tools.get(&call.name).map_or(Value::Null, |tool| tool.without_host_only(&call.input));
    let prepared = prepare(tools, cx, &call.name, &input).map_err(Refusal::Mistake)?;
    let reason = match decide(&host.mode(), &cx.cwd, &prepared.effect) {
        Decision::Allow => return Ok(prepared),
        Decision::Deny(message) => return Err(Refusal::Denied { message, interrupt: false }),
        Decision::Ask(reason) => reason,
    };
    let request = CanUseTool {
        tool_name: call.name.clone(),
        input,
        tool_use_id: Some(call.id.clone()),
        decision_reason: Some(reason),
        ..CanUseTool::default()
    };
    let allow = match host.may_use(request.clone()).await {
        Ok(PermissionResult::Allow(allow)) => allow,
        Ok(PermissionResult::Deny(deny)) => {
            let interrupt = deny.interrupt.unwrap_or(false);
            return Err(Refusal::Denied { message: deny.message, interrupt });
        }
        Ok(_) => return Err(denied("the host's answer is neither allow nor deny")),
        Err(error) => return Err(denied(&error)),
    };
    apply_updates(host, &allow);
    let input = quirks::input_to_run(&request, allow);
    prepare(tools, cx, &call.name, &input).map_err(Refusal::Mistake)
}

fn denied(why: &str) -> Refusal {
    Refusal::Denied { message: format!("Tool permission request failed: {why}"), interrupt: false }
}

/// Applies what the host ordered along with its yes. Only a change of mode has a meaning yet; leaving out a rule
/// means asking again, which is the safe side.
fn apply_updates(host: &Host, allow: &Allow) {
    for update in allow.updated_permissions.iter().flatten() {
        if let PermissionUpdate::SetMode(update) = update {
            host.set_mode(update.mode.clone());
        }
    }
}

fn prepare(tools: &Tools, cx: &ToolCx, name: &str, input: &Value) -> Result<Prepared, String> {
    let tool = tools.get(name).ok_or_else(|| format!("Error: No such tool available: {name}"))?;
    if let Some(written) = input.get(INVALID_INPUT) {
        return Err(format!(
            "InputValidationError: {name}: the input is not a JSON object: {written}"
        ));
    }
    tool.clone().prepare(cx, input).map_err(|error| format!("InputValidationError: {error}"))
}

fn broken(name: &str, panic: &(dyn std::any::Any + Send)) -> ToolError {
    let text = panic.downcast_ref::<&str>().copied().map(str::to_owned);
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default();
    ToolError::Failed(format!("the tool {name} broke down, which is a bug in it: {text}"))
}
