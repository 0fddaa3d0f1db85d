//! The arguments of a call, as people write them: `{"a": 2, "b": 3}`, or `a=2 and b=3`.

use serde_json::{Map, Value};

/// Reads them; `None` if they are neither.
pub(super) fn read(text: &str) -> Option<Value> {
    if let Ok(object @ Value::Object(_)) = serde_json::from_str(text) {
        return Some(object);
    }
    let words = text.split([' ', ',']).filter(|word| !matches!(*word, "" | "and"));
    let pairs = words.map(|word| {
        let (name, value) = word.split_once('=')?;
        // A value that is not JSON is a text without quotes.
        let value = serde_json::from_str(value).unwrap_or_else(|_| Value::from(value));
        (!name.is_empty()).then(|| (name.to_owned(), value))
    });
    let object = pairs.collect::<Option<Map<String, Value>>>()?;
    (!object.is_empty()).then_some(Value::Object(object))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn json_and_pairs_are_arguments_and_words_are_not() {
        for (text, expected) in [
            (r#"{"a": 2, "b": "x y"}"#, Some(json!({"a": 2, "b": "x y"}))),
            ("a=2 and b=3", Some(json!({"a": 2, "b": 3}))),
            ("a=2, b=three", Some(json!({"a": 2, "b": "three"}))),
            ("care", None),
            ("a=2 care", None),
            ("=2", None),
            ("[1]", None),
            ("", None),
        ] {
            assert_eq!(read(text), expected, "{text}");
        }
    }
}
