//! Markers for the vendor's prompt cache: on the last tool, the system prompt and two messages.
//!
//! The API allows four markers. One on the last user message lets the next request read everything up to it from the
//! cache; one on the user message before it reads what the last request wrote, however many blocks came in between.

use std::borrow::Cow;
use std::time::Duration;

use ostler_proto::api::{ContentBlock, Role};
use serde::Serialize;
use serde_json::{Value, json};

use super::ChatMessage;

/// How long the vendor keeps the beginning of a conversation ready after its last use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Cache {
    /// Not at all.
    Off,
    /// Five minutes: enough for an agent at work, and the cheapest to write.
    #[default]
    FiveMinutes,
    /// An hour: for conversations with pauses.
    OneHour,
}

impl Cache {
    /// The duration; `None` for [`Self::Off`].
    pub fn lifetime(self) -> Option<Duration> {
        match self {
            Self::Off => None,
            Self::FiveMinutes => Some(Duration::from_secs(5 * 60)),
            Self::OneHour => Some(Duration::from_secs(60 * 60)),
        }
    }

    pub(crate) fn mark(self) -> Option<CacheControl> {
        match self {
            Self::Off => None,
            Self::FiveMinutes => Some(CacheControl { r#type: "ephemeral", ttl: None }),
            Self::OneHour => Some(CacheControl { r#type: "ephemeral", ttl: Some("1h") }),
        }
    }
}

/// The marker in the API's format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct CacheControl {
    r#type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    ttl: Option<&'static str>,
}

/// How many messages get a marker; with the tools and the system prompt these are the four that the API allows.
const MARKED_MESSAGES: usize = 2;

/// The messages with our markers and no others: the API refuses too many.
pub(crate) fn marked(
    messages: &[ChatMessage],
    mark: Option<CacheControl>,
) -> Vec<Cow<'_, ChatMessage>> {
    let mut marked: Vec<Cow<'_, ChatMessage>> = messages.iter().map(unmarked).collect();
    let Some(mark) = mark else { return marked };
    let mark = match mark.ttl {
        None => json!({"type": mark.r#type}),
        Some(ttl) => json!({"type": mark.r#type, "ttl": ttl}),
    };
    let users = (0..messages.len()).rev().filter(|number| messages[*number].role == Role::User);
    let places = users.filter_map(|number| {
        let place = messages[number].content.iter().rposition(is_markable)?;
        Some((number, place))
    });
    for (number, place) in places.take(MARKED_MESSAGES) {
        if let Some(slot) = slot(&mut marked[number].to_mut().content[place]) {
            *slot = Some(mark.clone());
        }
    }
    marked
}

fn unmarked(said: &ChatMessage) -> Cow<'_, ChatMessage> {
    // Cloned only when there is a marker to remove.
    let has_mark = |block: &ContentBlock| match block {
        ContentBlock::Text(block) => block.cache_control.is_some(),
        ContentBlock::ToolUse(block) | ContentBlock::ServerToolUse(block) => {
            block.cache_control.is_some()
        }
        ContentBlock::ToolResult(block) => block.cache_control.is_some(),
        ContentBlock::Image(block) => block.cache_control.is_some(),
        ContentBlock::Document(block) => block.cache_control.is_some(),
        _ => false,
    };
    if !said.content.iter().any(has_mark) {
        return Cow::Borrowed(said);
    }
    let mut said = said.clone();
    said.content.iter_mut().filter_map(slot).for_each(|slot| *slot = None);
    Cow::Owned(said)
}

/// The API refuses a marker on an empty text.
fn is_markable(block: &ContentBlock) -> bool {
    match block {
        ContentBlock::Text(block) => !block.text.is_empty(),
        ContentBlock::ToolResult(_) | ContentBlock::Image(_) | ContentBlock::Document(_) => true,
        _ => false,
    }
}

fn slot(block: &mut ContentBlock) -> Option<&mut Option<Value>> {
    match block {
        ContentBlock::Text(block) => Some(&mut block.cache_control),
        ContentBlock::ToolUse(block) | ContentBlock::ServerToolUse(block) => {
            Some(&mut block.cache_control)
        }
        ContentBlock::ToolResult(block) => Some(&mut block.cache_control),
        ContentBlock::Image(block) => Some(&mut block.cache_control),
        ContentBlock::Document(block) => Some(&mut block.cache_control),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use ostler_proto::build;
    use std::sync::Arc;

    use ostler_proto::api::{Content, TextBlock, ThinkingBlock, ToolResultBlock, ToolUseBlock};
    use proptest::prelude::*;

    use super::*;
    use crate::{Request, ToolSpec};

    /// The request as it is sent, with and without the markers, and how many there are.
    fn written(request: &Request) -> (String, String, usize) {
        let sent = serde_json::to_string(request).unwrap();
        let mut body: Value = serde_json::from_str(&sent).unwrap();
        let n_marks = strip(&mut body);
        (sent, body.to_string(), n_marks)
    }

    /// Removes the markers and counts them.
    fn strip(value: &mut Value) -> usize {
        match value {
            Value::Object(fields) => {
                let here = usize::from(fields.shift_remove("cache_control").is_some());
                here + fields.values_mut().map(strip).sum::<usize>()
            }
            Value::Array(items) => items.iter_mut().map(strip).sum(),
            _ => 0,
        }
    }

    fn user(content: Vec<ContentBlock>) -> ChatMessage {
        ChatMessage { role: Role::User, content }
    }

    fn arb_text() -> impl Strategy<Value = ContentBlock> {
        // Some come with a marker of the host.
        ("[a-zé\"\\\\{}]{0,8}", any::<bool>()).prop_map(|(text, marked)| {
            let cache_control = marked.then(|| json!({"type": "ephemeral"}));
            ContentBlock::Text(TextBlock { text, cache_control, ..TextBlock::default() })
        })
    }

    fn arb_result() -> impl Strategy<Value = ContentBlock> {
        ("[a-z]{1,5}", prop::option::of("[a-z]{0,9}")).prop_map(|(id, text)| {
            ContentBlock::ToolResult(build!(ToolResultBlock {
                tool_use_id: id.as_str().into(),
                content: text.map(Content::Text)
            }))
        })
    }

    fn arb_answer() -> impl Strategy<Value = ContentBlock> {
        prop_oneof![
            arb_text(),
            "[a-z]{0,9}".prop_map(|thinking| ContentBlock::Thinking(build!(ThinkingBlock {
                thinking,
                signature: Some("s".into())
            }))),
            "[a-z]{1,5}".prop_map(|id| ContentBlock::ToolUse(build!(ToolUseBlock {
                id: id.as_str().into(),
                name: "Read".into(),
                input: json!({"b": 1, "a": id})
            }))),
        ]
    }

    fn arb_round() -> impl Strategy<Value = [ChatMessage; 2]> {
        let prompt = prop::collection::vec(prop_oneof![arb_text(), arb_result()], 1..4);
        let answer = prop::collection::vec(arb_answer(), 1..4);
        (prompt, answer).prop_map(|(prompt, answer)| {
            [user(prompt), ChatMessage { role: Role::Assistant, content: answer }]
        })
    }

    proptest! {
        #[test]
        fn a_later_request_begins_with_the_bytes_of_the_earlier_one(
            rounds in prop::collection::vec(arb_round(), 2..8),
            system in "[a-z]{0,9}",
            n_tools in 0_usize..3,
        ) {
            let tools = (0..n_tools).map(|number| ToolSpec {
                name: format!("T{number}"),
                description: String::new(),
                input_schema: json!({"type": "object"}),
            });
            let (system, tools) = (system.into(), Arc::new(tools.collect()));
            let base = Request { system, tools, ..Request::new("m", Vec::new()) };
            let mut before: Option<String> = None;
            for n in 0..rounds.len() {
                let mut messages = rounds[..n].concat();
                messages.push(rounds[n][0].clone());
                let (_, body, n_marks) = written(&Request { messages: Arc::new(messages), ..base.clone() });
                prop_assert!(n_marks <= 4, "{n_marks} marks");
                if let Some(before) = before {
                    let prefix = before.strip_suffix("]}").unwrap();
                    prop_assert!(body.starts_with(&format!("{prefix},")), "{before}\n{body}");
                }
                before = Some(body);
            }
        }

        #[test]
        fn only_markers_are_added(round in arb_round()) {
            let request = Request::new("m", round.to_vec());
            let mut off = request.clone();
            off.sampling.cache = Cache::Off;
            let (sent, stripped, n_marks) = written(&off);
            prop_assert_eq!(n_marks, 0);
            prop_assert_eq!(&sent, &stripped);
            prop_assert_eq!(written(&request).1, sent);
        }
    }

    #[test]
    fn the_last_two_user_messages_are_marked_at_their_last_block() {
        let text = |text: &str| ContentBlock::text(text);
        let answer = ChatMessage { role: Role::Assistant, content: vec![text("a")] };
        let messages = [
            user(vec![text("1")]),
            answer.clone(),
            user(vec![text("2"), text("3"), text("")]),
            answer.clone(),
            user(vec![text("")]),
            answer,
            user(vec![text("4"), text("5")]),
        ];
        let marked = marked(&messages, Cache::FiveMinutes.mark());
        let blocks = marked.iter().flat_map(|said| &said.content);
        let places: Vec<&str> = blocks
            .filter_map(|block| match block {
                ContentBlock::Text(block) => block.cache_control.as_ref().map(|_| &*block.text),
                _ => None,
            })
            .collect();
        assert_eq!(places, ["3", "5"]);
    }
}
