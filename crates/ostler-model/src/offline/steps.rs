//! Splits a text into steps.
//!
//! Texts are split wherever a new request may begin, and parts that mean nothing alone are joined again:
//! "write now and then to a.txt" is one step although it has a "then" in it.

use std::ops::Range;

use super::intent::Intent;
use super::rules::{is_verb, understand, without_courtesies};
use super::words::{PromptWord, typed, words};

/// Longer texts are not matched: trying every form would take too long. Quoted text is one word.
const MOST_WORDS: usize = 400;

/// The steps of a text; at least one.
pub(super) fn steps(text: &str) -> Vec<Intent> {
    let words = words(text);
    if words.is_empty() {
        return vec![Intent::Help];
    }
    if words.len() > MOST_WORDS {
        return vec![Intent::Unknown(text.to_owned())];
    }
    let mut steps: Vec<(Range<usize>, Intent)> = Vec::new();
    for (cut, range) in pieces(&words) {
        let intent = |range: &Range<usize>| understand(&piece(&words, range), text);
        let alone = intent(&range);
        if let Some((last, before)) = steps.last_mut() {
            let joined = last.start..range.end;
            let belongs = match (cut, &alone) {
                // A question or delegated task may contain verbs.
                (SplitReason::And, Some(_)) => {
                    matches!(before, Intent::Ask { .. } | Intent::Delegate { .. })
                }
                (_, Some(_)) => false,
                (SplitReason::Then, None) => matches!(before, Intent::Unknown(_)),
                (_, None) => true,
            };
            if belongs && let Some(whole) = intent(&joined) {
                (*last, *before) = (joined, whole);
                continue;
            }
        }
        let unknown = || {
            let bare = without_courtesies(&piece(&words, &range));
            Intent::Unknown(typed(text, &bare).to_owned())
        };
        steps.push((range.clone(), alone.unwrap_or_else(unknown)));
    }
    let mut steps: Vec<Intent> = steps.into_iter().map(|(_, intent)| intent).collect();
    // A greeting before a request is ignored.
    if steps.iter().any(|step| *step != Intent::Help) {
        steps.retain(|step| *step != Intent::Help);
    }
    steps
}

/// Some of the words, without the comma or semicolon after them.
fn piece(words: &[PromptWord], range: &Range<usize>) -> Vec<PromptWord> {
    let mut piece = words[range.clone()].to_vec();
    if let Some(last) = piece.last_mut().filter(|_| range.end < words.len())
        && [",", ";"].contains(&last.tail.as_str())
    {
        last.tail.clear();
    }
    piece
}

/// Why a text was split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SplitReason {
    /// The text begins.
    Start,
    /// "then": most likely a new step.
    Then,
    /// "and" or a comma in front of a verb.
    And,
    /// The end of a sentence or line.
    End,
}

fn pieces(words: &[PromptWord]) -> Vec<(SplitReason, Range<usize>)> {
    let mut pieces = Vec::new();
    let (mut cut, mut start, mut verbatim) = (SplitReason::Start, 0, is_verbatim(&words[0]));
    for (index, pair) in words.windows(2).enumerate() {
        let next = index + 1;
        let Some(found) = cut_between(&pair[0], &pair[1], words.get(next + 1)) else { continue };
        if verbatim && !pair[1].begins_line {
            continue;
        }
        if next > start {
            pieces.push((cut, start..next));
        }
        (cut, start, verbatim) = (found, next, is_verbatim(&pair[1]));
    }
    pieces.push((cut, start..words.len()));
    pieces
}

/// Whether the rest of the line is taken literally: "run: a; b", "$ a; b".
fn is_verbatim(word: &PromptWord) -> bool {
    word.key == "$" || word.tail == ":" && is_verb(word)
}

fn cut_between(
    word: &PromptWord,
    next: &PromptWord,
    after: Option<&PromptWord>,
) -> Option<SplitReason> {
    let begins = is_verb(next) || next.text.starts_with(char::is_uppercase);
    if next.begins_line || word.tail == ";" {
        Some(SplitReason::End)
    } else if ["then", "afterwards", "finally"].contains(&next.key.as_str()) {
        Some(SplitReason::Then)
    } else if word.tail.ends_with(['.', '!', '?']) && begins {
        Some(SplitReason::End)
    } else if next.key == "and" && after.is_some_and(is_verb) || word.tail == "," && is_verb(next) {
        Some(SplitReason::And)
    } else {
        None
    }
}
