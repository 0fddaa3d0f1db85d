//! Limits how much of an MCP server's result the model reads. A result that is cut is stored in the session's folder.

use ostler_engine::scratch::Scratch;
use ostler_engine::tool::ToolOutput;
use ostler_mcp::{Content, Output};
use ostler_proto::api::Content as ApiContent;
use serde_json::{Value, json};

use super::{StartContext, server_content};

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

/// The result of a tool in two forms: for the model, and structured for programs. Decodes images and touches the disk.
pub(super) fn tool_output(output: Output, limit: OutputLimit, scratch: &Scratch) -> ToolOutput {
    let Output { content, structured, .. } = output;
    let for_model = with_structured(structured.as_ref(), &content);
    let texts: Vec<_> = for_model.iter().filter_map(server_content::text_of).collect();
    if texts.iter().map(|text| text.len()).sum::<usize>() > limit.0 {
        let cut = Content::Text(limit.cut(texts.join("\n"), scratch));
        let others = for_model.into_iter().filter(|it| server_content::text_of(it).is_none());
        let cut: Vec<Content> = std::iter::once(cut).chain(others).collect();
        let value = to_value(&cut);
        return ToolOutput::of(blocks(&cut, scratch), Some(value));
    }
    let value = match &structured {
        Some(structured) => json!({"content": to_value(&content), "structuredContent": structured}),
        None => to_value(&content),
    };
    let content = match (&structured, for_model.as_slice()) {
        (Some(_), [Content::Text(text)]) => ApiContent::Text(text.clone()),
        _ => blocks(&for_model, scratch),
    };
    ToolOutput::of(content, Some(value))
}

/// The structured result as text, and the other content, without texts that repeat it.
fn with_structured(structured: Option<&Value>, content: &[Content]) -> Vec<Content> {
    let repeats = |content: &&Content| {
        let text = content.as_text().and_then(|text| serde_json::from_str::<Value>(text).ok());
        structured.is_some() && text.as_ref() == structured
    };
    let text = structured.map(|value| Content::Text(value.to_string()));
    text.into_iter().chain(content.iter().filter(|it| !repeats(it)).cloned()).collect()
}

fn to_value(content: &[Content]) -> Value {
    content.iter().map(Content::to_value).collect()
}

fn blocks(content: &[Content], scratch: &Scratch) -> ApiContent {
    ApiContent::Blocks(
        content.iter().flat_map(|it| server_content::blocks(it, Some(scratch))).collect(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn output(content: Vec<Content>, structured: Option<Value>) -> ToolOutput {
        let mut output = Output::new();
        (output.content, output.structured) = (content, structured);
        tool_output(output, OutputLimit(100), &Scratch::default())
    }

    fn for_model(output: &ToolOutput) -> Value {
        serde_json::to_value(&output.content).expect("content is JSON")
    }

    #[test]
    fn a_structured_result_comes_with_the_other_content() {
        let structured = json!({"k": 1});
        let repeated = vec![Content::text("{ \"k\": 1 }")];
        assert_eq!(for_model(&output(repeated, Some(structured.clone()))), json!("{\"k\":1}"));
        let more = vec![Content::text("more"), Content::audio("aGk=", "audio/wav")];
        let shown = for_model(&output(more, Some(structured)));
        assert_eq!(shown[0]["text"], "{\"k\":1}");
        assert_eq!(shown[1]["text"], "more");
        assert!(
            shown[2]["text"].as_str().is_some_and(|text| text.contains("audio/wav")),
            "{shown}"
        );
    }

    #[test]
    fn all_texts_together_have_one_limit() {
        let long = vec![Content::text("a".repeat(60)), Content::text("b".repeat(60))];
        let cut = for_model(&output(long, None));
        let text = cut[0]["text"].as_str().unwrap_or_default();
        assert!(text.contains("cut after 100 of 121 bytes"), "{text}");
        let resource = ostler_mcp::ResourceContents::text("x://y", "c".repeat(200));
        let cut = for_model(&output(vec![Content::Resource(resource)], None));
        assert!(
            cut[0]["text"].as_str().is_some_and(|text| text.contains("cut after 100")),
            "{cut}"
        );
    }
}
