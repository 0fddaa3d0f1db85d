//! The table of permission modes, in whole sessions: what runs without approval, what is asked about, what is denied
//! and what the host receives.

use std::collections::BTreeMap;
use std::os::unix::fs::symlink;

use ostler_engine::permission::{Behavior, Policy, Source};
use ostler_engine::session::SessionOptions;
use ostler_engine::settings::Folders;
use ostler_engine::tool::{Effect, ServerToolPolicy, Tool, ToolCx, ToolError, ToolOutput, erase};
use ostler_proto::api::{Content, ContentBlock};
use ostler_proto::control::{AskEngine, AskHost, SetPermissionMode};
use ostler_proto::frame::ToHost;
use ostler_proto::message::{System, TurnResult};
use ostler_proto::permission::PermissionMode;
use ostler_testkit::{Reply, Script, reply, when};
use serde_json::{Map, Value, json};

use crate::host::TestHost;

/// Tools with the names and effects of the real ones, which do nothing.
macro_rules! tools {
    ($($tool:ident = $name:literal),* $(,)?) => {
        $(
            struct $tool;

            impl Tool for $tool {
                const NAME: &'static str = $name;
                const DESCRIPTION: &'static str = "For tests.";
                type Args = Map<String, Value>;

                fn effect(&self, cx: &ToolCx, args: &Map<String, Value>) -> Effect {
                    effect_of($name, args, cx)
                }

                async fn run(&self, _: &ToolCx, _: Map<String, Value>) -> Result<ToolOutput, ToolError> {
                    Ok(ToolOutput::new("ran", json!({})))
                }
            }
        )*

        pub(crate) fn tools() -> Vec<std::sync::Arc<dyn ostler_engine::tool::AnyTool>> {
            vec![$(erase($tool)),*]
        }
    };
}

/// What the real tool of this name would touch.
fn effect_of(tool: &str, args: &Map<String, Value>, cx: &ToolCx) -> Effect {
    let text = |field: &str| args.get(field).and_then(Value::as_str).unwrap_or_default();
    match tool {
        "Bash" => Effect::Execute(text("command").to_owned()),
        "Read" => Effect::Read(cx.cwd.join(text("file_path"))),
        "Write" => Effect::Write(cx.cwd.join(text("file_path"))),
        "AskUserQuestion" => Effect::AskUser,
        "WebFetch" => Effect::Fetch(text("url").to_owned()),
        "TodoWrite" => Effect::Nothing,
        _ => Effect::Outside { changes: true, policy: ServerToolPolicy::Unset },
    }
}

tools! {
    Todo = "TodoWrite",
    Read = "Read",
    Write = "Write",
    Bash = "Bash",
    Ask = "AskUserQuestion",
    Fetch = "WebFetch",
    Outside = "mcp__server__tool",
}

pub(crate) struct Room {
    folder: tempfile::TempDir,
}

impl Room {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["work", "other", "elsewhere"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        symlink(folder.path().join("elsewhere"), folder.path().join("work/link")).unwrap();
        Self { folder }
    }

    pub(crate) fn path(&self, name: &str) -> String {
        self.folder.path().canonicalize().unwrap().join(name).display().to_string()
    }

    /// A session in this mode with rules like `deny Bash(rm:*)`.
    pub(crate) async fn host(
        &self,
        script: Script,
        mode: PermissionMode,
        rules: &[&str],
    ) -> TestHost {
        TestHost::with(script, |options| self.furnish(options, mode, rules)).await
    }

    pub(crate) fn furnish(
        &self,
        options: &mut SessionOptions,
        mode: PermissionMode,
        rules: &[&str],
    ) {
        options.tools = tools();
        options.cwd = self.path("work").into();
        options.folders = Folders::new(self.path("work"), None, None);
        let mut policy = Policy::new(self.path("work"), mode);
        policy.bypass_available = true;
        for rule in rules {
            let (behavior, rule) = rule.split_once(' ').unwrap();
            let behavior = match behavior {
                "allow" => Behavior::Allow,
                "ask" => Behavior::Ask,
                _ => Behavior::Deny,
            };
            policy.add_rule(behavior, rule.parse().unwrap(), Source::Local);
        }
        options.policy = policy;
    }
}

/// All calls in one response; then a final answer.
pub(crate) fn calling(calls: impl IntoIterator<Item = (&'static str, Value)>) -> Script {
    let all =
        calls.into_iter().fold(reply(), |reply: Reply, (tool, input)| reply.tool_use(tool, input));
    Script::new().rule(when().has_tool_result(true), reply().text("Done.")).rule(when(), all)
}

/// How each call ended: `runs`, `asks` (and runs, because the host allows it), `denied`.
pub(crate) fn fates(host: &TestHost, result: &TurnResult) -> Vec<&'static str> {
    let mut calls = Vec::new();
    let mut fates: BTreeMap<String, &'static str> = BTreeMap::new();
    for frame in &host.seen {
        match frame {
            ToHost::Assistant(frame) => {
                calls.extend(
                    frame
                        .message
                        .content
                        .iter()
                        .filter_map(|block| Some(block.as_tool_use()?.id.to_string())),
                );
            }
            ToHost::ControlRequest(request) => {
                let AskHost::CanUseTool(question) = &request.request else { panic!("{request:?}") };
                fates.insert(question.tool_use_id.as_ref().unwrap().to_string(), "asks");
            }
            ToHost::System(System::PermissionDenied(denied)) => {
                fates.insert(denied.tool_use_id.to_string(), "denied");
            }
            ToHost::User(frame) => {
                let Some(Content::Blocks(blocks)) = &frame.message.content else { continue };
                for block in blocks {
                    let ContentBlock::ToolResult(tool_result) = block else { continue };
                    let id = tool_result.tool_use_id.to_string();
                    let fate = *fates.entry(id.clone()).or_insert("runs");
                    let is_denied = tool_result.is_error == Some(true);
                    assert_eq!(is_denied, fate == "denied", "{id}: {:?}", tool_result.content);
                    let is_listed = result
                        .permission_denials
                        .iter()
                        .any(|denial| denial.tool_use_id.as_str() == id);
                    assert_eq!(is_listed, is_denied, "{id} in permission_denials");
                }
            }
            _ => {}
        }
    }
    calls.iter().map(|id| fates[id]).collect()
}

#[tokio::test]
async fn each_mode_decides_about_each_kind_of_call() {
    let room = Room::new();
    let file = |path: &str| json!({"file_path": path});
    let bash = |command: &str| json!({"command": command});
    let rows = [
        // Columns: default, acceptEdits, plan, dontAsk, bypassPermissions.
        ("TodoWrite", json!({}), ["runs", "runs", "runs", "runs", "runs"]),
        ("Read", file("a"), ["runs", "runs", "runs", "runs", "runs"]),
        ("Read", file("/etc/passwd"), ["asks", "asks", "asks", "denied", "runs"]),
        ("Read", file("link/a"), ["asks", "asks", "asks", "denied", "runs"]),
        ("Write", file("a"), ["asks", "runs", "denied", "denied", "runs"]),
        ("Write", file("link/a"), ["asks", "asks", "denied", "denied", "runs"]),
        ("Write", file(".git/hooks/x"), ["asks", "asks", "denied", "denied", "runs"]),
        ("Bash", bash("echo hi"), ["runs", "runs", "runs", "runs", "runs"]),
        ("Bash", bash("touch a"), ["asks", "runs", "denied", "denied", "runs"]),
        ("Bash", bash("touch link/a"), ["asks", "asks", "denied", "denied", "runs"]),
        ("Bash", bash("make"), ["asks", "asks", "denied", "denied", "runs"]),
        ("Bash", bash("echo hi && make"), ["asks", "asks", "denied", "denied", "runs"]),
        ("AskUserQuestion", json!({}), ["asks", "asks", "asks", "denied", "asks"]),
        (
            "WebFetch",
            json!({"url": "https://example.com"}),
            ["asks", "asks", "asks", "denied", "runs"],
        ),
        ("mcp__server__tool", json!({}), ["asks", "asks", "denied", "denied", "runs"]),
    ];
    let modes = [
        PermissionMode::Default,
        PermissionMode::AcceptEdits,
        PermissionMode::Plan,
        PermissionMode::DontAsk,
        PermissionMode::BypassPermissions,
    ];
    for (column, mode) in modes.into_iter().enumerate() {
        let script = calling(rows.iter().map(|(tool, input, _)| (*tool, input.clone())));
        let host = room.host(script, mode.clone(), &[]).await;
        let mut host = host.answering(json!({"behavior": "allow"}));
        host.prompt("go").await;
        let result = host.result().await;
        let fates = fates(&host, &result);
        for ((tool, input, expected), fate) in rows.iter().zip(fates) {
            assert_eq!(fate, expected[column], "mode {mode}: {tool} {input}");
        }
    }
}

#[tokio::test]
async fn rules_that_narrow_hold_in_every_mode() {
    let room = Room::new();
    for mode in ["default", "acceptEdits", "plan", "dontAsk", "bypassPermissions"] {
        let mode: PermissionMode = serde_json::from_value(json!(mode)).unwrap();
        let calls = [
            ("Bash", json!({"command": "ls && rm x"})),
            ("Read", json!({"file_path": ".env"})),
            ("Bash", json!({"command": "cat .env"})),
            ("TodoWrite", json!({})),
        ];
        let rules = ["deny Bash(rm:*)", "deny Read(.env)", "ask TodoWrite", "allow Bash"];
        let host = room.host(calling(calls), mode.clone(), &rules).await;
        let mut host = host.answering(json!({"behavior": "allow"}));
        host.prompt("go").await;
        let result = host.result().await;
        let asked = if mode == PermissionMode::DontAsk { "denied" } else { "asks" };
        assert_eq!(fates(&host, &result), ["denied", "denied", "denied", asked], "{mode}");
    }
}

#[tokio::test]
async fn a_denial_without_asking_is_reported_with_its_reason() {
    let room = Room::new();
    let calls = [("Bash", json!({"command": "rm x"})), ("Write", json!({"file_path": "a"}))];
    let mut host = room.host(calling(calls), PermissionMode::Plan, &["deny Bash(rm:*)"]).await;
    host.prompt("go").await;
    host.result().await;
    let denials: Vec<_> = host
        .seen
        .iter()
        .filter(|frame| matches!(frame, ToHost::System(System::PermissionDenied(_))))
        .map(|frame| serde_json::to_value(frame).unwrap())
        .collect();
    assert_eq!(denials.len(), 2);
    assert_eq!(
        (&denials[0]["tool_name"], &denials[0]["decision_reason_type"]),
        (&json!("Bash"), &json!("rule"))
    );
    assert_eq!(denials[0]["message"], "deny rule Bash(rm:*) from local settings forbids it");
    assert_eq!(denials[0]["decision_reason"], denials[0]["message"]);
    assert_eq!(denials[1]["decision_reason_type"], "mode");
    assert!(denials[1]["message"].as_str().unwrap().starts_with("plan mode changes nothing"));
    assert!(denials[0].get("agent_id").is_none());
    // Before the result of the call, and with the text that the model reads.
    let story = host.story();
    let at = story.iter().position(|line| line == "system permission_denied").unwrap();
    let words = format!("user: failed: {}", denials[0]["message"].as_str().unwrap());
    assert_eq!(story.iter().skip(at).find(|line| line.starts_with("user:")), Some(&words));
}

#[tokio::test]
async fn a_subagent_is_denied_what_its_parent_is_denied_and_the_frame_has_its_id() {
    let room = Room::new();
    let task = json!({"description": "try", "prompt": "sub: try"});
    let script = Script::new()
        .rule(when().has_tool_result(true), reply().text("Done."))
        .rule(when().prompt_contains("sub:"), reply().tool_use("Bash", json!({"command": "rm x"})))
        .rule(when(), reply().tool_use("Agent", task));
    let mut host = room.host(script, PermissionMode::BypassPermissions, &["deny Bash(rm:*)"]).await;
    host.prompt("go").await;
    host.result().await;
    let denied = host.seen.iter().find_map(|frame| match frame {
        ToHost::System(System::PermissionDenied(denied)) => Some(denied),
        _ => None,
    });
    assert!(denied.unwrap().agent_id.is_some());
}

#[tokio::test]
async fn a_question_of_a_subagent_has_its_id() {
    let room = Room::new();
    let task = json!({"description": "try", "prompt": "sub: try"});
    let call = |file: &str| reply().tool_use("Write", json!({"file_path": room.path(file)}));
    let script = Script::new()
        .rule(when().prompt_contains("sub:").has_tool_result(true), reply().text("Done."))
        .rule(when().prompt_contains("sub:"), call("a"))
        .rule(when().turn(0), reply().tool_use("Agent", task))
        .rule(when().turn(1), call("b"))
        .rule(when(), reply().text("Done."));
    let host = room.host(script, PermissionMode::Default, &[]).await;
    let mut host = host.answering(json!({"behavior": "allow"}));
    host.prompt("go").await;
    host.result().await;
    let asked: Vec<_> = host
        .seen
        .iter()
        .filter_map(|frame| match frame {
            ToHost::ControlRequest(request) => match &request.request {
                AskHost::CanUseTool(question) => Some(question.agent_id.is_some()),
                _ => None,
            },
            _ => None,
        })
        .collect();
    assert_eq!(asked, [true, false]);
}

#[tokio::test]
async fn additional_directories_count_as_the_working_directory() {
    let room = Room::new();
    let target = room.path("other/a");
    let calls = [
        ("Write", json!({"file_path": target})),
        ("Bash", json!({"command": format!("touch {target}")})),
    ];
    let script = || calling(calls.clone());
    let run = async |added: bool| {
        let mut host = TestHost::with(script(), |options| {
            room.furnish(options, PermissionMode::AcceptEdits, &[]);
            if added {
                options.policy.add_directory(room.path("other"), Source::CliArg);
            }
        })
        .await
        .answering(json!({"behavior": "allow"}));
        host.prompt("go").await;
        let result = host.result().await;
        fates(&host, &result)
    };
    assert_eq!(run(false).await, ["asks", "asks"]);
    assert_eq!(run(true).await, ["runs", "runs"]);
}

/// Two calls, one after the other; the first is answered with a change of permissions.
async fn changed(room: &Room, input: Value, update: Value) -> (TestHost, Vec<&'static str>) {
    let call = || reply().tool_use("Write", input.clone());
    let script = Script::new()
        .rule(when().turn(0), call())
        .rule(when().turn(1), call())
        .rule(when(), reply().text("Done."));
    let host = room.host(script, PermissionMode::Default, &[]).await;
    let mut host = host.answering(json!({"behavior": "allow", "updatedPermissions": [update]}));
    host.prompt("go").await;
    let result = host.result().await;
    let fates = fates(&host, &result);
    (host, fates)
}

#[tokio::test]
async fn permission_updates_of_an_answer_hold_for_the_rest_of_the_session() {
    let room = Room::new();
    let here = json!({"file_path": "a"});
    let there = json!({"file_path": room.path("other/a")});
    let rule = |destination: &str| {
        json!({"type": "addRules", "behavior": "allow", "destination": destination,
            "rules": [{"toolName": "Edit", "ruleContent": "a"}]})
    };
    let (_, fates) = changed(&room, here.clone(), rule("session")).await;
    assert_eq!(fates, ["asks", "runs"]);
    let local = std::path::PathBuf::from(room.path("work/.claude/settings.local.json"));
    assert!(!local.exists(), "a rule of the session is not written");
    let (_, fates) = changed(&room, here.clone(), rule("localSettings")).await;
    assert_eq!(fates, ["asks", "runs"]);
    let written: Value = serde_json::from_str(&std::fs::read_to_string(local).unwrap()).unwrap();
    assert_eq!(written["permissions"]["allow"], json!(["Edit(a)"]));

    let mode = json!({"type": "setMode", "mode": "acceptEdits", "destination": "session"});
    let (host, fates) = changed(&room, here, mode.clone()).await;
    assert_eq!(fates, ["asks", "runs"]);
    let story = host.story();
    let at = |line: &str| story.iter().position(|seen| seen == line).unwrap();
    assert!(
        at("system status") < at("user: = ran"),
        "the host receives the mode before the tool runs"
    );

    // Outside the working directories the mode alone is not enough, nor is the directory.
    let (_, fates) = changed(&room, there.clone(), mode).await;
    assert_eq!(fates, ["asks", "asks"]);
    let directory = json!({"type": "addDirectories", "destination": "session", "directories": [room.path("other")]});
    let (_, fates) = changed(&room, there, directory).await;
    assert_eq!(fates, ["asks", "asks"], "it is a working directory now, but the mode still asks");
}

#[tokio::test]
async fn an_invalid_permission_update_is_left_out_and_reported() {
    let room = Room::new();
    let junk = json!({"type": "setMode", "mode": "junk", "destination": "session"});
    let (host, fates) = changed(&room, json!({"file_path": "a"}), junk).await;
    assert_eq!(fates, ["asks", "asks"]);
    assert!(host.story().contains(&"system informational".to_owned()));
}

async fn set_mode(host: &mut TestHost, mode: &str) -> Value {
    let mode = serde_json::from_value(json!(mode)).unwrap();
    let request = SetPermissionMode { mode, ..SetPermissionMode::default() };
    host.ask("mode", AskEngine::SetPermissionMode(request)).await;
    serde_json::to_value(host.until("control_response").await).unwrap()["response"].clone()
}

#[tokio::test]
async fn the_mode_can_be_changed_between_calls_and_only_to_an_available_one() {
    let room = Room::new();
    let script = Script::new()
        .rule(when().has_tool_result(true), reply().text("Done."))
        .rule(when(), reply().tool_use("Bash", json!({"command": "make"})));
    let mut host = TestHost::with(script, |options| {
        room.furnish(options, PermissionMode::Default, &[]);
        options.policy.bypass_available = false;
    })
    .await;
    assert_eq!(set_mode(&mut host, "plan").await["response"], json!({"mode": "plan"}));
    let ToHost::System(System::Status(status)) = host.until("system status").await else {
        panic!("not a status")
    };
    assert_eq!(status.permission_mode, Some(PermissionMode::Plan));
    host.prompt("go").await;
    let result = host.result().await;
    assert_eq!(result.permission_denials.len(), 1);

    let refused = set_mode(&mut host, "bypassPermissions").await;
    assert_eq!(refused["error_code"], "bypass_not_launched");
    assert!(refused["error"].as_str().unwrap().contains("--dangerously-skip-permissions"));
    let refused = set_mode(&mut host, "junk").await;
    assert_eq!(refused["error_code"], "invalid_mode");
    assert!(refused["error"].as_str().unwrap().contains("acceptEdits"));
    host.prompt("again").await;
    assert_eq!(host.result().await.permission_denials.len(), 1, "plan mode still holds");
}

#[tokio::test]
async fn a_hook_that_answers_ask_counts_under_bypass() {
    let room = Room::new();
    let output =
        r#"{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"ask"}}"#;
    let hooks = json!({"PreToolUse": [{"hooks": [{"type": "command", "command": format!("echo '{output}'")}]}]});
    let script = calling([("Bash", json!({"command": "make"}))]);
    let mut host = TestHost::with(script, |options| {
        room.furnish(options, PermissionMode::BypassPermissions, &[]);
        options.hooks = vec![hooks];
    })
    .await
    .answering(json!({"behavior": "allow"}));
    host.prompt("go").await;
    let result = host.result().await;
    assert_eq!(fates(&host, &result), ["asks"]);
}

#[tokio::test]
async fn asked_and_avoided_permission_questions_are_counted() {
    let counted = async |mode: PermissionMode, rules: &[&str], command: &'static str| {
        let script = calling([("Bash", json!({"command": command}))]);
        let mut host = Room::new().host(script, mode, rules).await;
        host.answer = Some(Ok(json!({"behavior": "deny", "message": "No."})));
        host.prompt("go").await;
        host.result().await.extra.get("permission_questions").cloned()
    };
    let some = |asked: u64, spared: u64| Some(json!({"asked": asked, "spared": spared}));
    let (usual, bypass) = (PermissionMode::Default, PermissionMode::BypassPermissions);
    assert_eq!(counted(usual.clone(), &[], "make").await, some(1, 0));
    assert_eq!(counted(bypass.clone(), &[], "make").await, some(0, 1));
    assert_eq!(counted(usual, &["allow Bash(make:*)"], "make").await, some(0, 1));
    assert_eq!(counted(bypass, &[], "ls").await, None, "the user would not have been asked");
}
