//! A tool of an MCP server as a tool of the engine.

use std::sync::Arc;

use ostler_proto::build;
use ostler_proto::mcp::McpServerProvenance;
use ostler_proto::message::ToolUseMeta;
use serde_json::Value;

use super::{McpToolInfo, Server, schema};
use crate::model::ToolSpec;
use crate::tool::{AnyTool, Effect, Prepared, ServerToolPolicy, ToolCx};

/// The most characters of a description: every request pays for it.
const MAX_DESCRIPTION: usize = 2048;

/// The most characters of a name. The Messages API refuses a request with a longer one.
const MAX_NAME: usize = 128;

pub(super) struct McpTool {
    spec: ToolSpec,
    tool: McpToolInfo,
    server: Arc<dyn Server>,
    from: McpServerProvenance,
    policy: ServerToolPolicy,
}

impl McpTool {
    /// The tool as the Messages API accepts it, and what was changed for that.
    ///
    /// # Errors
    /// Why it cannot be offered.
    pub(super) fn new(
        server_name: &str,
        source: &str,
        mut tool: McpToolInfo,
        server: Arc<dyn Server>,
        policy: ServerToolPolicy,
    ) -> Result<(Self, Vec<String>), String> {
        let name = format!("{}{}", tools_of(server_name), plain(&tool.name));
        if name.len() > MAX_NAME {
            let n = name.len();
            return Err(format!(
                "its name for the model has {n} characters, and the Messages API accepts {MAX_NAME}; give the server a shorter name"
            ));
        }
        let fitted = schema::fit(std::mem::take(&mut tool.input_schema))?;
        // The description is stored once: a server may have thousands of tools.
        let description = std::mem::take(&mut tool.description);
        let description: String = description.chars().take(MAX_DESCRIPTION).collect();
        let spec = ToolSpec { name, description, input_schema: fitted.schema };
        let from =
            build!(McpServerProvenance { name: server_name.to_owned(), source: source.to_owned() });
        Ok((Self { spec, tool, server, from, policy }, fitted.changes))
    }
}

/// A name for people: `get_weather` becomes Get Weather.
pub(crate) fn for_people(name: &str) -> String {
    let mut begins = true;
    let character = |character: char| {
        let character = if character == '_' { ' ' } else { character };
        let shown = if begins { character.to_ascii_uppercase() } else { character };
        begins = matches!(character, ' ' | '-');
        shown
    };
    name.chars().map(character).collect()
}

/// The prefix of the names of a server's tools.
pub(crate) fn tools_of(server: &str) -> String {
    format!("mcp__{}__", plain(server))
}

/// The name with only characters that the API accepts.
pub(super) fn plain(name: &str) -> String {
    let fits =
        |character: char| character.is_ascii_alphanumeric() || matches!(character, '_' | '-');
    name.chars().map(|character| if fits(character) { character } else { '_' }).collect()
}

impl AnyTool for McpTool {
    fn spec(&self) -> ToolSpec {
        self.spec.clone()
    }

    fn provenance(&self) -> Option<McpServerProvenance> {
        Some(self.from.clone())
    }

    fn shown(&self) -> Option<ToolUseMeta> {
        let hints = self.tool.annotations.as_ref();
        let title = hints.and_then(|hints| hints["title"].as_str()).map(str::to_owned);
        Some(build!(ToolUseMeta {
            display_name: Some(title.unwrap_or_else(|| for_people(&self.tool.name))),
            server_display_name: Some(self.server.info().0),
            tool_name: Some(self.tool.name.clone())
        }))
    }

    fn without_host_only(&self, input: &Value) -> Value {
        input.clone()
    }

    fn prepare(self: Arc<Self>, _: &ToolCx, input: &Value) -> Result<Prepared, String> {
        if !input.is_object() {
            return Err(format!("{}: the input is not an object", self.spec.name));
        }
        // The server checks the rest: it knows its schema best.
        let (input, changes, policy) = (input.clone(), !self.tool.read_only, self.policy);
        Ok(Prepared {
            effect: Effect::Outside { changes, policy },
            run: Box::new(move |cx| self.server.call(&self.tool.name, input, &cx)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_the_api_and_people() {
        assert_eq!(for_people("get_weather-now"), "Get Weather-Now");
        assert_eq!(plain("my server.io/ü"), "my_server_io__");
    }
}
