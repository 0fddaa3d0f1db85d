//! Requests about usage: cost, and the context window.

use ostler_proto::Num;
use ostler_proto::build;
use ostler_proto::control::{ContextCategory, ContextUsageReply, SessionUsage, UsageReply};
use serde_json::{Value, json};

use crate::model::{ToolSpec, pricing};
use crate::session::Session;

/// The window of an unknown model.
const UNKNOWN_WINDOW: u64 = 200_000;

impl Session {
    /// The usage of the context window. The total is the API's count, its parts are estimates.
    pub(super) fn context_usage(&self) -> Value {
        let context = &self.context;
        let model = context.asked_model();
        let model = model.as_str();
        let window = pricing::context_window(model).unwrap_or(UNKNOWN_WINDOW);
        let memory: Vec<(String, u64)> = context
            .memory
            .iter()
            .map(|file| (file.path.display().to_string(), tokens(file.text.len())))
            .collect();
        let of_memory: u64 = memory.iter().map(|(_, tokens)| tokens).sum();
        let of_system = tokens(context.system.len()).saturating_sub(of_memory);
        let of_tools: u64 = context.specs.iter().map(weigh).sum();
        let servers: Vec<(String, ToolSpec)> = context.servers.specs();
        let of_servers: u64 = servers.iter().map(|(_, spec)| weigh(spec)).sum();
        let beginning = of_system + of_memory + of_tools + of_servers;
        let total = context.context_usage.tokens(context, self.conversation()).max(beginning);
        let used = |id: &str, name: &str, tokens: u64| category(id, name, tokens, "used");
        let mut categories = vec![
            used("system_prompt", "System prompt", of_system),
            used("system_tools", "System tools", of_tools),
            used("mcp_tools", "MCP tools", of_servers),
            used("memory_files", "Memory files", of_memory),
            used("messages", "Messages", total - beginning),
        ];
        categories.retain(|category| category.tokens > 0);
        let free = window.saturating_sub(total);
        categories.push(category("free_space", "Free space", free, "free"));
        let reply = build!(ContextUsageReply {
            categories,
            total_tokens: total,
            max_tokens: window,
            raw_max_tokens: window,
            percentage: Num::from(total.saturating_mul(100) / window.max(1)),
            grid_rows: Some(json!([])),
            model: model.to_owned(),
            memory_files: Some(
                memory
                    .iter()
                    .map(|(path, tokens)| json!({"path": path, "type": "Project", "tokens": tokens}))
                    .collect(),
            ),
            mcp_tools: Some(
                servers
                    .iter()
                    .map(|(server, spec)| {
                        json!({"name": spec.name, "serverName": server, "tokens": weigh(spec), "isLoaded": true})
                    })
                    .collect(),
            ),
            agents: Some(Vec::new()),
            auto_compact_threshold: Some(Num::from(context.compaction.threshold(model))),
            is_auto_compact_enabled: Some(context.compaction.automatic) });
        serde_json::to_value(reply).unwrap_or_default()
    }

    /// The session's usage.
    pub(super) fn usage(&self) -> Value {
        let ledger = &self.context.records.ledger;
        let (added, removed) = ledger.lines();
        let session = build!(SessionUsage {
            total_cost_usd: Num::from(ledger.dollars()),
            total_api_duration_ms: Num::from(ledger.time().as_millis() as u64),
            total_duration_ms: Num::from(self.begun.elapsed().as_millis() as u64),
            total_lines_added: added,
            total_lines_removed: removed,
            model_usage: ledger.models()
        });
        let rate_limits_available = Some(false);
        let reply = build!(UsageReply { session, rate_limits_available });
        serde_json::to_value(reply).unwrap_or_default()
    }

    /// The session's usage as text.
    pub(super) fn cost(&self) -> String {
        let ledger = &self.context.records.ledger;
        let (added, removed) = ledger.lines();
        let mut lines = vec![
            format!("Cost: ${:.4}", ledger.dollars()),
            format!("Time of models: {:.1} s", ledger.time().as_secs_f64()),
            format!("Time in all: {:.1} s", self.begun.elapsed().as_secs_f64()),
            format!("Lines: {added} added, {removed} removed"),
        ];
        for (model, usage) in ledger.models() {
            lines.push(format!(
                "{model}: {} tokens in, {} out, {} read from the cache, {} written to it (${:.4})",
                usage.input_tokens,
                usage.output_tokens,
                usage.cache_read_input_tokens,
                usage.cache_creation_input_tokens,
                usage.cost_usd.get()
            ));
        }
        lines.join("\n")
    }
}

/// Estimates tokens: about four bytes each.
fn tokens(bytes: usize) -> u64 {
    bytes as u64 / 4
}

fn weigh(spec: &ToolSpec) -> u64 {
    tokens(spec.name.len() + spec.description.len() + spec.input_schema.to_string().len())
}

fn category(id: &str, name: &str, tokens: u64, kind: &str) -> ContextCategory {
    let color = if kind == "free" { "promptBorder" } else { "inactive" };
    build!(ContextCategory {
        id: Some(id.to_owned()),
        name: name.to_owned(),
        tokens,
        color: Some(color.to_owned()),
        kind: Some(kind.to_owned())
    })
}
