//! [`HookContext`]: the shared state of a run's hooks.

use parking_lot::{Mutex, MutexGuard};
use std::collections::HashSet;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use ostler_sdk::proto::message::system::ApiRetry;
use ostler_sdk::proto::message::{System, TurnResult};
use ostler_sdk::{Handle, Message};
use serde_json::Value;

use crate::budget::{BudgetTracker, Usage};
use crate::deadline::Deadline;
use crate::event::{Event, HookCost};
use crate::meter::Meter;
use crate::session::Session;
use crate::spans::Spans;
use crate::tool::Run;

/// How long a hook waits until the engine reports the cost.
const COST_LIMIT: Duration = Duration::from_secs(5);

/// The shared state of one run's hooks: its limits, its bus, and its counts.
///
/// An [`Adapter`](crate::Adapter) creates one for every run. Without an adapter, [`attach`](Self::attach) adds a
/// deadline, a budget and events about tools to any session of the SDK. Clones are the same context.
///
/// ```
/// use ostler_prompt::{Budget, BudgetTracker, HookContext, Session};
///
/// let context = HookContext::new(Session::new(), "my_program", "chat").budget(BudgetTracker::new(Budget::tokens(10_000)));
/// let options = context.attach(ostler_sdk::Options::new());
/// assert_eq!(context.stop_reason(), None);
/// ```
#[derive(Clone, Debug)]
pub struct HookContext {
    session: Session,
    adapter_name: Arc<str>,
    prompt_name: Arc<str>,
    run_id: Arc<str>,
    deadline: Option<Deadline>,
    budget_tracker: Option<BudgetTracker>,
    stops_after_answer: bool,
    state: Arc<Mutex<State>>,
    /// For asking the engine for the cost.
    handle: Arc<OnceLock<Handle>>,
}

/// The observations of the hooks during the run.
#[derive(Debug, Default)]
pub(crate) struct State {
    meter: Meter,
    usd: f64,
    /// Whether the engine does not report the cost during the run.
    cost_unknown: bool,
    stop_reason: Option<String>,
    n_prompts: u64,
    n_calls: u64,
    n_denied: u64,
    /// How many responses had denied calls, and the number of the last such response.
    n_denied_responses: u64,
    last_denied: Option<usize>,
    /// Why the engine is retrying the API; `None` after an answer.
    trouble: Option<String>,
    /// The ids of calls that were published.
    published: HashSet<String>,
    answer: Option<Value>,
    /// Whether the run resumes a conversation, so that the engine's counts cover more than this run.
    pub(crate) is_resumed: bool,
    /// Whether the engine has sent a result.
    has_result: bool,
    cost: HookCost,
    pub(crate) spans: Spans,
}

impl HookContext {
    /// A context without limits.
    pub fn new(
        session: Session,
        adapter_name: impl Into<Arc<str>>,
        prompt_name: impl Into<Arc<str>>,
    ) -> Self {
        Self {
            session,
            adapter_name: adapter_name.into(),
            prompt_name: prompt_name.into(),
            run_id: uuid::Uuid::new_v4().to_string().into(),
            deadline: None,
            budget_tracker: None,
            stops_after_answer: false,
            state: Arc::default(),
            handle: Arc::default(),
        }
    }

    /// Sets the deadline.
    #[must_use]
    pub fn deadline(mut self, deadline: impl Into<Option<Deadline>>) -> Self {
        self.deadline = deadline.into();
        self
    }

    /// Sets the budget.
    #[must_use]
    pub fn budget(mut self, tracker: impl Into<Option<BudgetTracker>>) -> Self {
        self.budget_tracker = tracker.into();
        self
    }

    pub(crate) fn stops_after_answer(mut self, stops: bool) -> Self {
        self.stops_after_answer = stops;
        self
    }

    /// The session.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// The name of the adapter.
    pub fn adapter_name(&self) -> &str {
        &self.adapter_name
    }

    /// The name of the prompt.
    pub fn prompt_name(&self) -> &str {
        &self.prompt_name
    }

    /// The id of the run, which is in all its events.
    pub fn run_id(&self) -> &str {
        &self.run_id
    }

    /// The deadline of the run.
    pub fn current_deadline(&self) -> Option<Deadline> {
        self.deadline
    }

    /// The budget, and what was spent.
    pub fn budget_tracker(&self) -> Option<&BudgetTracker> {
        self.budget_tracker.as_ref()
    }

    /// Why the run stopped, once it has.
    pub fn stop_reason(&self) -> Option<String> {
        self.state().stop_reason.clone()
    }

    /// The tokens that this run has spent.
    pub fn usage(&self) -> Usage {
        self.state().meter.total()
    }

    /// The dollars that this run has spent, as far as the engine has reported them.
    pub fn cost_usd(&self) -> f64 {
        self.state().usd
    }

    /// How many prompts the engine accepted.
    pub fn n_prompts(&self) -> u64 {
        self.state().n_prompts
    }

    /// How many tool calls ran.
    pub fn n_tool_calls(&self) -> u64 {
        self.state().n_calls
    }

    /// How many calls were denied.
    pub fn n_denied(&self) -> u64 {
        self.state().n_denied
    }

    /// How many responses had denied calls.
    pub(crate) fn n_denied_responses(&self) -> u64 {
        self.state().n_denied_responses
    }

    /// The API's last error, if the engine is retrying.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.state().trouble.clone()
    }

    /// The time spent in hooks.
    pub fn hook_cost(&self) -> HookCost {
        self.state().cost
    }

    /// Why no further calls are allowed; `None` while the run is within its limits.
    pub fn objection(&self) -> Option<String> {
        if self.deadline.is_some_and(|deadline| deadline.has_passed()) {
            return Some(DEADLINE_EXCEEDED.to_owned());
        }
        self.budget_tracker.as_ref()?.exhausted().map(|exhausted| exhausted.to_string())
    }

    /// What the tools of the run share.
    pub(crate) fn run(&self) -> Run {
        Run {
            session: self.session.clone(),
            prompt_name: Arc::clone(&self.prompt_name),
            deadline: self.deadline,
            budget: self.budget_tracker.clone(),
        }
    }

    /// Whether the engine has sent a result, even if the program has not read it yet.
    pub(crate) fn has_result(&self) -> bool {
        self.state().has_result
    }

    pub(crate) fn ends_turn_with_answer(&self) -> bool {
        self.stops_after_answer
    }

    /// Sets the handle for requests to the engine.
    pub(crate) fn reaches(&self, handle: Handle) {
        // A context belongs to one session; the first one counts.
        let _ = self.handle.set(handle);
    }

    /// Asks for the cost, if there is a limit and the engine can report it.
    pub(crate) async fn update_cost(&self) {
        let limited = self.budget_tracker.as_ref().is_some_and(|it| it.budget().max_usd.is_some());
        if !limited || self.state().cost_unknown {
            return;
        }
        // Without an answer, the engine's own limit still applies: the dollars that were left at the start.
        if !self.ask_cost(COST_LIMIT).await {
            self.state().cost_unknown = true;
        }
    }

    /// Asks the engine for the cost so far. Returns whether it answered in time.
    pub(crate) async fn ask_cost(&self, limit: Duration) -> bool {
        let Some(handle) = self.handle.get() else { return false };
        match tokio::time::timeout(limit, handle.usage()).await {
            Ok(Ok(usage)) => {
                self.record_usd(usage.session.total_cost_usd.get());
                true
            }
            _ => false,
        }
    }

    /// Records the total cost of the run so far.
    fn record_usd(&self, total: f64) {
        let new = {
            let mut state = self.state();
            let new = total - state.usd;
            if !new.is_finite() || new <= 0.0 {
                return;
            }
            state.usd = total;
            new
        };
        if let Some(tracker) = &self.budget_tracker {
            tracker.record_usd(new);
        }
    }

    pub(crate) fn observe(&self, message: &Message) {
        let new = self.state().meter.observe(message);
        self.spent(new);
        match message {
            Message::System(System::ApiRetry(retry)) => {
                self.state().trouble = Some(trouble(retry));
            }
            Message::StreamEvent(_) | Message::Assistant(_) => self.state().trouble = None,
            _ => {}
        }
        if let Message::Result(result) = message {
            self.settle(result);
        }
    }

    /// Records the final usage. The engine counts from its own start, which is the start of the run.
    fn settle(&self, result: &TurnResult) {
        if !self.state().is_resumed {
            let new = self.state().meter.settle(result);
            self.spent(new);
        }
        self.record_usd(result.total_cost_usd.get());
        let mut state = self.state();
        state.has_result = true;
        if state.stop_reason.is_none() {
            state.stop_reason = result.stop_reason.as_ref().map(ToString::to_string);
        }
    }

    fn spent(&self, new: Usage) {
        if let Some(tracker) = self.budget_tracker.as_ref().filter(|_| new != Usage::default()) {
            tracker.record(new);
        }
    }

    pub(crate) fn prompted(&self) {
        self.state().n_prompts += 1;
    }

    pub(crate) fn denied(&self) {
        let mut state = self.state();
        state.n_denied += 1;
        // Calls of one response are denied together.
        let response = Some(state.meter.n_responses());
        if state.last_denied != response {
            state.last_denied = response;
            state.n_denied_responses += 1;
        }
    }

    /// Whether this call was not published yet.
    pub(crate) fn is_new_call(&self, call_id: &str) -> bool {
        let mut state = self.state();
        let is_new_call = state.published.insert(call_id.to_owned());
        state.n_calls += u64::from(is_new_call);
        is_new_call
    }

    pub(crate) fn answered(&self, answer: Value) {
        self.state().answer = Some(answer);
    }

    /// The last answer that the engine accepted.
    pub(crate) fn answer(&self) -> Option<Value> {
        self.state().answer.clone()
    }

    /// Records why the run stops: the reason in the hook's input, or else the model's last stop reason.
    pub(crate) fn stopped(&self, reason: Option<String>) {
        let mut state = self.state();
        let reason = reason.or_else(|| state.meter.stop_reason().map(str::to_owned));
        state.stop_reason = Some(reason.unwrap_or_else(|| END_TURN.to_owned()));
    }

    pub(crate) fn took(&self, time: Duration) {
        self.state().cost.add(time);
    }

    pub(crate) fn publish(&self, event: Event) {
        self.session.bus().publish(event);
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }
}

/// Why the engine retries the API, as text.
fn trouble(retry: &ApiRetry) -> String {
    let status = retry.error_status.map(|status| format!(", HTTP {status}")).unwrap_or_default();
    let why = match retry.error_status {
        Some(529) => "overloaded".to_owned(),
        _ => retry.error.to_string(),
    };
    format!("the engine was retrying the model's API ({why}{status}, attempt {})", retry.attempt)
}

/// The message for the model after the deadline.
pub(crate) const DEADLINE_EXCEEDED: &str = "Deadline exceeded";
/// The default stop reason.
pub(crate) const END_TURN: &str = "end_turn";
