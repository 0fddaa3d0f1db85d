//! What a call of a built-in tool would touch, as the tool itself says. For decisions about calls that are not made:
//! `ostler explain`, and a host that keeps granted rules.

use std::path::Path;
use std::sync::Arc;

use ostler_engine::tool::{AnyTool, Effect, ServerToolPolicy, ToolCx};
use serde_json::{Value, json};

/// The built-in tools, all that a session can have.
pub fn tools() -> Vec<Arc<dyn AnyTool>> {
    let mut tools = ostler_tools::session_tools();
    tools.extend(ostler_tools::task_tools());
    tools
}

/// What a call would touch in a session that works in `cwd`, as the tool itself says.
///
/// A call that the tool cannot read, and a call of a tool that is not built in, may change anything: nothing but a rule
/// for the tool allows it. Agents and skills touch nothing by themselves; what they do is judged when they do it.
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

/// The arguments of a call from words on a command line: JSON, or the one argument that matters; the others get a value
/// that the tool accepts.
pub fn input_of(tool: &str, words: &str) -> Value {
    if let Ok(Value::Object(object)) = serde_json::from_str(words) {
        return Value::Object(object);
    }
    match tool {
        "Bash" => json!({ "command": words }),
        "Read" => json!({ "file_path": words }),
        "Write" => json!({ "file_path": words, "content": "" }),
        "Edit" => json!({ "file_path": words, "old_string": "a", "new_string": "b" }),
        "NotebookEdit" => json!({ "notebook_path": words, "new_source": "" }),
        "Glob" => json!({ "pattern": words }),
        "Grep" => json!({ "pattern": "x", "path": words }),
        "WebFetch" => json!({ "url": words, "prompt": "x" }),
        "WebSearch" => json!({ "query": words }),
        "AskUserQuestion" => json!({ "questions": [{
            "question": "x", "header": "x", "multiSelect": false,
            "options": [{"label": "a", "description": "a"}, {"label": "b", "description": "b"}],
        }]}),
        "TodoWrite" => json!({ "todos": [] }),
        "ExitPlanMode" => json!({ "plan": words }),
        "Agent" | "Task" => json!({ "subagent_type": words }),
        "Skill" => json!({ "skill": words }),
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
    fn words_of_a_command_line_are_arguments_that_the_tool_can_read() {
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
