//! What is written to the log of a session.

use ostler::proto::api::ContentBlock;
use ostler_store::NewEvent;
use serde_json::{Value, json};

use super::record::{Begin, Forked, Run};
use crate::approvals::record::Approval;
use crate::fault::{self, Fallible};

/// A run has come to a new state.
pub(crate) fn state(run: &Run) -> Fallible<NewEvent> {
    event("run", json!({"run": run}), true)
}

/// Somebody said something; `said` is that as his client has it.
pub(crate) fn prompt(
    run: &Run,
    content: Option<&[ContentBlock]>,
    said: Vec<Value>,
) -> Fallible<NewEvent> {
    let mut body = json!({"runId": run.id, "text": run.prompt});
    if run.begin != Begin::Here {
        body["begin"] = json!(run.begin);
    }
    if !said.is_empty() {
        body["messages"] = Value::Array(said);
    } else if let Some(content) = content {
        body["content"] = json!(content);
    }
    event("prompt", body, true)
}

/// Somebody said more while the run was at work.
pub(crate) fn said(run: &str, text: &str) -> Fallible<NewEvent> {
    event("prompt", json!({"runId": run, "text": text, "steered": true}), true)
}

/// The engine said something. Pieces of a response may be lost in a power cut: the whole comes after them.
pub(crate) fn message(run: Option<&str>, message: &Value, is_piece: bool) -> Fallible<NewEvent> {
    event("message", json!({"runId": run, "message": message}), !is_piece)
}

/// Somebody is asked, or has answered.
pub(crate) fn approval(approval: &Approval) -> Fallible<NewEvent> {
    event("approval", json!({"approval": approval}), true)
}

/// The state that a page shares with the agent has changed, by this JSON Patch.
pub(crate) fn shared_state(delta: &Value) -> Fallible<NewEvent> {
    event("state", json!({"delta": delta}), true)
}

/// Another engine goes on with the conversation.
pub(crate) fn engine() -> Fallible<NewEvent> {
    event("engine", json!({"state": "started"}), false)
}

/// The conversation so far was had in another session.
pub(crate) fn forked(title: &str, from: &Forked) -> Fallible<NewEvent> {
    let text = format!("What was said before this was said in “{title}”.");
    event("notice", json!({"text": text, "forkedFrom": from}), true)
}

/// Files were put back to how they were before the prompt of a run.
pub(crate) fn rewound(run: &str, files: &[String]) -> Fallible<NewEvent> {
    let text = match files.len() {
        1 => "One file was put back.".to_owned(),
        count => format!("{count} files were put back."),
    };
    event("notice", json!({"text": text, "rewound": {"before": run, "files": files}}), true)
}

fn event(kind: &str, body: Value, durable: bool) -> Fallible<NewEvent> {
    let body = ostler_store::Body::of(&body).map_err(fault::internal)?;
    Ok(NewEvent { kind: kind.to_owned(), body, key: None, durable })
}
