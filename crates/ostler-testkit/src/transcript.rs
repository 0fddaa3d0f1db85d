//! Renders a conversation for people: one numbered line per content block.
//!
//! Used in the report about an uncovered request, and by tests that compare or print what a model received. A long text
//! is shortened in the middle, so that its start and its end stay visible.

use serde_json::Value;

use crate::conversation::{blocks, text_of};

/// How many characters of one block's text are shown.
const LONGEST_TEXT: usize = 200;

/// Renders the `messages` of a request, one line per block.
///
/// A line has the numbers of the message and the block, the role, the type of the block and its content:
///
/// ```
/// use serde_json::json;
/// let messages = [
///     json!({"role": "user", "content": "list the files"}),
///     json!({"role": "assistant", "content": [
///         {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "ls"}},
///     ]}),
///     json!({"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "a\nb"}]}),
/// ];
/// assert_eq!(ostler_testkit::render_conversation(&messages), "\
/// 0.0 user       text: list the files
/// 1.0 assistant  tool_use Bash toolu_1: {\"command\":\"ls\"}
/// 2.0 user       tool_result toolu_1: a\\nb
/// ");
/// ```
pub fn render_conversation(messages: &[Value]) -> String {
    let mut lines = String::new();
    for (number, message) in messages.iter().enumerate() {
        let role = message["role"].as_str().unwrap_or("(no role)");
        for (position, block) in rendered_blocks(&message["content"]).iter().enumerate() {
            lines.push_str(&format!("{number}.{position} {role:<10} {block}\n"));
        }
    }
    lines
}

fn rendered_blocks(content: &Value) -> Vec<String> {
    match content {
        Value::String(text) => vec![format!("text: {}", shortened(text))],
        Value::Array(blocks) if blocks.is_empty() => vec!["(empty)".to_owned()],
        Value::Array(blocks) => blocks.iter().map(rendered).collect(),
        Value::Null => vec!["(no content)".to_owned()],
        other => vec![shortened(&other.to_string())],
    }
}

fn rendered(block: &Value) -> String {
    let field = |name: &str| block[name].as_str().unwrap_or("?");
    match block["type"].as_str() {
        Some("text") => format!("text: {}", shortened(field("text"))),
        Some("thinking") => format!("thinking: {}", shortened(field("thinking"))),
        Some("tool_use") => {
            format!(
                "tool_use {} {}: {}",
                field("name"),
                field("id"),
                shortened(&block["input"].to_string())
            )
        }
        Some("tool_result") => {
            let error = if block["is_error"] == true { " (error)" } else { "" };
            format!(
                "tool_result {}{error}: {}",
                field("tool_use_id"),
                shortened(&result_text(&block["content"]))
            )
        }
        Some(other) => format!("{other}: {}", shortened(&block.to_string())),
        None => format!("(no type): {}", shortened(&block.to_string())),
    }
}

/// The text of a result, with the type of every block that is not text.
fn result_text(content: &Value) -> String {
    let others = blocks(content)
        .iter()
        .filter_map(|block| block["type"].as_str())
        .filter(|kind| *kind != "text");
    others.fold(text_of(content), |text, kind| format!("{text} [{kind}]"))
}

/// Joins a text into one line and shortens its middle if it is too long.
pub(crate) fn shortened(text: &str) -> String {
    let line = text.replace('\\', "\\\\").replace('\n', "\\n").replace('\r', "\\r");
    let length = line.chars().count();
    if length <= LONGEST_TEXT {
        return line;
    }
    let half = LONGEST_TEXT / 2;
    let start: String = line.chars().take(half).collect();
    let end: String = line.chars().skip(length - half).collect();
    format!("{start} … [{} characters] … {end}", length - 2 * half)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn long_text_keeps_its_start_and_its_end() {
        let long = format!("start{}end", "é".repeat(1000));
        let line = shortened(&long);
        assert!(line.starts_with("start") && line.ends_with("end"));
        assert!(line.contains("[808 characters]"), "{line}");
    }

    #[test]
    fn every_kind_of_block_is_one_line() {
        let messages = [
            json!({"role": "assistant", "content": [
                {"type": "thinking", "thinking": "hm", "signature": "s"},
                {"type": "redacted_thinking", "data": "x"},
                {"type": "text", "text": "two\nlines"},
            ]}),
            json!({"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "t", "is_error": true,
                 "content": [{"type": "text", "text": "bad"}, {"type": "image"}]},
            ]}),
            json!({"role": "user", "content": []}),
            json!({}),
        ];
        assert_eq!(
            render_conversation(&messages),
            "0.0 assistant  thinking: hm\n\
             0.1 assistant  redacted_thinking: {\"type\":\"redacted_thinking\",\"data\":\"x\"}\n\
             0.2 assistant  text: two\\nlines\n\
             1.0 user       tool_result t (error): bad [image]\n\
             2.0 user       (empty)\n\
             3.0 (no role)  (no content)\n"
        );
    }
}
