//! Patterns: how a scenario describes an expected value.
//!
//! | pattern | matches |
//! |---|---|
//! | an object | an object whose fields match those given; it may have others |
//! | a list | a list with elements that match those given, in this order; others may be between them |
//! | `null` | `null`, and a missing field |
//! | `"*"` | anything but `null` |
//! | `"~text"` | a text that contains this; of a list or an object, its JSON |
//! | `{"$any": [...]}` | a value that matches one of these |
//! | `{"$count": N}` | a list of this many elements |
//! | anything else | an equal value |

use serde_json::Value;

/// Where and how a value does not match a pattern; `None` when it does.
pub(crate) fn mismatch(pattern: &Value, value: &Value) -> Option<String> {
    at("", pattern, value)
}

pub(crate) fn fits(pattern: &Value, value: &Value) -> bool {
    mismatch(pattern, value).is_none()
}

fn at(place: &str, pattern: &Value, value: &Value) -> Option<String> {
    let unlike = || Some(format!("{place}: {} does not fit {pattern}", short(value)));
    match pattern {
        Value::Object(fields) => {
            if let Some(choices) = fields.get("$any").and_then(Value::as_array) {
                return if choices.iter().any(|one| fits(one, value)) { None } else { unlike() };
            }
            if let Some(count) = fields.get("$count") {
                let length = value.as_array().map(Vec::len);
                return if length.map(Value::from).as_ref() == Some(count) {
                    None
                } else {
                    unlike()
                };
            }
            if !value.is_object() {
                return unlike();
            }
            let field = |(name, pattern): (&String, &Value)| {
                at(&format!("{place}/{name}"), pattern, &value[name.as_str()])
            };
            fields.iter().find_map(field)
        }
        Value::Array(patterns) => {
            let Some(mut rest) = value.as_array().map(Vec::as_slice) else { return unlike() };
            for (index, pattern) in patterns.iter().enumerate() {
                match rest.iter().position(|element| fits(pattern, element)) {
                    Some(found) => rest = &rest[found + 1..],
                    None => {
                        return Some(format!(
                            "{place}/{index}: {pattern} is not in {}",
                            short(value)
                        ));
                    }
                }
            }
            None
        }
        Value::String(text) if text == "*" => value.is_null().then(unlike).flatten(),
        Value::String(text) if text.starts_with('~') => {
            let whole = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            if whole.contains(&text[1..]) { None } else { unlike() }
        }
        _ if pattern == value => None,
        _ => unlike(),
    }
}

/// A value, shortened for people.
pub(crate) fn short(value: &Value) -> String {
    const MOST: usize = 300;
    let text = value.to_string();
    match text.char_indices().nth(MOST) {
        None => text,
        Some((end, _)) => format!("{}… ({} bytes)", &text[..end], text.len()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{fits, mismatch};

    #[test]
    fn objects_and_lists_may_have_more_elements() {
        let value = json!({"a": [1, {"b": 2, "c": 3}, 4], "d": null});
        assert!(fits(&json!({"a": [{"c": 3}, 4]}), &value));
        assert!(!fits(&json!({"a": [4, 1]}), &value));
        assert!(fits(&json!({"d": null, "e": null}), &value));
        assert!(fits(&json!({"a": {"$count": 3}}), &value));
        assert!(!fits(&json!({"a": {"$count": 2}}), &value));
    }

    #[test]
    fn text_patterns_match_equal_text_contained_text_or_anything() {
        assert!(fits(&json!("~ell"), &json!("Hello")));
        assert!(fits(&json!("~\"a\":1"), &json!({"a": 1})));
        assert!(!fits(&json!("ell"), &json!("Hello")));
        assert!(fits(&json!("*"), &json!(0)));
        assert!(!fits(&json!("*"), &json!(null)));
        assert!(fits(&json!({"$any": ["a", "b"]}), &json!("b")));
        assert!(!fits(&json!({"$any": ["a", "b"]}), &json!("c")));
    }

    #[test]
    fn a_mismatch_names_the_first_place() {
        let found = mismatch(&json!({"a": {"b": 1}}), &json!({"a": {"b": 2}})).unwrap();
        assert_eq!(found, "/a/b: 2 does not fit 1");
    }
}
