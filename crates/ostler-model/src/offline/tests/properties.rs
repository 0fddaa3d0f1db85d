//! Properties that hold for any prompt and any results.

use std::sync::Arc;

use ostler_proto::api::{Content, ContentBlock, Role, StopReason, ToolResultBlock, ToolUseBlock};
use ostler_proto::build;
use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::json;

use super::super::reply::answer;
use super::super::steps::steps;
use super::super::words::{typed, words};
use super::events::{assembled, stream};
use super::{Conversation, result};
use crate::ChatMessage;

/// Sentences similar to those that the rules know.
fn sentence() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        4 => prop::sample::select(vec![
            "list", "files", "the", "in", "read", "write", "to", "a.txt", "and", "then", "replace", "with", "all",
            "change", "run", "`ls -a`", "ask", "me", "which", "or", "a", "subagent", "delegate:", "$", "search",
            "for", "find", "create", "'x y'", "\"", "'", "`", "```", ";", ",", ":", ".", "?", "\n", "please", "I",
            "what", "is", "here", "ls", "*.rs", "count", "“", "”", "whether", "edit", "it",
        ]).prop_map(str::to_owned),
        1 => any::<String>(),
    ];
    let gap = prop::sample::select(vec![" ", " ", " ", "", ", ", "; ", "\n"]);
    vec((word, gap), 0..24)
        .prop_map(|pieces| pieces.into_iter().map(|(word, gap)| format!("{word}{gap}")).collect())
}

fn known() -> impl Strategy<Value = String> {
    let step = prop::sample::select(vec![
        "list the files",
        "read a.txt and b.txt",
        "write x to a.txt",
        "replace x with y in a.txt",
        "run `true`",
        "find x",
        "ask me a question",
        "delegate list files",
    ]);
    vec(step, 1..6).prop_map(|steps| steps.join(", then "))
}

fn outcome() -> impl Strategy<Value = (String, Option<bool>)> {
    let text = prop_oneof![
        Just("ok".to_owned()),
        Just("File has not been read yet. Read it first before writing to it.".to_owned()),
        any::<String>(),
    ];
    (text, any::<Option<bool>>())
}

fn block() -> impl Strategy<Value = ContentBlock> {
    let id = prop::sample::select(vec!["toolu_offline_1_1", "toolu_2", ""]);
    prop_oneof![
        sentence().prop_map(ContentBlock::text),
        id.clone().prop_map(|id| ContentBlock::ToolUse(build!(ToolUseBlock {
            id: id.into(),
            name: "Read".to_owned(),
            input: json!(null)
        }))),
        (id, any::<Option<String>>(), any::<Option<bool>>()).prop_map(|(id, text, is_error)| {
            ContentBlock::ToolResult(build!(ToolResultBlock {
                tool_use_id: id.into(),
                content: text.map(Content::Text),
                is_error
            }))
        }),
    ]
}

fn said() -> impl Strategy<Value = ChatMessage> {
    let role =
        prop::sample::select(vec![Role::User, Role::Assistant, Role::Other("narrator".into())]);
    (role, vec(block(), 0..4)).prop_map(|(role, content)| ChatMessage { role, content })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(128) })]

    #[test]
    fn any_text_gets_an_answer(text in prop_oneof![any::<String>(), sentence()]) {
        let mut talk = Conversation::new();
        prop_assert!(!talk.say(&text).text().is_empty());
        prop_assert!(!steps(&text).is_empty());
    }

    #[test]
    fn words_are_at_the_positions_they_report(text in prop_oneof![any::<String>(), sentence()]) {
        let words = words(&text);
        prop_assert_eq!(typed(&text, &words), text.trim());
    }

    #[test]
    fn every_conversation_ends(
        text in prop_oneof![sentence(), known()],
        before in vec(said(), 0..4),
        outcomes in vec(outcome(), 1..40),
    ) {
        let mut talk = Conversation::new();
        talk.request.messages = before.into();
        // Each step takes three calls at most: write, read, write.
        let most = 3 * steps(&text).len() + 1;
        let mut last = talk.say(&text);
        let mut n_rounds = 1;
        for (text, is_error) in outcomes.iter().cycle() {
            if last.0.stop_reason == StopReason::EndTurn {
                break;
            }
            n_rounds += 1;
            prop_assert!(n_rounds <= most, "{n_rounds} rounds");
            last = talk.results(text, *is_error);
        }
        prop_assert!(last.calls().is_empty());
    }

    #[test]
    fn any_messages_are_answered_and_the_conversation_ends(messages in vec(said(), 0..8)) {
        let mut talk = Conversation::new();
        talk.request.messages = messages.into();
        let mut n_rounds = 0;
        while answer(&talk.request).stop_reason == StopReason::ToolUse {
            n_rounds += 1;
            prop_assert!(n_rounds <= 100);
            let last = talk.answered();
            let results = last.calls().into_iter().map(|call| result(call, "ok", None)).collect();
            talk.push(Role::User, results);
        }
    }

    #[test]
    fn every_stream_is_well_formed(messages in vec(said(), 0..4), text in known()) {
        let mut talk = Conversation::new();
        talk.request.messages = messages.into();
        let expected = talk.say(&text).0;
        Arc::make_mut(&mut talk.request.messages).pop();
        let (blocks, stop_reason) = assembled(&stream(talk.request));
        prop_assert_eq!((blocks, stop_reason), (expected.blocks, expected.stop_reason));
    }
}
