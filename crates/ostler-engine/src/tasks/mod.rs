//! Background tasks: work that goes on while the conversation does.
//!
//! A tool starts one and returns at once. Whatever becomes of the task is told to the host in frames, and to the model
//! in a turn of its own, unless the model has asked or has stopped the task itself. Tasks belong to the session and
//! end with it.

pub(crate) mod frames;
pub mod output;
mod promotion;

use std::collections::{HashMap, VecDeque};
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use futures::FutureExt as _;
use ostler_proto::hook::BackgroundTask;
use ostler_proto::message::system::TaskOutcome;
use ostler_proto::{TaskId, ToolUseId};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

pub use self::promotion::Promotion;
use crate::host::{Host, HostCall};
use crate::tool::{ToolCx, ToolError};

/// More than this is a loop gone wrong.
const MOST_RUNNING: usize = 32;
/// How many finished tasks can still be asked about.
const MOST_FINISHED: usize = 64;
/// How long a task that is stopped may take to come to an end of its own.
const TO_AN_END: Duration = Duration::from_secs(5);

/// The background tasks of a session. Cheap to clone; the last one to go ends what still runs.
#[derive(Clone, Debug, Default)]
pub struct Tasks(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    /// `None` where nobody listens, as in tests of tools.
    host: Option<Host>,
    state: Mutex<State>,
    /// Nothing may go on in the background.
    is_off: bool,
}

#[derive(Debug, Default)]
struct State {
    entries: VecDeque<Entry>,
    // Dropping the set aborts whatever still runs.
    running: JoinSet<()>,
    /// Calls that can be put into the background, and how they hear of it.
    waited_for: HashMap<ToolUseId, CancellationToken>,
}

#[derive(Debug)]
struct Entry {
    task: Task,
    stop: CancellationToken,
    /// Set once the task has ended and the host was told.
    ended: watch::Sender<Option<Ended>>,
    /// The model knows how it ended, or ended it itself.
    known: bool,
    /// The session has heard of the end.
    closed: bool,
}

/// A background task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// Its id.
    pub id: TaskId,
    /// What kind it is, as the wire calls it: `local_bash`.
    pub kind: &'static str,
    /// What it does, in a few words.
    pub description: String,
    /// The command line, if it is one.
    pub command: Option<String>,
    /// The call that started it.
    pub call: ToolUseId,
    /// What it writes goes here.
    pub output_file: PathBuf,
    /// What is known of it besides, if it is a subagent.
    pub agent: Option<AgentTask>,
}

/// A task that is a subagent.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AgentTask {
    /// Its kind.
    pub kind: String,
    /// What it was told.
    pub prompt: String,
    /// Whether the conversation goes on without it.
    pub in_background: bool,
}

impl Task {
    /// A command that is about to be started by a call.
    ///
    /// # Errors
    /// When there is no folder for its output.
    pub fn command(cx: &ToolCx, command: &str, description: &str) -> std::io::Result<Self> {
        let random = uuid::Uuid::new_v4().simple().to_string();
        let id = format!("b{}", &random[..8]);
        let output_file = cx.scratch.folder()?.join(format!("{id}.output"));
        Ok(Self {
            id: id.into(),
            kind: "local_bash",
            description: description.to_owned(),
            command: Some(command.to_owned()),
            call: cx.call.clone(),
            output_file,
            agent: None,
        })
    }

    /// A subagent that is about to be started by a call.
    pub(crate) fn agent(
        cx: &ToolCx,
        id: &str,
        description: &str,
        agent: AgentTask,
    ) -> std::io::Result<Self> {
        Ok(Self {
            id: id.into(),
            kind: "local_agent",
            description: description.to_owned(),
            command: None,
            call: cx.call.clone(),
            output_file: cx.scratch.folder()?.join(format!("{id}.output")),
            agent: Some(agent),
        })
    }

    fn summary(&self) -> BackgroundTask {
        BackgroundTask {
            id: self.id.clone(),
            r#type: if self.agent.is_some() { "subagent" } else { "shell" }.to_owned(),
            status: "running".to_owned(),
            description: self.description.clone(),
            command: self.command.clone(),
            agent_type: self.agent.as_ref().map(|agent| agent.kind.clone()),
            ..BackgroundTask::default()
        }
    }

    /// Whether the conversation goes on while it runs.
    fn is_in_background(&self) -> bool {
        self.agent.as_ref().is_none_or(|agent| agent.in_background)
    }
}

/// How a task came to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// In a word.
    pub outcome: TaskOutcome,
    /// In a sentence; of a subagent its report.
    pub summary: String,
    /// What it took, where that was counted.
    pub effort: Option<Effort>,
}

impl Ended {
    /// An end whose effort nobody counted.
    pub fn new(outcome: TaskOutcome, summary: impl Into<String>) -> Self {
        Self { outcome, summary: summary.into(), effort: None }
    }
}

/// What a task took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effort {
    /// Tokens.
    pub tokens: u64,
    /// Tool calls.
    pub n_tool_calls: u64,
    /// Time.
    pub duration: Duration,
}

impl Tasks {
    pub(crate) fn new(host: Host, is_off: bool) -> Self {
        Self(Arc::new(Inner { host: Some(host), state: Mutex::default(), is_off }))
    }

    /// None yet, for a conversation that begins anew.
    pub(crate) fn anew(&self, host: Host) -> Self {
        Self::new(host, self.0.is_off)
    }

    /// Fails where nothing may go on in the background.
    ///
    /// # Errors
    /// In words for the model.
    pub fn allowed(&self) -> Result<(), ToolError> {
        match self.0.is_off {
            true => Err(ToolError::Refused(
                "background tasks are switched off here (CLAUDE_CODE_DISABLE_BACKGROUND_TASKS): run it and wait"
                    .to_owned(),
            )),
            false => Ok(()),
        }
    }

    /// Starts a task. The work is dropped when the task is stopped, and must take along what it started.
    ///
    /// # Errors
    /// When too many run already.
    pub async fn start(
        &self,
        task: Task,
        work: impl Future<Output = Ended> + Send + 'static,
    ) -> Result<(), ToolError> {
        self.allowed()?;
        let stop = CancellationToken::new();
        self.enter(&task, &stop).await?;
        let inner = Arc::downgrade(&self.0);
        self.0.lock().running.spawn(run(inner, task, stop, None, work));
        Ok(())
    }

    /// Starts a task that comes to an end by itself when `stop` fires.
    pub(crate) async fn start_agent(
        &self,
        task: Task,
        stop: CancellationToken,
        work: impl Future<Output = Ended> + Send + 'static,
    ) -> Result<(), ToolError> {
        self.enter(&task, &stop).await?;
        let inner = Arc::downgrade(&self.0);
        self.0.lock().running.spawn(run(inner, task, stop, Some(TO_AN_END), work));
        Ok(())
    }

    /// Notes a task and tells of it.
    async fn enter(&self, task: &Task, stop: &CancellationToken) -> Result<(), ToolError> {
        let in_background = task.is_in_background();
        {
            let mut state = self.0.lock();
            state.make_room()?;
            state.entries.retain(|entry| entry.task.id != task.id);
            state.entries.push_back(Entry {
                task: task.clone(),
                stop: stop.clone(),
                ended: watch::Sender::new(None),
                // Whoever waits for it hears of its end.
                known: !in_background,
                closed: !in_background,
            });
        }
        // Told before it begins, so that its end cannot be told first.
        let frames = |host: &Host| {
            let changed = in_background.then(|| frames::changed(host, &self.0.tasks()));
            changed.into_iter().chain([frames::started(host, task)]).collect()
        };
        self.0.tell(frames).await;
        Ok(())
    }

    /// A task and, if it has come to that, its end.
    pub fn get(&self, id: &TaskId) -> Option<(Task, Option<Ended>)> {
        let state = self.0.lock();
        let entry = state.find(id)?;
        let ended = entry.ended.borrow().clone();
        Some((entry.task.clone(), ended))
    }

    /// Waits for the end of a task; at once `None` when there is no such task.
    pub async fn wait(&self, id: &TaskId) -> Option<Ended> {
        let mut ended = self.0.lock().find(id)?.ended.subscribe();
        let ended = ended.wait_for(Option::is_some).await.ok()?;
        ended.clone()
    }

    /// The model has been told how a task ended: no turn is needed to tell it again.
    pub fn known(&self, id: &TaskId) {
        if let Some(entry) = self.0.lock().find_mut(id) {
            entry.known = true;
        }
    }

    /// Ends a task, and waits until it has.
    ///
    /// # Errors
    /// In words, when there is no such task or it has ended already.
    pub async fn stop(&self, id: &TaskId) -> Result<Task, String> {
        let task = {
            let mut state = self.0.lock();
            let entry = state.find_mut(id).ok_or_else(|| format!("there is no task {id}"))?;
            if entry.ended.borrow().is_some() {
                return Err(format!("task {id} has ended already"));
            }
            entry.known = true;
            entry.stop.cancel();
            entry.task.clone()
        };
        self.wait(id).await;
        Ok(task)
    }

    /// Whether there are tasks whose end the session has not heard of.
    pub(crate) fn are_open(&self) -> bool {
        self.0.lock().entries.iter().any(|entry| !entry.closed)
    }

    /// What goes on in the background, as hooks are told of it.
    pub(crate) fn summary(&self) -> Vec<BackgroundTask> {
        let tasks = self.0.tasks();
        tasks.iter().filter(|task| task.is_in_background()).map(Task::summary).collect()
    }

    /// Whether subagents work in the background.
    pub(crate) fn have_agents(&self) -> bool {
        let tasks = self.0.tasks();
        tasks.iter().any(|task| task.agent.is_some() && task.is_in_background())
    }

    /// The session has heard of the end of a task. Returns what the model is to be told, if anything.
    pub(crate) fn close(&self, id: &TaskId) -> Option<String> {
        let mut state = self.0.lock();
        let entry = state.find_mut(id)?;
        entry.closed = true;
        let ended = entry.ended.borrow().clone()?;
        (!entry.known).then(|| notice(&entry.task, &ended))
    }

    /// Ends everything.
    pub(crate) async fn shutdown(&self) {
        let mut running = std::mem::take(&mut self.0.lock().running);
        running.shutdown().await;
    }
}

/// What the model reads when a task has ended.
fn notice(task: &Task, ended: &Ended) -> String {
    let Task { id, description, output_file, agent, .. } = task;
    let (summary, file) = (&ended.summary, output_file.display());
    if agent.is_none() {
        return format!("[Background task {id}: {summary}. Its output is in {file}]");
    }
    let how = match ended.outcome {
        TaskOutcome::Completed => "is done",
        TaskOutcome::Stopped => "was stopped",
        _ => "failed",
    };
    format!(
        "[Background agent {id} ({description}) {how}. What follows is its own report, not a word of the user's.]\n{summary}"
    )
}

async fn run(
    inner: Weak<Inner>,
    task: Task,
    stop: CancellationToken,
    to_an_end: Option<Duration>,
    work: impl Future<Output = Ended>,
) {
    let stopped = async {
        stop.cancelled().await;
        if let Some(patience) = to_an_end {
            tokio::time::sleep(patience).await;
        }
    };
    let ended = tokio::select! {
        ended = AssertUnwindSafe(work).catch_unwind() => ended.unwrap_or_else(|_| {
            let words = format!("\"{}\" broke down, which is a bug in the tool", task.description);
            Ended::new(TaskOutcome::Failed, words)
        }),
        () = stopped => Ended::new(TaskOutcome::Stopped, &task.description),
    };
    if let Some(inner) = inner.upgrade() {
        inner.ended(&task, ended).await;
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The tasks that run.
    fn tasks(&self) -> Vec<Task> {
        let state = self.lock();
        let running = state.entries.iter().filter(|entry| entry.ended.borrow().is_none());
        running.map(|entry| entry.task.clone()).collect()
    }

    async fn tell(&self, frames: impl FnOnce(&Host) -> Vec<ostler_proto::frame::ToHost>) {
        let Some(host) = &self.host else { return };
        for frame in frames(host) {
            host.send(frame).await;
        }
    }

    async fn ended(&self, task: &Task, ended: Ended) {
        let others: Vec<Task> =
            self.tasks().into_iter().filter(|other| other.id != task.id).collect();
        // As it is now: it may have been waited for when it began.
        let in_background = match self.lock().find(&task.id) {
            Some(entry) => entry.task.is_in_background(),
            None => task.is_in_background(),
        };
        self.tell(|host| {
            let ends =
                [frames::updated(host, task, &ended), frames::notification(host, task, &ended)];
            let changed = in_background.then(|| frames::changed(host, &others));
            ends.into_iter().chain(changed).collect()
        })
        .await;
        if let Some(entry) = self.lock().find_mut(&task.id) {
            entry.ended.send_replace(Some(ended));
        }
        if let Some(host) = self.host.as_ref().filter(|_| in_background) {
            // A session that is gone needs no telling.
            let _ = host.calls.send(HostCall::TaskEnded(task.id.clone())).await;
        }
    }
}

impl State {
    fn find(&self, id: &TaskId) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.task.id == *id)
    }

    fn find_mut(&mut self, id: &TaskId) -> Option<&mut Entry> {
        self.entries.iter_mut().find(|entry| entry.task.id == *id)
    }

    /// Forgets the oldest finished tasks, and refuses when too many run.
    fn make_room(&mut self) -> Result<(), ToolError> {
        let n_running = self.entries.iter().filter(|entry| entry.ended.borrow().is_none()).count();
        if n_running >= MOST_RUNNING {
            return Err(ToolError::Refused(format!(
                "{MOST_RUNNING} background tasks run already; wait for one or stop one"
            )));
        }
        while self.entries.len() - n_running >= MOST_FINISHED {
            let Some(oldest) = self.entries.iter().position(|entry| entry.closed) else { break };
            self.entries.remove(oldest);
        }
        while self.running.try_join_next().is_some() {}
        Ok(())
    }
}
