//! Calls of MCP tools by the host itself (`mcp_call`), and stricter permissions for a server at the host's request.

use std::time::Duration;

use ostler_proto::RequestId;
use ostler_proto::api::{Content, ToolUseBlock};
use ostler_proto::build;
use ostler_proto::control::{McpCall, SetMcpPermissionModeOverride};
use ostler_proto::frame::ToHost;
use ostler_proto::permission::PermissionMode;
use serde_json::{Value, json};

use super::Session;
use super::control::{failure, success};
use crate::call;
use crate::drive::TurnContext;
use crate::ids::fresh_uuid;
use crate::mcp::tools_of;
use crate::permission::Rule;

impl Session {
    /// Calls a tool outside of the conversation: the model does not see it.
    pub(super) fn call_tool(&mut self, request_id: Option<RequestId>, wanted: McpCall) {
        let context = self.context.clone();
        self.aside(async move {
            let outbox = context.outbox.clone();
            let limit = wanted.timeout_ms.as_ref().map(|ms| ms.get().max(0.0) as u64);
            let answer = match limit {
                None => call_tool(&context, wanted).await,
                Some(ms) => {
                    tokio::time::timeout(Duration::from_millis(ms), call_tool(&context, wanted))
                        .await
                        .unwrap_or_else(|_| Err(format!("the call took longer than {ms} ms")))
                }
            };
            let response = match answer {
                Ok(payload) => success(request_id, payload),
                Err(error) => failure(request_id, error, None),
            };
            outbox.send(ToHost::ControlResponse(response)).await;
        });
    }

    /// Excludes the tools of a server from a permissive mode, or includes them again.
    pub(super) fn pin_server(&self, set: &SetMcpPermissionModeOverride) -> Result<Value, String> {
        let server = &set.server_name;
        let is_pinned = match &set.mode {
            None => false,
            Some(PermissionMode::Default) => true,
            Some(PermissionMode::Auto) => {
                return Err(format!(
                    "MCP server '{server}' cannot have the mode auto: this engine does not support it"
                ));
            }
            Some(mode) => {
                return Err(format!(
                    "the mode of a server can only be made stricter: default, or null for the session's own, not {mode}"
                ));
            }
        };
        {
            let mut policy = self.context.permissions.lock();
            let tools = tools_of(server);
            if is_pinned {
                policy.pinned.insert(tools);
            } else {
                policy.pinned.remove(&tools);
            }
        }
        Ok(match self.context.servers.is_known(server) {
            true => json!({}),
            false => {
                let warning = format!(
                    "there is no MCP server '{server}' yet; this holds once one of that name connects"
                );
                json!({"warning": warning})
            }
        })
    }
}

async fn call_tool(context: &TurnContext, wanted: McpCall) -> Result<Value, String> {
    let McpCall { tool, arguments, expires_at, check_permissions, .. } = &wanted;
    let Some((server, _)) = tool.strip_prefix("mcp__").and_then(|rest| rest.split_once("__"))
    else {
        return Err(format!("Not a fully-qualified MCP tool name: {tool}"));
    };
    let has_files = |files: &Option<Vec<Value>>| files.as_ref().is_some_and(|it| !it.is_empty());
    if has_files(&wanted.input_files) || has_files(&wanted.output_files) {
        return Err(
            "files cannot be passed to a tool here; pass their contents as arguments".to_owned()
        );
    }
    if let Some(expired) = expires_at.as_deref().filter(|time| is_over(time)) {
        let detail = format!("request expired at {expired}");
        return Ok(json!({"staging": {"ok": false, "error_code": "expired", "detail": detail}}));
    }
    let context = context.with_server_tools().await;
    let of = context.tools.get(tool).and_then(|tool| tool.provenance());
    let Some(of) = of else {
        let is_there =
            context.servers.connected().iter().any(|(name, _)| tools_of(name) == tools_of(server));
        return Err(match is_there {
            true => format!("MCP server {server} has no tool {tool}"),
            false => format!("MCP server not connected: {server}"),
        });
    };
    if context.servers.is_in_host(&of.name) {
        return Err(format!("MCP server {} lives in the host, which can call it itself", of.name));
    }
    let id = format!("host_{}", fresh_uuid());
    let input = arguments.clone().unwrap_or_else(|| json!({}));
    let call = build!(ToolUseBlock { id: id.into(), name: tool.clone(), input });
    let mut context = context.for_call(&call);
    if *check_permissions != Some(true) {
        // The host makes the call, so it is not asked; rules and hooks that forbid the call still hold.
        context.set_permissions(context.permissions.granting_only(Rule::whole(tool)));
    }
    let result = call::run(&context, call).await.in_one();
    if result.block.is_error == Some(true) {
        return Err(result.block.content.as_ref().map(Content::text).unwrap_or_default());
    }
    let mut answer = json!({"content": result.block.content});
    let structured = result.structured.as_ref().and_then(|it| it.get("structuredContent"));
    if let Some(structured) = structured {
        answer["structuredContent"] = structured.clone();
    }
    Ok(answer)
}

/// Whether a point in time has passed. A text that is not a timestamp counts as passed.
fn is_over(time: &str) -> bool {
    time.parse::<jiff::Timestamp>().map_or(true, |time| time < jiff::Timestamp::now())
}
