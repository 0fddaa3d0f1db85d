//! The part of the command line that brings agents and plugins along.

use std::collections::BTreeMap;

use ostler_proto::agent::AgentDefinition;

/// Agents and plugins.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct Offers {
    /// The agent that leads the conversation, by its name
    #[arg(long, value_name = "NAME")]
    pub(super) agent: Option<String>,

    /// More agents: {"name": {"description": …, "prompt": …}}
    #[arg(long, value_name = "JSON", value_parser = agents)]
    pub(super) agents: Option<BTreeMap<String, AgentDefinition>>,

    /// The folder of a plugin; may be given several times
    #[arg(long, value_name = "DIR")]
    pub(super) plugin_dir: Vec<String>,

    /// The same, without the plugin's MCP servers
    #[arg(long, value_name = "DIR", hide = true)]
    pub(super) plugin_dir_no_mcp: Vec<String>,
}

fn agents(text: &str) -> Result<BTreeMap<String, AgentDefinition>, String> {
    serde_json::from_str(text).map_err(|error| {
        format!("{error}; write {{\"name\": {{\"description\": \"…\", \"prompt\": \"…\"}}}}")
    })
}
