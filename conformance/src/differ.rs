//! The differences between two runs of one scenario, message by message.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::normal::{COMPARED, Frame, frames};
use crate::pattern::short;
use crate::play::Log;

/// A difference, described without the position of the message.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Difference {
    /// `missing …` (they have it), `additional …` (we have it) or `other …`; then the message and the field.
    pub(crate) what: String,
    /// An example.
    pub(crate) example: String,
}

/// All differences between our run and theirs, each once.
pub(crate) fn differences(ours: &Log, theirs: &Log) -> BTreeSet<Difference> {
    let mut found = Found(BTreeSet::new());
    for kind in COMPARED {
        let (ours, theirs) = (frames(ours, kind), frames(theirs, kind));
        for pair in align(&ours, &theirs) {
            match pair {
                (Some(ours), Some(theirs)) => {
                    found.compare(&ours.label, &ours.value, &theirs.value);
                }
                (Some(ours), None) => found.add("additional", &ours.label, &ours.value),
                (None, Some(theirs)) => found.add("missing", &theirs.label, &theirs.value),
                (None, None) => {}
            }
        }
    }
    found.0
}

struct Found(BTreeSet<Difference>);

impl Found {
    fn add(&mut self, how: &str, place: &str, example: &Value) {
        self.add_text(how, place, short(example));
    }

    fn add_text(&mut self, how: &str, place: &str, example: String) {
        let what = format!("{how} {place}");
        // One example is enough.
        if !self.0.iter().any(|known| known.what == what) {
            self.0.insert(Difference { what, example });
        }
    }

    fn compare(&mut self, place: &str, ours: &Value, theirs: &Value) {
        match (ours, theirs) {
            (Value::Object(mine), Value::Object(other)) => {
                for (name, value) in mine {
                    let inner = format!("{place}.{name}");
                    match other.get(name) {
                        Some(theirs) => self.compare(&inner, value, theirs),
                        None => self.add("additional", &inner, value),
                    }
                }
                for (name, value) in other.iter().filter(|(name, _)| !mine.contains_key(*name)) {
                    self.add("missing", &format!("{place}.{name}"), value);
                }
            }
            (Value::Array(mine), Value::Array(other)) => {
                let inner = format!("{place}[]");
                if mine.len() == other.len() {
                    mine.iter()
                        .zip(other)
                        .for_each(|(mine, other)| self.compare(&inner, mine, other));
                } else {
                    let lengths = format!("{} and not {} elements", mine.len(), other.len());
                    self.add_text("other", &inner, lengths);
                }
            }
            _ if ours == theirs => {}
            _ => {
                self.add_text("other", place, format!("{} and not {}", short(ours), short(theirs)))
            }
        }
    }
}

type Pair<'a> = (Option<&'a Frame>, Option<&'a Frame>);

/// Aligns frames with the same label, without changing the order.
fn align<'a>(ours: &'a [Frame], theirs: &'a [Frame]) -> Vec<Pair<'a>> {
    // The length of the longest common part of what follows each pair of places.
    let mut common = vec![vec![0_usize; theirs.len() + 1]; ours.len() + 1];
    for mine in (0..ours.len()).rev() {
        for other in (0..theirs.len()).rev() {
            common[mine][other] = if ours[mine].label == theirs[other].label {
                common[mine + 1][other + 1] + 1
            } else {
                common[mine + 1][other].max(common[mine][other + 1])
            };
        }
    }
    let (mut mine, mut other, mut pairs) = (0, 0, Vec::new());
    while mine < ours.len() || other < theirs.len() {
        let both = ours.get(mine).zip(theirs.get(other));
        if both.is_some_and(|(ours, theirs)| ours.label == theirs.label) {
            pairs.push((ours.get(mine), theirs.get(other)));
            (mine, other) = (mine + 1, other + 1);
        } else if other == theirs.len()
            || (mine < ours.len() && common[mine + 1][other] >= common[mine][other + 1])
        {
            pairs.push((ours.get(mine), None));
            mine += 1;
        } else {
            pairs.push((None, theirs.get(other)));
            other += 1;
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::differences;
    use crate::play::Log;

    fn check(ours: Value, theirs: Value, expected: &[&str]) {
        let log = |messages: Value| {
            let events = messages.as_array().unwrap().iter();
            Log { events: events.map(|one| json!({"message": one})).collect(), ..Log::default() }
        };
        let found = differences(&log(ours), &log(theirs));
        assert_eq!(found.iter().map(|one| one.what.as_str()).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn ids_and_texts_are_not_compared() {
        let ours = json!([{"type": "result", "uuid": "1", "result": "all is well"}]);
        let theirs = json!([{"type": "result", "uuid": "2", "result": "fine, thank you"}]);
        check(ours, theirs, &[]);
    }

    #[test]
    fn missing_additional_and_different_fields_and_messages_are_reported() {
        let ours =
            json!([{"type": "init", "a": 1, "b": [1]}, {"type": "more"}, {"type": "result"}]);
        let theirs = json!([{"type": "init", "a": 2, "b": [1, 2], "c": null}, {"type": "result"}, {"type": "idle"}]);
        let expected =
            ["additional more", "missing idle", "missing init.c", "other init.a", "other init.b[]"];
        check(ours, theirs, &expected);
    }

    #[test]
    fn one_message_more_does_not_shift_the_others() {
        let ours = json!([{"type": "a", "n": 1}, {"type": "a", "n": 2}, {"type": "b"}]);
        let theirs =
            json!([{"type": "a", "n": 1}, {"type": "x"}, {"type": "a", "n": 2}, {"type": "b"}]);
        check(ours, theirs, &["missing x"]);
    }
}
