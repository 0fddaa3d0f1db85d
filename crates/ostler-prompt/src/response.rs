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
    /// The id of the engine's session, for resuming the conversation.
    pub session_id: String,
    /// The answer.
    pub output: T,
    /// The model's last text.
    pub text: Option<String>,
    /// The tokens that the run spent.
    pub usage: Usage,
    /// The cost in dollars, by the engine's prices.
    pub cost_usd: f64,
    /// How long the run took.
    pub duration: Duration,
    /// Why the run stopped; `end_turn` if the model was finished.
    pub stop_reason: String,
    /// How many tool calls ran.
    pub tool_calls: u64,
    /// How many calls were denied because of the deadline or the budget.
    pub denied_calls: u64,
    /// The time spent in hooks.
    pub hooks: HookCost,
    /// What a sandbox enforced for the commands of the run, as the engine reports it; `None` without a sandbox.
    pub sandbox: Option<serde_json::Value>,
}
