//! One request to a model outside of a turn.

use futures::StreamExt;
use ostler_proto::api::{Accumulator, Folded, Message};

use crate::model::ledger::Ledger;
use crate::model::{Model, ModelError, ModelEvent, Request};
use crate::outbox::Outbox;

/// Asks a model and waits for the whole answer. Its usage counts for the session's cost.
pub(crate) async fn ask_model(
    model: &dyn Model,
    outbox: &Outbox,
    ledger: &Ledger,
    request: Request,
) -> Result<Message, ModelError> {
    let mut events = model.respond(request);
    let mut response = Accumulator::default();
    while let Some(event) = events.next().await {
        let message = match event? {
            ModelEvent::Stream(event) => match response.push(&event) {
                Ok(Folded::Message(message)) => *message,
                Ok(_) => continue,
                Err(error) => return Err(ModelError::Broken(error.to_string())),
            },
            ModelEvent::Whole(message) => message,
            ModelEvent::Named(_) => continue,
            ModelEvent::Retry(retry) => {
                outbox.send_retry(&retry).await;
                continue;
            }
            ModelEvent::Fallback(fallback) => {
                outbox.send_fallback(fallback).await;
                continue;
            }
        };
        ledger.add(&message.model, &message.usage.clone().unwrap_or_default());
        return Ok(message);
    }
    Err(ModelError::Broken("it has no end".to_owned()))
}
