//! The offline demo model, which answers when no key is set.
//!
//! It is a table of rules, not a language model, and says so. It keeps no state: each answer is computed from the
//! conversation alone (`reply`), then sent as the stream of events that a real model would send (`stream`).
//! What a sentence means is decided in `steps` (sentences), `rules` (the table) and `form` (how a rule is matched).

mod arguments;
mod form;
mod help;
mod intent;
mod progress;
mod question;
mod reply;
mod report;
mod rules;
mod shape;
mod steps;
mod stream;
mod words;

#[cfg(test)]
mod tests;

use crate::{EventStream, Model, ModelError, ModelEvent, Request};

/// The name a user sees.
pub const NAME: &str = "offline-demo";

/// A small rule-driven model that needs neither key nor network.
#[derive(Clone, Copy, Debug, Default)]
pub struct OfflineModel;

impl OfflineModel {
    pub fn new() -> Self {
        Self
    }
}

impl Model for OfflineModel {
    fn name(&self) -> &str {
        NAME
    }

    fn respond(&self, request: Request) -> EventStream {
        if !request.server_tools.is_empty() {
            return Box::pin(futures::stream::iter([Err(no_network())]));
        }
        let events = stream::events(reply::answer(&request));
        Box::pin(futures::stream::iter(
            events.into_iter().map(|event| Ok(ModelEvent::Stream(event))),
        ))
    }
}

/// The error for requests that use the API's own tools.
fn no_network() -> ModelError {
    ModelError::Connection(
        "the offline demo has no network, so it cannot search the web; set ANTHROPIC_API_KEY to ask a real model"
            .to_owned(),
    )
}
