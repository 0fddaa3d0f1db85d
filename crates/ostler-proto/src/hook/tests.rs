//! Round trips of every event's input and answer, and unknown events.

use serde_json::{Value, json};

use super::*;
use crate::drift;

/// The fields of each event beyond the common ones, in the newer form with everything there is.
fn inputs() -> Vec<(HookEvent, Value)> {
    let call =
        json!({"tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_use_id": "toolu_1"});
    let with = |mut base: Value, more: Value| {
        base.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        base
    };
    let server = json!({"mcp_server": {"name": "calc", "source": "project"}});
    let switch = json!({
        "from_model": "a", "to_model": "b", "requested_model": null, "source": "sdk", "context_tokens": 12,
        "prompt_cache_warm": true, "cache_ttl": "5m", "estimated_cache_write_usd": 0.25, "pricing": "catalog",
    });
    let task = json!({
        "task_id": "3", "task_subject": "dig", "task_description": "a hole", "teammate_name": "ann",
        "team_name": "diggers",
    });
    let background = json!({
        "background_tasks": [{
            "id": "b1", "type": "shell", "status": "running", "description": "wait", "command": "sleep 9",
        }],
        "session_crons": [{"id": "c1", "schedule": "0 * * * *", "recurring": true, "prompt": "look"}],
    });
    vec![
        (HookEvent::PreToolUse, with(call.clone(), server.clone())),
        (
            HookEvent::PostToolUse,
            with(call.clone(), json!({"tool_response": {"stdout": ""}, "duration_ms": 7.5})),
        ),
        (
            HookEvent::PostToolUseFailure,
            with(
                call.clone(),
                json!({"error": "Exit code 3", "is_interrupt": false, "duration_ms": 7}),
            ),
        ),
        (
            HookEvent::PostToolBatch,
            json!({"tool_calls": [with(call.clone(), json!({"tool_response": "ok"}))]}),
        ),
        (
            HookEvent::Notification,
            json!({"message": "look", "title": "here", "notification_type": "permission_prompt"}),
        ),
        (
            HookEvent::UserPromptSubmit,
            json!({"prompt": "hi", "source": "loop_wakeup", "session_title": "t"}),
        ),
        (
            HookEvent::UserPromptExpansion,
            json!({
                "expansion_type": "slash_command", "command_name": "fix", "command_args": "it",
                "command_source": "project", "prompt": "/fix it",
            }),
        ),
        (
            HookEvent::SessionStart,
            json!({
                "source": "fork", "agent_type": "reviewer", "model": "m", "session_title": "t",
                "seconds_since_last_response": 1.5, "context_tokens": 9, "prompt_cache_likely_expired": false,
                "estimated_cache_write_usd": 0,
            }),
        ),
        (HookEvent::SessionEnd, json!({"reason": "prompt_input_exit"})),
        (
            HookEvent::Stop,
            with(
                json!({"stop_hook_active": true, "last_assistant_message": "done"}),
                background.clone(),
            ),
        ),
        (
            HookEvent::StopFailure,
            json!({"error": "rate_limit", "error_details": "later", "last_assistant_message": "so"}),
        ),
        (HookEvent::SubagentStart, json!({"agent_id": "a1", "agent_type": "general-purpose"})),
        (
            HookEvent::SubagentStop,
            with(
                json!({
                    "agent_id": "a1", "agent_type": "general-purpose", "stop_hook_active": false,
                    "agent_transcript_path": "/t/a1.jsonl", "last_assistant_message": "done",
                }),
                background,
            ),
        ),
        (HookEvent::PreCompact, json!({"trigger": "manual", "custom_instructions": null})),
        (HookEvent::PostCompact, json!({"trigger": "auto", "compact_summary": "short"})),
        (HookEvent::PreModelSwitch, switch.clone()),
        (HookEvent::PostModelSwitch, switch),
        (
            HookEvent::PermissionRequest,
            json!({
                "tool_name": "Bash", "tool_input": {"command": "ls"},
                "permission_suggestions": [{"type": "setMode", "mode": "acceptEdits", "destination": "session"}],
            }),
        ),
        (HookEvent::PermissionDenied, with(with(call, json!({"reason": "no"})), server)),
        (HookEvent::Setup, json!({"trigger": "maintenance"})),
        (HookEvent::TeammateIdle, json!({"teammate_name": "ann", "team_name": "diggers"})),
        (HookEvent::TaskCreated, task.clone()),
        (HookEvent::TaskCompleted, task),
        (
            HookEvent::Elicitation,
            json!({
                "mcp_server_name": "s", "message": "who?", "mode": "url", "url": "https://example.org",
                "elicitation_id": "e", "requested_schema": {"type": "object"},
            }),
        ),
        (
            HookEvent::ElicitationResult,
            json!({
                "mcp_server_name": "s", "elicitation_id": "e", "mode": "form", "action": "accept",
                "content": {"name": "ann"},
            }),
        ),
        (HookEvent::ConfigChange, json!({"source": "local_settings", "file_path": "/s.json"})),
        (HookEvent::WorktreeCreate, json!({"name": "w"})),
        (HookEvent::WorktreeRemove, json!({"worktree_path": "/w"})),
        (
            HookEvent::InstructionsLoaded,
            json!({
                "file_path": "/n.md", "memory_type": "Project", "load_reason": "path_glob_match", "globs": ["*.rs"],
                "trigger_file_path": "/a.rs", "parent_file_path": "/m.md",
            }),
        ),
        (HookEvent::CwdChanged, json!({"old_cwd": "/a", "new_cwd": "/b"})),
        (HookEvent::FileChanged, json!({"file_path": "/a", "event": "unlink"})),
        (HookEvent::DirectoryAdded, json!({"directory": "/a", "source": "register_repo_root"})),
        (
            HookEvent::MessageDisplay,
            json!({"turn_id": "t", "message_id": "m", "index": 2, "final": true, "delta": "hel"}),
        ),
    ]
}

fn input(event: &HookEvent, fields: &Value) -> Value {
    let mut object = json!({
        "session_id": "s1", "transcript_path": "/t.jsonl", "cwd": "/work", "prompt_id": "p1",
        "permission_mode": "acceptEdits", "effort": {"level": "high"}, "hook_event_name": event.as_str(),
    });
    object.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    object
}

fn check_output(value: Value) -> HookOutput {
    let (output, unknown) =
        drift::observe(|| serde_json::from_value::<HookOutput>(value.clone()).unwrap());
    assert!(unknown.is_empty(), "{unknown:?} in {value}");
    assert_eq!(serde_json::to_value(&output).unwrap(), value);
    output
}

fn specific(event: &HookEvent, fields: Value) -> Value {
    let mut object = json!({"hookEventName": event.as_str()});
    object.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    json!({ "hookSpecificOutput": object })
}

#[test]
fn every_event_is_decoded_completely_and_encoded_unchanged() {
    let inputs = inputs();
    assert_eq!(inputs.iter().map(|(event, _)| event.clone()).collect::<Vec<_>>(), HookEvent::ALL);
    for (event, fields) in inputs {
        let value = input(&event, &fields);
        let (input, unknown) =
            drift::observe(|| serde_json::from_value::<HookInput>(value.clone()).unwrap());
        assert!(unknown.is_empty(), "{unknown:?}");
        assert_eq!(serde_json::to_value(&input).unwrap(), value);
        assert_eq!(input.event(), event);
        assert_eq!((input.session_id(), input.cwd()), ("s1", "/work"));
        assert_eq!(input.tool_name().is_some(), fields.get("tool_name").is_some());
        let base = input.base();
        assert_eq!(base.permission_mode, Some("acceptEdits"));
        assert_eq!(base.effort, Some("high"));
        assert_eq!(base.agent_id, fields.get("agent_id").and_then(Value::as_str));
        assert_eq!(base.agent_type, fields.get("agent_type").and_then(Value::as_str));
    }
}

#[test]
fn fields_that_older_peers_leave_out_are_optional() {
    let value = json!({
        "session_id": "s1", "transcript_path": "/t.jsonl", "cwd": "/work", "hook_event_name": "SubagentStart",
        "agent_id": "a1", "agent_type": "general-purpose",
    });
    let input: HookInput = serde_json::from_value(value.clone()).unwrap();
    assert_eq!(input.base().permission_mode, None);
    assert_eq!(serde_json::to_value(&input).unwrap(), value);
}

#[test]
fn an_unknown_event_keeps_its_fields_and_shows_the_common_ones() {
    let value = json!({"hook_event_name": "MoonRise", "session_id": "s1", "effort": {"level": "low"}, "phase": 3});
    let input: HookInput = serde_json::from_value(value.clone()).unwrap();
    assert_eq!(input.event(), HookEvent::Other("MoonRise".into()));
    assert_eq!((input.session_id(), input.cwd(), input.base().effort), ("s1", "", Some("low")));
    assert_eq!(serde_json::to_value(&input).unwrap(), value);
}

#[test]
fn unknown_fields_and_values_survive() {
    let value =
        input(&HookEvent::SessionEnd, &json!({"reason": "eclipse", "mood": [1, {"a": null}]}));
    let (input, unknown) =
        drift::observe(|| serde_json::from_value::<HookInput>(value.clone()).unwrap());
    assert_eq!(serde_json::to_value(&input).unwrap(), value);
    let unknown: Vec<_> = unknown.into_iter().collect();
    assert_eq!(unknown, ["ExitReason = eclipse", "SessionEndInput.mood"]);
}

#[test]
fn errors_name_the_event_and_the_field() {
    let value = input(&HookEvent::Stop, &json!({"stop_hook_active": "yes"}));
    let error = serde_json::from_value::<HookInput>(value).unwrap_err().to_string();
    assert!(error.starts_with("at Stop.stop_hook_active: "), "{error}");
    let error = serde_json::from_value::<HookInput>(input(&HookEvent::Stop, &json!({})))
        .unwrap_err()
        .to_string();
    assert!(error.contains("Stop") && error.contains("`stop_hook_active`"), "{error}");
}

#[test]
fn answers_are_decoded_completely_and_encoded_unchanged() {
    assert_eq!(check_output(json!({})), HookOutput::none());
    check_output(json!({
        "continue": false, "suppressOutput": true, "stopReason": "r", "decision": "block", "reason": "r",
        "systemMessage": "m", "terminalSequence": "\u{7}",
    }));
    assert!(check_output(json!({"async": true, "asyncTimeout": 5000})).is_detached());
    let context = json!({"additionalContext": "c"});
    for event in HookEvent::ALL {
        let Some(output) = HookOutput::context(event, "c") else { continue };
        assert_eq!(check_output(specific(event, context.clone())), output);
    }
    for (event, fields) in [
        (
            HookEvent::PreToolUse,
            json!({"permissionDecision": "defer", "permissionDecisionReason": "r", "updatedInput": {"a": 1}}),
        ),
        (
            HookEvent::PostToolUse,
            json!({"classifierContext": "c", "updatedToolOutput": [1], "updatedMCPToolOutput": "x"}),
        ),
        (HookEvent::UserPromptSubmit, json!({"sessionTitle": "t", "suppressOriginalPrompt": true})),
        (HookEvent::UserPromptExpansion, json!({"suppressOriginalPrompt": true})),
        (
            HookEvent::SessionStart,
            json!({"initialUserMessage": "hi", "sessionTitle": "t", "watchPaths": ["/a"], "reloadSkills": true}),
        ),
        (
            HookEvent::PreModelSwitch,
            json!({"permissionDecision": "ask", "permissionDecisionReason": "r"}),
        ),
        (
            HookEvent::PermissionRequest,
            json!({"decision": {
                "behavior": "allow", "updatedInput": {"a": 1},
                "updatedPermissions": [{"type": "setMode", "mode": "plan", "destination": "session"}],
            }}),
        ),
        (
            HookEvent::PermissionRequest,
            json!({"decision": {"behavior": "deny", "message": "no", "interrupt": true}}),
        ),
        (HookEvent::PermissionDenied, json!({"retry": true})),
        (HookEvent::Elicitation, json!({"action": "decline", "content": {"a": 1}})),
        (HookEvent::ElicitationResult, json!({"action": "cancel", "content": {"a": 1}})),
        (HookEvent::CwdChanged, json!({"watchPaths": ["/a"]})),
        (HookEvent::FileChanged, json!({"watchPaths": []})),
        (HookEvent::WorktreeCreate, json!({"worktreePath": "/w"})),
        (HookEvent::MessageDisplay, json!({"displayContent": "x"})),
    ] {
        check_output(specific(&event, fields));
    }
}

#[test]
fn constructed_answers_have_the_expected_json() {
    let check = |output: HookOutput, value: Value| {
        assert_eq!(serde_json::to_value(&output).unwrap(), value)
    };
    let pre = |fields| specific(&HookEvent::PreToolUse, fields);
    check(HookOutput::allow(), pre(json!({"permissionDecision": "allow"})));
    check(
        HookOutput::allow_with(json!({"command": "ls"})),
        pre(json!({"permissionDecision": "allow", "updatedInput": {"command": "ls"}})),
    );
    check(
        HookOutput::deny("no"),
        pre(json!({"permissionDecision": "deny", "permissionDecisionReason": "no"})),
    );
    check(
        HookOutput::ask("hm"),
        pre(json!({"permissionDecision": "ask", "permissionDecisionReason": "hm"})),
    );
    check(HookOutput::block("continue"), json!({"decision": "block", "reason": "continue"}));
    check(HookOutput::stop("enough"), json!({"continue": false, "stopReason": "enough"}));
    check(HookOutput::detached(), json!({"async": true}));
    check(HookOutput::none().with_system_message("careful"), json!({"systemMessage": "careful"}));
    check(
        HookOutput::decide(PermissionRequestDecision::deny("no")),
        specific(
            &HookEvent::PermissionRequest,
            json!({"decision": {"behavior": "deny", "message": "no"}}),
        ),
    );
    assert_eq!(HookOutput::context(&HookEvent::PreCompact, "c"), None);
}

#[test]
fn a_matcher_keeps_null_and_absent_apart() {
    for value in [
        json!({"matcher": null, "hookCallbackIds": ["hook_0"]}),
        json!({"matcher": "Bash|Edit", "hookCallbackIds": ["hook_0", "hook_1"], "timeout": 1.5, "onFailure": "block"}),
        json!({"hookCallbackIds": []}),
    ] {
        let (matcher, unknown) =
            drift::observe(|| serde_json::from_value::<HookMatcher>(value.clone()).unwrap());
        assert!(unknown.is_empty());
        assert_eq!(serde_json::to_value(&matcher).unwrap(), value);
    }
}
