//! A tool of an MCP server that answers permission questions in the host's place (`--permission-prompt-tool`).
//!
//! It is called with `{tool_name, input, tool_use_id}` and answers with the text of a JSON object, the same as a host
//! would: `{"behavior": "allow", "updatedInput": …}` or `{"behavior": "deny", "message": …}`. Anything else is a no.

use ostler_proto::control::CanUseTool;
use ostler_proto::permission::PermissionResult;
use serde_json::json;

use super::{Tools, prepare};
use crate::tool::ToolCx;

/// Asks the tool.
///
/// # Errors
/// When it does not answer, or the answer is malformed.
pub(super) async fn ask(
    tools: &Tools,
    cx: &ToolCx,
    name: &str,
    request: &CanUseTool,
) -> Result<PermissionResult, String> {
    if !tools.contains_key(name) {
        return Err(format!(
            "the permission prompt tool {name} does not exist; --permission-prompt-tool must name a tool of a \
             connected MCP server, such as mcp__server__tool"
        ));
    }
    let input = json!({
        "tool_name": request.tool_name,
        "input": request.input,
        "tool_use_id": request.tool_use_id,
    });
    let odd = |what: &str| format!("the permission prompt tool {name} {what}");
    let prepared = prepare(tools, cx, name, &input).map_err(|error| odd(&error))?;
    let output =
        (prepared.run)(cx.clone()).await.map_err(|error| odd(&format!("failed: {error}")))?;
    let answer = output.content.text();
    serde_json::from_str(&answer)
        .map_err(|error| odd(&format!("gave a malformed answer ({error}): {answer:.200}")))
}
