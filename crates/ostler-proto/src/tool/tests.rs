//! Round trips of every tool's input and output, and unknown tools.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::*;
use crate::drift;

/// One input per tool, with everything there is.
fn inputs() -> Vec<(&'static str, Value)> {
    vec![
        (
            "Agent",
            json!({
                "description": "d", "prompt": "p", "subagent_type": "reviewer", "model": "fable", "effort": "xhigh",
                "resume": "a1", "run_in_background": true, "max_turns": 3, "name": "ann", "team_name": "t",
                "mode": "plan", "isolation": "worktree",
            }),
        ),
        (
            "Artifact",
            json!({
                "action": "list_assets", "file_path": "/a", "favicon": "*", "icon": "i", "limit": 3, "page_token": "t",
                "scope": "mine", "title": "t", "description": "d", "label": "l", "url": "u", "prompt": "p",
                "force": true, "pin": false, "out_dir": "/o", "file_paths": ["/a"], "asset_id": "1", "after": "x",
                "capabilities": {"a": 1}, "contract": "latest",
            }),
        ),
        (
            "AskUserQuestion",
            json!({
                "questions": [question()], "answers": {"Which?": "A"},
                "annotations": {"Which?": {"preview": "p", "notes": "n"}}, "metadata": {"source": "s"},
            }),
        ),
        (
            "Bash",
            json!({
                "command": "ls", "timeout": 1000, "description": "d", "run_in_background": false,
                "dangerouslyDisableSandbox": true,
            }),
        ),
        ("ClaudeDesign", json!({"operation": "o", "arguments": {"a": 1}})),
        ("Config", json!({"setting": "theme", "value": true})),
        ("Config", json!({"setting": "theme", "value": "dark"})),
        ("Config", json!({"setting": "width", "value": 1.5})),
        (
            "CronCreate",
            json!({"cron": "0 * * * *", "prompt": "p", "recurring": true, "durable": false}),
        ),
        ("CronDelete", json!({"id": "c1"})),
        ("CronList", json!({})),
        (
            "Edit",
            json!({"file_path": "/a", "old_string": "x", "new_string": "y", "replace_all": false}),
        ),
        ("EnterPlanMode", json!({})),
        ("EnterWorktree", json!({"name": "w", "path": "/w"})),
        (
            "ExitPlanMode",
            json!({"plan": "1. dig", "allowedPrompts": [{"tool": "Bash", "prompt": "run tests"}]}),
        ),
        ("ExitWorktree", json!({"action": "remove", "discard_changes": true})),
        ("Glob", json!({"pattern": "*.rs", "path": "/a"})),
        (
            "Grep",
            json!({
                "pattern": "x", "path": "/a", "glob": "*.rs", "output_mode": "content", "-B": 1, "-A": 2, "-C": 3,
                "context": 3, "-n": true, "-i": false, "-o": true, "type": "rust", "head_limit": 5, "offset": 0,
                "multiline": false,
            }),
        ),
        ("ListMcpResourcesTool", json!({"server": "s"})),
        (
            "Monitor",
            json!({
                "description": "d", "timeout_ms": 5, "command": "tail -f x",
                "ws": {"url": "wss://example.org", "protocols": ["a"]},
            }),
        ),
        (
            "NotebookEdit",
            json!({
                "notebook_path": "/n", "cell_id": "c", "new_source": "x", "cell_type": "markdown",
                "edit_mode": "insert",
            }),
        ),
        ("OfferChromeSetup", json!({"reason": "r"})),
        (
            "Projects",
            json!({
                "method": "project_write", "path": "p", "content": "c", "local_path": "/l", "present_to_user": true,
                "query": "q", "n": 3,
            }),
        ),
        ("ProposeGoal", json!({"condition": "c", "ask_user": true})),
        (
            "propose_skills",
            json!({"proposals": [{
                "name": "n", "kind": "improvement", "target": "t", "description": "d", "evidence": ["e"],
                "edits": [{"old_string": "a", "new_string": "b"}], "skillMd": "m",
            }]}),
        ),
        ("PushNotification", json!({"message": "m", "status": "proactive"})),
        (
            "Read",
            json!({"file_path": "/a", "offset": 1, "limit": 2, "pages": "1-2", "allow_large": true}),
        ),
        ("ReadMcpResourceTool", json!({"server": "s", "uri": "u"})),
        ("ReadMcpResourceDirTool", json!({"server": "s", "uri": "u"})),
        ("ReadNotifications", json!({})),
        ("RefreshMcpTools", json!({"server": "s"})),
        (
            "RemoteTrigger",
            json!({"action": "get_run_log", "trigger_id": "t", "session_id": "s", "cursor": "c", "body": {"a": 1}}),
        ),
        ("ReportFindings", json!({"level": "xhigh", "findings": [finding()]})),
        (
            "ScheduleWakeup",
            json!({"delaySeconds": 1.5, "reason": "r", "prompt": "p", "stop": false, "noop": false}),
        ),
        (
            "SendFeedback",
            json!({
                "type": "missing_capability", "title": "t", "details": "d", "area": "a",
                "failure_mode": "over_correction", "task_category": "other",
            }),
        ),
        ("ShowOnboardingRolePicker", json!({})),
        ("Skill", json!({"skill": "pdf", "args": "a"})),
        ("SubscribeMcpResource", json!({"server": "s", "uri": "u", "reason": "r"})),
        (
            "SubscribePolling",
            json!({
                "type": "tool", "server": "s", "toolName": "t", "arguments": {"a": 1}, "uri": "u", "intervalMs": 5,
                "reason": "r",
            }),
        ),
        (
            "TaskCreate",
            json!({"subject": "s", "description": "d", "activeForm": "digging", "metadata": {"a": 1}}),
        ),
        ("TaskGet", json!({"taskId": "1"})),
        ("TaskList", json!({})),
        ("TaskOutput", json!({"task_id": "b1", "block": true, "timeout": 5})),
        ("TaskStop", json!({"task_id": "b1", "shell_id": "b1"})),
        (
            "TaskUpdate",
            json!({
                "taskId": "1", "subject": "s", "description": "d", "activeForm": "a", "status": "deleted",
                "addBlocks": ["2"], "addBlockedBy": ["3"], "owner": "ann", "metadata": {},
            }),
        ),
        (
            "TodoWrite",
            json!({"todos": [{"content": "c", "status": "in_progress", "activeForm": "a"}]}),
        ),
        ("UnsubscribeMcpResource", json!({"server": "s", "uri": "u", "subscriptionId": "1"})),
        ("UnsubscribePolling", json!({"subscriptionId": "1", "server": "s", "target": "t"})),
        ("WebFetch", json!({"url": "https://example.org", "prompt": "p", "offset": 4})),
        ("WebSearch", json!({"query": "q", "allowed_domains": ["a"], "blocked_domains": []})),
        (
            "Workflow",
            json!({
                "script": "s", "name": "n", "description": "d", "title": "t", "args": {"a": 1}, "scriptPath": "/s",
                "resumeFromRunId": "r",
            }),
        ),
        ("Write", json!({"file_path": "/a", "content": "c"})),
    ]
}

/// One output per tool and kind, with everything there is.
fn outputs() -> Vec<(&'static str, Value)> {
    let hunk =
        json!({"oldStart": 1, "oldLines": 1, "newStart": 1, "newLines": 1, "lines": ["-a", "+b"]});
    let diff = json!({
        "filename": "a", "status": "modified", "additions": 1, "deletions": 1, "changes": 2, "patch": "@@",
        "repository": null,
    });
    let todo = json!({"content": "c", "status": "pending", "activeForm": "a"});
    vec![
        (
            "Task",
            json!({
                "status": "completed", "agentId": "a1", "agentType": "t",
                "content": [{"type": "text", "text": "done", "citations": null}],
                "resolvedModel": "m", "modelsUsed": ["m"], "totalToolUseCount": 1, "totalDurationMs": 2.5,
                "totalTokens": 3,
                "usage": {
                    "input_tokens": 1, "output_tokens": 2, "cache_creation_input_tokens": null,
                    "cache_read_input_tokens": 0,
                    "server_tool_use": {"web_search_requests": 0, "web_fetch_requests": 0}, "service_tier": "standard",
                    "cache_creation": {"ephemeral_1h_input_tokens": 0, "ephemeral_5m_input_tokens": 0},
                    "inference_geo": "", "speed": null, "iterations": [],
                    "output_tokens_details": {"thinking_tokens": 1}, "fallback_credit": {"a": 1},
                },
                "toolsUsed": ["Bash"],
                "toolStats": {
                    "readCount": 0, "searchCount": 0, "bashCount": 1, "editFileCount": 0, "linesAdded": 0,
                    "linesRemoved": 0, "otherToolCount": 0, "frameCount": 1,
                },
                "prompt": "p", "worktreePath": "/w", "worktreeBranch": "b",
            }),
        ),
        (
            "Agent",
            json!({
                "status": "async_launched", "isAsync": true, "agentId": "a1", "description": "d",
                "resolvedModel": "m", "modelsUsed": ["m"], "prompt": "p", "outputFile": "/o",
                "canReadOutputFile": true, "canContinueAgent": true,
            }),
        ),
        (
            "Agent",
            json!({
                "status": "remote_launched", "taskId": "t", "sessionUrl": "u", "description": "d", "prompt": "p",
                "outputFile": "/o",
            }),
        ),
        ("Agent", json!({"status": "sub_agent_entered", "description": "d", "message": "m"})),
        ("Artifact", json!({"url": "u", "path": "/p"})),
        (
            "AskUserQuestion",
            json!({
                "questions": [question()], "answers": {"Which?": "A"}, "response": "r",
                "annotations": {"Which?": {"unanswered": "replied_in_chat"}}, "afkTimeoutMs": 5,
            }),
        ),
        (
            "Bash",
            json!({
                "stdout": "", "stderr": "", "rawOutputPath": "/r", "interrupted": false, "isImage": false,
                "backgroundTaskId": "b1", "backgroundedByUser": true, "timedOutAfterMs": 5,
                "backgroundCwdHint": "h", "backgroundEndsWithFinalResponse": true, "backgroundWakesOwner": true,
                "dangerouslyDisableSandbox": false, "returnCodeInterpretation": "no match",
                "noOutputExpected": true, "structuredContent": [{"type": "text"}], "persistedOutputPath": "/p",
                "persistedOutputSize": 9, "staleReadFileStateHint": "s", "ghRateLimitHint": "g",
                "gitOperation": {
                    "commit": {"sha": "abc", "kind": "cherry-picked", "branch": "main"}, "push": {"branch": "main"},
                    "branch": {"ref": "main", "action": "rebased"},
                    "pr": {"number": 7, "url": "u", "action": "auto-merge-enabled"},
                },
            }),
        ),
        (
            "ClaudeDesign",
            json!({"operation": "o", "content": [{"type": "text"}], "isError": false}),
        ),
        (
            "Config",
            json!({
                "success": true, "operation": "set", "setting": "s", "value": 1, "previousValue": "a",
                "newValue": "b", "error": "e",
            }),
        ),
        (
            "CronCreate",
            json!({"id": "c", "humanSchedule": "hourly", "recurring": true, "durable": true, "nextFireAt": 17}),
        ),
        ("CronDelete", json!({"id": "c", "endedLoopWakeup": true})),
        (
            "CronList",
            json!({"jobs": [{
                "id": "c", "cron": "0 * * * *", "humanSchedule": "hourly", "prompt": "p", "recurring": true,
                "durable": false, "nextFireAt": 17,
            }]}),
        ),
        (
            "Edit",
            json!({
                "filePath": "/a", "oldString": "a", "newString": "b", "originalFile": null,
                "structuredPatch": [hunk], "userModified": false, "replaceAll": false, "gitDiff": diff,
                "staged": true,
            }),
        ),
        ("EnterPlanMode", json!({"message": "m"})),
        ("EnterWorktree", json!({"worktreePath": "/w", "worktreeBranch": "b", "message": "m"})),
        (
            "ExitPlanMode",
            json!({
                "plan": null, "isAgent": false, "filePath": "/p.md", "hasTaskTool": true, "planWasEdited": false,
                "awaitingLeaderApproval": true, "requestId": "r",
            }),
        ),
        (
            "ExitWorktree",
            json!({
                "action": "keep", "originalCwd": "/a", "worktreePath": "/w", "worktreeBranch": "b",
                "tmuxSessionName": "t", "discardedFiles": 0, "discardedCommits": 1, "message": "m",
            }),
        ),
        (
            "Glob",
            json!({
                "durationMs": 1.25, "numFiles": 1, "filenames": ["/a"], "truncated": false, "totalMatches": 1,
                "countIsComplete": true, "timedOut": false,
            }),
        ),
        (
            "Grep",
            json!({
                "mode": "count", "numFiles": 1, "filenames": [], "content": "/a:1", "numLines": 1, "numMatches": 1,
                "totalFiles": 1, "totalLines": 1, "appliedLimit": 5, "appliedOffset": 0, "timedOut": false,
            }),
        ),
        (
            "ListMcpResourcesTool",
            json!([{"uri": "u", "name": "n", "mimeType": "m", "description": "d", "server": "s"}]),
        ),
        ("Monitor", json!({"taskId": "t", "timeoutMs": 5, "persistent": true})),
        (
            "NotebookEdit",
            json!({
                "new_source": "x", "old_source": "y", "cell_id": "c", "cell_type": "code", "language": "python",
                "edit_mode": "replace", "error": "e", "notebook_path": "/n", "original_file": "{}",
                "updated_file": "{}",
            }),
        ),
        ("OfferChromeSetup", json!({"outcome": "no_attempt_yet"})),
        (
            "Projects",
            json!({
                "method": "project_info", "notice": "n", "local_file": "/l", "name": "n", "description": "d",
                "instructions": "i", "docs": [{"path": "p", "created_at": null}],
                "files": [{"path": "p", "file_kind": "k", "created_at": "c"}],
                "sync_sources": [{"type": null, "config": {}}],
                "knowledge": {"knowledge_size": 1, "max_knowledge_size": 2},
            }),
        ),
        (
            "Projects",
            json!({
                "method": "project_read", "path": "p", "file_kind": "k", "content": "c", "local_file": "/l",
                "created_at": null,
            }),
        ),
        (
            "Projects",
            json!({
                "method": "project_search", "rag": true, "docs": ["d"],
                "hits": [{"name": "n", "doc_uuid": "u", "text": "t", "image_attached": true, "page": 1}],
            }),
        ),
        (
            "Projects",
            json!({
                "method": "project_write", "path": "p", "doc_uuid": "u", "replaced": true, "present_to_user": true,
                "local_path": "/l",
            }),
        ),
        ("Projects", json!({"method": "project_delete", "path": "p", "deleted": true})),
        (
            "Projects",
            json!({
                "method": "project_memory_list", "truncated": false,
                "files": [{"path": "p", "size_bytes": 1, "updated_at": null, "truncated": false}],
            }),
        ),
        (
            "Projects",
            json!({
                "method": "project_memory_read", "path": "p", "content": "c", "local_file": "/l", "size_bytes": 1,
                "updated_at": "u", "truncated": false,
            }),
        ),
        ("ProposeGoal", json!({"condition": "c", "askUser": true})),
        ("propose_skills", json!({"proposalCount": 1})),
        (
            "PushNotification",
            json!({
                "message": "m", "pushSent": false, "localSent": true, "disabledReason": "user_present",
                "sentAt": "t",
            }),
        ),
        (
            "Read",
            json!({
                "type": "text", "artifactRead": {"slug": "s", "ver": "1"},
                "file": {
                    "filePath": "/a", "content": "x", "numLines": 1, "startLine": 1, "totalLines": 1,
                    "truncatedByTokenCap": true,
                },
            }),
        ),
        (
            "Read",
            json!({"type": "image", "file": {
                "base64": "x", "type": "image/png", "originalSize": 3,
                "dimensions": {"originalWidth": 1, "originalHeight": 2, "displayWidth": 1, "displayHeight": 2},
            }}),
        ),
        (
            "Read",
            json!({"type": "notebook", "file": {"filePath": "/n", "cells": [{"source": "x"}]}}),
        ),
        (
            "Read",
            json!({"type": "pdf", "file": {"filePath": "/p", "base64": "x", "originalSize": 3}}),
        ),
        (
            "Read",
            json!({
                "type": "parts", "firstPage": 1, "pages": [{"base64": "", "mediaType": "image/jpeg", "error": "e"}],
                "file": {"filePath": "/p", "originalSize": 3, "count": 1, "outputDir": "/o"},
            }),
        ),
        ("Read", json!({"type": "file_unchanged", "file": {"filePath": "/a"}})),
        (
            "ReadMcpResourceTool",
            json!({
                "contents": [{"uri": "u", "mimeType": "m", "text": "t", "blobSavedTo": "/b"}], "error": "e",
            }),
        ),
        (
            "ReadMcpResourceDirTool",
            json!({"resources": [{"uri": "u", "name": "n", "mimeType": "m"}], "error": "e"}),
        ),
        (
            "ReadNotifications",
            json!({
                "notifications": [{
                    "notification_id": "n", "origin": "o", "queued_at": "t", "content": "c", "arrived_at": "t",
                }],
                "remaining": 0, "read_at": "t",
            }),
        ),
        (
            "RefreshMcpTools",
            json!([{
                "server": "s", "status": "not_connected", "toolCount": 1, "added": ["a"], "removed": [], "error": "e",
            }]),
        ),
        ("RemoteTrigger", json!({"status": 200, "json": "{}", "summary": "s"})),
        ("ReportFindings", json!({"count": 1, "level": "low", "findings": [finding()]})),
        (
            "ScheduleWakeup",
            json!({
                "scheduledFor": 17, "clampedDelaySeconds": 60, "wasClamped": true, "stopped": false,
                "cancelledWakeups": 1,
            }),
        ),
        ("SendFeedback", json!({"success": true, "message": "m"})),
        ("ShowOnboardingRolePicker", json!({"role": "r", "dismissed": false})),
        ("Skill", json!({"success": true})),
        ("SubscribeMcpResource", json!({"subscribed": true, "subscriptionId": "1"})),
        ("SubscribePolling", json!({"subscribed": true, "subscriptionId": "1"})),
        ("TaskCreate", json!({"task": {"id": "1", "subject": "s", "description": "d"}})),
        ("TaskGet", json!({"task": null})),
        (
            "TaskGet",
            json!({"task": {
                "id": "1", "subject": "s", "description": "d", "status": "completed", "blocks": [], "blockedBy": ["2"],
            }}),
        ),
        (
            "TaskList",
            json!({"tasks": [{
                "id": "1", "subject": "s", "status": "pending", "owner": "ann", "blockedBy": [],
            }]}),
        ),
        ("TaskOutput", json!({"retrieval_status": "success"})),
        (
            "TaskStop",
            json!({"message": "m", "task_id": "b1", "task_type": "local_bash", "command": "sleep"}),
        ),
        (
            "TaskUpdate",
            json!({
                "success": true, "taskId": "1", "updatedFields": ["status"], "error": "e",
                "statusChange": {"from": "pending", "to": "completed"},
            }),
        ),
        ("TodoWrite", json!({"oldTodos": [], "newTodos": [todo]})),
        ("UnsubscribeMcpResource", json!({"unsubscribed": true})),
        ("UnsubscribePolling", json!({"unsubscribed": false})),
        (
            "WebFetch",
            json!({
                "bytes": 1, "code": 200, "codeText": "OK", "result": "r", "durationMs": 1.5, "url": "u",
                "artifactRead": {"slug": "s", "seeded": false},
            }),
        ),
        (
            "WebSearch",
            json!({
                "query": "q", "durationSeconds": 0.5, "searchCount": 1,
                "results": [
                    {"tool_use_id": "s1", "content": [{"title": "t", "url": "u", "snippet": "s"}]}, "a remark",
                ],
            }),
        ),
        (
            "Workflow",
            json!({
                "status": "async_launched", "taskId": "t", "taskType": "local_workflow", "workflowName": "n",
                "runId": "r", "summary": "s", "transcriptDir": "/t", "scriptPath": "/s", "sessionUrl": "u",
                "warning": "w", "error": "e",
            }),
        ),
        (
            "Write",
            json!({
                "type": "create", "filePath": "/a", "content": "c", "structuredPatch": [], "originalFile": null,
                "gitDiff": {
                    "filename": "a", "status": "added", "additions": 1, "deletions": 0, "changes": 1, "patch": "@@",
                },
                "userModified": false, "staged": false,
            }),
        ),
    ]
}

fn question() -> Value {
    json!({
        "question": "Which?", "header": "Pick", "multiSelect": true,
        "options": [{"label": "A", "description": "a", "preview": "p"}, {"label": "B", "description": "b"}],
    })
}

fn finding() -> Value {
    json!({
        "file": "/a", "line": 3, "summary": "s", "short_summary": "s", "failure_scenario": "f", "category": "c",
        "verdict": "CONFIRMED", "outcome": "no_change_needed",
    })
}

fn names(examples: &[(&'static str, Value)]) -> BTreeSet<&'static str> {
    examples.iter().map(|(name, _)| if *name == "Task" { "Agent" } else { name }).collect()
}

#[test]
fn every_input_is_decoded_completely_and_encoded_unchanged() {
    let examples = inputs();
    assert_eq!(names(&examples), ToolInput::NAMES.iter().copied().collect());
    for (name, value) in examples {
        let (input, unknown) = drift::observe(|| ToolInput::parse(name, &value).unwrap());
        assert!(unknown.is_empty(), "{name}: {unknown:?}");
        assert!(!matches!(input, ToolInput::Unknown { .. }), "{name}");
        assert_eq!(input.name(), name);
        assert_eq!(input.to_value(), value, "{name}");
    }
}

#[test]
fn every_output_is_decoded_completely_and_encoded_unchanged() {
    let examples = outputs();
    assert_eq!(names(&examples), ToolInput::NAMES.iter().copied().collect());
    for (name, value) in examples {
        let (output, unknown) = drift::observe(|| ToolOutput::parse(name, &value).unwrap());
        assert!(unknown.is_empty(), "{name}: {unknown:?}");
        assert!(!matches!(output, ToolOutput::Unknown { .. }), "{name}");
        assert_eq!(output.to_value(), value, "{name}");
    }
}

#[test]
fn the_subagent_tool_has_two_names() {
    let value = json!({"description": "d", "prompt": "p"});
    for name in ["Task", "Agent"] {
        let input = ToolInput::parse(name, &value).unwrap();
        assert!(matches!(input, ToolInput::Agent(_)));
        assert_eq!(input.name(), "Agent");
    }
}

#[test]
fn tools_of_servers_and_unknown_tools_stay_json() {
    let value = json!({"a": 1, "b": [null]});
    for name in ["mcp__calc__add", "StructuredOutput", "bash"] {
        let input = ToolInput::parse(name, &value).unwrap();
        assert_eq!(input, ToolInput::Unknown { name: name.into(), input: value.clone() });
        assert_eq!((input.name(), input.to_value()), (name, value.clone()));
        let output = ToolOutput::parse(name, &value).unwrap();
        assert_eq!((output.name(), output.to_value()), (name, value.clone()));
    }
}

#[test]
fn a_plain_string_is_an_error_or_text_for_every_tool() {
    let value = json!("Error: Exit code 3");
    let output = ToolOutput::parse("Bash", &value).unwrap();
    assert_eq!(output.error(), Some("Exit code 3"));
    assert_eq!((output.name(), output.to_value()), ("Bash", value));
    let output = ToolOutput::parse("mcp__calc__add", &json!("5")).unwrap();
    assert_eq!((output.error(), output.to_value()), (None, json!("5")));
}

#[test]
fn unknown_fields_values_and_kinds_survive() {
    for (name, value) in [
        ("Read", json!({"type": "hologram", "file": {"depth": 3}})),
        ("Agent", json!({"status": "asleep", "until": 7})),
        (
            "TodoWrite",
            json!({"oldTodos": [], "newTodos": [{"content": "c", "status": "lost", "activeForm": "", "x": 1}]}),
        ),
        (
            "Write",
            json!({"type": "append", "filePath": "/a", "content": "", "structuredPatch": [], "mood": null}),
        ),
    ] {
        let (output, unknown) = drift::observe(|| ToolOutput::parse(name, &value).unwrap());
        assert!(!unknown.is_empty(), "{name}");
        assert_eq!(output.to_value(), value);
    }
}

#[test]
fn errors_name_the_tool_and_the_field() {
    let error = ToolInput::parse("Read", &json!({"wrong": 1})).unwrap_err();
    assert_eq!(error.to_string(), "input of Read: missing field `file_path`");
    assert_eq!((error.tool(), error.side()), ("Read", Side::Input));
    let value = json!({"todos": [{"content": 1, "status": "pending", "activeForm": ""}]});
    let error = ToolInput::parse("TodoWrite", &value).unwrap_err().to_string();
    assert!(error.starts_with("input of TodoWrite: at todos.content: "), "{error}");
    let error =
        ToolOutput::parse("Task", &json!({"status": "async_launched"})).unwrap_err().to_string();
    assert!(error.starts_with("output of Task: at async_launched: "), "{error}");
    let error =
        ToolInput::parse("Config", &json!({"setting": "s", "value": []})).unwrap_err().to_string();
    assert!(
        error.contains("at value: ") && error.contains("a string, a boolean or a number"),
        "{error}"
    );
    let value = json!({"query": "q", "results": [4], "durationSeconds": 1});
    let error = ToolOutput::parse("WebSearch", &value).unwrap_err().to_string();
    assert!(error.contains("at results: ") && error.contains("search hits or a string"), "{error}");
}

#[test]
fn answers_go_into_the_input_by_the_question_s_text() {
    let value = json!({"questions": [question()]});
    let Ok(ToolInput::AskUserQuestion(input)) = ToolInput::parse("AskUserQuestion", &value) else {
        panic!()
    };
    let input = input.answered("Which?", ["A", "B"]).answered("And?", ["free text"]);
    let answered = ToolInput::from(input).to_value();
    assert_eq!(answered["questions"], value["questions"]);
    assert_eq!(answered["answers"], json!({"Which?": "A, B", "And?": "free text"}));
}
