//! The messages of the WebSocket, from and to a client.

use ostler_core::approvals::answer::{AnswersRequest, DecisionRequest};
use ostler_core::approvals::record::{Approval, ApprovalKind, ApprovalState};
use ostler_store::Event;
use serde::Deserialize;
use serde_json::{Value, json};

/// A message of a client.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub(super) enum Said {
    /// Asks whether the server is there.
    Ping,
    /// Subscribes to the events of a session, after an event or from its beginning.
    Subscribe { session_id: String, after: Option<u64> },
    /// Sends a prompt; without a session it creates one.
    Prompt {
        session_id: Option<String>,
        text: String,
        #[serde(default)]
        push: bool,
        /// A repeated prompt with the same key starts nothing.
        key: Option<String>,
    },
    /// Cancels a run.
    Cancel { run_id: String },
    /// Allows or denies a tool call.
    PermissionResponse {
        permission_id: String,
        #[serde(flatten)]
        decision: DecisionRequest,
    },
    /// Answers questions of the agent.
    QuestionResponse {
        question_id: String,
        #[serde(flatten)]
        answers: AnswersRequest,
    },
}

/// The message that a user is asked.
pub(super) fn request(approval: &Approval) -> Value {
    let mut out = json!({
        "type": "permission_request",
        "permissionId": approval.id,
        "sessionId": approval.session,
        "runId": approval.run,
        "toolName": approval.tool_name,
        "toolUseId": approval.tool_use_id,
        "agentId": approval.agent_id,
        "input": approval.input,
        "summary": approval.summary,
        "description": approval.description,
        "reason": approval.reason,
        "why": approval.why,
        "reasonType": approval.reason_type,
        "blockedPath": approval.blocked_path,
        "redacted": approval.redacted,
        "rules": approval.rules,
        "offers": approval.offers,
        "origin": approval.origin,
        "digest": approval.digest,
        "asked": approval.asked,
        "expires": approval.expires,
    });
    if approval.kind == ApprovalKind::Question {
        out["type"] = "question_request".into();
        out["questionId"] = approval.id.as_str().into();
        out["questions"] = approval.input.get("questions").cloned().unwrap_or_default();
    }
    out
}

/// The message that a request was decided.
pub(super) fn resolved(approval: &Approval) -> Value {
    let (kind, id) = match approval.kind {
        ApprovalKind::Permission => ("permission_resolved", "permissionId"),
        ApprovalKind::Question => ("question_resolved", "questionId"),
    };
    let answer = approval.answer.as_ref();
    json!({
        "type": kind,
        id: approval.id,
        "sessionId": approval.session,
        "runId": approval.run,
        "approved": approval.state == ApprovalState::Allowed,
        "state": approval.state,
        "by": answer.map(|answer| &answer.by),
        "via": answer.map(|answer| &answer.via),
        "rule": answer.and_then(|answer| answer.rule.as_ref()),
        "scope": answer.map(|answer| answer.scope),
    })
}

/// The messages for an event of a session's log. Approvals have their own messages.
pub(super) fn of_event(session: &str, event: &Event) -> Vec<Value> {
    let Ok(body) = event.body.to::<Value>() else { return Vec::new() };
    let mut out = match event.kind.as_str() {
        "run" => vec![json!({"type": "status", "run": body["run"]})],
        "prompt" => vec![json!({"type": "prompt", "text": body["text"]})],
        "message" => of_message(&body["message"]),
        "approval" => Vec::new(),
        kind => vec![json!({"type": kind, "body": body})],
    };
    for value in &mut out {
        value["sessionId"] = session.into();
        value["seq"] = event.seq.into();
        if let Some(run) = body.get("runId").filter(|run| !run.is_null()) {
            value["runId"] = run.clone();
        }
    }
    out
}

fn of_message(message: &Value) -> Vec<Value> {
    let agent = &message["parent_tool_use_id"];
    let mut out = match message["type"].as_str() {
        Some("stream_event") => of_piece(&message["event"]),
        Some("assistant") => blocks(message).filter_map(of_block).collect(),
        Some("user") => blocks(message).filter_map(of_result).collect(),
        Some("tool_progress") => vec![json!({
            "type": "tool_progress",
            "toolUseId": message["tool_use_id"],
            "name": message["tool_name"],
            "elapsed": message["elapsed_time_seconds"],
        })],
        Some("result") => vec![json!({"type": "result", "result": message})],
        _ => vec![json!({"type": "system", "message": message})],
    };
    for value in out.iter_mut().filter(|_| !agent.is_null()) {
        value["parentToolUseId"] = agent.clone();
    }
    out
}

fn blocks(message: &Value) -> impl Iterator<Item = &Value> {
    message["message"]["content"].as_array().into_iter().flatten()
}

/// The messages for a delta of a response.
fn of_piece(event: &Value) -> Vec<Value> {
    let (block, delta) = (&event["content_block"], &event["delta"]);
    let out = match (event["type"].as_str(), delta["type"].as_str()) {
        (_, Some("text_delta")) => json!({"type": "text", "text": delta["text"]}),
        (_, Some("thinking_delta")) => json!({"type": "thinking", "text": delta["thinking"]}),
        (Some("content_block_start"), _) if block["type"] == "tool_use" => {
            json!({"type": "tool_start", "toolUseId": block["id"], "name": block["name"]})
        }
        _ => return Vec::new(),
    };
    vec![out]
}

/// The message for a finished block. Text and thinking were sent as deltas; the arguments of a call are complete now.
fn of_block(block: &Value) -> Option<Value> {
    (block["type"] == "tool_use").then(|| {
        json!({"type": "tool_input", "toolUseId": block["id"], "name": block["name"], "input": block["input"]})
    })
}

fn of_result(block: &Value) -> Option<Value> {
    (block["type"] == "tool_result").then(|| {
        json!({
            "type": "tool_result",
            "toolUseId": block["tool_use_id"],
            "content": block["content"],
            "isError": block["is_error"].as_bool().unwrap_or(false),
        })
    })
}
