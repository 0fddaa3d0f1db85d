//! Placeholders in scenarios: `{{name}}` is something saved earlier in the run, `{{/a/b}}` a part of the event that
//! is being answered, and `{{cwd}}` and `{{home}}` are the folders of the run.

use std::collections::BTreeMap;

use serde_json::Value;

/// The values of a run's placeholders.
pub(crate) type Saved = BTreeMap<String, Value>;

/// Replaces the placeholders in a value. A placeholder that is a whole string becomes its value, of any type; one
/// inside a string becomes text. Unknown ones stay unchanged.
pub(crate) fn fill(value: &Value, saved: &Saved, event: &Value) -> Value {
    match value {
        Value::String(text) => fill_text(text, saved, event),
        Value::Array(items) => items.iter().map(|item| fill(item, saved, event)).collect(),
        Value::Object(fields) => {
            let filled =
                fields.iter().map(|(name, value)| (name.clone(), fill(value, saved, event)));
            Value::Object(filled.collect())
        }
        other => other.clone(),
    }
}

fn fill_text(text: &str, saved: &Saved, event: &Value) -> Value {
    let known = |name: &str| match name.starts_with('/') {
        true => event.pointer(name).cloned(),
        false => saved.get(name).cloned(),
    };
    let alone = text.strip_prefix("{{").and_then(|rest| rest.strip_suffix("}}"));
    if let Some(value) = alone.filter(|name| !name.contains('{')).and_then(known) {
        return value;
    }
    let mut pieces = text.split("{{");
    let mut filled = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        match piece.split_once("}}").and_then(|(name, rest)| Some((known(name)?, rest))) {
            Some((Value::String(value), rest)) => filled += &(value + rest),
            Some((value, rest)) => filled += &format!("{value}{rest}"),
            None => filled += &format!("{{{{{piece}"),
        }
    }
    Value::String(filled)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Saved, fill};

    #[test]
    fn placeholders_are_replaced_by_their_values() {
        let saved = Saved::from([("session".to_owned(), json!("s-1")), ("n".to_owned(), json!(3))]);
        let event = json!({"arguments": {"a": 2}});
        let check = |given, expected| assert_eq!(fill(&given, &saved, &event), expected);
        check(json!({"resume": "{{session}}"}), json!({"resume": "s-1"}));
        check(json!(["{{n}}", "n={{n}}, {{session}}!"]), json!([3, "n=3, s-1!"]));
        check(json!("a={{/arguments/a}}"), json!("a=2"));
        check(json!("{{tool_result}} and {{"), json!("{{tool_result}} and {{"));
    }
}
