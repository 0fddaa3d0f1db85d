//! A tool that finds tools. If servers have so many tools that their definitions would fill every request, requests
//! contain only those that the model has searched for.

use std::collections::BTreeMap;
use std::sync::Arc;

use ostler_process::Environment;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::tool::{McpTool, tools_of};
use super::{Announced, Servers};
use crate::tool::{AnyTool, Described, Effect, Tool, ToolCx, ToolError, ToolOutput};

pub(super) const NAME: &str = "ToolSearch";

/// How many tools a search loads if the call does not say it, and at most.
const FOUND: usize = 5;
const MOST_FOUND: usize = 20;
/// The most bytes of names in the description: every request pays for them.
const MAX_LISTING: usize = 4096;
/// The part of the context window that definitions may take before they wait, in percent.
const PERCENT: u64 = 10;
/// The largest context window that counts for this. Larger ones are not there for definitions.
const COUNTED_WINDOW: u64 = 200_000;

/// When tools of servers wait for a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SearchMode {
    /// Never.
    Off,
    /// Always.
    On,
    /// If their definitions take more tokens than this.
    Above(u64),
}

impl SearchMode {
    /// Reads `ENABLE_TOOL_SEARCH`: `true`, `false`, `auto` or `auto:PERCENT`. Everything else is `auto` with ten percent.
    pub(crate) fn of(env: &Environment, window: u64) -> Self {
        let value = env.get("ENABLE_TOOL_SEARCH").unwrap_or_default();
        let percent = match value.trim().to_ascii_lowercase().as_str() {
            "false" | "0" | "no" | "off" => return Self::Off,
            "true" | "1" | "yes" | "on" => return Self::On,
            value => value.strip_prefix("auto:").and_then(|percent| percent.parse().ok()),
        };
        match percent {
            Some(percent) => Self::Above(window * u64::min(percent, 100) / 100),
            None => Self::Above(window.min(COUNTED_WINDOW) * PERCENT / 100),
        }
    }
}

/// The tools that can be loaded, one line per server. Where there is no room for all names, servers with few tools are
/// listed whole.
pub(super) fn listing(waiting: &[Arc<McpTool>]) -> String {
    let mut servers: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for tool in waiting {
        servers.entry(tool.own_names().0).or_default().push(tool.name());
    }
    let mut by_size: Vec<(&str, Vec<&str>)> = servers.into_iter().collect();
    by_size.sort_by_key(|(_, names)| names.iter().map(|name| name.len()).sum::<usize>());
    let (mut room, n_servers) = (MAX_LISTING, by_size.len());
    let mut lines = Vec::new();
    for (number, (server, names)) in by_size.into_iter().enumerate() {
        let line = line(server, &names, room / (n_servers - number));
        room = room.saturating_sub(line.len());
        lines.push(line);
    }
    lines.sort();
    let n = waiting.len();
    format!("{n} tools can be loaded:\n{}", lines.join("\n"))
}

/// The names of one server's tools. The prefix that all of them have is written once.
fn line(server: &str, names: &[&str], room: usize) -> String {
    let prefix = tools_of(server);
    let mut line = format!("{prefix}*:");
    for (number, name) in names.iter().enumerate() {
        let name = name.strip_prefix(&prefix).unwrap_or(name);
        if line.len() + name.len() > room {
            line.push_str(&format!(" and {} more", names.len() - number));
            return line;
        }
        line.push(' ');
        line.push_str(name);
    }
    line
}

/// The tool for the tools that wait.
pub(super) fn tool(
    waiting: Vec<Arc<McpTool>>,
    announced: Announced,
    sources: Vec<Servers>,
    listing: &str,
) -> Arc<dyn AnyTool> {
    let description = format!("{}\n\n{listing}", ToolSearch::DESCRIPTION);
    Arc::new(Described::new(ToolSearch { waiting, announced, sources }, description))
}

struct ToolSearch {
    waiting: Vec<Arc<McpTool>>,
    announced: Announced,
    sources: Vec<Servers>,
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct SearchArgs {
    /// Words to look for in names and descriptions; a word with `+` in front must be in them. Or `select:` and names of
    /// tools, separated by commas.
    query: String,
    /// How many tools to load at most; 5 by default, 20 at most.
    #[serde(default)]
    max_results: Option<usize>,
}

impl Tool for ToolSearch {
    const NAME: &'static str = NAME;
    const DESCRIPTION: &'static str = "Finds tools of MCP servers and loads them. A loaded tool can be called like any \
        other from your next message on; before that its parameters are unknown. Search before you say that something \
        cannot be done.";
    type Args = SearchArgs;

    fn effect(&self, _: &ToolCx, _: &SearchArgs) -> Effect {
        // A loaded tool still needs a permission for every call.
        Effect::Nothing
    }

    async fn run(&self, _: &ToolCx, args: SearchArgs) -> Result<ToolOutput, ToolError> {
        let found = match args.query.trim().strip_prefix("select:") {
            Some(names) => self.named(names),
            None => {
                let most = args.max_results.unwrap_or(FOUND).clamp(1, MOST_FOUND);
                self.matching(&args.query, most)
            }
        };
        let names: Vec<&str> = found.iter().map(|tool| tool.name()).collect();
        let structured = json!({
            "matches": names, "query": args.query, "total_deferred_tools": self.waiting.len(),
        });
        if found.is_empty() {
            let text = format!(
                "No tool fits \"{}\". Try other words, or fewer; {} tools can be loaded.",
                args.query,
                self.waiting.len()
            );
            return Ok(ToolOutput::new(text, structured));
        }
        self.announced.load(names.iter().copied());
        self.sources.iter().for_each(Servers::note_change);
        let lines = found.iter().map(|tool| {
            let first = tool.description().lines().next().unwrap_or_default();
            format!("{}: {:.200}", tool.name(), first)
        });
        let lines = lines.collect::<Vec<_>>().join("\n");
        Ok(ToolOutput::new(format!("Loaded, you can call them now:\n{lines}"), structured))
    }
}

impl ToolSearch {
    /// The tools with these names; the name at the server is enough.
    fn named(&self, names: &str) -> Vec<&McpTool> {
        let is_meant = |tool: &McpTool| {
            let mut names = names.split(',').map(str::trim);
            names.any(|name| name == tool.name() || name == tool.own_names().1)
        };
        let tools = self.waiting.iter().map(|tool| &**tool);
        tools.filter(|tool| is_meant(tool)).take(MOST_FOUND).collect()
    }

    /// The tools that fit the words best.
    fn matching(&self, query: &str, most: usize) -> Vec<&McpTool> {
        let words: Vec<String> = query.split_whitespace().map(str::to_lowercase).collect();
        let scored = self.waiting.iter().map(|tool| (score(tool, &words), &**tool));
        let mut scored: Vec<(u32, &McpTool)> = scored.filter(|(score, _)| *score > 0).collect();
        // Stable, so tools that fit equally well stay in the order of their names.
        scored.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
        scored.into_iter().take(most).map(|(_, tool)| tool).collect()
    }
}

/// How well a tool fits words: a part of its name counts most. Zero if a required word is missing.
fn score(tool: &McpTool, words: &[String]) -> u32 {
    let (name, description) = (tool.name().to_lowercase(), tool.description().to_lowercase());
    let parts: Vec<&str> = name.split(['_', '-']).collect();
    let mut sum = 0;
    for word in words {
        let (word, is_required) = match word.strip_prefix('+') {
            Some(word) => (word, true),
            None => (word.as_str(), false),
        };
        let score = match word {
            "" => 0,
            word if parts.contains(&word) => 5,
            word if name.contains(word) => 3,
            word if description.contains(word) => 1,
            _ => 0,
        };
        if score == 0 && is_required {
            return 0;
        }
        sum += score;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_ends_where_there_is_no_more_room() {
        let names = ["mcp__a__one", "mcp__a__two", "mcp__a__three"];
        assert_eq!(line("a", &names, 100), "mcp__a__*: one two three");
        assert_eq!(line("a", &names, 15), "mcp__a__*: one and 2 more");
        assert_eq!(line("a", &names, 0), "mcp__a__*: and 3 more");
    }

    #[test]
    fn the_variable_chooses_when_tools_wait() {
        let mode = |value: &str| {
            let env = [("ENABLE_TOOL_SEARCH", value)].into();
            SearchMode::of(&env, 1_000_000)
        };
        for (value, expected) in [
            ("true", SearchMode::On),
            ("FALSE", SearchMode::Off),
            ("auto", SearchMode::Above(20_000)),
            ("", SearchMode::Above(20_000)),
            ("what?", SearchMode::Above(20_000)),
            ("auto:5", SearchMode::Above(50_000)),
            ("auto:0", SearchMode::Above(0)),
            ("auto:900", SearchMode::Above(1_000_000)),
        ] {
            assert_eq!(mode(value), expected, "{value}");
        }
    }
}
