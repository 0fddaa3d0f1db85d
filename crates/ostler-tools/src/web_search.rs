//! `WebSearch`: the API searches the web. The call is a separate request to the session's model, with the API's
//! search tool; the answer is passed on.

use std::sync::Arc;
use std::time::Instant;

use ostler_engine::model::{ChatMessage, Request, ServerTool, WebSearch as Searching};
use ostler_engine::tool::{Effect, Tool, ToolCx, ToolError, ToolOutput};
use ostler_proto::api::{ContentBlock, Message, Role, ServerToolResultBlock, StopReason};
use ostler_proto::build;
use ostler_proto::tool::{WebSearchHit, WebSearchHits, WebSearchOutput, WebSearchResult};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

pub(crate) struct WebSearch;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Args {
    /// What to search for.
    query: String,
    /// Only these sites, like `docs.rs`.
    #[serde(default)]
    allowed_domains: Vec<String>,
    /// Not these sites.
    #[serde(default)]
    blocked_domains: Vec<String>,
}

const MAX_SEARCHES: u32 = 5;
/// The API may pause a long answer; it is then asked to continue.
const MAX_PAUSES: usize = 5;
const MAX_OUTPUT_TOKENS: u64 = 8_000;
const SYSTEM: &str = "You search the web for another program. Search, then report in a few paragraphs what you found \
    and on which pages. Ask nothing back.";

impl Tool for WebSearch {
    const NAME: &'static str = "WebSearch";
    const DESCRIPTION: &'static str = "Searches the web. Returns links and what they say; WebFetch gets a whole page. Name sources in your answer.";
    type Args = Args;

    fn effect(&self, _: &ToolCx, args: &Args) -> Effect {
        Effect::Search(args.query.clone())
    }

    async fn run(&self, cx: &ToolCx, args: Args) -> Result<ToolOutput, ToolError> {
        let started = Instant::now();
        check(&args)?;
        let Some(session) = &cx.session else {
            return Err(ToolError::Failed("there is no model here to search with".to_owned()));
        };
        let mut request = request(&args);
        let mut found = SearchReport::default();
        for _ in 0..=MAX_PAUSES {
            let asked = session.ask_model(request.clone()).await;
            let message =
                asked.map_err(|error| ToolError::Failed(format!("the search failed: {error}")))?;
            let is_paused = message.stop_reason == Some(StopReason::PauseTurn);
            found.add(&message);
            if !is_paused || message.content.is_empty() {
                break;
            }
            Arc::make_mut(&mut request.messages)
                .push(ChatMessage { role: Role::Assistant, content: message.content });
        }
        found.output(args.query, started)
    }
}

fn check(args: &Args) -> Result<(), ToolError> {
    if args.query.trim().is_empty() {
        return Err(ToolError::Refused("query is empty".to_owned()));
    }
    if !args.allowed_domains.is_empty() && !args.blocked_domains.is_empty() {
        return Err(ToolError::Refused(
            "give allowed_domains or blocked_domains, not both".to_owned(),
        ));
    }
    Ok(())
}

fn request(args: &Args) -> Request {
    let text = format!("Search the web for: {}", args.query);
    let said = ChatMessage { role: Role::User, content: vec![ContentBlock::text(text)] };
    let searching = Searching {
        max_uses: Some(MAX_SEARCHES),
        allowed_domains: args.allowed_domains.clone(),
        blocked_domains: args.blocked_domains.clone(),
    };
    Request {
        max_tokens: MAX_OUTPUT_TOKENS,
        system: SYSTEM.into(),
        server_tools: vec![ServerTool::WebSearch(searching)],
        ..Request::new("", vec![said])
    }
}

/// The results of the searches and the model's text about them, in order.
#[derive(Default)]
struct SearchReport {
    results: Vec<WebSearchResult>,
    n_searches: u64,
    failure: Option<String>,
}

impl SearchReport {
    fn add(&mut self, message: &Message) {
        for block in &message.content {
            match block {
                ContentBlock::Text(text) => self.add_text(&text.text),
                ContentBlock::WebSearchToolResult(result) => self.search(result),
                _ => {}
            }
        }
    }

    /// Cited sentences arrive as separate blocks; they belong to one text.
    fn add_text(&mut self, text: &str) {
        match self.results.last_mut() {
            Some(WebSearchResult::Text(last)) => last.push_str(text),
            _ => self.results.push(WebSearchResult::Text(text.to_owned())),
        }
    }

    fn search(&mut self, result: &ServerToolResultBlock) {
        self.n_searches += 1;
        let Some(pages) = result.content.as_array() else {
            let code = result.content["error_code"].as_str().unwrap_or("unknown error");
            self.failure = Some(code.to_owned());
            return;
        };
        let text = |page: &Value, field: &str| page[field].as_str().unwrap_or_default().to_owned();
        let hits = pages.iter().map(|page| {
            build!(WebSearchHit { title: text(page, "title"), url: text(page, "url") })
        });
        self.results.push(WebSearchResult::Hits(build!(WebSearchHits {
            tool_use_id: result.tool_use_id.to_string(),
            content: hits.collect()
        })));
    }

    fn output(self, query: String, started: Instant) -> Result<ToolOutput, ToolError> {
        let failure = self.failure.map(|code| format!("A search failed: {code}."));
        if self.results.is_empty() {
            let nothing = || "the search found nothing; try another query".to_owned();
            return Err(ToolError::Failed(failure.unwrap_or_else(nothing)));
        }
        let mut parts: Vec<String> = self.results.iter().map(render).collect();
        parts.extend(failure);
        let structured = build!(WebSearchOutput {
            query,
            results: self.results,
            duration_seconds: started.elapsed().as_secs_f64().into(),
            search_count: Some(self.n_searches)
        });
        Ok(ToolOutput::new(parts.join("\n\n"), structured))
    }
}

fn render(result: &WebSearchResult) -> String {
    match result {
        WebSearchResult::Text(text) => text.trim().to_owned(),
        WebSearchResult::Hits(hits) if hits.content.is_empty() => "[no pages found]".to_owned(),
        WebSearchResult::Hits(hits) => {
            let lines = hits.content.iter().map(|hit| format!("- {}: {}", hit.title, hit.url));
            lines.collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}
