//! Fills in variables in texts of settings, plugins, commands and hooks.

use std::borrow::Cow;

use serde_json::Value;

/// Longer text between braces is not a name. Without a limit, a text full of `${` would take quadratic time.
const LONGEST_NAME: usize = 1024;

/// How a variable is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Syntax {
    /// `${NAME}`, with any text between the braces.
    Braces,
    /// `${NAME}`, and `$NAME` with letters, digits and underscores.
    Shell,
}

/// Fills in variables. One without a value stays as it is, and variables inside its braces are filled in.
///
/// Values are not searched for variables.
pub fn fill(text: &str, syntax: Syntax, mut value: impl FnMut(&str) -> Option<String>) -> String {
    fill_places(text, |rest| {
        let (name, length) = variable(rest, syntax)?;
        Some((value(name)?.into(), length))
    })
}

/// Fills in what begins with `$`: `place` gets the text from there and returns the value and how many bytes it
/// replaces.
pub fn fill_places<'v>(
    text: &str,
    mut place: impl FnMut(&str) -> Option<(Cow<'v, str>, usize)>,
) -> String {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        filled.push_str(&rest[..at]);
        let (value, length) = place(&rest[at..]).unwrap_or((Cow::Borrowed("$"), 1));
        filled.push_str(&value);
        rest = &rest[at + length..];
    }
    filled + rest
}

/// Applies a function to every text in a JSON value, except the names of fields.
pub fn map_texts(value: Value, change: &mut impl FnMut(&str) -> String) -> Value {
    match value {
        Value::String(text) => Value::String(change(&text)),
        Value::Array(items) => items.into_iter().map(|item| map_texts(item, change)).collect(),
        Value::Object(fields) => {
            fields.into_iter().map(|(name, value)| (name, map_texts(value, change))).collect()
        }
        other => other,
    }
}

/// The name of the variable at the beginning of a text, and the length of the variable.
fn variable(text: &str, syntax: Syntax) -> Option<(&str, usize)> {
    let after = text.strip_prefix('$')?;
    if let Some(braced) = after.strip_prefix('{')
        && let Some(end) = braced.bytes().take(LONGEST_NAME).position(|byte| byte == b'}')
    {
        return Some((&braced[..end], "${}".len() + end));
    }
    let is_in_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let end = after.find(|c| !is_in_name(c)).unwrap_or(after.len());
    (syntax == Syntax::Shell && end > 0).then(|| (&after[..end], 1 + end))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn variables_are_filled_in_where_their_syntax_allows() {
        let value = |name: &str| (name != "NONE").then(|| format!("<{name}>"));
        for (text, braces, shell) in [
            ("a ${B} c", "a <B> c", "a <B> c"),
            ("$B-${B}$B", "$B-<B>$B", "<B>-<B><B>"),
            ("5 $ and ${", "5 $ and ${", "5 $ and ${"),
            ("$${ä}", "$<ä>", "$<ä>"),
            ("${NONE}$NONE.", "${NONE}$NONE.", "${NONE}$NONE."),
            ("${B", "${B", "${B"),
        ] {
            assert_eq!(fill(text, Syntax::Braces, value), braces, "{text}");
            assert_eq!(fill(text, Syntax::Shell, value), shell, "{text}");
        }
    }

    #[test]
    fn a_variable_inside_the_braces_of_an_unknown_one_is_filled_in() {
        let value = |name: &str| (name == "ROOT").then(|| "/a".to_owned());
        assert_eq!(fill("${X:-${ROOT}/b}", Syntax::Braces, value), "${X:-/a/b}");
        assert_eq!(fill("${ROOT}", Syntax::Braces, |_| Some("${ROOT}".to_owned())), "${ROOT}");
    }

    #[test]
    fn every_text_of_a_value_is_mapped_and_no_name_of_a_field() {
        let value = json!({"a": ["a", {"b": "b"}, 1, null]});
        let mapped = map_texts(value, &mut |text| format!("<{text}>"));
        assert_eq!(mapped, json!({"a": ["<a>", {"b": "<b>"}, 1, null]}));
    }
}
