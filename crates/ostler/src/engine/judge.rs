//! What a call of a built-in tool would touch, according to the tool itself. For decisions about calls that do not run:
//! `ostler explain`, and a host that stores granted rules.

use std::path::Path;
use std::sync::Arc;

use ostler_engine::tool::{AnyTool, Effect, ServerToolPolicy, ToolCx};
use serde_json::{Value, json};

/// All built-in tools, also those that only some sessions have.
pub fn tools() -> Vec<Arc<dyn AnyTool>> {
    let mut tools = ostler_tools::session_tools();
    tools.extend(ostler_tools::task_tools());
    tools
}

/// What a call would touch in a session with the working directory `cwd`, according to the tool itself.
///
/// A call with invalid arguments, and a call of a tool that is not built in, counts as one that may change anything: only
/// a rule for the tool allows it. Agents and skills touch nothing by themselves; each of their calls is judged separately.
pub fn effect_of(tool: &str, input: &Value, cwd: &Path) -> Effect {
    if matches!(tool, "Agent" | "Task" | "Skill") {
        return Effect::Nothing;
    }
    let cx = ToolCx { cwd: cwd.to_owned(), ..ToolCx::default() };
    let known = tools().into_iter().find(|known| known.spec().name == tool);
    let prepared = known.and_then(|known| {
        let input = known.without_host_only(input);
        known.prepare(&cx, &input).ok()
    });
    let unknown = Effect::Outside { changes: true, policy: ServerToolPolicy::Unset };
    prepared.map_or(unknown, |prepared| prepared.effect)
}

/// The input of a call from text on a command line: a JSON object, or the value of the argument that the decision depends
/// on. Other required arguments get values that the tool accepts.
pub fn input_of(tool: &str, text: &str) -> Value {
    if let Ok(Value::Object(object)) = serde_json::from_str(text) {
        return Value::Object(object);
    }
    match tool {
        "Bash" => json!({ "command": text }),
        "Read" => json!({ "file_path": text }),
        "Write" => json!({ "file_path": text, "content": "" }),
        "Edit" => json!({ "file_path": text, "old_string": "a", "new_string": "b" }),
        "NotebookEdit" => json!({ "notebook_path": text, "new_source": "" }),
        "Glob" => json!({ "pattern": text }),
        "Grep" => json!({ "pattern": "x", "path": text }),
        "WebFetch" => json!({ "url": text, "prompt": "x" }),
        "WebSearch" => json!({ "query": text }),
        "AskUserQuestion" => json!({ "questions": [{
            "question": "x", "header": "x", "multiSelect": false,
            "options": [{"label": "a", "description": "a"}, {"label": "b", "description": "b"}],
        }]}),
        "TodoWrite" => json!({ "todos": [] }),
        "ExitPlanMode" => json!({ "plan": text }),
        "Agent" | "Task" => json!({ "subagent_type": text }),
        "Skill" => json!({ "skill": text }),
        _ => json!({}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Mutant: a table of effects by name, which does not know that a search takes folders off its pattern.
    #[test]
    fn a_call_is_judged_by_what_the_tool_itself_would_touch() {
        let cwd = tempfile::tempdir().unwrap();
        let cwd = cwd.path().canonicalize().unwrap();
        let of = |tool: &str, input: Value| effect_of(tool, &input, &cwd);
        assert_eq!(of("Glob", json!({"pattern": "/etc/*"})), Effect::Read("/etc".into()));
        assert_eq!(of("Glob", json!({"pattern": "*.rs"})), Effect::Read(cwd.clone()));
        assert_eq!(of("Bash", json!({"command": "ls"})), Effect::Execute("ls".to_owned()));
        let file = json!({"file_path": "a", "content": ""});
        assert_eq!(of("Write", file), Effect::Write(cwd.join("a")));
        let unknown = Effect::Outside { changes: true, policy: ServerToolPolicy::Unset };
        for (tool, input) in [
            ("Write", json!({"file_path": "a"})),
            ("Bash", json!({"command": 5})),
            ("mcp__x__y", json!({})),
            ("NoSuchTool", json!({})),
        ] {
            assert_eq!(of(tool, input.clone()), unknown, "{tool} {input}");
        }
    }

    #[test]
    fn text_of_a_command_line_becomes_input_that_the_tool_accepts() {
        let cwd = std::env::temp_dir();
        let unknown = Effect::Outside { changes: true, policy: ServerToolPolicy::Unset };
        for tool in [
            "Bash",
            "Read",
            "Write",
            "Edit",
            "NotebookEdit",
            "Glob",
            "Grep",
            "WebFetch",
            "WebSearch",
            "AskUserQuestion",
            "TodoWrite",
            "ExitPlanMode",
            "EnterPlanMode",
        ] {
            let effect = effect_of(tool, &input_of(tool, "https://x.y/z"), &cwd);
            assert_ne!(effect, unknown, "{tool}");
        }
    }
}
