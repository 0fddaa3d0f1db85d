//! One run, from its prompt to its end.

use std::time::Duration;

use ostler::proto::message::TurnResult;
use ostler::{Error, ErrorKind, Message};
use tokio::time::Instant;

use super::event;
use super::record::{Failure, Outcome, RunState};
use super::worker::{Command, Worker, cancelled_outcome, next_message};
use crate::fault::{ApiError, Fallible};

/// How a run ended.
enum Ending {
    Over(RunState, Outcome),
    /// The server stops, or another one has taken over: nothing is to be said about the end.
    Abandoned,
}

/// Time that a run may still take. It stands still while somebody is asked.
struct Budget {
    left: Option<Duration>,
    since: Option<Instant>,
}

impl Budget {
    fn new(left: Option<Duration>) -> Self {
        Self { left, since: Some(Instant::now()) }
    }

    fn pause(&mut self) {
        if let Some(since) = self.since.take() {
            self.left = self.left.map(|left| left.saturating_sub(since.elapsed()));
        }
    }

    fn go_on(&mut self) {
        self.since.get_or_insert_with(Instant::now);
    }

    async fn spent(&self) {
        match (self.left, self.since) {
            (Some(left), Some(since)) => tokio::time::sleep_until(since + left).await,
            _ => std::future::pending().await,
        }
    }
}

impl Worker {
    /// Works on a run until it is over.
    pub(super) async fn perform(&mut self, run: &str) -> Fallible<()> {
        let now = self.hub.clock.now();
        let started = self
            .note(run, |run| {
                run.state = RunState::Running;
                run.started = Some(now);
            })
            .await?;
        self.askers.run(run);
        let ending = match self.begin(&started.prompt).await {
            Ok(()) => self.follow(run).await?,
            Err(error) => {
                let failure = Failure::new("engine", error.detail().message.clone());
                Ending::Over(
                    RunState::Failed,
                    Outcome { error: Some(failure), ..Outcome::default() },
                )
            }
        };
        match ending {
            Ending::Over(state, outcome) => self.end(run, state, outcome).await,
            Ending::Abandoned => self.engine = None,
        }
        Ok(())
    }

    async fn begin(&mut self, prompt: &str) -> Fallible<()> {
        let engine = self.connect().await?;
        engine.client.send(prompt).await.map_err(unstarted)
    }

    /// Reads what the engine says until the run is over, and does what it is told meanwhile.
    async fn follow(&mut self, run: &str) -> Fallible<Ending> {
        let limits = self.hub.config.limits.clone();
        let mut waiting = self.askers.waiting();
        let mut time = Budget::new(limits.run);
        let mut silence = Budget::new(limits.stale);
        let mut cancelled: Option<Instant> = None;
        loop {
            tokio::select! {
                said = next_message(&mut self.engine) => {
                    silence = Budget::new(limits.stale);
                    if let Some(ending) = self.said(run, said, cancelled.is_some()).await? {
                        return Ok(ending);
                    }
                }
                command = self.commands.recv() => match command {
                    Some(Command::Cancel(it)) if it == run => {
                        cancelled.get_or_insert(Instant::now() + limits.cancel_grace);
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
                    Some(Command::Cancel(other)) => self.cancel_queued(&other).await,
                    Some(Command::Run(next)) => self.queue.push_back(next),
                    // Whoever could say something has gone; the server ends.
                    None => return Ok(Ending::Abandoned),
                },
                changed = waiting.changed() => if changed.is_ok() {
                    let is_waiting = *waiting.borrow_and_update() > 0;
                    if is_waiting { time.pause(); silence.pause() } else { time.go_on(); silence.go_on() }
                    let state = if is_waiting { RunState::Waiting } else { RunState::Running };
                    self.note(run, |run| run.state = state).await?;
                },
                () = grace(cancelled) => {
                    // It was asked to stop and did not: it is ended with everything it started.
                    self.engine = None;
                    return Ok(Ending::Over(RunState::Cancelled, cancelled_outcome()));
                }
                () = time.spent() => return Ok(self.out_of_time("run_timeout", "the run took longer", limits.run)),
                () = silence.spent() => return Ok(self.out_of_time("stale", "the engine said nothing for longer", limits.stale)),
                () = self.hub.stopping.cancelled() => return Ok(Ending::Abandoned),
                changed = self.holds.changed() => if changed.is_err() || !*self.holds.borrow() {
                    return Ok(Ending::Abandoned);
                },
            }
        }
    }

    /// Writes down what the engine said. The ending, if that was the end.
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
        let ending = message.as_result().and_then(|result| over(result, is_cancelled));
        self.writer
            .append(vec![event::message(Some(run), message, &self.hub.redactor)?], Vec::new())
            .await?;
        self.hub.metrics.message();
        Ok(ending)
    }

    /// So that the conversation can be taken up again, whatever happens to this server.
    async fn remember_engine_session(&mut self, message: &Message) -> Fallible<()> {
        let Some(id) = message.session_id().map(ToString::to_string) else { return Ok(()) };
        if self.session.engine_session.as_ref() == Some(&id) {
            return Ok(());
        }
        self.session.engine_session = Some(id.clone());
        self.hub
            .records
            .update::<super::record::Session, ()>(&self.session.id, |session| {
                session.engine_session = Some(id.clone());
                Ok(())
            })
            .await?;
        Ok(())
    }

    async fn interrupt(&mut self) {
        if let Some(engine) = &self.engine {
            let handle = engine.client.handle();
            // The answer comes by itself, or the time of grace ends.
            tokio::spawn(async move { handle.interrupt().await });
        }
    }

    async fn push(&mut self, run: &str, text: &str) -> bool {
        let Some(engine) = &self.engine else { return false };
        if engine.client.send(text).await.is_err() {
            return false;
        }
        match event::said(run, text) {
            Ok(told) => self.writer.append(vec![told], Vec::new()).await.is_ok(),
            Err(_) => false,
        }
    }

    fn out_of_time(&mut self, code: &str, what: &str, limit: Option<Duration>) -> Ending {
        self.engine = None;
        let seconds = limit.unwrap_or_default().as_secs_f64();
        let failure = Failure::new(code, format!("{what} than {seconds} s and was ended"));
        Ending::Over(RunState::Failed, Outcome { error: Some(failure), ..Outcome::default() })
    }
}

async fn grace(until: Option<Instant>) {
    match until {
        Some(until) => tokio::time::sleep_until(until).await,
        None => std::future::pending().await,
    }
}

/// What a result says about the run; `None` when more is to come.
fn over(result: &TurnResult, is_cancelled: bool) -> Option<Ending> {
    if result.queued_turn_count.is_some_and(|queued| queued > 0) && !is_cancelled {
        return None;
    }
    let mut outcome = Outcome {
        result: result.result.clone(),
        error: None,
        cost_usd: result.total_cost_usd.get(),
        turns: result.num_turns,
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
    let message = match error.stderr() {
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
