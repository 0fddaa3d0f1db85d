//! Input that an answer or a hook changed is decided again, for every kind of answer.

use ostler_engine::session::SessionOptions;
use ostler_engine::tool::{Effect, Tool, ToolCx, ToolError, ToolOutput, erase};
use ostler_proto::control::AskHost;
use ostler_proto::frame::ToHost;
use ostler_proto::launch::Answerer;
use ostler_proto::permission::PermissionMode;
use ostler_testkit::{Script, reply, when};
use serde_json::{Map, Value, json};

use crate::host::TestHost;
use crate::modes::{Room, calling};

/// Who allows the call, with another input.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Door {
    /// `can_use_tool` over the control protocol.
    Frame,
    /// The tool of `--permission-prompt-tool`.
    PromptTool,
    /// A PermissionRequest hook; no user can be asked.
    PermissionHook,
    /// A PreToolUse hook that allows; no user can be asked.
    PreToolHook,
}

const DOORS: [Door; 4] = [Door::Frame, Door::PromptTool, Door::PermissionHook, Door::PreToolHook];
const RULE: &str = "Bash(touch:*)";

/// Answers permission questions as a tool of an MCP server would.
struct PromptTool(Value);

impl Tool for PromptTool {
    const NAME: &'static str = "mcp__guard__ask";
    const DESCRIPTION: &'static str = "For tests.";
    type Args = Map<String, Value>;

    fn effect(&self, _: &ToolCx, _: &Map<String, Value>) -> Effect {
        Effect::Nothing
    }

    async fn run(&self, _: &ToolCx, _: Map<String, Value>) -> Result<ToolOutput, ToolError> {
        Ok(ToolOutput::new(self.0.to_string(), json!({})))
    }
}

impl Door {
    /// Sets up this answer with another input, and with a rule for the session where that is possible.
    fn open(self, options: &mut SessionOptions, input: &Value) {
        let rule = json!({"type": "addRules", "behavior": "allow", "destination": "session",
            "rules": [{"toolName": "Bash", "ruleContent": "touch:*"}]});
        let allow =
            json!({"behavior": "allow", "updatedInput": input, "updatedPermissions": [rule]});
        let hook = |event: &str, mut fields: Value| {
            fields["hookEventName"] = json!(event);
            let output = json!({ "hookSpecificOutput": fields });
            let command = format!("printf '%s' '{output}'");
            json!({event: [{"hooks": [{"type": "command", "command": command}]}]})
        };
        match self {
            Self::Frame => {}
            Self::PromptTool => {
                options.tools.push(erase(PromptTool(allow)));
                options.launch.permission_prompts =
                    Some(Answerer::Tool("mcp__guard__ask".to_owned()));
            }
            Self::PermissionHook => {
                options.launch.permission_prompts = Some(Answerer::NoOne);
                options.hooks = vec![hook("PermissionRequest", json!({ "decision": allow }))];
            }
            Self::PreToolHook => {
                options.launch.permission_prompts = Some(Answerer::NoOne);
                let fields = json!({"permissionDecision": "allow", "updatedInput": input});
                options.hooks = vec![hook("PreToolUse", fields)];
            }
        }
    }
}

/// A session in which a call of `tool` is answered with another input; then the model calls `touch x`.
async fn answered(door: Door, rules: &[&str], tool: &'static str, input: &Value) -> Vec<String> {
    let room = Room::new();
    let first = match tool {
        "Write" => json!({"file_path": "a"}),
        _ => json!({"command": "make"}),
    };
    let script = Script::new()
        .rule(when().turn(0), reply().tool_use(tool, first))
        .rule(when(), reply().text("Done."));
    let mut host = TestHost::with(script, |options| {
        room.furnish(options, PermissionMode::Default, rules);
        door.open(options, input);
    })
    .await;
    if door == Door::Frame {
        let rule = json!({"type": "addRules", "behavior": "allow", "destination": "session",
            "rules": [{"toolName": "Bash", "ruleContent": "touch:*"}]});
        let allow =
            json!({"behavior": "allow", "updatedInput": input, "updatedPermissions": [rule]});
        host = host.answering(allow);
    }
    host.prompt("go").await;
    host.result().await;
    host.story().into_iter().filter(|line| line.starts_with("user: ")).collect()
}

// Mutant: the changed input is prepared and not decided again (the old `permit`).
#[tokio::test]
async fn an_answer_cannot_change_a_call_into_one_that_is_denied() {
    let command = json!({"command": "rm x"});
    let file = json!({"file_path": "secret/x"});
    let rules = ["deny Bash(rm:*)", "deny Edit(secret/**)"];
    for door in DOORS {
        for (tool, input, rule) in
            [("Bash", &command, "Bash(rm:*)"), ("Write", &file, "Edit(secret/**)")]
        {
            let results = answered(door, &rules, tool, input).await;
            assert_eq!(results.len(), 1, "{door:?} {results:?}");
            assert!(results[0].starts_with("user: failed: "), "{door:?} {tool}: {results:?}");
            assert!(results[0].contains(rule), "{door:?} {tool}: {results:?}");
        }
    }
}

#[tokio::test]
async fn an_answer_may_change_a_call_into_another_that_needs_permission() {
    for door in DOORS {
        let results = answered(door, &[], "Bash", &json!({"command": "make all"})).await;
        assert_eq!(results, ["user: = ran"], "{door:?}");
    }
}

// Mutant: `needs_person` that is always false, or one that looks at rules only.
#[tokio::test]
async fn a_hook_cannot_change_a_call_into_one_that_needs_a_person() {
    let rules = ["ask Bash(git push:*)"];
    for (tool, input) in [
        ("Bash", json!({"command": "git push"})),
        ("Bash", json!({"command": "make", "dangerouslyDisableSandbox": true})),
        ("Bash", json!({"command": "rm -rf ~"})),
        ("Bash", json!({"command": "touch .git/hooks/x"})),
        ("Write", json!({"file_path": ".git/hooks/x"})),
    ] {
        for door in DOORS {
            let results = answered(door, &rules, tool, &input).await;
            let runs = matches!(door, Door::Frame | Door::PromptTool);
            let expected = if runs { "user: = ran" } else { "user: failed: No user is available" };
            assert!(results[0].starts_with(expected), "{door:?} {input}: {results:?}");
        }
    }
}

/// The permission questions that the host received.
fn questions(host: &TestHost) -> Vec<&ostler_proto::control::CanUseTool> {
    let frames = host.seen.iter();
    let of = frames.filter_map(|frame| match frame {
        ToHost::ControlRequest(request) => match &request.request {
            AskHost::CanUseTool(question) => Some(&**question),
            _ => None,
        },
        _ => None,
    });
    of.collect()
}

// Mutant: the second question shows the input that the model sent.
#[tokio::test]
async fn a_person_is_asked_about_the_call_as_a_hook_changed_it() {
    let room = Room::new();
    let input = json!({"file_path": ".git/hooks/x"});
    let script = calling([("Write", json!({"file_path": "a"}))]);
    let mut host = TestHost::with(script, |options| {
        room.furnish(options, PermissionMode::Default, &[]);
        Door::PermissionHook.open(options, &input);
        options.launch.permission_prompts = Some(Answerer::Host);
    })
    .await;
    host.prompt("go").await;
    // The hook answers the first question; the host leaves it open.
    while questions(&host).len() < 2 {
        host.next().await.unwrap();
    }
    let asked = questions(&host)[1].clone();
    assert_eq!(asked.input, input);
    assert_eq!(asked.suppress_always_allow_rule, Some(true), "a protected path");
    let id = host.seen.iter().rev().find_map(|frame| match frame {
        ToHost::ControlRequest(request) => request.request_id.clone(),
        _ => None,
    });
    let deny = json!({"behavior": "deny", "message": "not that"});
    host.respond(id.unwrap(), Ok(deny)).await;
    host.result().await;
    assert!(host.story().contains(&"user: failed: not that".to_owned()), "{:?}", host.story());
}

// Mutant: `updatedPermissions` are applied before the changed input is decided.
#[tokio::test]
async fn a_rule_that_comes_with_a_refused_answer_is_not_granted() {
    for (door, asks) in
        [(Door::Frame, true), (Door::PromptTool, true), (Door::PermissionHook, true)]
    {
        let room = Room::new();
        let script = Script::new()
            .rule(when().turn(0), reply().tool_use("Bash", json!({"command": "make"})))
            .rule(when(), reply().text("Done."));
        let input = json!({"command": "rm x"});
        let mut host = TestHost::with(script, |options| {
            room.furnish(options, PermissionMode::Default, &["deny Bash(rm:*)"]);
            door.open(options, &input);
        })
        .await;
        let rule = json!({"type": "addRules", "behavior": "allow", "destination": "localSettings",
            "rules": [{"toolName": "Bash", "ruleContent": "touch:*"}]});
        host = host.answering(
            json!({"behavior": "allow", "updatedInput": input, "updatedPermissions": [rule]}),
        );
        host.prompt("go").await;
        host.result().await;
        host.ask("s", ostler_proto::control::AskEngine::GetSettings(Default::default())).await;
        let response = serde_json::to_value(host.until("control_response").await).unwrap();
        assert_eq!(!response.to_string().contains(RULE), asks, "{door:?}: {response}");
        let file = std::path::PathBuf::from(room.path("work/.claude/settings.local.json"));
        assert!(!file.exists(), "{door:?}: nothing is written");
    }
}

/// A hook that writes down every command it sees and denies those with `secret` in them.
fn guard(log: &str) -> Value {
    let command = format!(
        "input=$(cat); printf '%s\\n' \"$input\" >> {log}; case \"$input\" in *secret*) echo guarded >&2; exit 2;; esac"
    );
    json!({"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": command}]}]})
}

// Seen to fail when PreToolUse hooks do not run again: the changed command runs without a check.
#[tokio::test]
async fn a_pre_tool_hook_sees_the_call_as_an_answer_changed_it() {
    for door in [Door::Frame, Door::PromptTool, Door::PermissionHook] {
        for (command, expected) in [
            ("make secret", "user: failed: PreToolUse:Bash hook error: "),
            ("make all", "user: = ran"),
            // Unchanged: the hook runs once.
            ("make", "user: = ran"),
        ] {
            let room = Room::new();
            let log = room.path("other/log");
            let input = json!({ "command": command });
            let script = Script::new()
                .rule(when().turn(0), reply().tool_use("Bash", json!({"command": "make"})))
                .rule(when(), reply().text("Done."));
            let mut host = TestHost::with(script, |options| {
                room.furnish(options, PermissionMode::Default, &[]);
                door.open(options, &input);
                options.hooks.push(guard(&log));
            })
            .await;
            if door == Door::Frame {
                host = host.answering(json!({"behavior": "allow", "updatedInput": input}));
            }
            host.prompt("go").await;
            host.result().await;
            let story = host.story();
            let result = story.iter().find(|line| line.starts_with("user: ")).unwrap();
            assert!(result.starts_with(expected), "{door:?} {command}: {result}");
            let n_seen = std::fs::read_to_string(&log).unwrap().lines().count();
            assert_eq!(n_seen, if command == "make" { 1 } else { 2 }, "{door:?} {command}");
        }
    }
}

// Seen to fail when a call that the hook changed after the answer runs without another question.
#[tokio::test]
async fn a_call_that_a_hook_changes_after_the_answer_is_decided_again() {
    // Each time it sees `all`, it changes the call.
    let hook = |to: &str| {
        let output = json!({"hookSpecificOutput": {
            "hookEventName": "PreToolUse", "updatedInput": {"command": to},
        }});
        let command = format!("case \"$(cat)\" in *all*) printf '%s' '{output}';; esac");
        json!({"PreToolUse": [{"hooks": [{"type": "command", "command": command}]}]})
    };
    for (to, expected, n_questions) in [
        ("rm x", "user: failed: ", 1),
        ("make clean", "user: failed: Tool permission request failed: answers and hooks", 4),
        ("echo hi", "user: = ran", 1),
    ] {
        let room = Room::new();
        let script = Script::new()
            .rule(when().turn(0), reply().tool_use("Bash", json!({"command": "make"})))
            .rule(when(), reply().text("Done."));
        let host = TestHost::with(script, |options| {
            room.furnish(options, PermissionMode::Default, &["deny Bash(rm:*)"]);
            options.hooks.push(hook(to));
        })
        .await;
        let answer = json!({"behavior": "allow", "updatedInput": {"command": "make all"}});
        let mut host = host.answering(answer);
        host.prompt("go").await;
        host.result().await;
        let story = host.story();
        let result = story.iter().find(|line| line.starts_with("user: ")).unwrap();
        assert!(result.starts_with(expected), "{to}: {result}");
        assert_eq!(questions(&host).len(), n_questions, "{to}");
    }
}

// Mutants: `Answerer::NoOne` asks the host as `Host` does; it counts as a question to the user.
#[tokio::test]
async fn without_an_answerer_a_call_that_requires_approval_is_denied_and_the_host_is_not_asked() {
    let room = Room::new();
    let script =
        calling([("Bash", json!({"command": "make"})), ("Bash", json!({"command": "ls"}))]);
    let host = TestHost::with(script, |options| {
        room.furnish(options, PermissionMode::Default, &["allow Bash(ls)"]);
        options.launch.permission_prompts = Some(Answerer::NoOne);
    })
    .await;
    // It would say yes if it were asked.
    let mut host =
        host.answering(json!({"behavior": "allow", "updatedInput": {"command": "make"}}));
    host.prompt("go").await;
    let result = host.result().await;
    assert_eq!(questions(&host).len(), 0);
    let story = host.story();
    let results: Vec<_> = story.iter().filter(|line| line.starts_with("user: ")).collect();
    assert!(
        results[0].starts_with("user: failed: No user is available to approve Bash"),
        "{story:?}"
    );
    assert_eq!(results[1], "user: = ran", "a rule allows it");
    let denied: Vec<_> = result.permission_denials.iter().map(|it| &it.tool_input).collect();
    assert_eq!(denied, [&json!({"command": "make"})]);
    let counted = result.extra.get("permission_questions").map(|it| &it["asked"]);
    assert!(counted.is_none_or(|asked| *asked == 0), "{counted:?}");
}
