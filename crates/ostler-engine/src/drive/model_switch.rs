//! What hooks receive when a session gets another model: its name, who asked for it, and what it costs to read
//! everything again.

use ostler_proto::api::Usage;
use ostler_proto::build;
use ostler_proto::hook::HookEvent;
use serde_json::{Value, json};

use crate::drive::TurnContext;
use crate::hooks::Event;
use crate::model::{Cache, Fallback, Prices, pricing};

/// The model whose price is assumed for an unknown model.
const ASSUMED: &str = "claude-opus-5-5";

/// A change of the model.
#[derive(Clone, Debug)]
pub(crate) struct ModelSwitch {
    pub(crate) from: String,
    pub(crate) to: String,
    /// The name in the request; `None` for the default model, and for a fallback.
    pub(crate) requested: Option<String>,
    /// Who asked for it.
    pub(crate) source: &'static str,
}

impl ModelSwitch {
    /// The fields of the events before and after it.
    pub(crate) fn fields(&self, context: &TurnContext) -> Value {
        let Self { from, to, requested, source } = self;
        let cache = context.sampling.cache;
        let tokens = context.context_usage.last();
        let prices = context.records.ledger.prices();
        let (dollars, pricing) = match written(prices, to, tokens, cache) {
            Some(dollars) => (dollars, "catalog"),
            None => (written(prices, ASSUMED, tokens, cache).unwrap_or_default(), "default"),
        };
        json!({
            "from_model": from,
            "to_model": to,
            "requested_model": requested,
            "source": source,
            "context_tokens": tokens,
            "prompt_cache_warm": cache.lifetime().is_some_and(|life| context.context_usage.is_fresh(life)),
            "cache_ttl": if cache == Cache::OneHour { "1h" } else { "5m" },
            "estimated_cache_write_usd": dollars,
            "pricing": pricing,
        })
    }
}

/// The cost of writing this many tokens to a model's cache.
fn written(prices: &Prices, model: &str, tokens: u64, cache: Cache) -> Option<f64> {
    let price = prices.price(model)?;
    let usage = build!(Usage { cache_creation_input_tokens: Some(tokens) });
    match cache {
        Cache::OneHour => Some(price.write_1h * tokens as f64 / 1e6),
        Cache::Off | Cache::FiveMinutes => pricing::cost_at(&price, &usage),
    }
}

/// Notifies hooks of a fallback to another model. They cannot object, and are not waited for.
pub(crate) fn tell_of_fallback(context: &TurnContext, fallback: &Fallback) {
    let TurnContext { outbox, hooks, .. } = context;
    if outbox.subagent.is_some() || !hooks.any_for(&HookEvent::PostModelSwitch) {
        return;
    }
    let Fallback { from, to, .. } = fallback.clone();
    let switch = ModelSwitch { from, to, requested: None, source: "auto" };
    let event = Event::new(HookEvent::PostModelSwitch, switch.fields(context));
    hooks.tell(event);
}
