//! Sends the conversation of a thread, and then its new events, to a client that connects later.
//!
//! Finished runs are sent as one snapshot of the newest messages (`history_page`). The active run is sent from its
//! beginning, as if the client had been connected.

use ostler_agui::event::{Body, Event};
use ostler_core::log_writers;
use ostler_core::model::run::Begin;
use serde::Deserialize;
use serde_json::Value;

use super::history_page::{History, HistoryPage};
use super::run::{Failure, RunStream};

/// The prefix of the ids of messages that did not come from an AG-UI client.
pub(super) const PROMPT: &str = "prompt-run_";

/// The id of a prompt that did not come from an AG-UI client: the id of the run, which makes it stable, and the event's
/// number, because one run may have several prompts.
pub(super) fn prompt_id(run: &str, seq: u64) -> String {
    format!("prompt-{run}-{seq}")
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PromptEvent {
    pub(super) run_id: String,
    pub(super) text: String,
    #[serde(default)]
    pub(super) begin: Begin,
    #[serde(default)]
    pub(super) messages: Vec<Value>,
    /// Whether it was sent during the run.
    #[serde(default)]
    pub(super) steered: bool,
}

impl RunStream<'_> {
    /// Sends the whole thread.
    pub(super) async fn attach(&mut self) -> Result<(), Failure> {
        let live = self.live.as_ref().map(|run| run.id.as_str());
        let history = History { app: self.app(), session: &self.session, tools: &self.input.tools };
        let HistoryPage { messages, live: begins, .. } =
            history.newest(&self.thread.known, live).await?;
        self.outlet.send([Event::from(Body::MessagesSnapshot { messages })]).await;
        let state = match self.live {
            Some(_) => self.tool_calls.state().await,
            None => self.thread.state.clone(),
        };
        if !state.is_null() {
            self.outlet.send([Event::from(Body::StateSnapshot { snapshot: state })]).await;
        }
        let stream = log_writers::stream(&self.session.id)?;
        self.state_from = self.app().sessions.log.head(&stream).await?;
        match (self.live.take(), begins) {
            (Some(run), Some(seq)) => {
                self.thread.told = seq;
                // This client has not received what other clients have.
                self.waited.clear();
                self.thread.asked_by_call.clear();
                self.follow(vec![run.id]).await
            }
            _ if !self.asks.open().is_empty() => self.ask_again().await,
            _ => {
                let end = self.translator.nothing_to_do();
                self.outlet.send(end).await;
                Ok(())
            }
        }
    }
}
