//! A call in one line that a user can trust: nothing in it can move the cursor or change the direction of the text.

use ostler::engine::sandbox::NETWORK_TOOL;
use serde_json::Value;

use super::hidden;

/// The maximum length of a summary, in characters.
const LONGEST: usize = 300;

/// The most informative argument, or all of them.
pub(super) fn of(tool: &str, input: &Value) -> String {
    let telling = match tool {
        "Bash" => "command",
        "Read" | "Write" | "Edit" | "NotebookEdit" => "file_path",
        "WebFetch" => "url",
        "WebSearch" => "query",
        "Glob" | "Grep" => "pattern",
        _ => "",
    };
    if tool == NETWORK_TOOL {
        let host = input.get("host").and_then(Value::as_str).unwrap_or_default();
        return format!("Connect to {}", shortened(host));
    }
    let said = input.get(telling).and_then(Value::as_str);
    let text = said.map_or_else(|| input.to_string(), str::to_owned);
    format!("{tool}: {}", shortened(&text))
}

fn shortened(text: &str) -> String {
    let mut shown = String::new();
    for character in text.chars().take(LONGEST) {
        match character {
            '\n' => shown.push('⏎'),
            '\t' => shown.push(' '),
            character => hidden::show(&mut shown, character),
        }
    }
    if text.chars().nth(LONGEST).is_some() { format!("{shown}…") } else { shown }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{NETWORK_TOOL, of};

    // Seen to fail when control characters are shown as they are.
    #[test]
    fn the_main_argument_is_shown_without_control_characters() {
        assert_eq!(of("Bash", &json!({"command": "ls\nrm x"})), "Bash: ls⏎rm x");
        assert_eq!(
            of("Bash", &json!({"command": "a\u{202e}b\u{1b}[2J"})),
            "Bash: a⟨U+202E⟩b⟨U+001B⟩[2J"
        );
        assert_eq!(of(NETWORK_TOOL, &json!({"host": "a.example"})), "Connect to a.example");
        assert_eq!(of("mcp__x__y", &json!({"a": 1})), "mcp__x__y: {\"a\":1}");
        assert!(of("Read", &json!({"file_path": "é".repeat(400)})).ends_with("é…"));
    }
}
