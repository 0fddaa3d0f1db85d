//! Background tasks: work that runs while the conversation continues.
//!
//! A tool starts one and returns at once. Its changes are sent to the host as frames. Its end is sent to the model in a
//! separate turn, unless the model has read it already or has stopped the task itself. Tasks end with the session.

mod announce;
pub(crate) mod frames;
pub mod output;
mod promotion;

use std::collections::{HashMap, VecDeque};
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::sync::{Arc, Weak};
use std::time::Duration;

use futures::FutureExt as _;
use ostler_proto::build;
use ostler_proto::hook::BackgroundTask;
use ostler_proto::message::system::TaskOutcome;
use ostler_proto::{TaskId, ToolUseId};
use parking_lot::{Mutex, MutexGuard};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

pub(crate) use self::announce::{TaskChange, TaskChangeKind, TaskEnd, TaskReporter};
pub use self::promotion::Promotion;
use crate::scratch::Scratch;

/// The most tasks that run at once: more are a loop gone wrong.
const MOST_RUNNING: usize = 32;
/// How many finished tasks are remembered.
const MOST_FINISHED: usize = 64;
/// How long a stopped task may take to end by itself.
const TO_AN_END: Duration = Duration::from_secs(5);

/// The background tasks of a session. Cheap to clone; dropping the last clone ends all tasks.
#[derive(Clone, Debug, Default)]
pub struct Tasks(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    /// The session; `None` without one, as in tests of tools.
    reporter: Option<Arc<dyn TaskReporter>>,
    state: Mutex<State>,
    /// Background tasks are disabled.
    is_off: bool,
}

#[derive(Debug, Default)]
struct State {
    entries: VecDeque<Entry>,
    // Dropping the set aborts all running tasks.
    running: JoinSet<()>,
    /// Calls that can be moved to the background, and the tokens that move them.
    waited_for: HashMap<ToolUseId, CancellationToken>,
}

#[derive(Debug)]
struct Entry {
    task: Task,
    stop: CancellationToken,
    /// Changed under the lock of the state.
    phase: watch::Sender<Phase>,
    /// The model knows how it ended, or ended it itself.
    known: bool,
    /// The host was notified of its start.
    is_announced: bool,
}

/// The phase of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Phase {
    Running,
    /// It has ended; the session has not notified the host yet.
    Ended(TaskResult),
    /// It has ended, and the host was notified.
    Announced(TaskResult),
}

impl Phase {
    fn ended(&self) -> Option<&TaskResult> {
        match self {
            Self::Running => None,
            Self::Ended(ended) | Self::Announced(ended) => Some(ended),
        }
    }

    fn is_announced(&self) -> bool {
        matches!(self, Self::Announced(_))
    }
}

impl Entry {
    fn is_running(&self) -> bool {
        *self.phase.borrow() == Phase::Running
    }

    /// Whether it runs in the background and the host does not know its end.
    fn is_open(&self) -> bool {
        self.task.is_in_background() && !self.phase.borrow().is_announced()
    }
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
    /// The file with its output.
    pub output_file: PathBuf,
    /// Further properties, if it is a subagent.
    pub agent: Option<AgentTask>,
}

/// A task that is a subagent.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AgentTask {
    /// Its kind.
    pub kind: String,
    /// Its prompt.
    pub prompt: String,
    /// Whether it runs in the background.
    pub in_background: bool,
}

impl Task {
    /// A command that is about to be started by a call.
    ///
    /// # Errors
    /// When there is no folder for its output.
    pub fn command(
        call: &ToolUseId,
        scratch: &Scratch,
        command: &str,
        description: &str,
    ) -> std::io::Result<Self> {
        let random = uuid::Uuid::new_v4().simple().to_string();
        let id = format!("b{}", &random[..8]);
        let output_file = scratch.folder()?.join(format!("{id}.output"));
        Ok(Self {
            id: id.into(),
            kind: "local_bash",
            description: description.to_owned(),
            command: Some(command.to_owned()),
            call: call.clone(),
            output_file,
            agent: None,
        })
    }

    /// A subagent that is about to be started by a call.
    pub(crate) fn agent(
        call: &ToolUseId,
        scratch: &Scratch,
        id: &str,
        description: &str,
        agent: AgentTask,
    ) -> std::io::Result<Self> {
        Ok(Self {
            id: id.into(),
            kind: "local_agent",
            description: description.to_owned(),
            command: None,
            call: call.clone(),
            output_file: scratch.folder()?.join(format!("{id}.output")),
            agent: Some(agent),
        })
    }

    fn summary(&self) -> BackgroundTask {
        build!(BackgroundTask {
            id: self.id.clone(),
            r#type: if self.agent.is_some() { "subagent" } else { "shell" }.to_owned(),
            status: "running".to_owned(),
            description: self.description.clone(),
            command: self.command.clone(),
            agent_type: self.agent.as_ref().map(|agent| agent.kind.clone())
        })
    }

    /// Whether it runs in the background.
    fn is_in_background(&self) -> bool {
        self.agent.as_ref().is_none_or(|agent| agent.in_background)
    }
}

/// How a task ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskResult {
    /// The outcome.
    pub outcome: TaskOutcome,
    /// One sentence, or the report of a subagent.
    pub summary: String,
    /// Its cost, where it was counted.
    pub effort: Option<TaskCost>,
}

impl TaskResult {
    /// An end without a counted cost.
    pub fn new(outcome: TaskOutcome, summary: impl Into<String>) -> Self {
        Self { outcome, summary: summary.into(), effort: None }
    }
}

/// The cost of a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaskCost {
    /// Tokens.
    pub tokens: u64,
    /// Tool calls.
    pub n_tool_calls: u64,
    /// Time.
    pub duration: Duration,
}

/// Why a task does not start, as text for the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskRefusal(pub String);

impl Tasks {
    pub(crate) fn new(reporter: Arc<dyn TaskReporter>, is_off: bool) -> Self {
        Self(Arc::new(Inner { reporter: Some(reporter), state: Mutex::default(), is_off }))
    }

    /// An empty list with the same session, for a new conversation.
    pub(crate) fn emptied(&self) -> Self {
        let Inner { reporter, is_off, .. } = &*self.0;
        let (reporter, state) = (reporter.clone(), Mutex::default());
        Self(Arc::new(Inner { reporter, state, is_off: *is_off }))
    }

    /// Fails where background tasks are disabled.
    ///
    /// # Errors
    /// As text for the model.
    pub fn allowed(&self) -> Result<(), TaskRefusal> {
        match self.0.is_off {
            true => Err(TaskRefusal(
                "background tasks are switched off here (CLAUDE_CODE_DISABLE_BACKGROUND_TASKS): run it and wait"
                    .to_owned(),
            )),
            false => Ok(()),
        }
    }

    /// Starts a task. When the task is stopped, the future is dropped and must end everything it started.
    ///
    /// # Errors
    /// When too many run already.
    pub async fn start(
        &self,
        task: Task,
        work: impl Future<Output = TaskResult> + Send + 'static,
    ) -> Result<(), TaskRefusal> {
        self.allowed()?;
        let stop = CancellationToken::new();
        self.enter(&task, &stop).await?;
        let inner = Arc::downgrade(&self.0);
        self.0.lock().running.spawn(run(inner, task, stop, None, work));
        Ok(())
    }

    /// Starts a task that ends by itself when `stop` fires.
    pub(crate) async fn start_agent(
        &self,
        task: Task,
        stop: CancellationToken,
        work: impl Future<Output = TaskResult> + Send + 'static,
    ) -> Result<(), TaskRefusal> {
        self.enter(&task, &stop).await?;
        let inner = Arc::downgrade(&self.0);
        self.0.lock().running.spawn(run(inner, task, stop, Some(TO_AN_END), work));
        Ok(())
    }

    /// Adds a task and notifies the host of it.
    async fn enter(&self, task: &Task, stop: &CancellationToken) -> Result<(), TaskRefusal> {
        {
            let mut state = self.0.lock();
            state.make_room()?;
            state.entries.retain(|entry| entry.task.id != task.id);
            state.entries.push_back(Entry {
                task: task.clone(),
                stop: stop.clone(),
                phase: watch::Sender::new(Phase::Running),
                // Waiting callers see its end.
                known: !task.is_in_background(),
                is_announced: false,
            });
        }
        // Announced before it begins, so that its end cannot be announced first.
        self.0.report(&task.id, TaskChangeKind::Started).await;
        Ok(())
    }

    /// A task and, if it has ended, its result.
    pub fn get(&self, id: &TaskId) -> Option<(Task, Option<TaskResult>)> {
        let state = self.0.lock();
        let entry = state.find(id)?;
        let ended = entry.phase.borrow().ended().cloned();
        Some((entry.task.clone(), ended))
    }

    /// Waits until a task has ended and the host was notified; at once `None` when there is no such task.
    ///
    /// The session itself must not call this: it is what notifies the host.
    pub async fn wait(&self, id: &TaskId) -> Option<TaskResult> {
        self.reached(id, Phase::is_announced).await
    }

    async fn reached(&self, id: &TaskId, is_there: fn(&Phase) -> bool) -> Option<TaskResult> {
        let mut phase = self.0.lock().find(id)?.phase.subscribe();
        let phase = phase.wait_for(is_there).await.ok()?;
        phase.ended().cloned()
    }

    /// Notes that the model has read how a task ended: no turn is needed to report it.
    pub fn known(&self, id: &TaskId) {
        if let Some(entry) = self.0.lock().find_mut(id) {
            entry.known = true;
        }
    }

    /// Ends a task, and waits until it has.
    ///
    /// # Errors
    /// When there is no such task or it has ended already.
    pub async fn stop(&self, id: &TaskId) -> Result<Task, String> {
        let task = self.cancel(id)?;
        self.wait(id).await;
        Ok(task)
    }

    fn cancel(&self, id: &TaskId) -> Result<Task, String> {
        let mut state = self.0.lock();
        let entry = state.find_mut(id).ok_or_else(|| format!("there is no task {id}"))?;
        if !entry.is_running() {
            return Err(format!("task {id} has ended already"));
        }
        entry.known = true;
        entry.stop.cancel();
        Ok(entry.task.clone())
    }

    /// Whether there are tasks whose end the host does not know.
    pub(crate) fn are_open(&self) -> bool {
        self.0.lock().entries.iter().any(Entry::is_open)
    }

    /// The background tasks, for the input of hooks.
    pub(crate) fn summary(&self) -> Vec<BackgroundTask> {
        let tasks = self.0.tasks();
        tasks.iter().filter(|task| task.is_in_background()).map(Task::summary).collect()
    }

    /// Whether subagents work in the background, as far as the host knows.
    pub(crate) fn have_agents(&self) -> bool {
        let state = self.0.lock();
        state.entries.iter().any(|entry| entry.task.agent.is_some() && entry.is_open())
    }

    /// Ends all tasks.
    pub(crate) async fn shutdown(&self) {
        let mut running = std::mem::take(&mut self.0.lock().running);
        running.shutdown().await;
    }
}

/// What the model reads when a task has ended.
fn notice(task: &Task, ended: &TaskResult) -> String {
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
        "[Background agent {id} ({description}) {how}. What follows is its own report, not a message of the user.]\n{summary}"
    )
}

async fn run(
    inner: Weak<Inner>,
    task: Task,
    stop: CancellationToken,
    to_an_end: Option<Duration>,
    work: impl Future<Output = TaskResult>,
) {
    let stopped = async {
        stop.cancelled().await;
        if let Some(patience) = to_an_end {
            tokio::time::sleep(patience).await;
        }
    };
    let ended = tokio::select! {
        ended = AssertUnwindSafe(work).catch_unwind() => ended.unwrap_or_else(|_| {
            let words = format!("\"{}\" failed with a panic, which is a bug in the tool", task.description);
            TaskResult::new(TaskOutcome::Failed, words)
        }),
        () = stopped => TaskResult::new(TaskOutcome::Stopped, &task.description),
    };
    if let Some(inner) = inner.upgrade() {
        inner.mark_ended(&task.id, ended);
        inner.report(&task.id, TaskChangeKind::Ended).await;
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock()
    }

    /// The tasks that run.
    fn tasks(&self) -> Vec<Task> {
        let state = self.lock();
        let running = state.entries.iter().filter(|entry| entry.is_running());
        running.map(|entry| entry.task.clone()).collect()
    }

    /// The first end counts.
    fn mark_ended(&self, id: &TaskId, ended: TaskResult) {
        let mut state = self.lock();
        if let Some(entry) = state.find_mut(id).filter(|entry| entry.is_running()) {
            entry.phase.send_replace(match self.reporter {
                Some(_) => Phase::Ended(ended),
                None => Phase::Announced(ended),
            });
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
    fn make_room(&mut self) -> Result<(), TaskRefusal> {
        let n_running = self.entries.iter().filter(|entry| entry.is_running()).count();
        if n_running >= MOST_RUNNING {
            return Err(TaskRefusal(format!(
                "{MOST_RUNNING} background tasks run already; wait for one or stop one"
            )));
        }
        while self.entries.len() - n_running >= MOST_FINISHED {
            let oldest = self.entries.iter().position(|entry| entry.phase.borrow().is_announced());
            let Some(oldest) = oldest else { break };
            self.entries.remove(oldest);
        }
        while self.running.try_join_next().is_some() {}
        Ok(())
    }
}
