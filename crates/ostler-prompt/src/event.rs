//! The events of a run.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::budget::Usage;

/// An event of a run.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event {
    /// A prompt is about to be sent.
    PromptRendered(Arc<PromptRendered>),
    /// A tool has run.
    ToolInvoked(Arc<ToolInvoked>),
    /// A run has ended.
    PromptExecuted(Arc<PromptExecuted>),
}

/// A prompt is about to be sent.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PromptRendered {
    /// The prompt.
    pub prompt_name: String,
    /// The adapter's name.
    pub adapter: String,
    /// The run's id, which is in all its events.
    pub run_id: String,
    /// The text sent to the model.
    pub text: String,
    /// The names of the prompt's tools, as the model calls them.
    pub tools: Vec<String>,
    /// The model.
    pub model: String,
}

/// A tool of the engine or of the prompt has run. Sent once per call; not for denied calls.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ToolInvoked {
    /// The prompt.
    pub prompt_name: String,
    /// The adapter's name.
    pub adapter: String,
    /// The run.
    pub run_id: String,
    /// The tool's name, as the model calls it.
    pub name: String,
    /// The arguments.
    pub params: Value,
    /// The result in the engine's format: for a shell, `stdout`, `stderr`, `interrupted` and `isImage`. If the call
    /// failed, the text of the error.
    pub result: Value,
    /// Whether the call succeeded.
    pub success: bool,
    /// The id of the call.
    pub call_id: String,
    /// The subagent that made the call, if any.
    pub agent_id: Option<String>,
    /// How long the call took, if the engine reports it.
    pub duration: Option<Duration>,
}

/// A run has ended.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PromptExecuted {
    /// The prompt.
    pub prompt_name: String,
    /// The adapter's name.
    pub adapter: String,
    /// The run.
    pub run_id: String,
    /// The answer, if one was requested and given.
    pub output: Option<Value>,
    /// The model's last text.
    pub text: Option<String>,
    /// The error, if the run failed.
    pub error: Option<String>,
    /// The tokens that the run spent.
    pub usage: Usage,
    /// The cost in dollars, by the engine's prices.
    pub cost_usd: f64,
    /// How long the run took.
    pub duration: Duration,
    /// Why the run stopped.
    pub stop_reason: String,
    /// The time spent in hooks.
    pub hooks: HookCost,
}

/// How often hooks were called, and how long they took in this process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HookCost {
    /// The number of calls.
    pub calls: u64,
    /// The time of all calls together.
    pub total: Duration,
    /// The time of the longest call.
    pub longest: Duration,
}

impl HookCost {
    pub(crate) fn add(&mut self, took: Duration) {
        self.calls += 1;
        self.total = self.total.saturating_add(took);
        self.longest = self.longest.max(took);
    }
}

/// A type of event to subscribe to; [`Event`] stands for all types.
pub trait Kind: Send + Sync + 'static {
    /// The event, if it has this type.
    fn of(event: &Event) -> Option<&Self>;
}

impl Kind for Event {
    fn of(event: &Event) -> Option<&Self> {
        Some(event)
    }
}

macro_rules! kinds {
    ($($kind:ident)*) => {
        $(impl Kind for $kind {
            fn of(event: &Event) -> Option<&Self> {
                match event {
                    Event::$kind(event) => Some(event),
                    _ => None,
                }
            }
        })*
    };
}

kinds! { PromptRendered ToolInvoked PromptExecuted }
