//! Limits how much of an MCP server's result the model reads. A result that is cut is stored in the session's folder.

use ostler_engine::scratch::Scratch;
use ostler_mcp::{Content, Output};
use serde_json::Value;

use super::StartContext;

/// The most tokens of a result, unless `MAX_MCP_OUTPUT_TOKENS` sets another limit.
const USUAL_TOKENS: usize = 25_000;

/// The most that the model reads of one result, in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct OutputLimit(usize);

impl OutputLimit {
    /// The limit of `MAX_MCP_OUTPUT_TOKENS`; a token counts as four bytes.
    pub(super) fn of(context: &StartContext) -> Self {
        let tokens = context.var("MAX_MCP_OUTPUT_TOKENS").and_then(|n| n.trim().parse().ok());
        Self(tokens.unwrap_or(USUAL_TOKENS).max(1).saturating_mul(4))
    }

    /// Shortens a text to the limit. A shortened text ends with the path of the file that has all of it.
    pub(super) fn cut(self, text: String, scratch: &Scratch) -> String {
        if text.len() <= self.0 {
            return text;
        }
        let end = text.floor_char_boundary(self.0);
        let place = match scratch.keep_new("result", ".txt", text.as_bytes()) {
            Ok(path) => format!("all of it is in {}", path.display()),
            Err(error) => format!("the rest is lost: {error}"),
        };
        let total = text.len();
        format!(
            "{}\n[cut after {end} of {total} bytes, see MAX_MCP_OUTPUT_TOKENS; {place}]",
            &text[..end]
        )
    }
}

/// Applies the limit to a whole output.
pub(super) fn within(limit: OutputLimit, mut output: Output, scratch: &Scratch) -> Output {
    if output.structured.as_ref().is_some_and(|value| value.to_string().len() > limit.0) {
        let text = output.structured.take().as_ref().map(Value::to_string).unwrap_or_default();
        output.content = vec![Content::Text(limit.cut(text, scratch))];
        return output;
    }
    let n_text: usize =
        output.content.iter().map(|content| text_of(content).map_or(0, str::len)).sum();
    if n_text > limit.0 {
        let (texts, rest): (Vec<Content>, Vec<Content>) =
            output.content.into_iter().partition(|content| text_of(content).is_some());
        let texts: Vec<&str> = texts.iter().filter_map(text_of).collect();
        let cut = limit.cut(texts.join("\n"), scratch);
        output.content = std::iter::once(Content::Text(cut)).chain(rest).collect();
    }
    output
}

fn text_of(content: &Content) -> Option<&str> {
    match content {
        Content::Text(text) => Some(text),
        _ => None,
    }
}
