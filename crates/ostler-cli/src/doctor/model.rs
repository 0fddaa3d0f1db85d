//! Whether the model answers: one request for one token.

use std::time::Duration;

use futures::StreamExt;
use ostler_engine::model::{ApiConfig, ApiModel, ChatMessage, Model, ModelError, Request};
use ostler_proto::api::{ContentBlock, Role};

use super::Finding;

/// How long to wait for the beginning of the answer.
const PATIENCE: Duration = Duration::from_secs(15);

pub(super) async fn check(mut config: ApiConfig) -> Finding {
    config.retry.max_retries = 0;
    config.timeouts.first_byte = PATIENCE;
    config.fallback_models = Vec::new();
    let (name, address) = (config.model.clone(), config.base_url.clone());
    match tokio::time::timeout(PATIENCE, ask(config)).await {
        Ok(Ok(())) => Finding::good(format!("model: {name} answers at {address}")),
        Ok(Err(error)) => Finding::bad(format!("model: {name} at {address}: {error}"), fix(&error)),
        Err(_) => Finding::bad(
            format!("model: {name} at {address}: no answer in {} s", PATIENCE.as_secs()),
            OUT_OF_REACH,
        ),
    }
}

/// Waits for the first event of an answer.
async fn ask(config: ApiConfig) -> Result<(), ModelError> {
    let name = config.model.clone();
    let model = ApiModel::new(config)?;
    let question = ChatMessage { role: Role::User, content: vec![ContentBlock::text("Say yes.")] };
    let mut request = Request::new(name, vec![question]);
    request.max_tokens = 1;
    match model.respond(request).next().await {
        Some(event) => event.map(|_| ()),
        None => Err(ModelError::Protocol("the answer was empty".to_owned())),
    }
}

const OUT_OF_REACH: &str = "check the network, ANTHROPIC_BASE_URL and HTTPS_PROXY";

fn fix(error: &ModelError) -> &'static str {
    match error.status() {
        None => OUT_OF_REACH,
        Some(401 | 403) => "check the value of the key, and that it is meant for this address",
        Some(404) => {
            "choose another model: --model or ANTHROPIC_MODEL; or check ANTHROPIC_BASE_URL"
        }
        Some(300..=399) => "check ANTHROPIC_BASE_URL: the API itself does not redirect",
        Some(429 | 500..) => "try again later; the key and the address are correct",
        Some(_) => "see the API's message",
    }
}
