//! [`Response`]: the outcome of a run.

use std::time::Duration;

use crate::budget::Usage;
use crate::event::HookCost;

/// The outcome of a run.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Response<T> {
    /// The prompt.
    pub prompt_name: String,
    /// The run's id, which is in all its events.
    pub run_id: String,
    /// The engine's session, to resume the conversation with.
    pub session_id: String,
    /// The answer.
    pub output: T,
    /// The model's last text.
    pub text: Option<String>,
    /// Tokens that the run spent.
    pub usage: Usage,
    /// Dollars, by the engine's prices.
    pub cost_usd: f64,
    /// How long it took.
    pub duration: Duration,
    /// Why it stopped; `end_turn` if the model was finished.
    pub stop_reason: String,
    /// Tool calls that ran.
    pub tool_calls: u64,
    /// Calls denied because of the deadline or the budget.
    pub denied_calls: u64,
    /// The time spent in hooks.
    pub hooks: HookCost,
}
