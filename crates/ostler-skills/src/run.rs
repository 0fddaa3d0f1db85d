//! One run of a skill: everything that a task and its skill say, as the SDK wants it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use axum::http::StatusCode;
use ostler::Options;
use ostler::options::{McpServerConfig, SettingSource, SystemPrompt};
use ostler_base::error::ApiError;
use ostler_base::protected_paths::deny_rules;
use serde_json::{Map, Value};

use super::definition::{Skill, Source};
use super::library::{SkillError, Skills};
use super::materialise::RunFolder;
use super::mcp::{self, Note};
use super::metadata::{Isolation, Metadata, TaskType};
use super::mode::Mode;
use super::prompt;
use super::tools::Tools;

/// The model of a skill that names none, where the operator names none either.
pub const DEFAULT_MODEL: &str = "claude-sonnet-4-5";

/// What a task asks for.
#[derive(Clone, Debug)]
pub struct TaskRequest {
    pub kind: TaskType,
    /// The skill, by its id or name; an agent may do without.
    pub skill: Option<String>,
    pub user_prompt: String,
    pub permission_mode: Option<String>,
    pub input_values: Map<String, Value>,
    /// What it can see; by its type when it does not say.
    pub isolation: Option<Isolation>,
    pub model: Option<String>,
    /// The project it works in.
    pub project: PathBuf,
}

/// What the operator lets tasks do.
#[derive(Clone, Debug)]
pub struct OperatorRules {
    pub default_model: String,
    /// Whether a task may name its model.
    pub may_choose_model: bool,
    pub may_bypass: bool,
    /// Whether tools count as approved that a skill of the content management system lists.
    pub trusts_cms: bool,
    /// Whether the servers of a project's `.mcp.json` are started: they are programs of whoever wrote it.
    pub trusts_project_servers: bool,
    /// Repositories in which git commands that only read need no approval.
    pub trusted_repositories: Vec<PathBuf>,
    /// Where the folders of runs are made.
    pub runs: PathBuf,
    /// Folders with skills that no server knows of but an engine would, such as those in a home directory.
    pub hidden: Vec<PathBuf>,
}

/// A run, ready to be started. What it holds must live as long as the run.
#[derive(Debug)]
pub struct SkillRun {
    /// What the user said, as he said it.
    pub prompt: String,
    pub system_prompt: SystemPrompt,
    pub tools: Tools,
    pub(crate) servers: BTreeMap<String, McpServerConfig>,
    pub mode: Mode,
    pub model: String,
    pub project: PathBuf,
    pub metadata: Metadata,
    /// What is to be said about the project's servers.
    pub note: Option<Note>,
    /// Whether what the skill approves counts.
    is_trusted: bool,
    trusted_repositories: Vec<PathBuf>,
    /// Folders that the run must not look into.
    hidden: Vec<PathBuf>,
    folder: Option<RunFolder>,
}

impl SkillRun {
    /// Prepares a run; its skill is fetched now.
    ///
    /// # Errors
    /// When the skill, its parameters, the mode or the project make no sense, or the operator forbids them.
    pub async fn prepare(
        task: TaskRequest,
        skills: &Skills,
        rules: &OperatorRules,
    ) -> Result<Self, ApiError> {
        let isolation = task.isolation.unwrap_or_else(|| Isolation::of_task(task.kind));
        let skill = selected(&task, skills, isolation).await?;
        let parameters = match &skill {
            Some(skill) => skill.inputs.check(task.input_values)?,
            None => task.input_values,
        };
        let project = task.project.canonicalize().ok().filter(|project| project.is_dir());
        let project = project.ok_or_else(|| {
            let message = format!("there is no project {}", task.project.display());
            ApiError::invalid("project", message)
        })?;
        let others = match isolation {
            Isolation::Partial => skills.list().await.skills,
            _ => Vec::new(),
        };
        let is_other = |other: &&Skill| skill.as_ref().is_none_or(|skill| other.name != skill.name);
        let others: Vec<Skill> = others.iter().filter(is_other).cloned().collect();

        let system_prompt = system_prompt(isolation, skill.as_ref(), &parameters);
        let tools = tools(isolation, skill.as_ref());
        let found = match rules.trusts_project_servers {
            true => mcp::load(&project),
            false => mcp::Found::default(),
        };
        let mut servers = found.servers;
        servers.retain(|name, _| tools.uses_server(name));
        let mode = Mode::named(task.permission_mode.as_deref(), rules.may_bypass)?;
        let model = model(task.model, skill.as_ref(), rules)?;
        let metadata = Metadata::new(skill.as_ref(), isolation, others.len());
        Ok(Self {
            prompt: task.user_prompt,
            trusted_repositories: rules.trusted_repositories.clone(),
            hidden: hidden(&project, skills, rules, isolation)?,
            folder: folder(rules, skill.as_ref(), &others)?,
            system_prompt,
            tools,
            servers,
            mode,
            model,
            project,
            metadata,
            note: found.note,
            is_trusted: rules.trusts_cms
                || skill.as_ref().is_none_or(|skill| skill.source == Source::Folder),
        })
    }

    /// The run's own folder, if it has one.
    pub fn folder(&self) -> Option<PathBuf> {
        self.folder.as_ref().map(RunFolder::path)
    }

    /// The rules that need no approval because the skill lists them.
    pub fn approved(&self) -> Vec<String> {
        let counts = self.mode.takes_approvals() && self.is_trusted;
        if counts { self.tools.rules().to_vec() } else { Vec::new() }
    }

    /// Says it all to the SDK. What is set already (the engine, who answers questions, limits) stays, except for what
    /// would show the run more than it may see.
    pub fn apply(&self, mut options: Options) -> Options {
        options.model.name = Some(self.model.clone());
        options.context.cwd = Some(self.project.clone());
        options.context.system_prompt = self.system_prompt.clone();
        // Settings bring skills, commands, agents and servers of their own.
        options.context.setting_sources = Vec::<SettingSource>::new();
        options.context.plugins.clear();
        options.tools.strict_mcp = true;
        if let Some(folder) = self.folder() {
            options.context.plugins.push(folder.clone());
            // Its material may be read like the project itself.
            options.context.additional_directories.push(folder);
        }
        options.tools.mcp_servers.extend(self.servers.clone());
        self.tools.apply(&mut options, self.mode, &self.trusted_repositories);
        self.mode.apply(&mut options);
        options.permissions.disallowed.extend(deny_rules(&self.hidden));
        options
    }
}

async fn selected(
    task: &TaskRequest,
    skills: &Skills,
    isolation: Isolation,
) -> Result<Option<Skill>, ApiError> {
    match (&task.skill, isolation) {
        (_, Isolation::None) => Ok(None),
        (Some(id), _) => Ok(Some(skills.find(id).await?)),
        (None, Isolation::Partial) => Ok(None),
        (None, Isolation::Full) => {
            let message = "a task with one skill needs to say which";
            Err(ApiError::invalid("agentId", message)
                .hint("list the skills to see which there are"))
        }
    }
}

fn system_prompt(
    isolation: Isolation,
    skill: Option<&Skill>,
    parameters: &Map<String, Value>,
) -> SystemPrompt {
    match (isolation, skill) {
        (Isolation::Full, Some(skill)) => {
            SystemPrompt::Text(prompt::system_prompt(&skill.name, &skill.content, parameters))
        }
        (Isolation::Partial, Some(skill)) => {
            let text = prompt::priority_prompt(&skill.name, &skill.content, parameters);
            SystemPrompt::Preset { append: Some(text) }
        }
        _ => SystemPrompt::Preset { append: None },
    }
}

fn tools(isolation: Isolation, skill: Option<&Skill>) -> Tools {
    let tools = Tools::new(skill.and_then(|skill| skill.tools.clone()));
    // The way to the other ones.
    if isolation == Isolation::Partial { tools.and("Skill") } else { tools }
}

fn model(
    asked: Option<String>,
    skill: Option<&Skill>,
    rules: &OperatorRules,
) -> Result<String, ApiError> {
    match asked {
        Some(model) if rules.may_choose_model => Ok(model),
        Some(_) => {
            let message = "the operator of this server does not let tasks choose their model";
            let error = ApiError::new(StatusCode::FORBIDDEN, "model_not_allowed", message);
            Err(error.field("model").hint("leave it out"))
        }
        None => {
            let of_skill = skill.and_then(|skill| skill.model.clone());
            Ok(of_skill.unwrap_or_else(|| rules.default_model.clone()))
        }
    }
}

/// The folder with the skills that the run can see.
fn folder(
    rules: &OperatorRules,
    skill: Option<&Skill>,
    others: &[Skill],
) -> Result<Option<RunFolder>, ApiError> {
    let visible: Vec<&Skill> = skill.into_iter().chain(others).collect();
    if visible.is_empty() {
        return Ok(None);
    }
    let made = RunFolder::new(&rules.runs, &visible);
    made.map(Some).map_err(|error| {
        let id = skill.map(|skill| skill.id.clone()).unwrap_or_default();
        SkillError::Broken { id, reason: format!("its files cannot be made ready: {error}") }.into()
    })
}

/// Where skills lie that the run must not find. With `partial` it may see them all anyway.
fn hidden(
    project: &Path,
    skills: &Skills,
    rules: &OperatorRules,
    isolation: Isolation,
) -> Result<Vec<PathBuf>, ApiError> {
    if isolation == Isolation::Partial {
        return Ok(Vec::new());
    }
    let mut hidden = vec![project.join(".claude/skills"), project.join(".claude/commands")];
    hidden.extend(skills.folders.iter().map(|folder| folder.0.clone()));
    hidden.extend(rules.hidden.iter().cloned());
    if let Some(around) = hidden.iter().find(|folder| is_in(project, folder)) {
        let message = format!("the project lies in {}, where skills are kept", around.display());
        let hint = "use a project elsewhere, or the isolation partial";
        return Err(ApiError::invalid("project", message).hint(hint));
    }
    Ok(hidden)
}

fn is_in(project: &Path, folder: &Path) -> bool {
    project.starts_with(folder) || folder.canonicalize().is_ok_and(|real| project.starts_with(real))
}
