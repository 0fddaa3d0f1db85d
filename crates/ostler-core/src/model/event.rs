//! The events in the log of a session.

use ostler::proto::api::ContentBlock;
use ostler_base::error::{self, Fallible};
use ostler_store::NewEvent;
use serde::Serialize;
use serde_json::{Value, json};

use super::run::{Begin, Forked, Run};

/// The prefix of the names of all drafts.
const DRAFTS: &str = "s/";

/// The state of a run changed. When a started run ends, drafts of incomplete messages are dropped.
pub fn state(run: &Run) -> Fallible<NewEvent> {
    let event = event("run", json!({"run": run}), true)?;
    let had_begun = run.state.is_over() && run.started.is_some();
    Ok(if had_begun { event.drops(DRAFTS) } else { event })
}

/// The incomplete text of the agent when it was cut off.
pub fn cut_off(run: &str, text: &str) -> Fallible<NewEvent> {
    event("cut_off", json!({"runId": run, "text": text}), true)
}

/// A user sent a prompt; `said` has the messages in the client's format.
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

/// A user sent another prompt while the run was active.
pub fn said(run: &str, text: &str) -> Fallible<NewEvent> {
    event("prompt", json!({"runId": run, "text": text, "steered": true}), true)
}

/// The engine sent a message. Deltas are drafts: they are dropped when the block, or the message, is complete.
pub fn message(run: Option<&str>, message: &Value) -> Fallible<NewEvent> {
    let logged = event("message", json!({"runId": run, "message": message}), true)?;
    let speaker = message["parent_tool_use_id"].as_str().unwrap_or("main");
    let blocks = format!("{DRAFTS}{speaker}/#");
    Ok(match (message["type"].as_str(), message["event"]["type"].as_str()) {
        (Some("stream_event"), Some("message_stop")) => {
            let all = format!("{DRAFTS}{speaker}/");
            logged.draft(all.clone()).drops(all)
        }
        (Some("stream_event"), _) => match message["event"]["index"].as_u64() {
            Some(index) => logged.draft(format!("{blocks}{index}")),
            None => logged.draft(format!("{DRAFTS}{speaker}/@")),
        },
        (Some("assistant"), _) => logged.drops(blocks),
        _ => logged,
    })
}

/// A user is asked, or has answered.
pub(crate) fn approval(approval: &impl Serialize) -> Fallible<NewEvent> {
    event("approval", json!({"approval": approval}), true)
}

/// The state that a page shares with the agent was changed by this JSON Patch.
pub fn shared_state(delta: &Value) -> Fallible<NewEvent> {
    event("state", json!({"delta": delta}), true)
}

/// Another engine continues the conversation.
pub fn engine() -> Fallible<NewEvent> {
    event("engine", json!({"state": "started"}), false)
}

/// The conversation begins in another session.
pub(crate) fn forked(title: &str, from: &Forked) -> Fallible<NewEvent> {
    let text = format!("Earlier messages are from the session “{title}”.");
    event("notice", json!({"text": text, "forkedFrom": from}), true)
}

/// Files were restored to their state before the prompt of a run.
pub(crate) fn rewound(run: &str, files: &[String]) -> Fallible<NewEvent> {
    let text = match files.len() {
        1 => "One file was restored.".to_owned(),
        count => format!("{count} files were restored."),
    };
    event("notice", json!({"text": text, "rewound": {"before": run, "files": files}}), true)
}

/// The session was deleted; this is its last event.
pub(crate) fn deleted() -> Fallible<NewEvent> {
    event("notice", json!({"text": "This session was deleted.", "deleted": true}), true)
}

fn event(kind: &str, body: Value, durable: bool) -> Fallible<NewEvent> {
    let body = ostler_store::Body::of(&body).map_err(error::internal)?;
    let event = NewEvent::new(kind, body);
    Ok(if durable { event } else { event.fleeting() })
}
