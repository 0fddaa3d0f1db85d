//! The worker of a session: one at a time, runs what is queued, and ends when there was nothing to do for a while.

use std::any::Any;
use std::collections::VecDeque;
use std::sync::Arc;

use ostler::{Client, Message};
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot, watch};

use super::about::{About, WantsEngine};
use super::ask::Askers;
use super::meter::Meter;
use super::options::Shaped;
use super::record::{Attached, Failure, Outcome, Run, RunState, Session};
use super::rewind::{Rewind, busy};
use super::unkept::Ended;
use super::veil::Veil;
use super::{Hub, TRIES, event, options, perform, tally};
use crate::fault::{self, ApiError, Fallible};
use crate::log::Writer;
use crate::records::Kept as _;
use crate::scribe::LEASE;

/// What a worker is told.
pub(super) enum Command {
    /// A run has been queued.
    Run(String),
    /// More is said in the run that works; the answer is that run, or `None` if there is none.
    Push { text: String, taken: oneshot::Sender<Option<String>> },
    /// A run is to end.
    Cancel(String),
    /// Files are to be put back.
    Rewind(Rewind),
    /// Somebody wants to ask the engine something.
    Engine(WantsEngine),
    /// Everything is to end, and the session is to be forgotten.
    Close(oneshot::Sender<()>),
}

pub(super) struct Worker {
    pub(super) hub: Arc<Hub>,
    pub(super) session: Session,
    pub(super) writer: Writer,
    pub(super) commands: mpsc::Receiver<Command>,
    pub(super) queue: VecDeque<String>,
    pub(super) askers: Askers,
    pub(super) veil: Veil,
    pub(super) meter: Meter,
    /// What the engine last said about itself.
    pub(super) about: About,
    pub(super) engine: Option<Engine>,
    /// The message behind which the next engine goes on, if not at the end.
    pub(super) behind: Option<String>,
    /// Subagents work in the background, and will report.
    pub(super) agents_work: bool,
    /// `false` when the lease is lost: nothing may be written or done any more.
    pub(super) holds: watch::Receiver<bool>,
    pub(super) closed: Option<oneshot::Sender<()>>,
    /// The place among the runs that may work at the same time. A run that waits for people gives it up.
    pub(super) permit: Option<OwnedSemaphorePermit>,
    /// How runs ended that could not be written down. Then nothing else can be done either.
    pub(super) unkept: Vec<Ended>,
}

/// A running engine with what it needs.
pub(super) struct Engine {
    pub(super) client: Client,
    /// What it was fitted for.
    stamp: String,
    /// Dropped after the client, because fields are dropped in their order.
    _guards: Vec<Box<dyn Any + Send + Sync>>,
}

/// Takes over a session and works until there is nothing to do.
pub(super) async fn run(hub: Arc<Hub>, session: Session, commands: mpsc::Receiver<Command>) {
    let id = session.id.clone();
    let writer = match hub.scribe.open(&id).await {
        Ok(writer) => writer,
        Err(error) => {
            tracing::warn!(session = id, %error, "a session could not be taken over");
            hub.fail_queued(commands, &error).await;
            hub.gone(&id);
            return;
        }
    };
    let (held, holds) = watch::channel(true);
    let renewing = tokio::spawn(renew(writer.clone(), held));
    let askers = Askers::new(Arc::clone(&hub.approvals), &session);
    let mut worker = Worker {
        hub: Arc::clone(&hub),
        session,
        writer,
        commands,
        queue: VecDeque::new(),
        askers,
        veil: Veil::new(hub.redactor.clone()),
        meter: Meter::default(),
        about: About::default(),
        engine: None,
        behind: None,
        agents_work: false,
        holds,
        closed: None,
        permit: None,
        unkept: Vec::new(),
    };
    worker.work().await;
    if worker.closed.is_some() {
        worker.cancel_rest().await;
    }
    if let Some(engine) = worker.engine.take() {
        // What it still had to say nobody waits for.
        let _ = engine.client.close().await;
    }
    renewing.abort();
    hub.scribe.close(&id).await;
    if let Some(closed) = worker.closed.take() {
        let _ = closed.send(());
    }
    if !worker.unkept.is_empty() {
        hub.keep_later(worker.session, worker.unkept, worker.queue, worker.commands);
    }
}

/// Keeps the session, and says when it is lost.
async fn renew(writer: Writer, held: watch::Sender<bool>) {
    loop {
        tokio::time::sleep(LEASE / 3).await;
        // Once more before it runs out, if the first time fails.
        if writer.renew(LEASE).await.is_err() && writer.renew(LEASE).await.is_err() {
            let _ = held.send(false);
            return;
        }
    }
}

impl Worker {
    async fn work(&mut self) {
        while let Some(run) = self.next_run().await {
            let Some(permit) = self.permit(&run).await else { continue };
            self.permit = Some(permit);
            if let Err(error) = self.perform(&run).await {
                tracing::error!(run, %error, "a run could not be kept");
                self.engine = None;
                let failure = Failure::new("not_kept", error.detail().message.clone());
                let outcome = Outcome { error: Some(failure), ..Outcome::default() };
                self.end(&run, RunState::Failed, outcome).await;
            }
            self.permit = None;
            let is_stopping = self.hub.stopping.is_cancelled();
            let ends = is_stopping || self.closed.is_some() || !self.unkept.is_empty();
            if ends || !*self.holds.borrow() {
                return;
            }
        }
    }

    /// The next run of the queue. `None` when there was none for a while.
    async fn next_run(&mut self) -> Option<String> {
        let idle = tokio::time::sleep(self.hub.config.limits.idle);
        tokio::pin!(idle);
        loop {
            if self.closed.is_some() || !self.unkept.is_empty() {
                return None;
            }
            if let Some(run) = self.queue.pop_front() {
                return Some(run);
            }
            tokio::select! {
                command = self.commands.recv() => self.take(command?).await,
                said = next_message(&mut self.engine) => self.heard(said).await,
                () = &mut idle => if self.hub.let_go(&self.session.id, &mut self.commands) { return None },
                () = self.hub.stopping.cancelled() => return None,
                changed = self.holds.changed() => if changed.is_err() || !*self.holds.borrow() { return None },
            }
        }
    }

    /// Between two runs.
    async fn take(&mut self, command: Command) {
        match command {
            Command::Run(run) => self.queue.push_back(run),
            Command::Push { taken, .. } => {
                let _ = taken.send(None);
            }
            Command::Cancel(run) => self.cancel_queued(&run).await,
            Command::Rewind(rewind) => self.rewind(rewind).await,
            Command::Engine(wants) => self.give_engine(wants).await,
            Command::Close(closed) => self.closed = Some(closed),
        }
    }

    /// Something that goes on between two runs, such as a command in the background.
    async fn heard(&mut self, said: Option<Result<Message, ostler::Error>>) {
        match said {
            Some(Ok(message)) => {
                if let Ok(told) = self.veil.events(None, message)
                    && !told.is_empty()
                {
                    // A lost lease is noticed by itself.
                    let _ = self.writer.append(told, Vec::new()).await;
                }
            }
            Some(Err(_)) | None => self.engine = None,
        }
    }

    /// Waits in line with all other sessions; meanwhile the run can be cancelled.
    async fn permit(&mut self, run: &str) -> Option<OwnedSemaphorePermit> {
        let permits = Arc::clone(&self.hub.permits);
        let acquired = permits.acquire_owned();
        tokio::pin!(acquired);
        loop {
            tokio::select! {
                biased;
                // What has not begun when the server ends stays in line.
                () = self.hub.stopping.cancelled() => return None,
                permit = &mut acquired => return permit.ok(),
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

    /// Nothing that waits in a session that is closed will ever begin.
    async fn cancel_rest(&mut self) {
        self.hub.gone_closed(&mut self.commands);
        while let Ok(command) = self.commands.try_recv() {
            self.take(command).await;
        }
        for run in std::mem::take(&mut self.queue) {
            self.end(&run, RunState::Cancelled, cancelled_outcome()).await;
        }
    }

    pub(super) async fn cancel_queued(&mut self, run: &str) {
        let before = self.queue.len();
        self.queue.retain(|queued| queued != run);
        if self.queue.len() < before {
            self.end(run, RunState::Cancelled, cancelled_outcome()).await;
        }
    }

    /// The engine, started if there is none.
    pub(super) async fn connect(&mut self) -> Fallible<&mut Engine> {
        // Somebody may have sent the agent to another folder.
        if let Some((session, _)) = self.hub.records.find::<Session>(&self.session.id).await? {
            self.session.setup = session.setup;
        }
        let mut stamp = String::new();
        for shape in &self.hub.shapes {
            stamp.push_str(&shape.stamp(&self.session).await?);
        }
        if let Some(old) = self.engine.take_if(|engine| engine.stamp != stamp) {
            let _ = old.client.close().await;
        }
        if self.engine.is_none() {
            let base = options::of(&self.hub.config, &self.session, self.behind.take());
            let mut shaped = Shaped::new(base, self.askers.waiters());
            for shape in &self.hub.shapes {
                shape.shape(&self.session, &mut shaped).await?;
            }
            let Shaped { mut options, guards, nobody_asked, skill_allowed, people_only, .. } =
                shaped;
            options.permissions.allowed.extend(skill_allowed);
            self.askers.engine(&self.session, &options, people_only);
            let asking = self.askers.listen(options, self.hub.config.questions, nobody_asked);
            let client = Client::connect(asking).await.map_err(perform::unstarted)?;
            self.engine = Some(Engine { client, stamp, _guards: guards });
            self.agents_work = false;
            self.meter.engine_starts();
            self.writer.append(vec![event::engine()?], Vec::new()).await?;
        }
        self.engine.as_mut().ok_or_else(ApiError::internal)
    }

    /// Changes the run's record and says so in the log, in one step.
    pub(super) async fn note(&mut self, run: &str, change: impl Fn(&mut Run)) -> Fallible<Run> {
        let (mut run, version) = self.find(run).await?;
        change(&mut run);
        let put = run.put(ostler_store::Expected::Version(version))?;
        self.writer.append(vec![event::state(&run)?], vec![put]).await?;
        self.hub.changed(&run);
        Ok(run)
    }

    async fn find(&self, run: &str) -> Fallible<(Run, u64)> {
        let found = self.hub.records.find::<Run>(run).await?;
        found.ok_or_else(|| fault::not_found("run", run))
    }

    /// The same for a run that is over, with what it used.
    async fn note_end(&mut self, ended: &Ended) -> Fallible<()> {
        for _ in 0..TRIES {
            let (mut run, version) = self.find(&ended.run).await?;
            ended.note(&mut run);
            let mut puts = vec![run.put(ostler_store::Expected::Version(version))?];
            puts.extend(self.hub.end_puts(ended, &run).await?);
            match self.writer.append(vec![event::state(&run)?], puts).await {
                Err(error) if tally::is_behind(&error) => {}
                written => {
                    written?;
                    self.hub.changed(&run);
                    return Ok(());
                }
            }
        }
        Err(fault::internal(format!("the record of {} changes too fast", self.session.id)))
    }

    /// A run is over.
    pub(super) async fn end(&mut self, run: &str, state: RunState, mut outcome: Outcome) {
        // The last words are words of the agent like all before them.
        let said = outcome.error.as_mut().map(|error| &mut error.message);
        for text in outcome.result.as_mut().into_iter().chain(said) {
            *text = self.hub.redactor.text(text).into_owned();
        }
        let used = self.meter.finish(run, |text| self.hub.redacted(text));
        // Engines tell what they have used since they started.
        outcome.cost_usd = used.spent().cost_usd;
        let ended = Ended { run: run.to_owned(), state, outcome, at: self.hub.clock.now(), used };
        if let Err(error) = self.note_end(&ended).await {
            tracing::error!(run, %error, "the end of a run could not be kept");
            self.unkept.push(ended);
            return;
        }
        self.hub.approvals.withdraw_all(run).await;
        // Most have none, and what stays behind is only in the way.
        let _ = self.hub.records.remove::<Attached>(run).await;
    }
}

/// The next message of an engine; never if there is none.
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
