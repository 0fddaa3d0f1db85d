//! What a run tells on the way.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::budget::Usage;

/// Something that happened in a run.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event {
    /// A prompt is about to be sent.
    PromptRendered(Arc<PromptRendered>),
    /// A tool has run.
    ToolInvoked(Arc<ToolInvoked>),
    /// A run is over.
    PromptExecuted(Arc<PromptExecuted>),
}

/// A prompt is about to be sent.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PromptRendered {
    /// The prompt.
    pub prompt_name: String,
    /// Who runs it.
    pub adapter: String,
    /// The run; all its events have the same.
    pub run_id: String,
    /// What the model is sent.
    pub text: String,
    /// Tools of the prompt, as the model calls them.
    pub tools: Vec<String>,
    /// The model.
    pub model: String,
}

/// A tool has run, one of the engine's or one of the prompt's. Once per call; a call that was denied did not run.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ToolInvoked {
    /// The prompt.
    pub prompt_name: String,
    /// Who runs it.
    pub adapter: String,
    /// The run.
    pub run_id: String,
    /// The tool, as the model called it.
    pub name: String,
    /// What the model gave it.
    pub params: Value,
    /// What it returned, in the shape its engine has for it: for a shell, `stdout`, `stderr`, `interrupted` and
    /// `isImage`. The text of the error if it failed.
    pub result: Value,
    /// Whether it succeeded.
    pub success: bool,
    /// The call.
    pub call_id: String,
    /// The subagent that called it, if one did.
    pub agent_id: Option<String>,
    /// How long it took, where the engine says so.
    pub duration: Option<Duration>,
}

/// A run is over, well or not.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PromptExecuted {
    /// The prompt.
    pub prompt_name: String,
    /// Who ran it.
    pub adapter: String,
    /// The run.
    pub run_id: String,
    /// The answer, if one was asked for and given.
    pub output: Option<Value>,
    /// The model's last words.
    pub text: Option<String>,
    /// Why there is no answer, if the run failed.
    pub error: Option<String>,
    /// What the run spent.
    pub usage: Usage,
    /// Dollars, by the engine's prices.
    pub cost_usd: f64,
    /// How long it took.
    pub duration: Duration,
    /// Why it stopped.
    pub stop_reason: String,
    /// What enforcing and watching cost.
    pub hooks: HookCost,
}

/// What hooks cost: how often they were called, and how long they took on this side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HookCost {
    /// Calls.
    pub calls: u64,
    /// All of them together.
    pub total: Duration,
    /// The longest.
    pub longest: Duration,
}

impl HookCost {
    pub(crate) fn add(&mut self, took: Duration) {
        self.calls += 1;
        self.total = self.total.saturating_add(took);
        self.longest = self.longest.max(took);
    }
}

/// A kind of event that can be subscribed to: one of them, or [`Event`] for all.
pub trait Kind: Send + Sync + 'static {
    /// The event, if it is of this kind.
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
