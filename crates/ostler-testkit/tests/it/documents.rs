//! Every script shown in the README is valid.

use ostler_testkit::Script;

#[test]
fn every_script_in_the_readme_is_a_valid_script() {
    let readme = include_str!("../../README.md");
    let scripts: Vec<&str> =
        readme.split("```json\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
    assert!(!scripts.is_empty());
    for script in scripts {
        Script::from_json(script).unwrap_or_else(|error| panic!("{error} in\n{script}"));
    }
}

#[test]
fn every_field_and_action_of_a_script_can_be_written_in_json() {
    let script = Script::from_json(include_str!("everything.json"));
    assert!(script.is_ok(), "{}", script.unwrap_err());
}

#[test]
fn values_that_cannot_be_served_are_errors_of_the_script() {
    let error_in = |reply: &str| {
        let script = format!(r#"{{"rules": [{{"reply": {reply}}}]}}"#);
        Script::from_json(&script).unwrap_err().to_string()
    };
    let low = error_in(r#"{"status": {"code": 42}}"#);
    assert!(low.starts_with("rules[0].reply.status: code: 42 is not between 200 and 999"), "{low}");
    let header = error_in(r#"{"status": {"code": 500, "headers": {"bad name": "x"}}}"#);
    assert!(header.contains("\"bad name\" is not a header name"), "{header}");
    let zero = error_in(r#"{"chunk_bytes": 0}"#);
    assert!(zero.starts_with("rules[0].reply.chunk_bytes: "), "{zero}");
    let action = error_in(r#"{"interruptions": [{"do": "explode"}]}"#);
    assert!(
        action.starts_with("rules[0].reply.interruptions[0].do: unknown variant `explode`"),
        "{action}"
    );
}
