//! Command-line options that add agents and plugins.

use std::collections::BTreeMap;

use ostler_proto::agent::AgentDefinition;

/// Agents and plugins to add.
#[derive(Debug, clap::Args)]
pub(crate) struct Offers {
    /// The name of the agent that leads the conversation
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,

    /// More agents: {"name": {"description": …, "prompt": …}}
    #[arg(long, value_name = "JSON", value_parser = agents)]
    agents: Option<BTreeMap<String, AgentDefinition>>,

    /// The folder of a plugin; may be given several times
    #[arg(long, value_name = "DIR")]
    plugin_dir: Vec<String>,

    /// The folder of a plugin whose MCP servers are not started
    #[arg(long, value_name = "DIR", hide = true)]
    plugin_dir_no_mcp: Vec<String>,
}

fn agents(text: &str) -> Result<BTreeMap<String, AgentDefinition>, String> {
    serde_json::from_str(text).map_err(|error| {
        format!("{error}; write {{\"name\": {{\"description\": \"…\", \"prompt\": \"…\"}}}}")
    })
}
