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
#[serde(rename_all = "camelCase")]
struct Draft<'a> {
    run_id: Option<&'a str>,
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
    /// The events that end a run. Its state drops the drafts, so the incomplete text comes before it.
    pub(super) async fn end_events(&self, run: &Run) -> Fallible<Vec<NewEvent>> {
        let cut_off = self.cut_off(run).await?;
        Ok(cut_off.into_iter().chain([event::state(run)?]).collect())
    }

    /// The event with the incomplete text of a run.
    async fn cut_off(&self, run: &Run) -> Fallible<Option<NewEvent>> {
        let drafts = self.log.drafts(&log_writers::stream(&run.session)?).await?;
        let text: String = drafts.iter().filter_map(|draft| said(draft, &run.id)).collect();
        let is_empty = text.trim().is_empty();
        (!is_empty).then(|| event::cut_off(&run.id, &text)).transpose()
    }
}

/// The text of the agent itself in this run; incomplete text of subagents is dropped. The session may have drafts of
/// another run: the one before a queued run, or the one after a run whose end is stored late.
fn said(draft: &Event, run: &str) -> Option<String> {
    let draft: Draft<'_> = serde_json::from_str(draft.body.as_str()).ok()?;
    let is_meant = draft.run_id == Some(run) && draft.message.parent_tool_use_id.is_none();
    draft.message.event.delta.map(|delta| delta.text).filter(|_| is_meant)
}
