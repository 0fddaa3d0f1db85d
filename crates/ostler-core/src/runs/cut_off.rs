//! What was streamed when a run ended and never came whole. It stays visible, marked as cut off.

use ostler_base::error::Fallible;
use ostler_store::{Event, NewEvent};
use serde::Deserialize;

use super::Sessions;
use crate::log_writers;
use crate::model::event;
use crate::model::run::Run;

/// A delta, as far as it says something.
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
    /// The event that keeps what the agent was saying in a run; to be written with the end of the run.
    pub(super) async fn cut_off(&self, run: &Run) -> Fallible<Option<NewEvent>> {
        if run.started.is_none() {
            // What is streamed in the session belongs to the run before it.
            return Ok(None);
        }
        let drafts = self.log.drafts(&log_writers::stream(&run.session)?).await?;
        let text: String = drafts.iter().filter_map(said).collect();
        let is_empty = text.trim().is_empty();
        (!is_empty).then(|| event::cut_off(&run.id, &text)).transpose()
    }
}

/// What the agent itself said; of a subagent the rest is not told either.
fn said(draft: &Event) -> Option<String> {
    let draft: Draft<'_> = serde_json::from_str(draft.body.as_str()).ok()?;
    let is_main = draft.message.parent_tool_use_id.is_none();
    draft.message.event.delta.map(|delta| delta.text).filter(|_| is_main)
}
