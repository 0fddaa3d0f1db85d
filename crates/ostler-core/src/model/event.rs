//! What is written to the log of a session.

use ostler::proto::api::ContentBlock;
use ostler_base::error::{self, Fallible};
use ostler_store::NewEvent;
use serde::Serialize;
use serde_json::{Value, json};

use super::run::{Begin, Forked, Run};

/// What the names of all drafts begin with.
const DRAFTS: &str = "s/";

/// A run has come to a new state. With the end of one that had begun, drafts whose message never came whole are dropped.
pub fn state(run: &Run) -> Fallible<NewEvent> {
    let event = event("run", json!({"run": run}), true)?;
    let had_begun = run.state.is_over() && run.started.is_some();
    Ok(if had_begun { event.drops(DRAFTS) } else { event })
}

/// What the agent was saying when it was cut off.
pub fn cut_off(run: &str, text: &str) -> Fallible<NewEvent> {
    event("cut_off", json!({"runId": run, "text": text}), true)
}

/// Somebody said something; `said` is that as his client has it.
pub fn prompt(run: &Run, content: Option<&[ContentBlock]>, said: Vec<Value>) -> Fallible<NewEvent> {
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
pub fn said(run: &str, text: &str) -> Fallible<NewEvent> {
    event("prompt", json!({"runId": run, "text": text, "steered": true}), true)
}

/// The engine said something. Deltas are drafts: they are dropped when the block, or the message, came whole.
pub fn message(run: Option<&str>, message: &Value) -> Fallible<NewEvent> {
    let told = event("message", json!({"runId": run, "message": message}), true)?;
    let speaker = message["parent_tool_use_id"].as_str().unwrap_or("main");
    let blocks = format!("{DRAFTS}{speaker}/#");
    Ok(match (message["type"].as_str(), message["event"]["type"].as_str()) {
        (Some("stream_event"), Some("message_stop")) => {
            let all = format!("{DRAFTS}{speaker}/");
            told.draft(all.clone()).drops(all)
        }
        (Some("stream_event"), _) => match message["event"]["index"].as_u64() {
            Some(index) => told.draft(format!("{blocks}{index}")),
            None => told.draft(format!("{DRAFTS}{speaker}/@")),
        },
        (Some("assistant"), _) => told.drops(blocks),
        _ => told,
    })
}

/// Somebody is asked, or has answered.
pub(crate) fn approval(approval: &impl Serialize) -> Fallible<NewEvent> {
    event("approval", json!({"approval": approval}), true)
}

/// The state that a page shares with the agent has changed, by this JSON Patch.
pub fn shared_state(delta: &Value) -> Fallible<NewEvent> {
    event("state", json!({"delta": delta}), true)
}

/// Another engine goes on with the conversation.
pub fn engine() -> Fallible<NewEvent> {
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

/// The session is deleted; nothing comes after this.
pub(crate) fn deleted() -> Fallible<NewEvent> {
    event("notice", json!({"text": "This session was deleted.", "deleted": true}), true)
}

fn event(kind: &str, body: Value, durable: bool) -> Fallible<NewEvent> {
    let body = ostler_store::Body::of(&body).map_err(error::internal)?;
    let event = NewEvent::new(kind, body);
    Ok(if durable { event } else { event.fleeting() })
}
