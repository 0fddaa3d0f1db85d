//! Structured answers.

use std::sync::Arc;

use serde_json::{Value, json};

use super::Conversation;
use crate::ToolSpec;

/// The answer to "list the files" for these files.
fn answer(schema: &Value, files: &str) -> Value {
    let mut talk = Conversation::new();
    Arc::make_mut(&mut talk.request.tools).push(ToolSpec {
        name: "StructuredOutput".to_owned(),
        description: String::new(),
        input_schema: schema.clone(),
    });
    talk.say("list the files");
    let end = talk.returns(files);
    let calls = end.calls();
    assert_eq!(calls.len(), 1, "{}", end.text());
    assert_eq!(calls[0].name, "StructuredOutput");
    let schema = jsonschema::validator_for(schema).unwrap();
    let errors: Vec<_> = schema.iter_errors(&calls[0].input).map(|it| it.to_string()).collect();
    assert_eq!(errors, [""; 0]);
    calls[0].input.clone()
}

#[test]
fn lists_get_the_lines_and_numbers_their_count() {
    let schema = json!({"type": "object", "required": ["files", "n", "any"], "properties": {
        "files": {"type": "array", "items": {"type": "string"}},
        "n": {"type": "integer"},
        "any": {"type": "boolean"},
    }});
    assert_eq!(answer(&schema, "a\nb\n"), json!({"files": ["a", "b"], "n": 2, "any": true}));
}

#[test]
fn the_answer_respects_the_limits_of_the_schema() {
    let schema = json!({
        "type": "object",
        "required": ["kind", "score", "items", "note"],
        "properties": {
            "kind": {"enum": ["good", "bad"]},
            "score": {"type": "integer", "minimum": 3, "maximum": 5},
            "items": {"type": "array", "maxItems": 1, "items": {"$ref": "#/$defs/item"}},
            "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
        },
        "$defs": {"item": {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}}},
    });
    let answer = answer(&schema, "a\nb\n");
    assert_eq!(answer["kind"], "good");
    assert_eq!(answer["score"], 3);
    assert_eq!(answer["items"], json!([{"name": "a"}]));
    assert!(answer["note"].as_str().unwrap().contains("Here is what I found"));
}

#[test]
fn an_answer_that_did_not_fit_is_not_given_again() {
    let mut talk = Conversation::with_tools(&["StructuredOutput"]);
    talk.say("help").calls_exactly(&[("StructuredOutput", json!({}))]);
    talk.fails("Output does not match required schema: too short").ends_with_words("");
}

#[test]
fn a_schema_that_refers_to_itself_is_followed_to_a_limit() {
    let schema = json!({"type": "object", "properties": {"next": {"$ref": "#"}}});
    let mut talk = Conversation::new();
    Arc::make_mut(&mut talk.request.tools).push(ToolSpec {
        name: "StructuredOutput".to_owned(),
        description: String::new(),
        input_schema: schema,
    });
    assert_eq!(talk.say("help").calls().len(), 1);
}
