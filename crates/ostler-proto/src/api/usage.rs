//! Token counts and cost.

use ostler_proto_derive::Wire;
use serde_json::Value;

use crate::{Extra, Num};

/// Token counts of one response, or (in a `result`) of one turn.
///
/// Everything is optional because the API sends partial counts midway.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[non_exhaustive]
pub struct Usage {
    /// Input tokens that were neither read from nor written to the cache.
    pub input_tokens: Option<u64>,
    /// Input tokens written to the cache.
    pub cache_creation_input_tokens: Option<u64>,
    /// Input tokens read from the cache.
    pub cache_read_input_tokens: Option<u64>,
    /// Output tokens, thinking included.
    pub output_tokens: Option<u64>,
    /// What the output tokens were spent on.
    pub output_tokens_details: Option<Value>,
    /// Calls of tools that the API ran.
    pub server_tool_use: Option<ServerToolUsage>,
    /// `standard`, `priority` or `batch`.
    pub service_tier: Option<String>,
    /// Cache writes by lifetime.
    pub cache_creation: Option<CacheCreation>,
    /// Where the request was served.
    pub inference_geo: Option<String>,
    /// Counts per sampling round, for server-side loops.
    pub iterations: Option<Value>,
    /// `standard` or `fast`.
    pub speed: Option<String>,
    /// Credit granted for a fallback.
    pub fallback_credit: Option<Value>,
    /// Unknown fields.
    pub extra: Extra,
}

impl Usage {
    /// All input tokens, cached or not: what fills the context window.
    pub fn total_input(&self) -> u64 {
        [self.input_tokens, self.cache_creation_input_tokens, self.cache_read_input_tokens]
            .into_iter()
            .flatten()
            .fold(0, u64::saturating_add)
    }
}

/// Calls of tools that the API ran.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[non_exhaustive]
pub struct ServerToolUsage {
    /// Searches.
    pub web_search_requests: Option<u64>,
    /// Fetches.
    pub web_fetch_requests: Option<u64>,
    /// Unknown fields.
    pub extra: Extra,
}

/// Tokens written to the cache, by lifetime.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[non_exhaustive]
pub struct CacheCreation {
    /// Cached for an hour.
    #[wire(name = "ephemeral_1h_input_tokens")]
    pub one_hour: Option<u64>,
    /// Cached for five minutes.
    #[wire(name = "ephemeral_5m_input_tokens")]
    pub five_minutes: Option<u64>,
    /// Unknown fields.
    pub extra: Extra,
}

/// Usage and cost of one model since the process started (`modelUsage` of a `result`).
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ModelUsage {
    /// Input tokens outside the cache.
    pub input_tokens: u64,
    /// Output tokens.
    pub output_tokens: u64,
    /// Output tokens spent on thinking.
    pub thinking_tokens: Option<u64>,
    /// Input tokens read from the cache.
    pub cache_read_input_tokens: u64,
    /// Input tokens written to the cache.
    pub cache_creation_input_tokens: u64,
    /// Of those, cached for five minutes.
    #[wire(name = "cacheCreationEphemeral5mInputTokens")]
    pub cache_creation_five_minutes: Option<u64>,
    /// Of those, cached for an hour.
    #[wire(name = "cacheCreationEphemeral1hInputTokens")]
    pub cache_creation_one_hour: Option<u64>,
    /// Web searches.
    pub web_search_requests: u64,
    /// Dollars.
    #[wire(name = "costUSD")]
    pub cost_usd: Num,
    /// Size of the model's context window in tokens. Left out in session files.
    pub context_window: Option<u64>,
    /// The output limit of one response, in tokens.
    pub max_output_tokens: Option<u64>,
    /// The model's full name, when the key is an alias.
    pub canonical_model: Option<String>,
    /// Who served it.
    pub provider: Option<String>,
    /// Which price list the cost is based on: `list`, `managed` or `unknown`.
    pub cost_basis: Option<String>,
    /// Unknown fields.
    pub extra: Extra,
}
