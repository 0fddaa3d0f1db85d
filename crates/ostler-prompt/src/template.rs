//! Templates: text with placeholders, checked when a prompt is built.
//!
//! `${name}` is a placeholder, `$${` is a literal `${`, and every other dollar sign is literal. Inserted values are not
//! expanded again, so a parameter cannot contain placeholders.

use serde::Serialize;
use serde_json::{Map, Value};

use crate::prompt_error::PromptError;

/// A part of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    Place(String),
}

/// Fills in the placeholders.
///
/// # Errors
/// If a placeholder has no parameter, a parameter has no placeholder, or the template is malformed.
pub(crate) fn fill(
    section: &str,
    template: &str,
    parameters: &Map<String, Value>,
) -> Result<String, PromptError> {
    let pieces = pieces(section, template)?;
    let has_place = |name: &str| pieces.iter().any(|piece| *piece == Piece::Place(name.to_owned()));
    if let Some(unused) = parameters.keys().find(|name| !has_place(name)) {
        return Err(PromptError::UnusedParameter {
            section: section.to_owned(),
            name: unused.clone(),
        });
    }
    let mut filled = String::with_capacity(template.len());
    for piece in pieces {
        match piece {
            Piece::Text(text) => filled.push_str(&text),
            Piece::Place(name) => match parameters.get(&name) {
                None | Some(Value::Null) => {
                    return Err(PromptError::MissingParameter {
                        section: section.to_owned(),
                        name,
                    });
                }
                Some(Value::String(text)) => filled.push_str(text),
                Some(other) => filled.push_str(&other.to_string()),
            },
        }
    }
    Ok(filled)
}

/// Parameters by name.
///
/// # Errors
/// If they are not a struct or a map, or cannot be serialized.
pub(crate) fn parameters(
    section: &str,
    parameters: &impl Serialize,
) -> Result<Map<String, Value>, PromptError> {
    let wrong = |reason: String| PromptError::Parameters { section: section.to_owned(), reason };
    match serde_json::to_value(parameters).map_err(|error| wrong(error.to_string()))? {
        Value::Object(parameters) => Ok(parameters),
        other => Err(wrong(format!("a struct or a map is needed, but they serialize as {other}"))),
    }
}

fn pieces(section: &str, template: &str) -> Result<Vec<Piece>, PromptError> {
    let mut pieces = Vec::new();
    let mut text = String::new();
    let mut rest = template;
    while let Some(at) = rest.find("${") {
        let before = &rest[..at];
        let after = &rest[at + 2..];
        if let Some(before) = before.strip_suffix('$') {
            text.push_str(before);
            text.push_str("${");
            rest = after;
            continue;
        }
        text.push_str(before);
        let malformed = |reason: &str| PromptError::Template {
            section: section.to_owned(),
            reason: reason.to_owned(),
        };
        let end = after
            .find('}')
            .ok_or_else(|| malformed("a `${` without its `}`; write `$${` for a literal `${`"))?;
        let name = &after[..end];
        if !is_name(name) {
            return Err(malformed(&format!(
                "`${{{name}}}` is not a valid name: use letters, digits and `_`; write `$${{` for a literal `${{`"
            )));
        }
        if !text.is_empty() {
            pieces.push(Piece::Text(std::mem::take(&mut text)));
        }
        pieces.push(Piece::Place(name.to_owned()));
        rest = &after[end + 1..];
    }
    text.push_str(rest);
    if !text.is_empty() {
        pieces.push(Piece::Text(text));
    }
    Ok(pieces)
}

fn is_name(name: &str) -> bool {
    let mut characters = name.chars();
    characters.next().is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && characters.all(|character| character.is_ascii_alphanumeric() || character == '_')
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(template: &str, given: Value, expected: Result<&str, &str>) {
        let given = parameters("task", &given).unwrap();
        let filled = fill("task", template, &given).map_err(|error| error.to_string());
        assert_eq!(filled.as_deref().map_err(String::as_str), expected, "{template}");
    }

    #[test]
    fn parameters_replace_their_placeholders() {
        check(
            "Review ${folder}, ${n} times.",
            json!({"folder": "src", "n": 2}),
            Ok("Review src, 2 times."),
        );
        check("${a}${a}", json!({"a": "x"}), Ok("xx"));
        check("no places", json!({}), Ok("no places"));
        check("", json!({}), Ok(""));
        check("${list} ${on}", json!({"list": ["a", 1], "on": true}), Ok(r#"["a",1] true"#));
    }

    #[test]
    fn other_dollars_are_literal() {
        check("$5, $HOME, $$ and $${x}", json!({}), Ok("$5, $HOME, $$ and ${x}"));
        check("ends in $", json!({}), Ok("ends in $"));
    }

    #[test]
    fn inserted_values_are_not_expanded_again() {
        check("${a} ${b}", json!({"a": "${b}", "b": "${a}"}), Ok("${b} ${a}"));
    }

    #[test]
    fn missing_unused_and_malformed_parameters_are_errors() {
        check(
            "${folder}",
            json!({}),
            Err("section `task`: the parameter `folder` is missing; add it to `params`"),
        );
        check(
            "${folder}",
            json!({"folder": null}),
            Err("section `task`: the parameter `folder` is missing; add it to `params`"),
        );
        check(
            "text",
            json!({"folder": "src"}),
            Err(
                "section `task`: the parameter `folder` is not used; write `${folder}` into the template, or leave it out",
            ),
        );
        check(
            "${folder",
            json!({}),
            Err("section `task`: a `${` without its `}`; write `$${` for a literal `${`"),
        );
        check(
            "${a b}",
            json!({}),
            Err(
                "section `task`: `${a b}` is not a valid name: use letters, digits and `_`; write `$${` for a literal `${`",
            ),
        );
    }

    #[test]
    fn parameters_must_be_a_struct_or_a_map() {
        let error = parameters("task", &7).unwrap_err().to_string();
        assert_eq!(
            error,
            "section `task`: its parameters: a struct or a map is needed, but they serialize as 7"
        );
    }
}
