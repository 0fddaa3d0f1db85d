//! The drop guard: resuming at an earlier message may discard only the turn that the caller named.
//!
//! After the caller has read the conversation, more may have been written: a queued prompt, a notification. The guard
//! refuses to discard messages that the caller has not seen.

use std::collections::HashSet;

use ostler_proto::Uuid;
use ostler_proto::transcript::TranscriptLine;
use serde_json::Value;

use super::StoreError;
use super::chain::Tree;
use super::line::{answers, as_user};
use ostler_model::{INTERRUPTED, INTERRUPTED_TOOLS};

/// Checks that everything after `kept` belongs to the turn of the prompt `dropped`.
pub(super) fn check(
    lines: &[TranscriptLine],
    tree: &Tree<'_>,
    kept: &[usize],
    dropped: &Uuid,
) -> Result<(), StoreError> {
    let kept: HashSet<_> = kept.iter().collect();
    let now = tree.leaf().map(|leaf| tree.chain(leaf)).unwrap_or_default();
    let mut gone = now.into_iter().filter(|at| !kept.contains(at) && tree.is_ours(*at)).peekable();
    if gone.peek().is_none() {
        return Ok(());
    }
    let prompt = tree.position(dropped.as_str());
    let mut begun = false;
    for at in gone {
        let line = &lines[at];
        if Some(at) == prompt {
            begun = true;
        } else if let Some(what) =
            if begun { not_of_the_turn(line) } else { not_before_the_turn(line) }
            && !tree.is_meta(at)
        {
            let uuid = super::line::links(line).map_or("", |links| links.uuid);
            return Err(StoreError::DropsMore(format!(
                "{what} ({uuid}) is not part of the turn of prompt {dropped}"
            )));
        }
    }
    if begun {
        return Ok(());
    }
    Err(StoreError::DropsMore(format!("prompt {dropped} is not among what would be dropped")))
}

/// A line inside the turn that does not belong to it.
fn not_of_the_turn(line: &TranscriptLine) -> Option<&'static str> {
    let is_result = answers(line).next().is_some();
    (as_user(line).is_some() && !is_result && !is_marker(line)).then_some("a later message")
}

/// A line that must not be between the message to resume at and the turn to drop: the turn before would lose it.
fn not_before_the_turn(line: &TranscriptLine) -> Option<&'static str> {
    match line {
        TranscriptLine::Assistant(_) => Some("a response"),
        TranscriptLine::User(_) if is_marker(line) => None,
        TranscriptLine::User(_) => {
            match answers(line).map(|(_, failed)| failed).reduce(|a, b| a && b) {
                Some(true) => None,
                Some(false) => Some("a tool result"),
                None => Some("another prompt"),
            }
        }
        TranscriptLine::Unknown(attachment) => {
            let kind = attachment.get("attachment").and_then(|inner| inner.get("type"));
            (kind.and_then(Value::as_str) == Some("structured_output"))
                .then_some("structured output")
        }
        _ => None,
    }
}

fn is_marker(line: &TranscriptLine) -> bool {
    let text = as_user(line).and_then(|entry| entry.message.content.as_ref());
    text.is_some_and(|content| [INTERRUPTED, INTERRUPTED_TOOLS].contains(&&*content.text()))
}
