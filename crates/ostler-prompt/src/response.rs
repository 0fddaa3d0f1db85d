//! [`Response`]: what came of a run.

use std::time::Duration;

use crate::budget::Usage;
use crate::event::HookCost;

/// What came of a run.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Response<T> {
    /// The prompt.
    pub prompt_name: String,
    /// The run, as its events name it.
    pub run_id: String,
    /// The engine's session, by which the conversation can be resumed.
    pub session_id: String,
    /// The answer.
    pub output: T,
    /// The model's last words.
    pub text: Option<String>,
    /// What the run spent.
    pub usage: Usage,
    /// Dollars, by the engine's prices.
    pub cost_usd: f64,
    /// How long it took.
    pub duration: Duration,
    /// Why it stopped; `end_turn` when the model was finished.
    pub stop_reason: String,
    /// Tools that ran.
    pub tool_calls: u64,
    /// Calls that were denied because time or money was up.
    pub denied_calls: u64,
    /// What hooks cost.
    pub hooks: HookCost,
}
