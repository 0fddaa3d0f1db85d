//! Tasks: a skill with its parameters and a prompt, executed on request.

pub mod record;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use ostler_base::error::{self, ApiError, Fallible};
use ostler_base::ids;
use ostler_door::users::Caller;
use ostler_skills::cms::Cms;
use ostler_skills::folder::Folder;
use ostler_skills::library::Skills;
use ostler_skills::materialise;
use ostler_skills::mcp::Note;
use ostler_skills::metadata::{Isolation, TaskType};
use ostler_skills::mode::Mode;
use ostler_skills::run::{DEFAULT_MODEL, OperatorRules, SkillRun, TaskRequest};
use serde_json::{Map, Value};

use self::record::{Execution, Task, TaskView};
use crate::clock::Clock;
use crate::config::Config;
use crate::model::run::{Run, Session, Setup};
use crate::records::Records;
use crate::runs::options::{EngineParts, EngineSetup};
use crate::runs::{NewRun, Sessions, idempotency};
use crate::session_room::SessionRoom;

/// How long the content management system may take to answer.
const CMS_TIME: Duration = Duration::from_secs(10);

/// The fields of a new task.
pub struct NewTask {
    pub name: String,
    pub agent_id: Option<String>,
    pub task_type: TaskType,
    pub user_prompt: String,
    pub permission_mode: Option<String>,
    pub input_values: Map<String, Value>,
    pub isolation: Option<Isolation>,
    pub model: Option<String>,
    pub space: Option<String>,
    pub project: PathBuf,
}

/// Skills, and what the operator lets tasks do with them.
pub struct Workshop {
    pub skills: Skills,
    rules: OperatorRules,
    records: Records,
}

impl Workshop {
    pub fn new(config: &Config, records: Records) -> Result<Self, String> {
        let folders = config.skills.iter().cloned().map(Folder).collect();
        let cms = match &config.cms {
            Some(cms) => Some(Cms::new(&cms.url, cms.token.clone(), CMS_TIME)?),
            None => None,
        };
        let rules = OperatorRules {
            default_model: config.model.clone().unwrap_or_else(|| DEFAULT_MODEL.to_owned()),
            may_choose_model: config.model_by_request,
            may_bypass: config.allow_bypass,
            trusts_cms: config.trust_cms,
            trusts_project_servers: config.trust_project_servers,
            trusted_repositories: config.trusted_repositories.clone(),
            runs: config.data.join("runs"),
            hidden: at_home(config),
        };
        // Nothing runs yet, so existing folders were left by a server that was killed.
        materialise::sweep(&rules.runs);
        Ok(Self { skills: Skills { folders, cms }, rules, records })
    }

    /// Prepares a run of the task, and reads its skill.
    async fn prepare(&self, task: &Task) -> Fallible<SkillRun> {
        let request = TaskRequest {
            kind: task.task_type,
            skill: task.agent_id.clone(),
            user_prompt: task.user_prompt.clone(),
            permission_mode: task.permission_mode.clone(),
            input_values: task.input_values.clone(),
            isolation: task.isolation,
            model: task.model.clone(),
            project: task.project.clone(),
        };
        SkillRun::prepare(request, &self.skills, &self.rules).await
    }
}

#[async_trait]
impl EngineSetup for Workshop {
    async fn set_up(&self, session: &Session, engine_parts: &mut EngineParts) -> Fallible<()> {
        let Some(id) = &session.setup.task else { return Ok(()) };
        let Some((task, _)) = self.records.find::<Task>(id).await? else {
            return Err(error::not_found("task", id));
        };
        let run = self.prepare(&task).await?;
        match &run.note {
            Some(Note::Warning(why)) => tracing::warn!(task = task.id, "{why}"),
            Some(Note::Debug(why)) => tracing::debug!(task = task.id, "{why}"),
            None => {}
        }
        engine_parts.options = run.apply(std::mem::take(&mut engine_parts.options));
        engine_parts.skill_allowed.extend(run.approved());
        engine_parts.people_only |= run.mode == Mode::Ask;
        engine_parts.guards.push(Box::new(run));
        Ok(())
    }
}

/// Where an engine would look for skills and commands of the user who started the server.
fn at_home(config: &Config) -> Vec<PathBuf> {
    let home = config.env.get("HOME").map(PathBuf::from);
    let home = home.or_else(|| std::env::var_os("HOME").map(PathBuf::from));
    let folders =
        home.map(|home| ["skills", "commands"].map(|name| home.join(".claude").join(name)));
    folders.into_iter().flatten().collect()
}

/// All tasks of the server.
pub struct Tasks {
    pub workshop: Arc<Workshop>,
    sessions: Arc<Sessions>,
    clock: Clock,
    /// Sessions of executions count like those that users create.
    room: Arc<SessionRoom>,
}

impl Tasks {
    pub fn new(
        workshop: Arc<Workshop>,
        sessions: Arc<Sessions>,
        clock: Clock,
        room: Arc<SessionRoom>,
    ) -> Self {
        Self { workshop, sessions, clock, room }
    }

    /// Creates a task. It is checked now, not when it is executed.
    pub async fn create(&self, caller: &Caller, new: NewTask) -> Fallible<TaskView> {
        if new.name.trim().is_empty() {
            return Err(ApiError::invalid("name", "the task needs a name"));
        }
        if new.user_prompt.trim().is_empty() {
            return Err(ApiError::invalid("userPrompt", "the prompt is empty"));
        }
        let task = Task {
            id: ids::new("task"),
            owner: caller.user.clone(),
            name: new.name,
            agent_id: new.agent_id,
            task_type: new.task_type,
            user_prompt: new.user_prompt,
            permission_mode: new.permission_mode,
            input_values: new.input_values,
            isolation: new.isolation,
            model: new.model,
            space: new.space,
            project: new.project,
            created: self.clock.now(),
            execution: None,
        };
        self.workshop.prepare(&task).await?;
        self.sessions.records.create(&task).await?;
        Ok(TaskView::new(task, None))
    }

    /// The task with this id, if the caller may see it.
    pub async fn find(&self, caller: &Caller, id: &str) -> Fallible<Task> {
        match self.sessions.records.find::<Task>(id).await? {
            Some((task, _)) if caller.may_see(&task.owner) => Ok(task),
            _ => Err(error::not_found("task", id)),
        }
    }

    pub async fn view(&self, task: Task) -> Fallible<TaskView> {
        let run = match &task.execution {
            Some(execution) => self.sessions.records.find::<Run>(&execution.run).await?,
            None => None,
        };
        Ok(TaskView::new(task, run.map(|(run, _)| self.sessions.as_it_is(run))))
    }

    /// Executes a task in a new session; once for each key of the client, if it has one.
    pub async fn execute(&self, caller: &Caller, id: &str, key: Option<&str>) -> Fallible<Task> {
        key.map(idempotency::check).transpose()?;
        let key = key.map(|key| format!("execute {id} {key}"));
        self.execute_once(caller, id, key.as_deref(), NewRun::text("")).await
    }

    /// Executes a task for a hook or a schedule, once for each key. `more` is added to its prompt.
    pub(crate) async fn execute_unattended(
        &self,
        caller: &Caller,
        id: &str,
        key: &str,
        more: Option<&str>,
    ) -> Fallible<Task> {
        let run = NewRun { unattended: true, ..NewRun::text(more.unwrap_or_default()) };
        self.execute_once(caller, id, Some(key), run).await
    }

    /// Adds the prompt of `run` to the task's own.
    async fn execute_once(
        &self,
        caller: &Caller,
        id: &str,
        key: Option<&str>,
        run: NewRun,
    ) -> Fallible<Task> {
        let task = self.find(caller, id).await?;
        let prepared = self.workshop.prepare(&task).await?;
        let setup = Setup {
            space: task.space.clone(),
            cwd: prepared.project.clone(),
            task: Some(task.id.clone()),
            ..Setup::default()
        };
        let known = match key {
            Some(key) => self.sessions.keyed(&task.owner, key).await?,
            None => None,
        };
        if known.is_none() {
            self.room.take(&task.owner).await?;
        }
        let session = match key {
            Some(key) => self.sessions.by_key(&task.owner, key, &task.name, setup).await?,
            None => self.sessions.create(&task.owner, &task.name, setup).await?,
        };
        let more = Some(run.prompt.as_str()).filter(|more| !more.is_empty());
        let prompt = joined(&prepared.prompt, more);
        let run_id = key.map(|key| ids::of("run", key));
        let new = NewRun { id: run_id.clone(), unattended: run.unattended, ..NewRun::text(prompt) };
        let run = match self.sessions.submit(&session, new).await {
            // The same request arrived at the same moment, and was faster.
            Err(error) if error.detail().code == "changed" => {
                let found = self.sessions.records.find::<Run>(&run_id.unwrap_or_default()).await?;
                found.map(|(run, _)| run).ok_or(error)?
            }
            submitted => submitted?,
        };
        let execution =
            Execution { session: session.id, run: run.id, metadata: prepared.metadata.clone() };
        let last = match &task.execution {
            Some(last) => self.sessions.records.find::<Run>(&last.run).await?,
            None => None,
        };
        // A repeated request does not become the last execution again.
        if last.is_some_and(|(last, _)| last.created > run.created) {
            return Ok(Task { execution: Some(execution), ..task });
        }
        let executed = self.sessions.records.update::<Task, ()>(id, |task| {
            task.execution = Some(execution.clone());
            Ok(())
        });
        Ok(executed.await?.0)
    }

    /// Cancels the last execution, if it has not ended.
    pub async fn cancel(&self, caller: &Caller, id: &str) -> Fallible<Task> {
        let task = self.find(caller, id).await?;
        let Some(execution) = &task.execution else {
            return Err(ApiError::conflict("not_executed", "this task is not being executed"));
        };
        self.sessions.cancel(caller, &execution.run).await?;
        Ok(task)
    }

    pub async fn remove(&self, caller: &Caller, id: &str) -> Fallible<()> {
        let task = self.find(caller, id).await?;
        if let Some(execution) = &task.execution {
            self.sessions.close(&execution.session).await;
        }
        self.sessions.records.remove::<Task>(id).await
    }
}

/// A prompt, and the text that is added to it.
pub(crate) fn joined(prompt: &str, more: Option<&str>) -> String {
    match more {
        Some(more) => format!("{prompt}\n\n{more}"),
        None => prompt.to_owned(),
    }
}
