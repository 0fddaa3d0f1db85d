//! What a host limits.

use std::time::Duration;

/// What ends a turn that the model would not end.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Limits {
    /// The most model calls.
    pub(crate) max_turns: Option<u64>,
    /// The most dollars of the whole session, subagents included.
    pub(crate) max_budget_usd: Option<f64>,
    /// The most tokens, in and out.
    pub(crate) max_tokens: Option<u64>,
    /// The longest time, from the prompt on.
    pub(crate) timeout: Option<Duration>,
    /// Whether the model may continue after it gave the answer in the shape the host asked for; its last one counts.
    pub(crate) goes_on_after_answer: bool,
}
