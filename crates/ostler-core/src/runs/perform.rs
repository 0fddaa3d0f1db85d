//! One run, from its prompt to its end.

use std::sync::Arc;

use ostler::proto::api::Content;
use ostler::proto::message::{System, TurnResult, User};
use ostler::{Error, ErrorKind, Message};
use ostler_base::error::{self, ApiError, Fallible};
use serde_json::Value;
use tokio::time::Instant;

use super::about::WantsEngine;
use super::rewind::{busy, prompt_name};
use super::time::Times;
use super::worker::{Command, Worker, cancelled_outcome, next_message};
use crate::model::event;
use crate::model::run::{Attached, Begin, Failure, Outcome, Run, RunState};

/// How a run ended.
enum Ending {
    Over(RunState, Outcome),
    /// The server stops, or loses the session: the end cannot be written to the log.
    Abandoned,
}

impl Worker {
    /// Performs a run until it ends.
    pub(super) async fn perform(&mut self, run: &str) -> Fallible<()> {
        let started = match self.start(run).await {
            Ok(Some(started)) => started,
            // It has ended meanwhile, or another worker has begun it.
            Ok(None) => return Ok(()),
            Err(error) if error::is_of_store(&error) => {
                tracing::warn!(run, %error, "a run cannot begin yet");
                self.begin_later(run);
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        self.askers.run(&started);
        self.meter.begin(run);
        match self.begin(&started).await {
            Ok(()) => self.attend(run, None).await,
            Err(error) if error::is_of_store(&error) => Err(error),
            Err(error) => {
                let failure = Failure::new("engine", error.detail().message.clone());
                let outcome = Outcome { error: Some(failure), ..Outcome::default() };
                self.end(run, RunState::Failed, outcome).await;
                Ok(())
            }
        }
    }

    /// Follows a run of the engine to its end. `first` is a message that the engine has sent already.
    pub(super) async fn attend(&mut self, run: &str, first: Option<Message>) -> Fallible<()> {
        match self.follow(run, first).await? {
            Ending::Over(state, outcome) => self.end(run, state, outcome).await,
            Ending::Abandoned => {
                self.leave_engine();
                // A stopping server leaves the mark to the next one, which knows that no engine is left.
                if !self.sessions.stopping.is_cancelled() {
                    self.interrupt_later(run, "the server lost its lease on the session");
                }
            }
        }
        Ok(())
    }

    /// Marks a queued run as begun; `None` if it is no longer queued.
    async fn start(&mut self, run: &str) -> Fallible<Option<Run>> {
        if self.find(run).await?.0.state != RunState::Queued {
            return Ok(None);
        }
        let now = self.sessions.clock.now();
        let start = |run: &mut Run| (run.state, run.started) = (RunState::Running, Some(now));
        self.note(run, start).await.map(Some)
    }

    async fn begin(&mut self, run: &Run) -> Fallible<()> {
        self.turn_to(&run.begin).await?;
        let attached = self.sessions.records.find::<Attached>(&run.id).await?;
        let mut prompt = match attached {
            Some((attached, _)) => User::prompt(Content::Blocks(attached.content)),
            None => User::from(run.prompt.as_str()),
        };
        // This id is needed to restore files to their state before the prompt.
        prompt.uuid = Some(prompt_name(&run.id));
        let engine = self.connect().await?;
        engine.client.send(prompt).await.map_err(unstarted)
    }

    /// Moves the conversation to the place where the run begins.
    async fn turn_to(&mut self, begin: &Begin) -> Fallible<()> {
        if *begin == Begin::Here {
            return Ok(());
        }
        self.end_engine().await;
        match begin {
            Begin::Here | Begin::Anew => Ok(()),
            Begin::Behind { conversation, message } => {
                self.behind = Some(message.clone());
                self.in_conversation(Some(conversation.clone())).await
            }
            Begin::Blank => self.in_conversation(None).await,
        }
    }

    /// Reads messages of the engine until the run ends, and processes commands meanwhile.
    async fn follow(&mut self, run: &str, first: Option<Message>) -> Fallible<Ending> {
        let mut waiting = self.askers.waiting();
        let mut times = Times::new(self.sessions.config.limits.clone());
        let mut cancelled: Option<Instant> = None;
        if let Some(message) = first
            && let Some(ending) = self.hear(run, Some(Ok(message)), &mut times).await?
        {
            return Ok(ending);
        }
        loop {
            tokio::select! {
                said = next_message(&mut self.engine) => {
                    if let Some(ending) = self.hear(run, said, &mut times).await? {
                        return Ok(ending);
                    }
                }
                command = self.commands.recv() => match command {
                    Some(Command::Cancel(it)) if it == run => {
                        let grace = self.sessions.config.limits.cancel_grace;
                        cancelled.get_or_insert(Instant::now() + grace);
                        self.is_cancelling = true;
                        self.interrupt().await;
                    }
                    Some(Command::Push { text, taken }) => {
                        let pushed = self.push(run, &text).await;
                        let _ = taken.send(pushed.then(|| run.to_owned()));
                    }
                    Some(Command::Close(closed)) => {
                        self.engine = None;
                        self.closed = Some(closed);
                        return Ok(Ending::Over(RunState::Cancelled, cancelled_outcome()));
                    }
                    Some(Command::Rewind(rewind)) => {
                        let _ = rewind.answer.try_send(Err(busy()));
                    }
                    Some(Command::Engine(wants)) => {
                        // No engine is started in the middle of a run.
                        self.give_engine(WantsEngine { starts: false, ..wants }).await;
                    }
                    Some(Command::Cancel(other)) => self.cancel_queued(&other).await,
                    Some(Command::Run(next)) => self.enqueue(next),
                    Some(Command::Orphans(runs)) => self.adopt(runs).await,
                    // All senders are gone; the server stops.
                    None => return Ok(Ending::Abandoned),
                },
                changed = waiting.changed() => if changed.is_ok() {
                    let is_waiting = *waiting.borrow_and_update() > 0;
                    // A second question in addition to the first changes nothing.
                    if is_waiting != times.stands() {
                        times.stand(is_waiting);
                        self.meter.stand(is_waiting);
                        self.make_way(is_waiting);
                        let state = if is_waiting { RunState::Waiting } else { RunState::Running };
                        self.note(run, |run| run.state = state).await?;
                    }
                },
                () = grace(cancelled) => {
                    // The engine was asked to stop and did not: it is ended with everything it started.
                    return Ok(self.cut_off());
                }
                () = grace(self.stream_redactor.due()) => self.write_held(Some(run)).await?,
                failure = times.spent() => return Ok(self.out_of_time(failure)),
                () = self.sessions.stopping.cancelled() => return Ok(Ending::Abandoned),
                changed = self.holds.changed() => if changed.is_err() || !*self.holds.borrow() {
                    return Ok(if cancelled.is_some() { self.cut_off() } else { Ending::Abandoned });
                },
            }
        }
    }

    async fn hear(
        &mut self,
        run: &str,
        said: Option<Result<Message, Error>>,
        times: &mut Times,
    ) -> Fallible<Option<Ending>> {
        if let Some(Ok(message)) = &said {
            times.heard(message);
            self.meter.heard(message, &self.session.setup.cwd);
        }
        self.said(run, said, self.is_cancelling).await
    }

    /// A run that waits for users releases its permit. When it continues, it does so at once, also if other runs have
    /// taken its place meanwhile: a user who answers must not wait.
    fn make_way(&mut self, is_waiting: bool) {
        self.permit = match is_waiting {
            true => None,
            false => Arc::clone(&self.sessions.permits).try_acquire_owned().ok(),
        };
    }

    /// Stores a message of the engine. Returns the ending, if that was the last message.
    async fn said(
        &mut self,
        run: &str,
        said: Option<Result<Message, Error>>,
        is_cancelled: bool,
    ) -> Fallible<Option<Ending>> {
        let message = match said {
            Some(Ok(message)) => message,
            Some(Err(error)) => {
                self.engine = None;
                let ending = if is_cancelled { cancelled() } else { failed(&error) };
                return Ok(Some(ending));
            }
            None => {
                self.engine = None;
                let lost = Error::Closed("the engine has ended without a result".to_owned());
                return Ok(Some(if is_cancelled { cancelled() } else { failed(&lost) }));
            }
        };
        self.remember_engine_session(&message).await?;
        self.note_about(&message).await;
        self.agents_work = agents_work(&message).unwrap_or(self.agents_work);
        let more_comes = self.agents_work && !is_cancelled;
        let ending = message.as_result().and_then(|result| over(result, is_cancelled, more_comes));
        let events = self.stream_redactor.events(Some(run), message)?;
        if !events.is_empty() {
            self.write(events, Vec::new()).await?;
        }
        self.sessions.metrics.message();
        Ok(ending)
    }

    /// Writes the collected deltas.
    pub(super) async fn write_held(&mut self, run: Option<&str>) -> Fallible<()> {
        let events = self.stream_redactor.release(run)?;
        if !events.is_empty() {
            self.write(events, Vec::new()).await?;
        }
        Ok(())
    }

    /// Stores the engine's id of the conversation, so that it can be resumed whatever happens to this server.
    async fn remember_engine_session(&mut self, message: &Message) -> Fallible<()> {
        let Some(id) = message.session_id().filter(|id| !id.as_str().is_empty()) else {
            return Ok(());
        };
        if self.session.engine_session.as_deref() == Some(id.as_str()) {
            return Ok(());
        }
        let id = id.to_string();
        self.in_conversation(Some(id)).await
    }

    async fn in_conversation(&mut self, id: Option<String>) -> Fallible<()> {
        self.session.engine_session.clone_from(&id);
        self.session.origin = None;
        self.sessions
            .records
            .update::<crate::model::run::Session, ()>(&self.session.id, |session| {
                session.engine_session.clone_from(&id);
                session.origin = None;
                Ok(())
            })
            .await?;
        Ok(())
    }

    async fn interrupt(&mut self) {
        if let Some(engine) = &self.engine {
            let handle = engine.client.handle();
            // The result follows, or the grace period ends.
            tokio::spawn(async move { handle.interrupt_all().await });
        }
    }

    async fn push(&mut self, run: &str, text: &str) -> bool {
        let Some(engine) = &self.engine else { return false };
        if engine.client.send(text).await.is_err() {
            return false;
        }
        match event::said(run, text) {
            Ok(event) => self.writer.append(vec![event], Vec::new()).await.is_ok(),
            Err(_) => false,
        }
    }

    fn cut_off(&mut self) -> Ending {
        self.engine = None;
        cancelled()
    }

    fn out_of_time(&mut self, failure: Failure) -> Ending {
        if self.is_cancelling {
            return self.cut_off();
        }
        self.engine = None;
        Ending::Over(RunState::Failed, Outcome { error: Some(failure), ..Outcome::default() })
    }
}

async fn grace(until: Option<Instant>) {
    match until {
        Some(until) => tokio::time::sleep_until(until).await,
        None => std::future::pending().await,
    }
}

/// Whether subagents work in the background, if a message reports it.
fn agents_work(message: &Message) -> Option<bool> {
    let Message::System(System::BackgroundTasksChanged(changed)) = message else { return None };
    Some(changed.tasks.iter().any(|task| task.task_type.as_str() == "local_agent"))
}

/// The ending according to a result; `None` if the run continues: another prompt was sent meanwhile, or a subagent
/// works in the background and will report.
fn over(result: &TurnResult, is_cancelled: bool, agents_work: bool) -> Option<Ending> {
    let is_queued = result.queued_turn_count.is_some_and(|queued| queued > 0);
    if (is_queued && !is_cancelled) || (agents_work && !result.is_error) {
        return None;
    }
    let mut outcome = Outcome {
        result: result.result.clone(),
        error: None,
        cost_usd: result.total_cost_usd.get(),
        turns: result.num_turns,
        sandbox: result.extra.get("sandbox").cloned().map(without_lists),
    };
    let state = match Error::of_turn(result) {
        _ if is_cancelled => {
            outcome.error = cancelled_outcome().error;
            RunState::Cancelled
        }
        Some(error) => {
            outcome.error = Some(failure(&error));
            RunState::Failed
        }
        None => RunState::Completed,
    };
    Some(Ending::Over(state, outcome))
}

/// What a sandbox enforced, short enough for every record.
pub(super) fn without_lists(mut sandbox: Value) -> Value {
    if let Some(fields) = sandbox.as_object_mut() {
        fields.retain(|name, _| !["protected", "hidden"].contains(&name.as_str()));
    }
    sandbox
}

fn cancelled() -> Ending {
    Ending::Over(RunState::Cancelled, cancelled_outcome())
}

fn failed(error: &Error) -> Ending {
    let outcome = Outcome { error: Some(failure(error)), ..Outcome::default() };
    Ending::Over(RunState::Failed, outcome)
}

fn failure(error: &Error) -> Failure {
    let code = match error.kind() {
        ErrorKind::Engine => "no_engine",
        ErrorKind::Connection => "engine_lost",
        ErrorKind::Protocol => "engine_malformed",
        ErrorKind::Api => "api",
        ErrorKind::MaxTurns => "max_turns",
        ErrorKind::Budget => "budget",
        ErrorKind::Answer => "answer",
        ErrorKind::Timeout => "timeout",
        _ => "turn",
    };
    // The error may contain it already, without the end of the last line.
    let message = match error.stderr().map(str::trim) {
        Some(stderr) if !stderr.is_empty() && !error.to_string().contains(stderr) => {
            format!("{error}\n\nStderr output:\n{stderr}")
        }
        _ => error.to_string(),
    };
    Failure::new(code, message)
}

pub(super) fn unstarted(error: Error) -> ApiError {
    ApiError::unavailable("engine", format!("the engine does not start: {error}"))
}
