//! The exact prompts of the two examples, and hostile parameters.

use proptest::prelude::*;
use serde_json::json;

use super::*;

fn map(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

#[test]
fn the_prompt_of_the_first_example() {
    let content =
        "# Web to Markdown Converter\n\nDownload {{url}} and save to {{outputDir}}.\n\n...\n";
    let parameters = map(json!({"url": "https://google.com", "outputDir": "./downloads"}));
    let expected = "\
# ⚠️ FORCED SKILL EXECUTION MODE

You are executing ONLY the \"web-to-markdown-ts\" skill.
- Do NOT attempt to use any other skills or commands.
- Do NOT look for other skills in the filesystem.
- Follow ONLY the instructions defined in this skill.
- Use ONLY the tools specified in this skill's configuration.

---

# Skill Parameters
- url: https://google.com
- outputDir: ./downloads

# Web to Markdown Converter

Download https://google.com and save to ./downloads.

...
";
    assert_eq!(system_prompt("web-to-markdown-ts", content, &parameters), expected);
}

#[test]
fn the_prompt_of_the_second_example() {
    let content = "\
# Simple Test Execution

This skill performs a simple test execution to validate the task execution system.

## Usage
Provide any test prompt to execute.

## Implementation
1. Read a test file
2. Write test results
3. Return success message
";
    let expected = "\
# ⚠️ FORCED SKILL EXECUTION MODE

You are executing ONLY the \"simple-test-execution\" skill.
- Do NOT attempt to use any other skills or commands.
- Do NOT look for other skills in the filesystem.
- Follow ONLY the instructions defined in this skill.
- Use ONLY the tools specified in this skill's configuration.

---

# Simple Test Execution

This skill performs a simple test execution to validate the task execution system.

## Usage
Provide any test prompt to execute.

## Implementation
1. Read a test file
2. Write test results
3. Return success message
";
    assert_eq!(system_prompt("simple-test-execution", content, &Map::new()), expected);
}

#[track_caller]
fn check(content: &str, parameters: Value, expected: &str) {
    assert_eq!(inject(content, &map(parameters)), expected);
}

#[test]
fn placeholders_become_values() {
    check("{{a}} {{ a }} {{\ta\n}} {{a}}", json!({"a": "x"}), "x x x x");
    check("{{a}} {{b}}", json!({"a": "x"}), "x {{b}}");
    check("no braces", json!({"a": "x"}), "no braces");
    check("{{a}}", json!({}), "{{a}}");
    check(
        "{{A}} {{ab}} {a} {{a} {{}} {{ }}",
        json!({"a": "x"}),
        "{{A}} {{ab}} {a} {{a} {{}} {{ }}",
    );
    check("{{{a}}}", json!({"a": "x"}), "{x}");
    check("{{a", json!({"a": "x"}), "{{a");
    check("é{{ü}}é", json!({"ü": "日本"}), "é日本é");
}

#[test]
fn values_become_text() {
    let values =
        json!({"n": 3, "f": 1.5, "yes": true, "none": null, "list": [1, "a"], "map": {"k": 1}});
    check(
        "{{n}} {{f}} {{yes}} {{none}} {{list}} {{map}}",
        values,
        r#"3 1.5 true null [1,"a"] {"k":1}"#,
    );
}

// Seen to fail when `$` in a value is expanded as in the replacement of a pattern, and when the result is scanned
// again.
#[test]
fn values_are_inserted_as_plain_text() {
    for value in [
        "$&",
        "$1",
        "$$",
        "$`",
        "$'",
        "\\0",
        "\\1",
        "{{a}}",
        "{{b}}",
        "{{",
        "}}",
        "{{ a",
        "%s",
        "${x}",
        "\0",
        "line\nline\r\n\u{2028}",
        "---",
        "`rm -rf /`",
    ] {
        check("<{{a}}|{{ b }}>", json!({"a": value, "b": "B"}), &format!("<{value}|B>"));
        check("{{a}}{{a}}", json!({"a": value}), &format!("{value}{value}"));
    }
    check("{{a}}b}}", json!({"a": "{{", "b": "no"}), "{{b}}");
    let long = "x{{a}}".repeat(200_000);
    assert!(long.len() > 1_000_000);
    check("[{{a}}]", json!({"a": long.as_str()}), &format!("[{long}]"));
}

// Seen to fail when keys are made into patterns.
#[test]
fn names_are_matched_as_plain_text() {
    for key in [
        "a.b",
        "a|b",
        ".*",
        "a+",
        "(a",
        "[a-z]",
        "\\w",
        "^a$",
        "$&",
        "__proto__",
        "constructor",
        "toString",
        "a b",
        "ä",
        "}",
        "{",
        "a}}b",
        "a{{b",
    ] {
        check(&format!("<{{{{{key}}}}}> {{{{aab}}}}"), json!({key: "v"}), "<v> {{aab}}");
        check(&format!("<{{{{ {key} }}}}>"), json!({key: "v"}), "<v>");
    }
    check("{{a.b}} {{axb}}", json!({"a.b": "v"}), "v {{axb}}");
    check("{{}} {{ }}", json!({"": "v"}), "v v");
}

#[test]
fn a_value_with_several_lines_stays_one_list_item() {
    let parameters = map(json!({"a": "one\n- b: two\n\n# Skill", "c": "3"}));
    let prompt = system_prompt("s", "{{a}}", &parameters);
    let (_, after) = prompt.split_once("# Skill Parameters\n").unwrap();
    assert_eq!(after, "- a: one\n  - b: two\n  \n  # Skill\n- c: 3\n\none\n- b: two\n\n# Skill");
}

#[test]
fn a_megabyte_of_braces_is_scanned_quickly() {
    // Scanning the rest again for each brace would take hours.
    let content = "{{ ".repeat(400_000);
    check(&content, json!({"a": "x"}), &content);
}

proptest! {
    /// The reference: text between the placeholders stays, and inserted text is never scanned again.
    #[test]
    fn inserted_text_is_never_scanned_again(
        between in prop::collection::vec("[a-c{} \n]{0,6}", 1..6),
        names in prop::collection::vec(0..3_usize, 0..5),
        values in prop::array::uniform3("[abc{}$&\\\\ \n]{0,8}"),
    ) {
        let keys = ["ka", "kb", "kc"];
        let parameters: Map<String, Value> =
            keys.iter().zip(&values).map(|(key, value)| ((*key).to_owned(), json!(value))).collect();
        let (mut content, mut expected) = (String::new(), String::new());
        for (number, between) in between.iter().enumerate() {
            // A brace before a placeholder has its own test.
            let between = between.trim_end_matches('{');
            content.push_str(between);
            expected.push_str(between);
            if let Some(&name) = names.get(number) {
                content.push_str(&format!("{{{{ {} }}}}", keys[name]));
                expected.push_str(&values[name]);
            }
        }
        prop_assert_eq!(inject(&content, &parameters), expected);
    }
}
