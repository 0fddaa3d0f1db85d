//! The texts of a compaction: the request to the model, and the new beginning of the conversation. Pure.

use std::collections::HashMap;

use ostler_proto::ToolUseId;
use ostler_proto::api::{Content, ContentBlock, Role};

use crate::model::ChatMessage;

/// Asks for the summary. The headings name what is needed to continue without the conversation.
const QUESTION: &str = "The conversation up to here will be replaced by a summary, because the context window is \
nearly full. Write that summary now. The work continues with this summary alone: what you leave out is lost.

Do not call any tool and do not continue the work. Answer with plain text only, under these headings:

Request: what the user asks for, in the user's own words where they are short, with all later corrections and wishes.
Done: what has been done so far, step by step, and how it came out.
Files: every file that matters, by its full path, with what is in it or what was changed there.
Findings: exact names, numbers, commands, error messages and other facts that would have to be found out again.
Decisions: what was decided and why, what was tried and did not work, what the user does not want.
Open: what is still to be done, questions without an answer, and the very next step.

Be exact and complete rather than elegant; a headline without content may be left out.";

/// The request for a summary, with the instructions of users and hooks.
pub(super) fn question(instructions: &[String]) -> String {
    let mut words = QUESTION.to_owned();
    for instruction in instructions {
        words.push_str("\n\nAlso heed this for the summary: ");
        words.push_str(instruction);
    }
    words
}

/// The longest part of one message that is quoted word for word, in characters.
const LONGEST: usize = 2_000;

/// The longest request that is quoted word for word, in characters.
const LONGEST_REQUEST: usize = 6_000;

/// How many of the last messages are quoted, shortened.
const LAST_MESSAGES: usize = 4;

/// The most characters of them together.
const LONGEST_END: usize = 16_000;

/// The beginning of a compacted conversation.
const INTRODUCTION: &str = "[The conversation up to here no longer fits the context window. This summary of it stands \
in its place.]";

/// The new beginning of the conversation. `covered`: how many of the messages the summary covers.
pub(super) fn beginning(
    summary: &str,
    messages: &[ChatMessage],
    covered: usize,
    request: Option<&str>,
) -> String {
    let mut words = format!("{INTRODUCTION}\n\n{}", summary.trim());
    if let Some(request) = request.filter(|request| !request.trim().is_empty()) {
        words.push_str("\n\n[The request that is being worked on, word for word.]\n\n");
        words.push_str(&shortened(request, LONGEST_REQUEST));
    }
    let from = covered.min(messages.len().saturating_sub(LAST_MESSAGES));
    let end = last_messages(messages, from);
    if !end.is_empty() {
        words.push_str("\n\n[The last messages before the summary; long ones are shortened.]\n\n");
        words.push_str(&end);
    }
    words.push_str(
        "\n\n[End of the summary. Go on from here as if nothing had happened; what is shortened above can be read \
         again with the tools.]",
    );
    words
}

/// The messages from `from` on as text: as many of the newest as fit.
fn last_messages(messages: &[ChatMessage], from: usize) -> String {
    let mut tools: HashMap<&ToolUseId, &str> = HashMap::new();
    for call in messages.iter().flat_map(|said| &said.content).filter_map(ContentBlock::as_tool_use)
    {
        tools.insert(&call.id, &call.name);
    }
    let mut room = LONGEST_END;
    let mut lines = Vec::new();
    for said in messages[from..].iter().rev() {
        for block in said.content.iter().rev() {
            let Some(line) = line(&said.role, block, &tools) else { continue };
            let Some(left) = room.checked_sub(line.chars().count()) else {
                lines.push("(Earlier ones are left out.)".to_owned());
                lines.reverse();
                return lines.join("\n");
            };
            room = left;
            lines.push(line);
        }
    }
    lines.reverse();
    lines.join("\n")
}

fn line(role: &Role, block: &ContentBlock, tools: &HashMap<&ToolUseId, &str>) -> Option<String> {
    let who = if *role == Role::User { "User" } else { "Assistant" };
    Some(match block {
        // The new summary contains the earlier one.
        ContentBlock::Text(text) if text.text.starts_with(INTRODUCTION) => return None,
        ContentBlock::Text(text) => format!("{who}: {}", shortened(&text.text, LONGEST)),
        ContentBlock::ToolUse(call) => {
            format!("{who} calls {}: {}", call.name, shortened(&call.input.to_string(), LONGEST))
        }
        ContentBlock::ToolResult(result) => {
            let tool = tools.get(&result.tool_use_id).copied().unwrap_or("a tool");
            let verb = if result.is_error == Some(true) { "fails" } else { "answers" };
            let text = result.content.as_ref().map(Content::text).unwrap_or_default();
            format!("{tool} {verb}: {}", shortened(&text, LONGEST))
        }
        ContentBlock::Image(_) => format!("{who}: (an image)"),
        ContentBlock::Document(_) => format!("{who}: (a document)"),
        // Thinking blocks are for the model alone; the other types mean nothing outside their message.
        _ => return None,
    })
}

/// The beginning and the end of a text that is too long.
fn shortened(text: &str, longest: usize) -> String {
    let n = text.chars().count();
    if n <= longest {
        return text.to_owned();
    }
    let half = longest / 2;
    let head: String = text.chars().take(half).collect();
    let tail: String = text.chars().skip(n - half).collect();
    format!("{head} […{} characters are left out…] {tail}", n - 2 * half)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn said(role: Role, blocks: serde_json::Value) -> ChatMessage {
        ChatMessage { role, content: serde_json::from_value(blocks).unwrap() }
    }

    fn text(role: Role, text: &str) -> ChatMessage {
        said(role, json!([{"type": "text", "text": text}]))
    }

    #[test]
    fn the_request_for_a_summary_contains_every_instruction() {
        let words = question(&["keep names".into(), "be brief".into()]);
        assert!(words.starts_with(QUESTION));
        assert!(words.contains("keep names") && words.ends_with("be brief"), "{words}");
    }

    #[test]
    fn the_last_messages_are_quoted_with_calls_and_results() {
        let messages = [
            text(Role::User, "long ago"),
            text(Role::Assistant, "yes"),
            text(Role::User, "look"),
            said(
                Role::Assistant,
                json!([{"type": "thinking", "thinking": "hm", "signature": "s"},
                {"type": "tool_use", "id": "t", "name": "Read", "input": {"file": "a"}}]),
            ),
            said(
                Role::User,
                json!([{"type": "tool_result", "tool_use_id": "t", "content": "text of a"}]),
            ),
        ];
        let words = beginning("Short.", &messages, 5, Some("look"));
        let end = words.split_once("shortened.]\n\n").unwrap().1;
        let expected = "Assistant: yes\nUser: look\nAssistant calls Read: {\"file\":\"a\"}\n\
            Read answers: text of a\n\n[End";
        assert!(end.starts_with(expected), "{words}");
        assert!(words.contains("word for word.]\n\nlook\n"), "{words}");
    }

    #[test]
    fn messages_that_the_summary_does_not_cover_are_quoted_as_far_as_they_fit() {
        let messages: Vec<_> =
            (0..30).map(|n| text(Role::User, &format!("{n} {}", "é".repeat(3000)))).collect();
        let words = beginning("Short.", &messages, 10, None);
        assert!(words.contains("(Earlier ones are left out.)\nUser: 23 é"), "{words}");
        assert!(words.contains("characters are left out…] é"));
        assert!(words.chars().count() < LONGEST_END + 1000);
    }
}
