//! [`Evaluation`]: a run in progress, message by message, up to its response.

use std::marker::PhantomData;
use std::time::{Duration, Instant};

use ostler_sdk::proto::message::{TurnResult, User};
use ostler_sdk::{Message, Options, Query, query};
use serde_json::Value;

use crate::context::{DEADLINE_EXCEEDED, END_TURN, HookContext};
use crate::error::Error;
use crate::event::{Event, PromptExecuted, PromptRendered};
use crate::output::Output;
use crate::prompt::Prompt;
use crate::response::Response;
use crate::tool::TOOL_SERVER;

/// After more responses with denied calls than this, the run is aborted, because every response costs money. After the
/// first one the model can still report what it has found; if it calls tools again, it does not intend to.
const MOST_DENIED_RESPONSES: u64 = 1;
/// How long the engine may take to report the cost of an aborted run.
const COST_LIMIT: Duration = Duration::from_secs(1);

/// A run. Read its messages if you like, then await the [response](Self::response). Dropping it ends the run with all
/// its processes.
#[must_use = "nothing happens until messages are read or the response is awaited"]
pub struct Evaluation<T> {
    prompt: Prompt<T>,
    context: HookContext,
    /// The options of the engine; `None` once it was started.
    options: Option<Box<Options>>,
    messages: Option<Query>,
    shows_deltas: bool,
    model: String,
    begun: Option<Instant>,
    result: Option<Box<TurnResult>>,
    failed: Option<Error>,
    /// Whether the end of the run was published.
    has_ended: bool,
    answers: PhantomData<fn() -> T>,
}

impl<T: Output> Evaluation<T> {
    pub(crate) fn new(
        prompt: &Prompt<T>,
        context: HookContext,
        options: Options,
        shows_deltas: bool,
    ) -> Self {
        Self {
            prompt: prompt.clone(),
            context,
            model: options.model.name.clone().unwrap_or_default(),
            options: Some(Box::new(options)),
            messages: None,
            shows_deltas,
            begun: None,
            result: None,
            failed: None,
            has_ended: false,
            answers: PhantomData,
        }
    }

    /// A run that fails with this error without starting.
    pub(crate) fn refused(mut self, error: Error) -> Self {
        self.failed = Some(error);
        self
    }

    /// The shared state of the run's hooks, such as what the run has spent.
    pub fn context(&self) -> &HookContext {
        &self.context
    }

    /// The next message; `None` after the end of the run. Deltas arrive only if the adapter's options ask for partial
    /// messages.
    pub async fn next(&mut self) -> Option<Message> {
        self.begin();
        loop {
            let message = self.next_from_engine().await?;
            if !matches!(message, Message::StreamEvent(_)) || self.shows_deltas {
                return Some(message);
            }
        }
    }

    /// Reads the remaining messages and returns the response.
    ///
    /// # Errors
    /// If there is no answer; see [`Error`].
    pub async fn response(mut self) -> Result<Response<T>, Error> {
        while self.next().await.is_some() {}
        let outcome = self.outcome();
        self.publish_end(outcome.as_ref().err());
        let output = outcome?;
        let context = &self.context;
        let result = self.result.take();
        let sandbox = result.as_ref().and_then(|result| result.extra.get("sandbox").cloned());
        Ok(Response {
            sandbox,
            prompt_name: self.prompt.name().to_owned(),
            run_id: context.run_id().to_owned(),
            session_id: result.as_ref().map(|it| it.session_id.to_string()).unwrap_or_default(),
            output,
            text: result.and_then(|result| result.result),
            usage: context.usage(),
            cost_usd: context.cost_usd(),
            duration: self.took(),
            stop_reason: context.stop_reason().unwrap_or_else(|| END_TURN.to_owned()),
            tool_calls: context.n_tool_calls(),
            denied_calls: context.n_denied(),
            hooks: context.hook_cost(),
        })
    }

    /// Starts the engine, unless the budget is used up.
    fn begin(&mut self) {
        let Some(options) = self.options.take() else { return };
        self.begun = Some(Instant::now());
        let (prompt, context) = (&self.prompt, &self.context);
        context.state().spans.run_begins(prompt.name(), context.run_id(), &self.model);
        let tools = prompt.tools().iter().filter(|tool| tool.has_handler());
        context.publish(Event::PromptRendered(
            PromptRendered {
                prompt_name: prompt.name().to_owned(),
                adapter: context.adapter_name().to_owned(),
                run_id: context.run_id().to_owned(),
                text: prompt.text().to_owned(),
                tools: tools.map(|tool| tool.wire_name(TOOL_SERVER)).collect(),
                model: self.model.clone(),
            }
            .into(),
        ));
        if self.failed.is_some() {
            return;
        }
        if let Some(error) = self.limit() {
            self.failed = Some(error);
            return;
        }
        let mut user = User::prompt(prompt.text());
        user.session_id = Some(prompt.name().into());
        self.messages = Some(query(user, *options));
    }

    /// The next message of the engine. This function detects every end of a run.
    async fn next_from_engine(&mut self) -> Option<Message> {
        let messages = self.messages.as_mut()?;
        let received = match self.context.current_deadline() {
            Some(deadline) => {
                let end = tokio::time::Instant::from_std(deadline.end());
                match tokio::time::timeout_at(end, messages.next()).await {
                    Ok(received) => received,
                    // With a result, the run does not fail because of background work.
                    Err(_) if self.result.is_some() => return self.end(None),
                    Err(_) => return self.abort(self.deadline_exceeded()).await,
                }
            }
            None => messages.next().await,
        };
        if let Some(handle) = messages.handle() {
            self.context.reaches(handle);
        }
        match received {
            Some(Ok(message)) => {
                if let Message::Result(result) = &message {
                    self.result = Some(result.clone());
                }
                // If the agent met the deadline, a program that reads slowly still gets the result.
                if self.context.current_deadline().is_some_and(|it| it.end() <= Instant::now())
                    && !self.context.has_result()
                {
                    return self.abort(self.deadline_exceeded()).await;
                }
                if self.context.n_denied_responses() > MOST_DENIED_RESPONSES
                    && let Some(error) = self.limit()
                {
                    return self.abort(error).await;
                }
                Some(message)
            }
            Some(Err(error)) => {
                let error = Error::of(self.prompt.name(), error);
                self.end(Some(error))
            }
            None => self.end(None),
        }
    }

    /// Aborts a run. Asks for its cost first, because afterwards it is not available.
    async fn abort(&mut self, error: Error) -> Option<Message> {
        self.context.ask_cost(COST_LIMIT).await;
        self.end(Some(error))
    }

    /// Ends the engine with all its processes.
    fn end(&mut self, error: Option<Error>) -> Option<Message> {
        self.messages = None;
        self.failed = error;
        None
    }

    /// The limit that was reached, if any.
    fn limit(&self) -> Option<Error> {
        let reason = self.context.objection()?;
        if reason == DEADLINE_EXCEEDED {
            return Some(self.deadline_exceeded());
        }
        let exhausted = self.context.budget_tracker()?.exhausted()?;
        let prompt = self.prompt.name().to_owned();
        Some(Error::Budget { prompt, exhausted, errors: Vec::new() })
    }

    fn deadline_exceeded(&self) -> Error {
        Error::DeadlineExceeded {
            prompt: self.prompt.name().to_owned(),
            after: self.took(),
            trouble: self.context.trouble(),
        }
    }

    fn outcome(&mut self) -> Result<T, Error> {
        let name = self.prompt.name();
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        let Some(result) = &self.result else {
            let reason = "the engine ended without a result".to_owned();
            return Err(Error::of(name, ostler_sdk::Error::Closed(reason)));
        };
        if let Some(error) = ostler_sdk::Error::of_turn(result) {
            return Err(Error::of(name, error));
        }
        let answer = match T::schema() {
            None => Value::Null,
            Some(_) => self.answer().ok_or_else(|| Error::AnswerMissing {
                prompt: name.to_owned(),
                text: result.result.clone().unwrap_or_default(),
            })?,
        };
        T::read(answer).map_err(|error| Error::of_answer(name, error))
    }

    /// The answer: from the result, or from the call of the answer tool if a hook ended the turn after it.
    fn answer(&self) -> Option<Value> {
        let output = self.result.as_ref()?.structured_output.clone();
        output.filter(|answer| !answer.is_null()).or_else(|| self.context.answer())
    }
}

impl<T> Evaluation<T> {
    fn took(&self) -> Duration {
        self.begun.map(|begun| begun.elapsed()).unwrap_or_default()
    }

    /// Publishes the end of the run, unless that was done already.
    fn publish_end(&mut self, error: Option<&Error>) {
        if self.begun.is_none() || std::mem::replace(&mut self.has_ended, true) {
            return;
        }
        let context = &self.context;
        let result = self.result.as_ref();
        let answer = result.and_then(|result| result.structured_output.clone());
        let executed = PromptExecuted {
            prompt_name: self.prompt.name().to_owned(),
            adapter: context.adapter_name().to_owned(),
            run_id: context.run_id().to_owned(),
            output: answer.or_else(|| context.answer()),
            text: result.and_then(|result| result.result.clone()),
            error: error.map(ToString::to_string),
            usage: context.usage(),
            cost_usd: context.cost_usd(),
            duration: self.took(),
            stop_reason: match (error, result) {
                // The run did not stop by itself.
                (Some(error), None) => error.code().to_owned(),
                _ => context.stop_reason().unwrap_or_else(|| END_TURN.to_owned()),
            },
            hooks: context.hook_cost(),
        };
        context.state().spans.run_ends(&executed, error.map(Error::code));
        context.publish(Event::PromptExecuted(executed.into()));
    }
}

impl<T> Drop for Evaluation<T> {
    fn drop(&mut self) {
        let abandoned = Error::Cancelled { prompt: self.prompt.name().to_owned() };
        self.publish_end(Some(&abandoned));
    }
}
