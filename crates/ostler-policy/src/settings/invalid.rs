//! Error texts about settings files, for their authors.

use serde_json::error::Category;

/// The type of a key's value, and an example.
const KEYS: &[(&str, &str, &str)] = &[
    ("permissions", "an object", r#"{"deny": ["Read(.env)"]}"#),
    ("permissions.allow", "a list of rules", r#"["Bash(git:*)"]"#),
    ("permissions.deny", "a list of rules", r#"["Read(.env)"]"#),
    ("permissions.ask", "a list of rules", r#"["Bash(git push:*)"]"#),
    ("permissions.defaultMode", "the name of a mode", r#""acceptEdits""#),
    ("permissions.additionalDirectories", "a list of folders", r#"["../docs"]"#),
    ("permissions.disableBypassPermissionsMode", "a word", r#""disable""#),
    ("env", "an object of texts", r#"{"RUST_LOG": "info"}"#),
    ("model", "the name of a model", r#""claude-opus-5-5""#),
    ("modelPrices", "an object of prices", r#"{"my-model": {"input": 3, "output": 15}}"#),
    ("sandbox", "an object", r#"{"enabled": true}"#),
    ("outputStyle", "a name", r#""default""#),
    ("disableAllHooks", "true or false", "true"),
    ("apiKeyHelper", "a command", r#""pass show api-key""#),
];

/// The reason why a value could not be read, and the expected value.
pub(super) fn reason(pointer: &str, error: &serde_json::Error) -> String {
    let place = format!("line {}, column {}", error.line(), error.column());
    if error.classify() != Category::Data {
        let what = without_place(&error.to_string());
        return format!(
            "it is not JSON ({what} at {place}): look there for an extra or missing comma, quote or bracket"
        );
    }
    // For `permissions.deny[2]`, the table above has the list.
    let key = pointer.split('[').next().unwrap_or_default();
    let is_item = key.len() < pointer.len();
    let found = found(&without_place(&error.to_string()));
    let near = KEYS.iter().filter(|(known, ..)| key == *known || is_below(key, known));
    match near.max_by_key(|(known, ..)| known.len()) {
        Some((known, expected, example)) if key == *known => {
            let expected = if is_item { "a text" } else { expected };
            format!(
                "expected {expected} and found {found} ({place}); write for example {}",
                line(known, example)
            )
        }
        Some((known, expected, example)) => {
            format!(
                "{found} does not belong there ({place}): {known} is {expected}, for example {}",
                line(known, example)
            )
        }
        None if pointer == "." => {
            format!(
                "expected an object and found {found}; write for example {{\"permissions\": {{\"deny\": [\"Read(.env)\"]}}}}"
            )
        }
        None => format!("{found} does not belong there ({place})"),
    }
}

/// The key with its value, as it is written in a file.
fn line(key: &str, example: &str) -> String {
    let name = key.rsplit('.').next().unwrap_or(key);
    format!("\"{name}\": {example}")
}

fn is_below(key: &str, above: &str) -> bool {
    key.strip_prefix(above).is_some_and(|rest| rest.starts_with('.'))
}

fn without_place(text: &str) -> String {
    text.rsplit_once(" at line ").map_or(text, |(text, _)| text).to_owned()
}

/// The value in the file, from the parser's message.
fn found(text: &str) -> String {
    let body = text.strip_prefix("invalid type: ").or_else(|| text.strip_prefix("invalid value: "));
    let Some(body) = body.map(|body| body.split(", expected ").next().unwrap_or(body)) else {
        return text.to_owned();
    };
    let (kind, value) = body.split_once(' ').unwrap_or((body, ""));
    match (kind, value) {
        ("integer", value) => format!("the number {}", value.trim_matches('`')),
        ("floating", value) => {
            format!("the number {}", value.trim_start_matches("point ").trim_matches('`'))
        }
        ("string", value) => format!("the text {value}"),
        ("boolean", value) => value.trim_matches('`').to_owned(),
        ("map", _) => "an object".to_owned(),
        ("sequence", _) => "a list".to_owned(),
        _ => body.to_owned(),
    }
}
