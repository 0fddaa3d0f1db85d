//! Joins the deltas of recorded responses.

use std::collections::BTreeMap;
use std::path::Path;

use ostler_sdk::proto::api::{self, ContentBlock};
use ostler_sdk::proto::frame::{Frame as _, ToHost};
use ostler_sdk::{Fold, Message};

/// The messages of a recording.
fn recorded(name: &str) -> Vec<Message> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/wire");
    let text = std::fs::read_to_string(folder.join(format!("{name}.stdout.jsonl"))).unwrap();
    text.lines().filter_map(|line| Message::from_frame(ToHost::from_line(line).unwrap())).collect()
}

fn text(message: &api::Message) -> String {
    message.content.iter().filter_map(ContentBlock::as_text).collect()
}

/// Folds a recording into whole responses. Each must equal the finished blocks of the recording.
fn fold(name: &str) -> Vec<api::Message> {
    let (mut fold, mut wholes) = (Fold::new(), Vec::new());
    // The blocks of a response arrive one by one, with the response's id.
    let mut blocks: BTreeMap<String, Vec<ContentBlock>> = BTreeMap::new();
    let mut grown = String::new();
    for message in &recorded(name) {
        if let Message::Assistant(assistant) = message {
            let id = assistant.message.id.clone().unwrap().to_string();
            blocks.entry(id).or_default().extend(assistant.message.content.clone());
        }
        let whole = fold.push(message);
        match (&whole, fold.so_far()) {
            (Some(whole), None) => {
                assert!(text(whole).starts_with(&grown), "{name}: {grown:?}");
                grown.clear();
            }
            (None, Some(growing)) => {
                let text = text(&growing);
                let began_again = text.is_empty();
                let continues = text.starts_with(&grown);
                assert!(began_again || continues, "{name}: {text:?} after {grown:?}");
                grown = text;
            }
            (None, None) => {}
            (Some(_), Some(_)) => panic!("{name}: whole and growing at once"),
        }
        wholes.extend(whole);
    }
    for whole in &wholes {
        let id = whole.id.clone().unwrap().to_string();
        assert_eq!(whole.content, blocks[&id], "{name}");
    }
    wholes
}

#[test]
fn a_folded_response_equals_its_finished_blocks() {
    for (name, responses) in [
        ("ts050-partial", 1),
        ("ts325-partial", 1),
        ("py182-partial", 1),
        ("ts050-partial-allow", 2),
        ("ts325-partial-allow", 2),
        ("ts050-slowtools", 2),
        ("ts325-slowtools", 2),
        ("ts050-thinking", 1),
        ("ts325-thinking", 1),
        ("py182-thinking", 1),
        ("ts325-mcp-slow", 2),
    ] {
        let wholes = fold(name);
        assert_eq!(wholes.len(), responses, "{name}");
        assert!(wholes.iter().all(|whole| whole.stop_reason.is_some()), "{name}");
    }
}

#[test]
fn a_finished_call_has_its_arguments_and_an_unfinished_one_those_received_so_far() {
    let wholes = fold("ts325-partial-allow");
    let call = wholes[0].content.iter().find_map(ContentBlock::as_tool_use).unwrap();
    assert!(call.input["command"].is_string(), "{}", call.input);
    // While the model writes the call, its arguments grow.
    let (mut fold, mut longest) = (Fold::new(), String::new());
    for message in &recorded("ts325-partial-allow") {
        fold.push(message);
        if let Some(arguments) = fold.unfinished_arguments() {
            assert!(arguments.starts_with(&longest), "{arguments} after {longest}");
            longest = arguments.to_owned();
        }
    }
    assert_eq!(serde_json::from_str::<serde_json::Value>(&longest).unwrap(), call.input);
}

#[test]
fn a_response_that_is_retried_begins_again() {
    let wholes = fold("ts325-midfail");
    assert_eq!(wholes.len(), 1, "{wholes:?}");
    // The older program retries without streaming, so there are no deltas.
    assert_eq!(fold("ts050-midfail").len(), 0);
}

#[test]
fn an_interrupted_response_can_be_read_until_the_next_one_begins() {
    let mut fold = Fold::new();
    let (mut wholes, mut at_the_end) = (Vec::new(), Vec::new());
    for message in &recorded("ts050-interrupt") {
        wholes.extend(fold.push(message));
        if message.as_result().is_some() {
            at_the_end.push(fold.so_far().map(|unfinished| !text(&unfinished).is_empty()));
        }
    }
    assert_eq!(at_the_end, [Some(true), None]);
    assert_eq!(wholes.len(), 1);
    // The newer programs close an interrupted response themselves.
    for name in ["ts325-interrupt", "py182-interrupt"] {
        assert_eq!(self::fold(name).len(), 2, "{name}");
    }
}
