//! The system prompt of a skill's run: an instruction to follow only the skill, the parameters, and the skill's own
//! text.
//!
//! Parameters are untrusted. They are inserted as plain text in one pass: nothing in a name is a pattern, nothing in a
//! value is expanded, and inserted text is not scanned again.

use serde_json::{Map, Value};

/// The system prompt for a skill and its parameters, in the order they were given.
pub(crate) fn system_prompt(name: &str, content: &str, parameters: &Map<String, Value>) -> String {
    with_skill(lock_warning(name), content, parameters)
}

/// The addition to the engine's own prompt for a skill that comes first among others.
pub(crate) fn priority_prompt(
    name: &str,
    content: &str,
    parameters: &Map<String, Value>,
) -> String {
    let priority = format!(
        "# Skill with priority: \"{name}\"\n\
         \n\
         Follow the instructions of this skill first. Where they leave something open, other skills may help.\n\
         \n\
         ---\n\
         \n"
    );
    with_skill(priority, content, parameters)
}

fn with_skill(mut prompt: String, content: &str, parameters: &Map<String, Value>) -> String {
    if !parameters.is_empty() {
        prompt.push_str("# Skill Parameters\n");
        for (key, value) in parameters {
            prompt.push_str(&format!("- {}: {}\n", on_one_item(key), on_one_item(&text(value))));
        }
        prompt.push('\n');
    }
    prompt.push_str(&inject(content, parameters));
    prompt
}

/// The instruction to follow only this skill.
fn lock_warning(name: &str) -> String {
    format!(
        "# ⚠️ FORCED SKILL EXECUTION MODE\n\
         \n\
         You are executing ONLY the \"{name}\" skill.\n\
         - Do NOT attempt to use any other skills or commands.\n\
         - Do NOT look for other skills in the filesystem.\n\
         - Follow ONLY the instructions defined in this skill.\n\
         - Use ONLY the tools specified in this skill's configuration.\n\
         \n\
         ---\n\
         \n"
    )
}

/// Indents further lines of a value, so that none of them looks like another list item or a heading.
fn on_one_item(text: &str) -> String {
    text.replace('\n', "\n  ")
}

/// A value as text.
pub(crate) fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Replaces `{{ name }}`, with optional blanks inside the braces, by the value of the parameter. Unknown names stay.
pub(crate) fn inject(content: &str, parameters: &Map<String, Value>) -> String {
    if parameters.is_empty() {
        return content.to_owned();
    }
    let mut injected = String::with_capacity(content.len());
    let mut rest = content;
    while let Some(start) = rest.find("{{") {
        let (before, from) = rest.split_at(start);
        injected.push_str(before);
        match placeholder(from, parameters) {
            Some((value, length)) => {
                injected.push_str(&text(value));
                rest = &from[length..];
            }
            // Skips one brace: in `{{{a}}` the placeholder begins at the second one.
            None => {
                injected.push('{');
                rest = &from[1..];
            }
        }
    }
    injected.push_str(rest);
    injected
}

/// The value for the placeholder at the beginning of a text, and the placeholder's length.
fn placeholder<'a>(text: &str, parameters: &'a Map<String, Value>) -> Option<(&'a Value, usize)> {
    let inside = text.strip_prefix("{{")?;
    // A name may itself contain braces: the longest name that matches counts.
    let trimmed = inside.trim_start();
    let space_setup = parameters.iter().filter_map(|(key, value)| {
        let after = trimmed.strip_prefix(key.as_str())?.trim_start().strip_prefix("}}")?;
        Some((key.len(), value, text.len() - after.len()))
    });
    let (_, value, length) = space_setup.max_by_key(|(key, ..)| *key)?;
    Some((value, length))
}

#[cfg(test)]
mod tests;
