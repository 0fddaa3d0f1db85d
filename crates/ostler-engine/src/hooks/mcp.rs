//! Hooks that call a tool of an MCP server: its text is read as the output of a command would be.
//!
//! A server that is not connected, a tool that fails and a malformed answer are failures of the hook, which count as
//! objections where it guards. The hook never connects a server.

use std::path::Path;

use ostler_proto::hook::{HookEvent, HookOutput};
use serde_json::{Map, Value};

use super::command;
use crate::interpolate::{self, Syntax};
use crate::mcp::Servers;
use crate::tool::ToolCx;

/// A tool to call.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct McpHook {
    pub(super) server: String,
    pub(super) tool: String,
    /// Its input; `${tool_input.file_path}` in a text is replaced by a field of the hook's input.
    pub(super) input: Map<String, Value>,
}

/// # Errors
/// When there is no answer or it is malformed.
pub(super) async fn call(
    hook: &McpHook,
    servers: &Servers,
    cwd: &Path,
    event: &HookEvent,
    hook_input: &Value,
) -> Result<(String, HookOutput), String> {
    let McpHook { server, tool, input } = hook;
    let connected = servers
        .find(server)
        .map_err(|_| format!("needs the MCP server {server}, which is not connected"))?;
    let input = Value::Object(input.clone());
    let input = interpolate::map_texts(input, &mut |text| fill(text, hook_input));
    let cx = ToolCx { cwd: cwd.to_owned(), ..ToolCx::default() };
    let called = connected.call(tool, input, &cx).await;
    let output = called.map_err(|error| format!("failed: {tool} of {server}: {error}"))?;
    let text = output.content.text();
    let answer = command::answer(event, text.trim())?;
    Ok((text, answer))
}

/// Fills fields of the hook's input into a text of the tool's input.
fn fill(text: &str, hook_input: &Value) -> String {
    interpolate::fill(text, Syntax::Braces, |path| {
        let pointer = format!("/{}", path.replace('.', "/"));
        Some(match hook_input.pointer(&pointer) {
            Some(Value::String(text)) => text.clone(),
            Some(value) => value.to_string(),
            None => String::new(),
        })
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_of_the_hooks_input_fill_the_texts_of_the_tools_input() {
        let hook_input = json!({"tool_input": {"file_path": "/a/b", "n": 3}, "cwd": "/a"});
        let input = json!({"path": "${tool_input.file_path}", "all": ["${cwd}: ${tool_input}"],
            "n": 4, "odd": "${ and ${nothing}."});
        let filled = json!({"path": "/a/b", "all": [r#"/a: {"file_path":"/a/b","n":3}"#],
            "n": 4, "odd": "."});
        assert_eq!(interpolate::map_texts(input, &mut |text| fill(text, &hook_input)), filled);
        assert_eq!(fill("5 ${ and", &hook_input), "5 ${ and");
    }
}
