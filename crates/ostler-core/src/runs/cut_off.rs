//! Streamed text of a message that was incomplete when its run ended. It stays visible, marked as cut off.

use ostler_base::error::Fallible;
use ostler_store::{Event, NewEvent};
use serde::Deserialize;

use super::Sessions;
use crate::log_writers;
use crate::model::event;
use crate::model::run::Run;

/// The fields of a delta that have text.
#[derive(Deserialize)]
struct Draft<'a> {
    #[serde(borrow)]
    message: Message<'a>,
}

#[derive(Deserialize)]
struct Message<'a> {
    parent_tool_use_id: Option<&'a str>,
    event: StreamEvent,
}

#[derive(Deserialize)]
struct StreamEvent {
    delta: Option<Delta>,
}

#[derive(Deserialize)]
struct Delta {
    #[serde(default)]
    text: String,
}

impl Sessions {
    /// The event with the incomplete text of a run; to be written with the end of the run.
    pub(super) async fn cut_off(&self, run: &Run) -> Fallible<Option<NewEvent>> {
        if run.started.is_none() {
            // The drafts in the session belong to the run before it.
            return Ok(None);
        }
        let drafts = self.log.drafts(&log_writers::stream(&run.session)?).await?;
        let text: String = drafts.iter().filter_map(said).collect();
        let is_empty = text.trim().is_empty();
        (!is_empty).then(|| event::cut_off(&run.id, &text)).transpose()
    }
}

/// The text of the agent itself; incomplete text of subagents is dropped.
fn said(draft: &Event) -> Option<String> {
    let draft: Draft<'_> = serde_json::from_str(draft.body.as_str()).ok()?;
    let is_main = draft.message.parent_tool_use_id.is_none();
    draft.message.event.delta.map(|delta| delta.text).filter(|_| is_main)
}
