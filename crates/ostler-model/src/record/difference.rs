//! The first difference of two values, as text. Pure.

use serde_json::Value;

/// The first difference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Difference {
    /// Such as `messages[2].content[0].text`.
    pub(crate) path: String,
    pub(crate) recorded: String,
    pub(crate) now: String,
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { path, recorded, now } = self;
        write!(f, "at {path}: recorded is {recorded}, requested is {now}")
    }
}

/// The first difference of two values.
pub(crate) fn first(recorded: &Value, now: &Value) -> Option<Difference> {
    find(String::new(), recorded, now)
}

fn find(path: String, recorded: &Value, now: &Value) -> Option<Difference> {
    if recorded == now {
        return None;
    }
    match (recorded, now) {
        (Value::Object(old), Value::Object(new)) => {
            let added = new.keys().filter(|name| !old.contains_key(*name));
            old.keys().chain(added).find_map(|name| {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                compare(path, old.get(name), new.get(name))
            })
        }
        (Value::Array(old), Value::Array(new)) => (0..old.len().max(new.len()))
            .find_map(|at| compare(format!("{path}[{at}]"), old.get(at), new.get(at))),
        (Value::String(old), Value::String(new)) => {
            let (recorded, now) = excerpts(old, new);
            Some(Difference { path, recorded, now })
        }
        (old, new) => Some(Difference { path, recorded: shown(old), now: shown(new) }),
    }
}

fn compare(path: String, old: Option<&Value>, new: Option<&Value>) -> Option<Difference> {
    let nothing = || "nothing".to_owned();
    match (old, new) {
        (Some(old), Some(new)) => find(path, old, new),
        (Some(old), None) => Some(Difference { path, recorded: shown(old), now: nothing() }),
        (None, Some(new)) => Some(Difference { path, recorded: nothing(), now: shown(new) }),
        (None, None) => None,
    }
}

/// The most characters of a value that are shown.
const SHOWN: usize = 120;
/// The most characters before the difference.
const BEFORE: usize = 30;

fn shown(value: &Value) -> String {
    cut(&value.to_string(), 0)
}

/// The parts of two texts that differ, with a few characters before them.
fn excerpts(old: &str, new: &str) -> (String, String) {
    let same = old.chars().zip(new.chars()).take_while(|(old, new)| old == new).count();
    let from = same.saturating_sub(BEFORE);
    let show = |text: &str| Value::from(cut(text, from)).to_string();
    (show(old), show(new))
}

fn cut(text: &str, from: usize) -> String {
    let part: String = text.chars().skip(from).take(SHOWN).collect();
    let before = if from > 0 { "…" } else { "" };
    let after = if text.chars().nth(from + SHOWN).is_some() { "…" } else { "" };
    format!("{before}{part}{after}")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(recorded: Value, now: Value, expected: &str) {
        let found = first(&recorded, &now).map(|found| found.to_string());
        assert_eq!(found.as_deref().unwrap_or("none"), expected);
    }

    #[test]
    fn the_first_difference_is_named_with_its_place() {
        check(json!({"a": 1}), json!({"a": 1}), "none");
        check(json!({"a": 1}), json!({"a": 2}), "at a: recorded is 1, requested is 2");
        check(
            json!({"a": [{"b": "x"}, 1]}),
            json!({"a": [{"b": "y"}, 2]}),
            r#"at a[0].b: recorded is "x", requested is "y""#,
        );
        check(
            json!({"a": [1]}),
            json!({"a": [1, 2]}),
            "at a[1]: recorded is nothing, requested is 2",
        );
        check(
            json!({"a": 1, "b": 2}),
            json!({"a": 1}),
            "at b: recorded is 2, requested is nothing",
        );
    }

    #[test]
    fn of_long_texts_the_part_that_differs_is_shown() {
        let text = |end: &str| json!({"t": format!("{}{end}{}", "ä".repeat(500), "z".repeat(500))});
        let found = first(&text("one"), &text("two")).unwrap();
        let before = "ä".repeat(BEFORE);
        assert!(found.recorded.starts_with(&format!("\"…{before}one")), "{found}");
        assert!(found.now.starts_with(&format!("\"…{before}two")) && found.now.ends_with("z…\""));
    }
}
