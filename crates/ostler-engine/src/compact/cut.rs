//! Where a conversation may be cut, and the question for a summary at the cut. Pure.

use ostler_proto::api::{ContentBlock, Role};

use crate::model::ChatMessage;

/// A place in a conversation: a number of messages, and a number of blocks of the last of them.
pub(crate) type CutPoint = (usize, usize);

/// The end of a conversation.
pub(crate) fn end(conversation: &[ChatMessage]) -> CutPoint {
    (conversation.len(), conversation.last().map_or(0, |last| last.content.len()))
}

/// How far a summary can reach, the furthest first: to `to`, one round less, half of it. If the first does not fit the
/// model's window, another may.
pub(super) fn places(conversation: &[ChatMessage], to: CutPoint) -> Vec<CutPoint> {
    let before = |n: usize| (1..n).rev().find(|n| is_cut_point(conversation, *n));
    let whole = |n: usize| end(&conversation[..n]);
    let mut places = Vec::new();
    if to.0 > 0 && is_cut_point(conversation, to.0) {
        places.push(to);
    }
    if let Some(shorter) = before(to.0) {
        places.push(whole(shorter));
        let half = before(shorter.min(to.0 / 2 + 1));
        places.extend(half.map(whole));
    }
    places
}

/// Whether every call in the first `n` messages is answered there.
fn is_cut_point(conversation: &[ChatMessage], n: usize) -> bool {
    let calls = |block: &ContentBlock| {
        matches!(block, ContentBlock::ToolUse(_) | ContentBlock::ServerToolUse(_))
    };
    // Results are in the message after their calls.
    conversation[n - 1].role == Role::User || !conversation[n - 1].content.iter().any(calls)
}

/// A conversation up to a place, followed by a question. The messages before it are unchanged: the vendor's cache hits,
/// and the API refuses thinking blocks after a changed beginning.
pub(super) fn asking(
    conversation: &[ChatMessage],
    place: CutPoint,
    question: &str,
) -> Vec<ChatMessage> {
    let mut messages = before(conversation, place);
    let question = ContentBlock::text(question);
    match messages.last_mut() {
        Some(last) if last.role == Role::User => last.content.push(question),
        _ => messages.push(ChatMessage { role: Role::User, content: vec![question] }),
    }
    messages
}

/// The messages before a place.
pub(super) fn before(conversation: &[ChatMessage], (n, n_blocks): CutPoint) -> Vec<ChatMessage> {
    let mut messages = conversation[..n].to_vec();
    if let Some(last) = messages.last_mut() {
        last.content.truncate(n_blocks);
    }
    messages
}

/// The blocks after a place: part of one user message, or nothing.
pub(super) fn behind(conversation: &[ChatMessage], (n, n_blocks): CutPoint) -> Vec<ContentBlock> {
    let rest = conversation.get(n.saturating_sub(1)).filter(|_| n > 0);
    let rest = rest.map_or(&[][..], |said| &said.content[n_blocks.min(said.content.len())..]);
    let later = conversation[n..].iter().flat_map(|said| &said.content);
    rest.iter().chain(later).cloned().collect()
}

#[cfg(test)]
mod tests {
    use ostler_proto::build;
    use std::collections::HashSet;

    use ostler_proto::api::{ToolResultBlock, ToolUseBlock};
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn call(id: String) -> ContentBlock {
        let (id, name) = (id.as_str().into(), "Look".to_owned());
        ContentBlock::ToolUse(build!(ToolUseBlock { id, name, input: json!({}) }))
    }

    fn result(id: String) -> ContentBlock {
        let tool_use_id = id.as_str().into();
        ContentBlock::ToolResult(build!(ToolResultBlock { tool_use_id }))
    }

    /// A valid conversation out of rounds: how many calls each response makes, and whether a prompt follows it.
    fn conversation(rounds: &[(usize, bool)], ends_with_answer: bool) -> Vec<ChatMessage> {
        let mut messages =
            vec![ChatMessage { role: Role::User, content: vec![ContentBlock::text("go")] }];
        for (round, (n_calls, has_prompt)) in rounds.iter().enumerate() {
            let ids = || (0..*n_calls).map(move |call| format!("t{round}-{call}"));
            let mut answer = vec![ContentBlock::text("so")];
            answer.extend(ids().map(call));
            messages.push(ChatMessage { role: Role::Assistant, content: answer });
            let mut back: Vec<_> = ids().map(result).collect();
            if *has_prompt || back.is_empty() {
                back.push(ContentBlock::text("go on"));
            }
            messages.push(ChatMessage { role: Role::User, content: back });
        }
        if ends_with_answer {
            let content = vec![ContentBlock::text("done")];
            messages.push(ChatMessage { role: Role::Assistant, content });
        }
        messages
    }

    fn assert_valid(messages: &[ChatMessage]) -> Result<(), TestCaseError> {
        let mut open: HashSet<String> = HashSet::new();
        for (number, said) in messages.iter().enumerate() {
            let expected = if number % 2 == 0 { Role::User } else { Role::Assistant };
            prop_assert_eq!(&said.role, &expected);
            prop_assert!(!said.content.is_empty());
            for block in &said.content {
                if let ContentBlock::ToolResult(result) = block {
                    prop_assert!(
                        open.remove(result.tool_use_id.as_str()),
                        "a result without its call"
                    );
                }
            }
            prop_assert!(open.is_empty(), "a call without its result");
            open.extend(said.content.iter().filter_map(|b| Some(b.as_tool_use()?.id.to_string())));
        }
        prop_assert!(open.is_empty(), "a call at the end");
        Ok(())
    }

    proptest! {
        #[test]
        fn no_cut_separates_a_call_from_its_result(
            rounds in prop::collection::vec((0_usize..4, any::<bool>()), 0..9),
            ends_with_answer in any::<bool>(),
            prompt in prop::option::of(1_usize..3),
        ) {
            let mut whole = conversation(&rounds, ends_with_answer);
            let to = end(&whole);
            if let Some(n_blocks) = prompt {
                let blocks = vec![ContentBlock::text("next"); n_blocks];
                match whole.last_mut() {
                    Some(last) if last.role == Role::User => last.content.extend(blocks),
                    _ => whole.push(ChatMessage { role: Role::User, content: blocks }),
                }
            }
            prop_assert_eq!(behind(&whole, to).len(), prompt.unwrap_or(0));
            let places = places(&whole, to);
            prop_assert_eq!(places.first(), Some(&to));
            prop_assert!(places.is_sorted_by(|further, nearer| further > nearer), "{:?}", places);
            for place in places {
                let asked = asking(&whole, place, "?");
                assert_valid(&asked)?;
                // The same beginning, and nothing but the question behind it.
                let (question, last) = (asked.last().unwrap(), place.0);
                prop_assert_eq!(&asked[..asked.len() - 1], &whole[..asked.len() - 1]);
                prop_assert_eq!(question.content.last(), Some(&ContentBlock::text("?")));
                let rest = &question.content[..question.content.len() - 1];
                prop_assert!(rest.is_empty() || whole[last - 1].content.starts_with(rest));
            }
        }
    }

    #[test]
    fn a_conversation_that_is_too_long_is_cut_by_a_round_and_then_by_half() {
        let whole = conversation(&[(1, false), (2, false), (1, false), (1, false)], false);
        let ends = |to| places(&whole, to).iter().map(|place| place.0).collect::<Vec<_>>();
        assert_eq!(ends(end(&whole)), [9, 7, 3]);
        assert_eq!(ends((1, 1)), [1]);
        assert_eq!(ends((0, 0)), [0; 0]);
    }

    #[test]
    fn a_conversation_is_not_cut_between_calls_and_their_results() {
        let whole = conversation(&[(1, false)], false);
        assert_eq!(places(&whole, (2, 2)), [(1, 1)]);
    }
}
