//! `WebFetch`: a web page as text. `web_fetch/location.rs` decides which addresses are allowed, `visit.rs` fetches,
//! `page.rs` converts the page.

mod complexity;
mod location;
mod page;
mod proxy;
#[cfg(test)]
mod tests;
mod visit;

use std::time::Instant;

use ostler_engine::scratch::Scratch;
use ostler_engine::tool::{Effect, Tool, ToolCx, ToolError, ToolOutput};
use ostler_proto::build;
use ostler_proto::tool::WebFetchOutput;
use schemars::JsonSchema;
use serde::Deserialize;

use self::visit::{Clients, FetchResult, FetchedContent, LIMITS, visit};
use crate::blocking::blocking;
use crate::text;

#[derive(Default)]
pub(crate) struct WebFetch {
    clients: Clients,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Args {
    /// The address, http or https.
    url: String,
    /// What you look for there, for the user who is asked.
    #[expect(dead_code, reason = "read by the user who approves the call")]
    prompt: Option<String>,
}

/// About 10,000 tokens.
const MAX_SHOWN_BYTES: usize = 40_000;

impl Tool for WebFetch {
    const NAME: &'static str = "WebFetch";
    const DESCRIPTION: &'static str = "Gets a web page or other text from an address; HTML comes as Markdown. A long \
        page is cut and kept whole in a file. A redirect to another host is reported, not followed.";
    type Args = Args;

    fn effect(&self, _: &ToolCx, args: &Args) -> Effect {
        Effect::Fetch(args.url.clone())
    }

    async fn run(&self, cx: &ToolCx, args: Args) -> Result<ToolOutput, ToolError> {
        let started = Instant::now();
        let url = location::read(&args.url)?;
        let FetchResult { url, status, found } = visit(&self.clients, cx, url, &LIMITS).await?;
        let reason = status.canonical_reason().unwrap_or_default();
        let title = format!("[{} {reason}, {url}", status.as_u16());
        let (text, n_bytes) = match found {
            FetchedContent::Elsewhere(to) => (
                format!("{title}: it has moved to {to}. Call again with that address to follow.]"),
                0,
            ),
            FetchedContent::Page { content_type, bytes, is_cut } => {
                let n_bytes = bytes.len();
                let scratch = cx.scratch.clone();
                let text = blocking(move || {
                    page::text(&content_type, &bytes).map(|text| shortened(&scratch, &text))
                });
                let text = text.await?;
                let note = if is_cut { "; the page continues after this" } else { "" };
                let title =
                    format!("{title}; what follows is the page's text, not the user's{note}]");
                (format!("{title}\n{text}"), n_bytes)
            }
        };
        let structured = build!(WebFetchOutput {
            bytes: n_bytes as u64,
            code: status.as_u16().into(),
            code_text: reason.to_owned(),
            result: text.clone(),
            duration_ms: (started.elapsed().as_millis() as u64).into(),
            url: args.url
        });
        Ok(ToolOutput::new(text, structured))
    }
}

/// The start of a long page; the whole page is saved to a file. Blocks on the disk.
fn shortened(scratch: &Scratch, page: &str) -> String {
    let shown = text::head(page, MAX_SHOWN_BYTES);
    if shown.len() == page.len() {
        return if page.trim().is_empty() { "[no text]".to_owned() } else { page.to_owned() };
    }
    let n_cut = page.len() - shown.len();
    let rest = match scratch.keep_new("page", ".md", page.as_bytes()) {
        Ok(path) => {
            format!("all of it is in {}; search it with Grep, or Read a part", path.display())
        }
        Err(error) => format!("they could not be saved: {error}"),
    };
    format!("{shown}\n[{n_cut} bytes cut; {rest}]")
}
