//! A tool of an MCP server as a tool of the engine.

use std::sync::Arc;

use ostler_proto::build;
use ostler_proto::mcp::McpServerProvenance;
use ostler_proto::message::ToolUseMeta;
use serde_json::{Value, json};

use super::{McpToolInfo, Server};
use crate::model::ToolSpec;
use crate::tool::{AnyTool, Effect, Prepared, ServerToolPolicy, ToolCx};

/// The most characters of a description: every request pays for it.
const MAX_DESCRIPTION: usize = 2048;

pub(super) struct McpTool {
    spec: ToolSpec,
    tool: McpToolInfo,
    server: Arc<dyn Server>,
    from: McpServerProvenance,
    policy: ServerToolPolicy,
}

impl McpTool {
    pub(super) fn new(
        server_name: &str,
        source: &str,
        mut tool: McpToolInfo,
        server: Arc<dyn Server>,
        policy: ServerToolPolicy,
    ) -> Self {
        // The description is stored once: a server may have thousands of tools.
        let description = std::mem::take(&mut tool.description);
        let description: String = description.chars().take(MAX_DESCRIPTION).collect();
        let spec = ToolSpec {
            name: format!("{}{}", tools_of(server_name), plain(&tool.name)),
            description,
            input_schema: object_schema(std::mem::take(&mut tool.input_schema)),
        };
        let from =
            build!(McpServerProvenance { name: server_name.to_owned(), source: source.to_owned() });
        Self { spec, tool, server, from, policy }
    }

    pub(super) fn policy(&self) -> ServerToolPolicy {
        self.policy
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

/// Adds `type: object`, which the API requires and a server may leave out.
fn object_schema(schema: Value) -> Value {
    match schema {
        Value::Object(mut fields) => {
            fields.entry("type").or_insert_with(|| json!("object"));
            Value::Object(fields)
        }
        _ => json!({"type": "object"}),
    }
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
    fn names_and_schemas_fit_the_api_and_people() {
        assert_eq!(for_people("get_weather-now"), "Get Weather-Now");
        assert_eq!(plain("my server.io/ü"), "my_server_io__");
        assert_eq!(
            object_schema(json!({"properties": {}})),
            json!({"properties": {}, "type": "object"})
        );
        assert_eq!(object_schema(json!(null)), json!({"type": "object"}));
    }
}
