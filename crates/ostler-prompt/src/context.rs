//! [`HookContext`]: what the hooks of a run share, and what they know of it.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use ostler_sdk::proto::message::system::ApiRetry;
use ostler_sdk::proto::message::{System, TurnResult};
use ostler_sdk::{Handle, Message, OptionsFor};
use serde_json::Value;

use crate::budget::{BudgetTracker, Usage};
use crate::deadline::Deadline;
use crate::event::{Event, HookCost};
use crate::hooks;
use crate::meter::Meter;
use crate::session::Session;
use crate::spans::Spans;
use crate::tool::Run;

/// How long the engine may take to say what was spent, when a hook asks.
const COST_LIMIT: Duration = Duration::from_secs(5);

/// What the hooks of one run share: what they hold it to, where they tell of it, and what they have found out.
///
/// An [`Adapter`](crate::Adapter) makes one for every run. Without an adapter, [`attach`](Self::attach) holds any session
/// of the SDK to a deadline and a budget, and tells of its tools. Clones are the same context.
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
    /// To ask the engine what was spent.
    handle: Arc<OnceLock<Handle>>,
}

/// What is found out on the way.
#[derive(Debug, Default)]
pub(crate) struct State {
    meter: Meter,
    usd: f64,
    /// The engine cannot say what was spent before the end.
    cost_unknown: bool,
    stop_reason: Option<String>,
    n_prompts: u64,
    n_calls: u64,
    n_denied: u64,
    /// Responses of which a call was denied, and how many responses there were at the last of them.
    n_denied_responses: u64,
    last_denied: Option<usize>,
    /// Why the engine asks the API again, until it gets an answer.
    trouble: Option<String>,
    /// Calls that were told of.
    told: HashSet<String>,
    answer: Option<Value>,
    /// The conversation was not begun here, so that the engine's counts tell of more than this run.
    is_resumed: bool,
    /// There is a result.
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

    /// Until when.
    #[must_use]
    pub fn deadline(mut self, deadline: impl Into<Option<Deadline>>) -> Self {
        self.deadline = deadline.into();
        self
    }

    /// For how much.
    #[must_use]
    pub fn budget(mut self, tracker: impl Into<Option<BudgetTracker>>) -> Self {
        self.budget_tracker = tracker.into();
        self
    }

    pub(crate) fn stops_after_answer(mut self, stops: bool) -> Self {
        self.stops_after_answer = stops;
        self
    }

    /// Adds the hooks to a session, before those it has, and listens to it. The context belongs to one session.
    #[must_use]
    pub fn attach<E>(&self, mut options: OptionsFor<E>) -> OptionsFor<E> {
        let mut all = hooks::all(self);
        all.append(&mut options.hooks);
        options.hooks = all;
        // Only pieces of a response tell all of its tokens.
        options.output.partial_messages = true;
        let choice = &options.session.choice;
        self.state().is_resumed = choice.go_on || choice.resume.is_some();
        let (context, before) = (self.clone(), options.engine.messages.take());
        options.on_message(move |message| {
            context.hear(message);
            if let Some(before) = &before {
                before(message);
            }
        })
    }

    /// The session.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Who runs the prompt.
    pub fn adapter_name(&self) -> &str {
        &self.adapter_name
    }

    /// The prompt.
    pub fn prompt_name(&self) -> &str {
        &self.prompt_name
    }

    /// The run; its events have the same.
    pub fn run_id(&self) -> &str {
        &self.run_id
    }

    /// Until when the run may go on.
    pub fn current_deadline(&self) -> Option<Deadline> {
        self.deadline
    }

    /// What it may spend, and what was spent.
    pub fn budget_tracker(&self) -> Option<&BudgetTracker> {
        self.budget_tracker.as_ref()
    }

    /// Why the run stopped, once it has.
    pub fn stop_reason(&self) -> Option<String> {
        self.state().stop_reason.clone()
    }

    /// What this run has spent.
    pub fn usage(&self) -> Usage {
        self.state().meter.total()
    }

    /// Dollars this run has spent, as far as the engine has said so.
    pub fn cost_usd(&self) -> f64 {
        self.state().usd
    }

    /// Prompts that were taken up.
    pub fn n_prompts(&self) -> u64 {
        self.state().n_prompts
    }

    /// Tools that have run.
    pub fn n_tool_calls(&self) -> u64 {
        self.state().n_calls
    }

    /// Calls that were denied.
    pub fn n_denied(&self) -> u64 {
        self.state().n_denied
    }

    /// Responses of which calls were denied.
    pub(crate) fn n_denied_responses(&self) -> u64 {
        self.state().n_denied_responses
    }

    /// What the API answered last, if the engine is trying again.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.state().trouble.clone()
    }

    /// What the hooks cost.
    pub fn hook_cost(&self) -> HookCost {
        self.state().cost
    }

    /// Why nothing more may be done; `None` as long as something may.
    pub fn objection(&self) -> Option<String> {
        if self.deadline.is_some_and(|deadline| deadline.has_passed()) {
            return Some(DEADLINE_EXCEEDED.to_owned());
        }
        self.budget_tracker.as_ref()?.exhausted().map(|exhausted| exhausted.to_string())
    }

    /// What tools are told.
    pub(crate) fn run(&self) -> Run {
        Run {
            session: self.session.clone(),
            prompt_name: Arc::clone(&self.prompt_name),
            deadline: self.deadline,
            budget: self.budget_tracker.clone(),
        }
    }

    /// Whether there is a result, be it read or not.
    pub(crate) fn has_result(&self) -> bool {
        self.state().has_result
    }

    pub(crate) fn ends_turn_with_answer(&self) -> bool {
        self.stops_after_answer
    }

    /// The engine can be asked from now on.
    pub(crate) fn reaches(&self, handle: Handle) {
        // A context belongs to one session; the first is it.
        let _ = self.handle.set(handle);
    }

    /// Finds out what was spent in dollars, where that matters and the engine can say so.
    pub(crate) async fn find_out_cost(&self) {
        let limited = self.budget_tracker.as_ref().is_some_and(|it| it.budget().max_usd.is_some());
        if !limited || self.state().cost_unknown {
            return;
        }
        // The engine's own limit, which is what was left at the start, holds all the same.
        if !self.ask_cost(COST_LIMIT).await {
            self.state().cost_unknown = true;
        }
    }

    /// Asks the engine what the run has cost so far; whether it says so in time.
    pub(crate) async fn ask_cost(&self, limit: Duration) -> bool {
        let Some(handle) = self.handle.get() else { return false };
        match tokio::time::timeout(limit, handle.usage()).await {
            Ok(Ok(usage)) => {
                self.spent_usd(usage.session.total_cost_usd.get());
                true
            }
            _ => false,
        }
    }

    /// Takes what the whole run has cost so far.
    fn spent_usd(&self, total: f64) {
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

    fn hear(&self, message: &Message) {
        let new = self.state().meter.hear(message);
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

    /// Takes the last word on what was spent. The engine counts from its start, which is the run's own.
    fn settle(&self, result: &TurnResult) {
        if !self.state().is_resumed {
            let new = self.state().meter.settle(result);
            self.spent(new);
        }
        self.spent_usd(result.total_cost_usd.get());
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

    /// Whether this call is told of for the first time.
    pub(crate) fn is_news(&self, call_id: &str) -> bool {
        let mut state = self.state();
        let is_news = state.told.insert(call_id.to_owned());
        state.n_calls += u64::from(is_news);
        is_news
    }

    pub(crate) fn answered(&self, answer: Value) {
        self.state().answer = Some(answer);
    }

    /// The last answer that the engine took.
    pub(crate) fn answer(&self) -> Option<Value> {
        self.state().answer.clone()
    }

    /// Notes why the run stops: what the hook was told, or else what the model said last.
    pub(crate) fn stopped(&self, told: Option<String>) {
        let mut state = self.state();
        let reason = told.or_else(|| state.meter.stop_reason().map(str::to_owned));
        state.stop_reason = Some(reason.unwrap_or_else(|| END_TURN.to_owned()));
    }

    pub(crate) fn took(&self, time: Duration) {
        self.state().cost.add(time);
    }

    pub(crate) fn publish(&self, event: Event) {
        self.session.bus().publish(event);
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Why the engine asks the API again, in words.
fn trouble(retry: &ApiRetry) -> String {
    let status = retry.error_status.map(|status| format!(", HTTP {status}")).unwrap_or_default();
    let why = match retry.error_status {
        Some(529) => "overloaded".to_owned(),
        _ => retry.error.to_string(),
    };
    format!("the model's API was in trouble at the time ({why}{status}, attempt {})", retry.attempt)
}

/// What a model reads when the deadline has passed.
pub(crate) const DEADLINE_EXCEEDED: &str = "Deadline exceeded";
/// Why a run stops if nobody says otherwise.
pub(crate) const END_TURN: &str = "end_turn";
