//! Runs and tool calls as `tracing` spans, with OpenTelemetry's names for generative AI.
//!
//! A subscriber for OpenTelemetry (`tracing-opentelemetry`) exports them; without a subscriber they cost almost
//! nothing. They do not contain texts of prompts, arguments and results, which may be private.

use std::collections::HashMap;

use tracing::Span;
use tracing::field::Empty;

use crate::event::PromptExecuted;

/// The span of a run, and those of its running tools.
#[derive(Debug)]
pub(crate) struct Spans {
    run: Span,
    tools: HashMap<String, Span>,
}

impl Default for Spans {
    fn default() -> Self {
        Self { run: Span::none(), tools: HashMap::new() }
    }
}

impl Spans {
    /// Starts the span of a run.
    pub(crate) fn run_begins(&mut self, prompt_name: &str, run_id: &str, model: &str) {
        self.run = tracing::info_span!(
            "invoke_agent",
            otel.name = format!("invoke_agent {prompt_name}"),
            otel.kind = "client",
            otel.status_code = Empty,
            gen_ai.operation.name = "invoke_agent",
            gen_ai.provider.name = "anthropic",
            gen_ai.agent.name = prompt_name,
            gen_ai.conversation.id = run_id,
            gen_ai.request.model = model,
            gen_ai.response.finish_reasons = Empty,
            gen_ai.usage.input_tokens = Empty,
            gen_ai.usage.output_tokens = Empty,
            "error.type" = Empty,
        );
    }

    /// Ends the span of a run.
    pub(crate) fn run_ends(&mut self, executed: &PromptExecuted, error_type: Option<&str>) {
        let run = std::mem::replace(&mut self.run, Span::none());
        run.record("gen_ai.response.finish_reasons", executed.stop_reason.as_str());
        run.record("gen_ai.usage.input_tokens", executed.usage.input_tokens);
        run.record("gen_ai.usage.output_tokens", executed.usage.output_tokens);
        if let Some(error_type) = error_type {
            run.record("error.type", error_type);
            run.record("otel.status_code", "ERROR");
        }
        // Ends the spans of tools whose end was not reported.
        self.tools.clear();
    }

    /// Starts the span of a tool.
    pub(crate) fn tool_begins(&mut self, call_id: &str, name: &str) {
        let kind = if name.starts_with("mcp__") { "extension" } else { "function" };
        let span = tracing::info_span!(
            parent: &self.run,
            "execute_tool",
            otel.name = format!("execute_tool {name}"),
            otel.kind = "internal",
            otel.status_code = Empty,
            gen_ai.operation.name = "execute_tool",
            gen_ai.tool.name = name,
            gen_ai.tool.call.id = call_id,
            "gen_ai.tool.type" = kind,
            "error.type" = Empty,
        );
        self.tools.insert(call_id.to_owned(), span);
    }

    /// Ends the span of a tool.
    pub(crate) fn tool_ends(&mut self, call_id: &str, success: bool) {
        let Some(span) = self.tools.remove(call_id) else { return };
        if !success {
            span.record("error.type", "tool_error");
            span.record("otel.status_code", "ERROR");
        }
    }
}
