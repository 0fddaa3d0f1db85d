//! Sessions and their runs: one worker per session, one run at a time, and everything is in the log before clients see
//! it.

pub mod about;
pub mod ask;
mod background;
mod cancel_requests;
mod cut_off;
pub mod day_usage;
pub mod edits;
pub mod fork;
pub mod idempotency;
mod lease;
mod meter;
pub mod options;
mod pending_outcomes;
mod perform;
mod recover;
pub mod rewind;
pub mod session_totals;
mod stream_redactor;
mod tally;
mod time;
mod worker;

use parking_lot::Mutex;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use ostler::proto::api::ContentBlock;
use ostler::{CancellationToken, PermissionMode};
use ostler_base::error::{self, ApiError, Fallible};
use ostler_base::ids;
use ostler_door::permits::UserLimit;
use ostler_door::users::Caller;
use ostler_store::{Expected, Filter};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use tokio::sync::{Semaphore, broadcast, mpsc, oneshot};
use tokio_util::task::TaskTracker;

use self::options::EngineSetup;
use self::worker::Command;
use crate::approvals::Approvals;
use crate::clock::Clock;
use crate::config::Config;
use crate::confine::redact::Redactor;
use crate::log::Log;
use crate::log_writers::{self, LogWriters};
use crate::metrics::Metrics;
use crate::model::event;
use crate::model::run::{Attached, Begin, Failure, Outcome, Run, RunState, Session, Setup};
use crate::model::tally::{Tally, place};
use crate::records::{Kept as _, Records};

/// How many commands may wait for a worker.
const MAILBOX: usize = 64;
/// How many notifications of ended runs a receiver may miss.
const NEWS: usize = 1_024;
/// How often a command is sent again if the worker is just ending.
const TRIES: usize = 10;

/// Everything that sessions share.
pub struct Sessions {
    pub config: Arc<Config>,
    pub records: Records,
    pub log: Log,
    pub log_writers: Arc<LogWriters>,
    pub approvals: Arc<Approvals>,
    pub clock: Clock,
    pub metrics: Arc<Metrics>,
    redactor: Redactor,
    permits: Arc<Semaphore>,
    /// The engines of each user: those of active runs, those that wait for users, idle ones, and those started to
    /// suggest files.
    engines: UserLimit,
    live: Mutex<HashMap<String, mpsc::Sender<Command>>>,
    /// Extensions of the engine's options, applied in order.
    engine_setups: Vec<Arc<dyn EngineSetup>>,
    /// Notifications of ended runs.
    news: broadcast::Sender<Arc<Run>>,
    /// Notifications of changed runs.
    changes: broadcast::Sender<Arc<Run>>,
    tracker: TaskTracker,
    stopping: CancellationToken,
    /// Outcomes of runs that are not stored yet.
    pending_outcomes: Mutex<HashMap<String, pending_outcomes::Ended>>,
    /// Runs with a request to cancel that have not ended.
    cancelling: Mutex<HashSet<String>>,
    /// Locked while usage is added to the sums of days.
    counting: tokio::sync::Mutex<()>,
    /// Interrupted runs, for the task that resumes those that were answered.
    interrupted: (mpsc::UnboundedSender<String>, Mutex<Option<mpsc::UnboundedReceiver<String>>>),
}

/// The parameters of a new run.
#[derive(Clone, Debug, Default)]
pub struct NewRun {
    pub prompt: String,
    /// The whole prompt, if it has more than text.
    pub content: Option<Vec<ContentBlock>>,
    /// The prompt as messages of the client, if it has its own.
    pub said: Vec<Value>,
    /// Whether the prompt goes to the active run, if there is one.
    pub pushes: bool,
    pub begin: Begin,
    /// The id of the run, if several requests must create it only once.
    pub id: Option<String>,
    /// The client's idempotency key: a repetition returns the run of the first request.
    pub key: Option<String>,
    /// Whether it is an error if a run with that id exists: the first request wins.
    pub is_first: bool,
    /// Whether a hook or a schedule starts it.
    pub unattended: bool,
}

impl NewRun {
    /// A prompt that is only text.
    pub fn text(prompt: impl Into<String>) -> Self {
        Self { prompt: prompt.into(), ..Self::default() }
    }
}

/// The parts of [`Sessions`].
pub struct Parts {
    pub config: Arc<Config>,
    pub records: Records,
    pub log: Log,
    pub log_writers: Arc<LogWriters>,
    pub approvals: Arc<Approvals>,
    pub clock: Clock,
    pub metrics: Arc<Metrics>,
    pub redactor: Redactor,
    pub engine_setups: Vec<Arc<dyn EngineSetup>>,
    pub engines: UserLimit,
}

impl Sessions {
    pub fn new(parts: Parts) -> Arc<Self> {
        let Parts {
            config,
            records,
            log,
            log_writers,
            approvals,
            clock,
            metrics,
            redactor,
            engine_setups,
            engines,
        } = parts;
        redactor.add_variables(std::env::vars().chain(config.env.clone()));
        let permits = Arc::new(Semaphore::new(config.limits.concurrent_runs));
        let (interrupt, interrupted) = mpsc::unbounded_channel();
        Arc::new(Self {
            interrupted: (interrupt, Mutex::new(Some(interrupted))),
            config,
            records,
            log,
            log_writers,
            approvals,
            clock,
            metrics,
            redactor,
            permits,
            engines,
            live: Mutex::default(),
            engine_setups,
            news: broadcast::channel(NEWS).0,
            changes: broadcast::channel(NEWS).0,
            tracker: TaskTracker::new(),
            stopping: CancellationToken::new(),
            pending_outcomes: Mutex::default(),
            cancelling: Mutex::default(),
            counting: tokio::sync::Mutex::default(),
        })
    }

    /// Notifications of runs of all users that end from now on.
    pub fn news(&self) -> broadcast::Receiver<Arc<Run>> {
        self.news.subscribe()
    }

    /// Notifications of runs of all users that change from now on.
    pub fn changes(&self) -> broadcast::Receiver<Arc<Run>> {
        self.changes.subscribe()
    }

    /// Redacts the known secrets in a text.
    pub fn redacted(&self, text: &str) -> String {
        self.redactor.text(text).into_owned()
    }

    /// Notifies that the state of a run changed, and that this is on disk.
    fn changed(&self, run: &Run) {
        self.metrics.run_changed(run.state);
        self.tell_change(run);
        if run.state.is_over() {
            let _ = self.news.send(Arc::new(run.clone()));
        }
    }

    /// Notifies clients of the state of a run.
    fn tell_change(&self, run: &Run) {
        // There may be no receivers.
        let _ = self.changes.send(Arc::new(run.clone()));
    }

    /// Creates a session.
    pub async fn create(&self, owner: &str, title: &str, setup: Setup) -> Fallible<Session> {
        let session = self.session(ids::new("session"), owner, title, setup)?;
        self.records.create(&session).await?;
        Ok(session)
    }

    /// The session of a user with this key, created if there is none. Two simultaneous calls get the same one.
    pub async fn by_key(
        &self,
        owner: &str,
        key: &str,
        title: &str,
        setup: Setup,
    ) -> Fallible<Session> {
        let id = keyed(owner, key);
        if let Some((session, _)) = self.records.find::<Session>(&id).await? {
            return Ok(session);
        }
        let session = Session {
            key: Some(key.to_owned()),
            begins: self.log.head(&log_writers::stream(&id)?).await?,
            ..self.session(id.clone(), owner, title, setup)?
        };
        match self.records.create(&session).await {
            Err(error) if error.detail().code == "changed" => {
                let found = self.records.find::<Session>(&id).await?;
                found.map(|(session, _)| session).ok_or_else(|| error::not_found("session", &id))
            }
            created => created.map(|()| session),
        }
    }

    /// The session of a user with this key.
    pub async fn keyed(&self, owner: &str, key: &str) -> Fallible<Option<Session>> {
        Ok(self.records.find::<Session>(&keyed(owner, key)).await?.map(|(session, _)| session))
    }

    /// The active run of a session; if there are only queued ones, the first.
    pub async fn live_run(&self, session: &str) -> Fallible<Option<Run>> {
        // All states in one query: with one query per state, a run that just changes could be missed in both.
        let live = ["queued", "running", "waiting"].map(str::to_owned).to_vec();
        let filter = Filter {
            field: Some(("session".to_owned(), session.to_owned())),
            any_of: Some(("state".to_owned(), live)),
            ..Filter::default()
        };
        let mut runs: Vec<Run> = self.records.all(filter).await?;
        runs.sort_by_key(|run| run.created);
        let mut runs = runs.into_iter().map(|run| self.as_it_is(run));
        Ok(runs.find(|run| !run.state.is_over()))
    }

    /// Runs of a session that were withdrawn before they began. Their prompts were never sent to the engine.
    pub async fn unsaid(&self, session: &str) -> Fallible<HashSet<String>> {
        let filter = Filter {
            field: Some(("session".to_owned(), session.to_owned())),
            any_of: Some(("state".to_owned(), vec!["cancelled".to_owned()])),
            ..Filter::default()
        };
        let mut runs: Vec<Run> = self.records.all(filter).await?;
        for run in self.over_but_not_written() {
            runs.extend(self.records.find::<Run>(&run).await?.map(|(run, _)| self.as_it_is(run)));
        }
        runs.retain(|run| run.session == session && run.state == RunState::Cancelled);
        let unsaid = runs.into_iter().filter(|run| run.started.is_none());
        Ok(unsaid.map(|run| run.id).collect())
    }

    /// The number of sessions with a worker.
    pub fn working(&self) -> usize {
        self.live.lock().len()
    }

    fn session(&self, id: String, owner: &str, title: &str, setup: Setup) -> Fallible<Session> {
        self.check_setup(&setup)?;
        let title: String = title.chars().take(200).collect();
        let created = self.clock.now();
        let mut session = Session {
            begun: place(created, &id),
            id,
            owner: owner.to_owned(),
            title: String::new(),
            key: None,
            created,
            begins: 0,
            engine_session: None,
            setup,
            origin: None,
            forked_from: None,
            tally: Tally::default(),
            place: String::new(),
            search: String::new(),
        };
        session.call(&title);
        session.touch(created);
        Ok(session)
    }

    /// Refuses a setup that the operator does not allow.
    pub(crate) fn check_setup(&self, setup: &Setup) -> Fallible<()> {
        let mode = setup.mode.clone().unwrap_or(PermissionMode::Default);
        if self.config.permits(&mode) {
            return Ok(());
        }
        let message = "this server does not allow bypassPermissions";
        Err(ApiError::forbidden("bypass_not_allowed", message)
            .hint("ask the operator for --allow-bypass, or use another permission mode"))
    }

    /// The session with this id, if the caller may see it.
    pub async fn find(&self, caller: &Caller, id: &str) -> Fallible<Session> {
        match self.records.find::<Session>(id).await? {
            Some((session, _)) if caller.may_see(&session.owner) => Ok(session),
            _ => Err(error::not_found("session", id)),
        }
    }

    /// The run with this id, if the caller may see it.
    pub async fn find_run(&self, caller: &Caller, id: &str) -> Fallible<Run> {
        match self.records.find::<Run>(id).await? {
            Some((run, _)) if caller.may_see(&run.owner) => Ok(self.as_it_is(run)),
            _ => Err(error::not_found("run", id)),
        }
    }

    /// The runs of a session, oldest first.
    pub(crate) async fn runs_of(&self, session: &str) -> Fallible<Vec<Run>> {
        let field = Some(("session".to_owned(), session.to_owned()));
        let mut runs: Vec<Run> = self.records.all(Filter { field, ..Filter::default() }).await?;
        runs.sort_by_key(|run| run.created);
        Ok(runs.into_iter().map(|run| self.as_it_is(run)).collect())
    }

    /// Submits a prompt. When this returns, the run is stored, whatever happens next.
    pub async fn submit(self: &Arc<Self>, session: &Session, new: NewRun) -> Fallible<Run> {
        if self.stopping.is_cancelled() {
            return Err(ApiError::unavailable("stopping", "the server is stopping"));
        }
        if new.prompt.trim().is_empty() && new.content.is_none() {
            return Err(ApiError::invalid("prompt", "the prompt is empty"));
        }
        if let Some(key) = new.key.clone() {
            return self.submit_once(session, &key, NewRun { key: None, ..new }).await;
        }
        if new.pushes
            && let Some(run) = self.push(session, &new.prompt).await?
        {
            self.steered(&session.id, &new.prompt).await;
            return Ok(run);
        }
        if let Some(id) = new.id.as_ref().filter(|_| !new.is_first)
            && let Some((run, _)) = self.records.find::<Run>(id).await?
        {
            return Ok(run);
        }
        self.room_for(&session.owner).await?;
        let run = Run {
            id: new.id.clone().unwrap_or_else(|| ids::new("run")),
            session: session.id.clone(),
            owner: session.owner.clone(),
            prompt: new.prompt.clone(),
            begin: new.begin.clone(),
            state: RunState::Queued,
            unattended: new.unattended,
            background: false,
            created: self.clock.now(),
            started: None,
            ended: None,
            outcome: None,
        };
        self.enqueue(&run, &new).await?;
        self.changed(&run);
        self.command(session, || Command::Run(run.id.clone())).await?;
        Ok(run)
    }

    /// Stores a prompt, its run, and the activity of the session, all or nothing.
    async fn enqueue(&self, run: &Run, new: &NewRun) -> Fallible<()> {
        let prompt = event::prompt(run, new.content.as_deref(), new.said.clone())?;
        let events = vec![prompt, event::state(run)?];
        let mut puts = vec![run.put(Expected::Absent)?];
        if let Some(content) = new.content.clone() {
            let attached = Attached { id: run.id.clone(), owner: run.owner.clone(), content };
            puts.push(attached.put(Expected::Absent)?);
        }
        for _ in 0..TRIES {
            let touched = self.session_put(&run.session, |it| self.prompted(it, new)).await?;
            let Some(touched) = touched else {
                return Err(error::not_found("session", &run.session));
            };
            let puts = puts.iter().cloned().chain([touched]).collect();
            match self.log_writers.write_before_work(&run.session, events.clone(), puts).await {
                Err(error) if tally::is_behind(&error) => {}
                written => return written.map(drop).map_err(Into::into),
            }
        }
        Err(error::internal(format!("the record of {} changes too fast", run.session)))
    }

    async fn push(self: &Arc<Self>, session: &Session, text: &str) -> Fallible<Option<Run>> {
        let Some(worker) = self.worker(&session.id) else { return Ok(None) };
        let (taken, answer) = oneshot::channel();
        if worker.send(Command::Push { text: text.to_owned(), taken }).await.is_err() {
            return Ok(None);
        }
        match answer.await.ok().flatten() {
            Some(run) => Ok(self.records.find::<Run>(&run).await?.map(|(run, _)| run)),
            None => Ok(None),
        }
    }

    /// Refuses a run if too many are queued.
    async fn room_for(&self, owner: &str) -> Fallible<()> {
        let queued = Filter {
            owner: Some(owner.to_owned()),
            field: Some(("state".to_owned(), "queued".to_owned())),
            ..Filter::default()
        };
        let limit = self.config.limits.waiting_runs;
        if self.records.count::<Run>(&queued, limit).await? < limit {
            return Ok(());
        }
        let message = format!("{limit} runs are queued already, which is the maximum");
        Err(ApiError::too_many(message, std::time::Duration::from_secs(5)))
    }

    /// Requests the end of a run. It has ended when its log says so. A run that has ended already does not change.
    ///
    /// When this succeeds, the request is on disk, and the run does not end as interrupted. When the request cannot be
    /// written, the run is stopped anyway, and the caller gets the error.
    pub async fn cancel(self: &Arc<Self>, caller: &Caller, id: &str) -> Fallible<Run> {
        let run = self.find_run(caller, id).await?;
        if run.state.is_over() {
            return self.cancel_over(run).await;
        }
        let session = self.find(caller, &run.session).await?;
        let requested = self.request_cancel(&run).await;
        // After the request: see `cancel_requests`.
        let run = self.find_run(caller, id).await?;
        if run.state.is_over() {
            requested?;
            let run = self.cancel_over(run).await?;
            self.forget_cancel(&run.id).await;
            return Ok(run);
        }
        self.command(&session, || Command::Cancel(run.id.clone())).await?;
        requested.map(|()| run)
    }

    async fn cancel_over(&self, run: Run) -> Fallible<Run> {
        if run.state == RunState::Interrupted {
            return self.cancel_interrupted(run).await;
        }
        self.keep_end(&run).await?;
        Ok(run)
    }

    /// Ends everything in a session, and its engine.
    pub async fn close(&self, session: &str) {
        let Some(worker) = self.worker(session) else { return };
        let (closed, done) = oneshot::channel();
        if worker.send(Command::Close(closed)).await.is_ok() {
            // It may end for another reason at the same moment.
            let _ = done.await;
        }
        self.gone(session);
    }

    /// Removes a session: its run ends, queued runs are cancelled, and clients that follow it are notified.
    pub async fn delete(&self, session: &str) -> Fallible<()> {
        // First, so that nothing new begins. If the rest fails, `sweep` finds it.
        self.records.remove::<Session>(session).await?;
        self.close(session).await;
        for run in self.runs_of(session).await? {
            self.cancel_rest(&run).await?;
        }
        self.approvals.withdraw_session(session).await?;
        self.forget_keys(session).await?;
        self.log_writers.write(session, vec![event::deleted()?], Vec::new()).await?;
        Ok(())
    }

    fn worker(&self, session: &str) -> Option<mpsc::Sender<Command>> {
        self.live.lock().get(session).cloned()
    }

    /// Sends a command to the worker of a session, which is started if there is none.
    async fn command(
        self: &Arc<Self>,
        session: &Session,
        command: impl Fn() -> Command,
    ) -> Fallible<()> {
        for _ in 0..TRIES {
            let worker = self.worker_or_new(session).await?;
            if worker.send(command()).await.is_ok() {
                return Ok(());
            }
            // It has just ended; the next worker receives the command.
            self.gone_if(&session.id, &worker);
        }
        Err(error::internal(format!("the worker of {} ends again and again", session.id)))
    }

    async fn worker_or_new(self: &Arc<Self>, session: &Session) -> Fallible<mpsc::Sender<Command>> {
        if let Some(worker) = self.worker(&session.id) {
            return Ok(worker);
        }
        // The record may be newer, for example with the engine's id of the conversation.
        let found = self.records.find::<Session>(&session.id).await?;
        let session = found.map_or_else(|| session.clone(), |(session, _)| session);
        let mut live = self.live.lock();
        if let Some(worker) = live.get(&session.id) {
            return Ok(worker.clone());
        }
        let (sender, commands) = mpsc::channel(MAILBOX);
        live.insert(session.id.clone(), sender.clone());
        self.tracker.spawn(worker::run(Arc::clone(self), session, commands));
        Ok(sender)
    }

    fn gone(&self, session: &str) {
        self.live.lock().remove(session);
    }

    fn gone_if(&self, session: &str, worker: &mpsc::Sender<Command>) {
        let mut live = self.live.lock();
        if live.get(session).is_some_and(|known| known.same_channel(worker)) {
            live.remove(session);
        }
    }

    /// Whether a worker may end; not if a command has just arrived.
    fn let_go(&self, session: &str, commands: &mut mpsc::Receiver<Command>) -> bool {
        let mut live = self.live.lock();
        if !commands.is_empty() {
            return false;
        }
        live.remove(session);
        commands.close();
        // A command may have been sent between the removal and the closing of the sender.
        commands.is_empty()
    }

    /// Fails the queued runs, because another server has the session.
    async fn fail_queued(
        &self,
        session: &str,
        early: Vec<Command>,
        mut commands: mpsc::Receiver<Command>,
        error: &ApiError,
    ) {
        self.gone_closed(session, &mut commands);
        let message = error.detail().message.clone();
        let mut queued = early;
        while let Ok(command) = commands.try_recv() {
            queued.push(command);
        }
        for command in queued {
            let Command::Run(run) = command else { continue };
            let now = self.clock.now();
            let noted = self.records.update::<Run, ()>(&run, |run| {
                run.state = RunState::Failed;
                run.ended = Some(now);
                let failure = Failure::new("held_elsewhere", message.clone());
                run.outcome = Some(Outcome { error: Some(failure), ..Outcome::default() });
                Ok(())
            });
            match noted.await {
                Ok((run, ())) => self.changed(&run),
                Err(error) => {
                    tracing::error!(run, %error, "a run that could not begin could not be marked");
                }
            }
        }
    }

    fn gone_closed(&self, session: &str, commands: &mut mpsc::Receiver<Command>) {
        let mut live = self.live.lock();
        commands.close();
        // Not a newer worker.
        if live.get(session).is_some_and(mpsc::Sender::is_closed) {
            live.remove(session);
        }
    }

    /// Ends all engines. Active runs are marked as interrupted, and can be resumed.
    pub async fn shut_down(&self) {
        self.stopping.cancel();
        self.tracker.close();
        self.tracker.wait().await;
    }
}

/// An id that only this user's clients can produce.
fn keyed(owner: &str, key: &str) -> String {
    let mut hash = Sha256::new();
    hash.update((owner.len() as u64).to_be_bytes());
    hash.update(owner);
    hash.update(key);
    format!("session_{:.32x}", hash.finalize())
}
