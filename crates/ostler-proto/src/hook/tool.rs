//! Inputs of the hooks around a tool call.

use ostler_proto_derive::Wire;
use serde_json::Value;

use super::base::with_base;
use crate::mcp::McpServerProvenance;
use crate::permission::PermissionUpdate;
use crate::{Extra, Num, ToolUseId};

with_base! {
    /// A tool is about to run.
    #[derive(Default)]
    #[non_exhaustive]
    pub struct PreToolUseInput {
        /// The tool.
        pub tool_name: String,
        /// What the model passed to it.
        pub tool_input: Value,
        /// The call.
        pub tool_use_id: ToolUseId,
        /// Where the tool comes from, if from an MCP server. Newer peers only.
        pub mcp_server: Option<McpServerProvenance>,
    }
}

with_base! {
    /// A tool has run.
    #[derive(Default)]
    #[non_exhaustive]
    pub struct PostToolUseInput {
        /// The tool.
        pub tool_name: String,
        /// What the model passed to it.
        pub tool_input: Value,
        /// What it returned, in the shape of [`ToolOutput`](crate::tool::ToolOutput).
        pub tool_response: Value,
        /// The call.
        pub tool_use_id: ToolUseId,
        /// How long it took. Newer peers only.
        pub duration_ms: Option<Num>,
        /// Where the tool comes from, if from an MCP server. Newer peers only.
        pub mcp_server: Option<McpServerProvenance>,
    }
}

with_base! {
    /// A tool has failed.
    #[derive(Default)]
    #[non_exhaustive]
    pub struct PostToolUseFailureInput {
        /// The tool.
        pub tool_name: String,
        /// What the model passed to it.
        pub tool_input: Value,
        /// The call.
        pub tool_use_id: ToolUseId,
        /// What went wrong, as the model will read it.
        pub error: String,
        /// Whether it failed because the user stopped it.
        pub is_interrupt: Option<bool>,
        /// How long it took. Newer peers only.
        pub duration_ms: Option<Num>,
        /// Where the tool comes from, if from an MCP server. Newer peers only.
        pub mcp_server: Option<McpServerProvenance>,
    }
}

with_base! {
    /// All tool calls of one model reply are done.
    #[derive(Default)]
    #[non_exhaustive]
    pub struct PostToolBatchInput {
        /// The calls, in the order of the reply.
        pub tool_calls: Vec<ToolCallRecord>,
    }
}

/// One call of a batch.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct ToolCallRecord {
    /// The tool.
    pub tool_name: String,
    /// What the model passed to it.
    pub tool_input: Value,
    /// The call.
    pub tool_use_id: ToolUseId,
    /// What it returned.
    pub tool_response: Option<Value>,
    /// Unknown fields.
    pub extra: Extra,
}

with_base! {
    /// A tool call requires approval.
    #[derive(Default)]
    #[non_exhaustive]
    pub struct PermissionRequestInput {
        /// The tool.
        pub tool_name: String,
        /// What the model passed to it.
        pub tool_input: Value,
        /// Changes to the rules that would settle the question for the future.
        pub permission_suggestions: Option<Vec<PermissionUpdate>>,
        /// Where the tool comes from, if from an MCP server. Newer peers only.
        pub mcp_server: Option<McpServerProvenance>,
    }
}

with_base! {
    /// A tool was not allowed to run.
    #[derive(Default)]
    #[non_exhaustive]
    pub struct PermissionDeniedInput {
        /// The tool.
        pub tool_name: String,
        /// What the model passed to it.
        pub tool_input: Value,
        /// The call.
        pub tool_use_id: ToolUseId,
        /// Why.
        pub reason: String,
        /// Where the tool comes from, if from an MCP server.
        pub mcp_server: Option<McpServerProvenance>,
    }
}
