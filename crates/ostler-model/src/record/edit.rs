//! Replaces parts of a text, also of one that is split into deltas. Pure.

use std::ops::Range;

pub(crate) use ostler_secret::Form;
use serde_json::Value;

/// One replacement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Edit {
    pub(crate) range: Range<usize>,
    pub(crate) text: String,
}

/// Finds the parts of a text to replace.
pub(crate) trait Editor {
    /// The replacements; they may come in any order, but must not overlap.
    fn edits(&self, text: &str, form: Form) -> Vec<Edit>;
}

/// Adds a replacement, unless it overlaps another one.
pub(crate) fn add(edits: &mut Vec<Edit>, edit: Edit) {
    let meets =
        |other: &Edit| edit.range.start < other.range.end && other.range.start < edit.range.end;
    if !edits.iter().any(meets) {
        edits.push(edit);
    }
}

/// A text after the replacements.
pub(crate) fn edited(text: &str, form: Form, editor: &impl Editor) -> String {
    let pieces = spread(&[text], editor.edits(text, form));
    pieces.into_iter().next().unwrap_or_default()
}

/// Applies the replacements to every text in a value, except to opaque fields.
pub(crate) fn edit_value(value: &mut Value, editor: &impl Editor) {
    match value {
        Value::String(text) => *text = edited(text, Form::Plain, editor),
        Value::Array(items) => items.iter_mut().for_each(|item| edit_value(item, editor)),
        Value::Object(fields) => {
            let is_binary = fields.get("type").and_then(Value::as_str) == Some("base64");
            for (name, field) in fields {
                let is_opaque = OPAQUE.contains(&name.as_str()) || (is_binary && name == "data");
                if !is_opaque {
                    edit_value(field, editor);
                }
            }
        }
        _ => {}
    }
}

/// Fields that only the API can read.
const OPAQUE: [&str; 2] = ["signature", "encrypted_content"];

/// Applies the replacements to the events of a response, where a word may begin in one event and end in another.
pub(crate) fn edit_events(events: &mut [Value], editor: &impl Editor) {
    let mut texts: Vec<(Thread, Vec<usize>)> = Vec::new();
    for (number, event) in events.iter_mut().enumerate() {
        let Some(thread) = thread(event) else {
            edit_value(event, editor);
            continue;
        };
        match texts.iter_mut().find(|(known, _)| *known == thread) {
            Some((_, members)) => members.push(number),
            None => texts.push((thread, vec![number])),
        }
    }
    for ((_, field), members) in texts {
        let form = if field == "partial_json" { Form::Json } else { Form::Plain };
        let pieces: Vec<&str> =
            members.iter().map(|number| piece(&events[*number], field)).collect();
        let edits = editor.edits(&pieces.concat(), form);
        if edits.is_empty() {
            continue;
        }
        let pieces = spread(&pieces, edits);
        for (number, piece) in members.iter().zip(pieces) {
            events[*number]["delta"][field] = Value::String(piece);
        }
    }
}

/// A text of a response: the block, and the field of its deltas.
type Thread = (u64, &'static str);

fn thread(event: &Value) -> Option<Thread> {
    if event["type"] != "content_block_delta" {
        return None;
    }
    let field = ["text", "partial_json", "thinking"].into_iter();
    let field = field.into_iter().find(|field| event["delta"][*field].is_string())?;
    Some((event["index"].as_u64()?, field))
}

fn piece<'a>(event: &'a Value, field: &str) -> &'a str {
    event["delta"][field].as_str().unwrap_or_default()
}

/// The parts of a text after the replacements. A replacement is completely in the part where it begins.
fn spread(pieces: &[&str], mut edits: Vec<Edit>) -> Vec<String> {
    edits.sort_by_key(|edit| edit.range.start);
    let mut edits = edits.into_iter().peekable();
    // How much of the text has been copied.
    let mut done = 0;
    let mut begin = 0;
    let mut spread = Vec::with_capacity(pieces.len());
    for piece in pieces {
        let end = begin + piece.len();
        let mut text = String::with_capacity(piece.len());
        while let Some(edit) = edits.next_if(|edit| edit.range.start < end) {
            text.push_str(&piece[done.max(begin) - begin..edit.range.start - begin]);
            text.push_str(&edit.text);
            done = edit.range.end;
        }
        text.push_str(&piece[done.clamp(begin, end) - begin..]);
        spread.push(text);
        begin = end;
    }
    spread
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Replaces a word.
    struct ReplaceWord(&'static str, &'static str);

    impl Editor for ReplaceWord {
        fn edits(&self, text: &str, form: Form) -> Vec<Edit> {
            let found = text.match_indices(self.0);
            let edit = |at: usize| Edit { range: at..at + self.0.len(), text: form.write(self.1) };
            found.map(|(at, _)| edit(at)).collect()
        }
    }

    fn delta(index: u64, field: &str, text: &str) -> Value {
        json!({"type": "content_block_delta", "index": index, "delta": {"type": "x", field: text}})
    }

    #[test]
    fn however_a_text_is_split_the_result_is_the_same() {
        let text = "a secret, and a secret: ünd secret";
        let expected = text.replace("secret", "*");
        let cuts: Vec<usize> = (0..=text.len()).filter(|at| text.is_char_boundary(*at)).collect();
        for first in &cuts {
            for second in cuts.iter().filter(|second| *second >= first) {
                let pieces = [&text[..*first], &text[*first..*second], &text[*second..]];
                let mut events: Vec<Value> =
                    pieces.iter().map(|piece| delta(0, "text", piece)).collect();
                edit_events(&mut events, &ReplaceWord("secret", "*"));
                let now: String =
                    events.iter().map(|event| piece(event, "text").to_owned()).collect();
                assert_eq!(now, expected, "cut at {first} and {second}");
            }
        }
    }

    #[test]
    fn blocks_and_kinds_of_deltas_are_separate_texts() {
        let mut events = vec![
            delta(0, "text", "sec"),
            delta(1, "text", "ret"),
            delta(0, "partial_json", "ret"),
            json!({"type": "content_block_stop", "index": 0}),
            delta(0, "text", "ret"),
        ];
        edit_events(&mut events, &ReplaceWord("secret", "*"));
        let texts: Vec<_> = events.iter().map(|event| event["delta"].clone()).collect();
        let field = |number: usize, name: &str| texts[number][name].as_str().unwrap_or("-");
        assert_eq!([field(0, "text"), field(1, "text"), field(4, "text")], ["*", "ret", ""]);
        assert_eq!(field(2, "partial_json"), "ret");
    }

    #[test]
    fn a_replacement_is_escaped_for_its_context() {
        let mut events = vec![delta(0, "partial_json", r#"{"a": "x"}"#)];
        edit_events(&mut events, &ReplaceWord("x", "\"\n"));
        assert_eq!(events[0]["delta"]["partial_json"], r#"{"a": "\"\n"}"#);
    }

    #[test]
    fn opaque_fields_are_not_changed() {
        let mut value = json!({"a": ["x"], "signature": "x", "source": {"type": "base64", "data": "x"},
            "data": "x"});
        edit_value(&mut value, &ReplaceWord("x", "y"));
        assert_eq!(
            value,
            json!({"a": ["y"], "signature": "x", "source": {"type": "base64", "data": "x"},
            "data": "y"})
        );
    }
}
