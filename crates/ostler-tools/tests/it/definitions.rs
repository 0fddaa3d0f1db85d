//! The tool definitions for the model, and their size.

use ostler_engine::model::ToolSpec;

use crate::session::Session;

fn specs() -> Vec<ToolSpec> {
    ostler_tools::session_tools().iter().map(|tool| tool.spec()).collect()
}

#[test]
fn all_definitions_together_stay_small() {
    let size: usize = specs()
        .iter()
        .map(|spec| spec.name.len() + spec.description.len() + spec.input_schema.to_string().len())
        .sum();
    // Four bytes are about one token.
    assert!(size < 2_500 * 4, "{size} bytes");
}

#[test]
fn the_tools_are_sorted_by_name() {
    let names: Vec<String> = specs().into_iter().map(|spec| spec.name).collect();
    assert_eq!(
        names,
        [
            "AskUserQuestion",
            "Bash",
            "Edit",
            "EnterPlanMode",
            "ExitPlanMode",
            "Glob",
            "Grep",
            "NotebookEdit",
            "Read",
            "TaskOutput",
            "TaskStop",
            "TodoWrite",
            "WebFetch",
            "WebSearch",
            "Write"
        ]
    );
}

#[test]
fn unknown_arguments_are_refused_by_name() {
    let session = Session::new();
    let error = session.prepare("Read", &serde_json::json!({ "path": "x" })).err().unwrap();
    assert!(error.contains("path"), "{error}");
}

#[test]
fn fields_for_the_host_are_not_in_the_schema() {
    let spec = specs().into_iter().find(|spec| spec.name == "AskUserQuestion").unwrap();
    let schema = spec.input_schema.to_string();
    assert!(schema.contains("multiSelect"));
    assert!(!schema.contains("answers") && !schema.contains("annotations"), "{schema}");
}
