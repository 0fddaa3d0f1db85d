//! The body of requests that start something and have no field but their idempotency key.

use schemars::JsonSchema;
use serde::Deserialize;

/// An idempotency key, if the client has one.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct KeyBody {
    /// Several requests with the same key start one run.
    #[serde(default)]
    #[schemars(length(min = 1, max = 200))]
    pub(super) key: Option<String>,
}
