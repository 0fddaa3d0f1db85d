//! The worker of a session: performs queued runs one at a time, and ends when there was nothing to do for a while.

use std::any::Any;
use std::collections::VecDeque;
use std::sync::Arc;

use ostler::{Client, Message};
use ostler_base::error::{self, ApiError, Fallible};
use ostler_door::permits::UserPermit;
use ostler_store::{Error, NewEvent, Put};
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot, watch};
use tokio::time::Instant;

use super::about::{About, WantsEngine};
use super::ask::Askers;
use super::lease::{self, Taken};
use super::meter::Meter;
use super::options::EngineParts;
use super::pending_outcomes::{AGAIN, Ended};
use super::rewind::{Rewind, busy};
use super::stream_redactor::StreamRedactor;
use super::{Sessions, TRIES, options, perform, tally};
use crate::log::Writer;
use crate::memory::NotesEnd;
use crate::model::event;
use crate::model::run::{Failure, Outcome, Run, RunState, Session};
use crate::records::Kept as _;

/// A command for a worker.
pub(super) enum Command {
    /// A run has been queued.
    Run(String),
    /// Sends another prompt to the active run; the reply is that run, or `None` if there is none.
    Push { text: String, taken: oneshot::Sender<Option<String>> },
    /// Cancels a run.
    Cancel(String),
    /// Runs that have not ended according to their records, and that may have no worker.
    Orphans(Vec<String>),
    /// Restores files.
    Rewind(Rewind),
    /// Requests the engine.
    Engine(WantsEngine),
    /// Ends everything, because the session is being deleted.
    Close(oneshot::Sender<()>),
}

pub(super) struct Worker {
    pub(super) sessions: Arc<Sessions>,
    pub(super) session: Session,
    pub(super) writer: Writer,
    pub(super) commands: mpsc::Receiver<Command>,
    pub(super) queue: VecDeque<String>,
    /// The active run, or the next one.
    current: Option<String>,
    /// Whether a user has requested its end.
    pub(super) is_cancelling: bool,
    pub(super) askers: Askers,
    pub(super) stream_redactor: StreamRedactor,
    pub(super) meter: Meter,
    /// The last report of the engine about itself.
    pub(super) about: About,
    pub(super) engine: Option<Engine>,
    /// The message after which the next engine continues, if not at the end.
    pub(super) behind: Option<String>,
    /// Whether subagents work in the background, and will report.
    pub(super) agents_work: bool,
    /// `false` when the lease is lost: nothing may be written or done any more.
    pub(super) holds: watch::Receiver<bool>,
    pub(super) closed: Option<oneshot::Sender<()>>,
    /// The permit among the runs that may work at the same time. A run that waits for users releases it.
    pub(super) permit: Option<OwnedSemaphorePermit>,
    /// Acquired for an engine that is about to start.
    engine_permit: Option<UserPermit>,
    /// Outcomes of runs that could not be stored. Then nothing else can be done either.
    pub(super) pending_outcomes: Vec<Ended>,
    /// Whether a run could not begin because nothing can be written. It is still queued.
    is_stuck: bool,
    /// Whether there was nothing to do for so long that the worker ends.
    was_idle: bool,
}

/// A running engine with what it needs.
pub(super) struct Engine {
    pub(super) client: Client,
    /// The stamp of the setup with which it was started.
    stamp: String,
    permit: UserPermit,
    /// Dropped after the client, because fields are dropped in their order.
    _guards: Vec<Box<dyn Any + Send + Sync>>,
    _end: NotesEnd,
}

/// Takes over a session and works until there is nothing to do.
pub(super) async fn run(
    sessions: Arc<Sessions>,
    session: Session,
    mut commands: mpsc::Receiver<Command>,
) {
    let id = session.id.clone();
    let (writer, since, early) = match lease::take(&sessions, &id, &mut commands).await {
        Taken::Held { writer, since, early } => (writer, since, early),
        Taken::Refused { error, early } => {
            tracing::warn!(session = id, %error, "a session could not be taken over");
            return sessions.fail_queued(&id, early, commands, &error).await;
        }
        Taken::Ends => return sessions.gone_closed(&id, &mut commands),
    };
    let (held, holds) = watch::channel(true);
    let renewing =
        tokio::spawn(lease::keep(writer.clone(), sessions.log_writers.lease, since, held));
    let askers = Askers::new(Arc::clone(&sessions.approvals), &session);
    let mut worker = Worker {
        sessions: Arc::clone(&sessions),
        session,
        writer,
        commands,
        queue: VecDeque::new(),
        current: None,
        is_cancelling: false,
        askers,
        stream_redactor: StreamRedactor::new(sessions.redactor.clone()),
        meter: Meter::default(),
        about: About::default(),
        engine: None,
        behind: None,
        agents_work: false,
        holds,
        closed: None,
        permit: None,
        engine_permit: None,
        pending_outcomes: Vec::new(),
        is_stuck: false,
        was_idle: false,
    };
    for command in early {
        worker.take(command).await;
    }
    worker.work().await;
    if worker.closed.is_some() {
        worker.cancel_rest().await;
    }
    if let Some(engine) = worker.engine.take() {
        // Its remaining messages are not needed.
        let _ = engine.client.close().await;
    }
    renewing.abort();
    sessions.log_writers.close(&id, &worker.writer).await;
    if let Some(closed) = worker.closed.take() {
        let _ = closed.send(());
    }
    if !worker.was_idle {
        sessions.keep_later(worker.session, worker.pending_outcomes, worker.queue, worker.commands);
    }
}

impl Worker {
    async fn work(&mut self) {
        while let Some(run) = self.next_run().await {
            self.work_on(&run);
            if let Some(permit) = self.permit(&run).await {
                self.permit = Some(permit);
                if let Err(error) = self.perform(&run).await {
                    self.not_kept(&run, &error).await;
                }
            }
            self.work_on_nothing();
            if self.ends() || self.sessions.stopping.is_cancelled() {
                return;
            }
        }
    }

    pub(super) fn work_on(&mut self, run: &str) {
        (self.current, self.is_cancelling) = (Some(run.to_owned()), false);
    }

    pub(super) fn work_on_nothing(&mut self) {
        (self.permit, self.engine_permit, self.current) = (None, None, None);
        self.askers.run_ended();
    }

    /// Whether this worker can do nothing more in the session.
    fn ends(&self) -> bool {
        self.closed.is_some()
            || !self.pending_outcomes.is_empty()
            || self.is_stuck
            || !*self.holds.borrow()
    }

    /// Ends a run whose events cannot be stored. It is interrupted rather than failed: it can be resumed.
    pub(super) async fn not_kept(&mut self, run: &str, error: &ApiError) {
        tracing::error!(run, %error, "a run could not be stored");
        self.leave_engine();
        let message = &error.detail().message;
        if error::is_of_store(error) && self.is_cancelling {
            // A run with a request to cancel is cancelled, and not resumed.
            return self.end(run, RunState::Cancelled, cancelled_outcome()).await;
        }
        if error::is_of_store(error) {
            let message = format!("the server could not write what this run did: {message}");
            return self.interrupt_later(run, &message);
        }
        let failure = Failure::new("not_kept", message.clone());
        let outcome = Outcome { error: Some(failure), ..Outcome::default() };
        self.end(run, RunState::Failed, outcome).await;
    }

    /// Ends the engine without withdrawing its requests: they can be answered when the run is resumed.
    pub(super) fn leave_engine(&mut self) {
        self.askers.abandon();
        self.engine = None;
    }

    /// Marks a run as interrupted that has ended for this worker, which cannot write to the log.
    pub(super) fn interrupt_later(&mut self, run: &str, why: &str) {
        let failure = Failure::new("interrupted", format!("{why}; it can be resumed"));
        let outcome = Outcome { error: Some(failure), ..Outcome::default() };
        let ended = self.ended(run, RunState::Interrupted, outcome);
        self.pending_outcomes.push(ended);
    }

    /// Leaves a run that could not begin; it begins when the store can write.
    pub(super) fn begin_later(&mut self, run: &str) {
        self.queue.push_front(run.to_owned());
        self.is_stuck = true;
    }

    /// The next run of the queue. `None` when there was none for a while.
    async fn next_run(&mut self) -> Option<String> {
        let idle = tokio::time::sleep(self.sessions.config.limits.idle);
        tokio::pin!(idle);
        loop {
            if self.ends() {
                return None;
            }
            if let Some(run) = self.queue.pop_front() {
                return Some(run);
            }
            // An idle engine ends for a run of the same user that waits for a permit.
            let permit = self.engine.as_ref().map(|engine| &engine.permit);
            let wanted = UserPermit::wanted(permit.filter(|_| !self.agents_work));
            let is_unneeded = tokio::select! {
                command = self.commands.recv() => { self.take(command?).await; false }
                said = next_message(&mut self.engine) => { self.heard(said).await; false }
                () = &mut idle => true,
                () = wanted.wanted() => true,
                () = self.sessions.stopping.cancelled() => return None,
                changed = self.holds.changed() => {
                    if changed.is_err() || !*self.holds.borrow() { return None }
                    false
                }
            };
            if is_unneeded && self.sessions.let_go(&self.session.id, &mut self.commands) {
                self.was_idle = true;
                return None;
            }
        }
    }

    /// Processes a command between two runs.
    async fn take(&mut self, command: Command) {
        match command {
            Command::Run(run) => self.enqueue(run),
            Command::Orphans(runs) => self.adopt(runs).await,
            Command::Push { taken, .. } => {
                let _ = taken.send(None);
            }
            Command::Cancel(run) => self.cancel_queued(&run).await,
            Command::Rewind(rewind) => self.rewind(rewind).await,
            Command::Engine(wants) => {
                self.give_engine(wants).await;
                if self.current.is_none() {
                    // An engine that could not be started must not hold a permit.
                    self.engine_permit = None;
                }
            }
            Command::Close(closed) => self.closed = Some(closed),
        }
    }

    /// Waits for a permit among all sessions, and for an engine if the user has reached the limit; meanwhile the run is
    /// queued and can be cancelled.
    async fn permit(&mut self, run: &str) -> Option<OwnedSemaphorePermit> {
        let (sessions, owner) = (Arc::clone(&self.sessions), self.session.owner.clone());
        let needs_engine = self.engine.is_none();
        let acquired = async move {
            // First, so that a run that waits for an engine does not block other users.
            let engine =
                if needs_engine { Some(sessions.engines.wait(&owner).await) } else { None };
            (engine, Arc::clone(&sessions.permits).acquire_owned().await.ok())
        };
        tokio::pin!(acquired);
        loop {
            tokio::select! {
                biased;
                // A run that has not begun when the server stops stays queued.
                () = self.sessions.stopping.cancelled() => return None,
                (engine, permit) = &mut acquired => {
                    // An engine may have been started for something else meanwhile.
                    self.engine_permit = engine.filter(|_| self.engine.is_none());
                    return permit;
                }
                command = self.commands.recv() => match command? {
                    Command::Cancel(cancelled) if cancelled == run => {
                        self.end(run, RunState::Cancelled, cancelled_outcome()).await;
                        return None;
                    }
                    Command::Rewind(rewind) => {
                        let _ = rewind.answer.try_send(Err(busy()));
                    }
                    other => self.take(other).await,
                },
            }
            if self.closed.is_some() {
                self.queue.push_front(run.to_owned());
                return None;
            }
        }
    }

    /// Cancels the queued runs of a session that is closed.
    async fn cancel_rest(&mut self) {
        self.sessions.gone_closed(&self.session.id, &mut self.commands);
        while let Ok(command) = self.commands.try_recv() {
            self.take(command).await;
        }
        for run in std::mem::take(&mut self.queue) {
            self.end(&run, RunState::Cancelled, cancelled_outcome()).await;
        }
    }

    /// Ends a run that is not the active one: a queued one, or one without a worker.
    pub(super) async fn cancel_queued(&mut self, run: &str) {
        self.queue.retain(|queued| queued != run);
        if self.is_live(run).await.is_some() {
            self.end(run, RunState::Cancelled, cancelled_outcome()).await;
        }
    }

    pub(super) fn enqueue(&mut self, run: String) {
        if self.current.as_ref() != Some(&run) && !self.queue.contains(&run) {
            self.queue.push_back(run);
        }
    }

    /// Handles runs of this session without a worker: queued ones are queued again, others were interrupted.
    pub(super) async fn adopt(&mut self, runs: Vec<String>) {
        for run in runs {
            if self.current.as_ref() == Some(&run) {
                continue;
            }
            match self.is_live(&run).await {
                Some(RunState::Queued) => self.enqueue(run),
                Some(_) => {
                    let why = "the server no longer works on this run; it can be resumed";
                    let error = Some(Failure::new("interrupted", why));
                    let outcome = Outcome { error, ..Outcome::default() };
                    self.end(&run, RunState::Interrupted, outcome).await;
                }
                None => {}
            }
        }
    }

    /// The state of a run of this session, unless it has ended.
    async fn is_live(&self, run: &str) -> Option<RunState> {
        let (run, _) = self.find(run).await.ok()?;
        let run = self.sessions.as_it_is(run);
        (run.session == self.session.id && !run.state.is_over()).then_some(run.state)
    }

    /// Writes to the log. While the disk is full, retries as long as the lease is held.
    pub(super) async fn write(
        &mut self,
        events: Vec<NewEvent>,
        puts: Vec<Put>,
    ) -> Result<(), Error> {
        // Renewing may succeed where appending fails. A cancelled run must not wait longer than for a lost lease.
        let last = Instant::now() + self.sessions.log_writers.lease * 4 / 5;
        loop {
            let error = match self.writer.append(events.clone(), puts.clone()).await {
                Err(error @ (Error::Full { .. } | Error::Failed { .. })) => error,
                written => return written.map(drop),
            };
            if !*self.holds.borrow() || Instant::now() >= last {
                return Err(error);
            }
            tokio::select! {
                () = tokio::time::sleep(AGAIN) => {}
                // Checked in the next iteration.
                _ = self.holds.changed() => {}
                () = self.sessions.stopping.cancelled() => return Err(error),
            }
        }
    }

    /// The engine, started if there is none.
    pub(super) async fn connect(&mut self) -> Fallible<&mut Engine> {
        // A user may have changed the folder of the session.
        if let Some((session, _)) = self.sessions.records.find::<Session>(&self.session.id).await? {
            self.session.setup = session.setup;
        }
        let mut stamp = String::new();
        for shape in &self.sessions.engine_setups {
            stamp.push_str(&shape.stamp(&self.session).await?);
        }
        if self.engine.as_ref().is_some_and(|engine| engine.stamp != stamp) {
            self.end_engine().await;
        }
        if self.engine.is_none() {
            let base = options::of(&self.sessions.config, &self.session, self.behind.take());
            let mut engine_parts = EngineParts::new(base, self.askers.waiters());
            for shape in &self.sessions.engine_setups {
                shape.set_up(&self.session, &mut engine_parts).await?;
            }
            let EngineParts {
                mut options, guards, nobody_asked, skill_allowed, people_only, ..
            } = engine_parts;
            options.permissions.allowed.extend(skill_allowed);
            self.askers.engine(&self.session, &options, people_only);
            let permit = match self.engine_permit.take() {
                Some(permit) => permit,
                None => self.sessions.engines.take(&self.session.owner)?,
            };
            let asking = self.askers.listen(options, self.sessions.config.questions, nobody_asked);
            let client = Client::connect(asking).await.map_err(perform::unstarted)?;
            self.engine = Some(Engine { client, stamp, permit, _guards: guards, _end: NotesEnd });
            self.agents_work = false;
            self.meter.engine_starts();
            self.write(vec![event::engine()?], Vec::new()).await?;
        }
        self.engine.as_mut().ok_or_else(ApiError::internal)
    }

    /// Ends the engine so that another one can be started in its place, with the same permit.
    pub(super) async fn end_engine(&mut self) {
        let Some(Engine { client, permit, _guards, _end, .. }) = self.engine.take() else { return };
        // An engine that cannot be closed cleanly is ended anyway.
        let _ = client.close().await;
        self.engine_permit = Some(permit);
    }

    /// Changes the run's record and writes the event to the log, in one step.
    pub(super) async fn note(&mut self, run: &str, change: impl Fn(&mut Run)) -> Fallible<Run> {
        let (mut run, version) = self.find(run).await?;
        change(&mut run);
        let put = run.put(ostler_store::Expected::Version(version))?;
        self.write(vec![event::state(&run)?], vec![put]).await?;
        self.sessions.changed(&run);
        Ok(run)
    }

    pub(super) async fn find(&self, run: &str) -> Fallible<(Run, u64)> {
        let found = self.sessions.records.find::<Run>(run).await?;
        found.ok_or_else(|| error::not_found("run", run))
    }

    /// The same for a run that has ended, with its usage. Returns the state that was written.
    async fn note_end(&mut self, ended: &Ended) -> Fallible<RunState> {
        let ended = &self.sessions.unless_cancelled(ended).await;
        for _ in 0..TRIES {
            let (mut run, version) = self.find(&ended.run).await?;
            ended.note(&mut run);
            let mut puts = vec![run.put(ostler_store::Expected::Version(version))?];
            puts.extend(self.sessions.end_puts(ended, &run).await?);
            let events = self.sessions.end_events(&run).await?;
            match self.writer.append(events, puts).await {
                Err(error) if tally::is_behind(&error) => {}
                written => {
                    written?;
                    self.sessions.changed(&run);
                    return Ok(run.state);
                }
            }
        }
        Err(error::internal(format!("the record of {} changes too fast", self.session.id)))
    }

    /// The outcome of a run, with its usage.
    fn ended(&mut self, run: &str, state: RunState, mut outcome: Outcome) -> Ended {
        // The final text is redacted like every text of the agent.
        let said = outcome.error.as_mut().map(|error| &mut error.message);
        for text in outcome.result.as_mut().into_iter().chain(said) {
            *text = self.sessions.redactor.text(text).into_owned();
        }
        // A run that was cut off has no result that says it.
        if outcome.sandbox.is_none() && self.engine.is_some() {
            outcome.sandbox = self.about.sandbox.clone().map(perform::without_lists);
        }
        let used = self.meter.finish(run, |text| self.sessions.redacted(text));
        // Engines report the total since their start.
        outcome.cost_usd = used.spent().cost_usd;
        Ended { run: run.to_owned(), state, outcome, at: self.sessions.clock.now(), used }
    }

    /// Ends a run.
    pub(super) async fn end(&mut self, run: &str, state: RunState, outcome: Outcome) {
        if let Err(error) = self.write_held(Some(run)).await {
            tracing::warn!(run, %error, "the last deltas of a run could not be stored");
        }
        let ended = self.ended(run, state, outcome);
        match self.note_end(&ended).await {
            Ok(state) => self.sessions.settle_end(run, state).await,
            Err(error) => {
                tracing::error!(run, %error, "the end of a run could not be stored");
                self.pending_outcomes.push(ended);
            }
        }
    }
}

/// The next message of an engine; never returns without an engine.
pub(super) async fn next_message(
    engine: &mut Option<Engine>,
) -> Option<Result<Message, ostler::Error>> {
    match engine {
        Some(engine) => engine.client.next().await,
        None => std::future::pending().await,
    }
}

pub(super) fn cancelled_outcome() -> Outcome {
    let error = Failure::new("cancelled", "the run was cancelled");
    Outcome { error: Some(error), ..Outcome::default() }
}
