//! The limits that a host sets.

use std::time::Duration;

/// The limits of a turn or session.
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
    /// Whether the model may continue after it gave a structured answer; its last one counts.
    pub(crate) goes_on_after_answer: bool,
}
