//! One run of a skill: turns a task and its skill into options of the SDK.

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

/// The model if neither the skill nor the operator names one.
pub const DEFAULT_MODEL: &str = "claude-sonnet-4-5";

/// The request for a task.
#[derive(Clone, Debug)]
pub struct TaskRequest {
    pub kind: TaskType,
    /// The skill, by id or name; optional for agents.
    pub skill: Option<String>,
    pub user_prompt: String,
    pub permission_mode: Option<String>,
    pub input_values: Map<String, Value>,
    /// Which skills the run can see; the default depends on the type.
    pub isolation: Option<Isolation>,
    pub model: Option<String>,
    /// The project in which the run works.
    pub project: PathBuf,
}

/// What the operator allows tasks to do.
#[derive(Clone, Debug)]
pub struct OperatorRules {
    pub default_model: String,
    /// Whether a task may name its model.
    pub may_choose_model: bool,
    pub may_bypass: bool,
    /// Whether the tools that a skill of the content management system lists count as approved.
    pub trusts_cms: bool,
    /// Whether the servers in a project's `.mcp.json` are started. They are programs chosen by the author of the file.
    pub trusts_project_servers: bool,
    /// Repositories in which git commands that only read need no approval.
    pub trusted_repositories: Vec<PathBuf>,
    /// The folder in which the folders of runs are created.
    pub runs: PathBuf,
    /// Folders with skills that the server does not use but an engine would find, such as those in a home directory.
    pub hidden: Vec<PathBuf>,
}

/// A run, ready to start. It must live as long as the run, because it owns the run's folder.
#[derive(Debug)]
pub struct SkillRun {
    /// The user's prompt, unchanged.
    pub prompt: String,
    pub system_prompt: SystemPrompt,
    pub tools: Tools,
    pub(crate) servers: BTreeMap<String, McpServerConfig>,
    pub mode: Mode,
    pub model: String,
    pub project: PathBuf,
    pub metadata: Metadata,
    /// A note about the project's servers.
    pub note: Option<Note>,
    /// Whether the tools that the skill lists count as approved.
    is_trusted: bool,
    trusted_repositories: Vec<PathBuf>,
    /// Folders that the run must not read.
    hidden: Vec<PathBuf>,
    folder: Option<RunFolder>,
}

impl SkillRun {
    /// Prepares a run, and reads its skill.
    ///
    /// # Errors
    /// When the skill, its parameters, the mode or the project is invalid, or the operator forbids it.
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

    /// Adds the run to the options of the SDK. Options that are already set (the engine, callbacks, limits) stay,
    /// except those that would show the run more than it may see.
    pub fn apply(&self, mut options: Options) -> Options {
        options.model.name = Some(self.model.clone());
        options.context.cwd = Some(self.project.clone());
        options.context.system_prompt = self.system_prompt.clone();
        // Settings would add skills, commands, agents and servers.
        options.context.setting_sources = Vec::<SettingSource>::new();
        options.context.plugins.clear();
        options.tools.strict_mcp = true;
        if let Some(folder) = self.folder() {
            options.context.plugins.push(folder.clone());
            // The run may read the skill's files like the project itself.
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
            let message = "a task of type skill needs the name of a skill";
            Err(ApiError::invalid("agentId", message).hint("list the skills to see their names"))
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
    // The tool that loads the other skills.
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

/// Creates the folder with the skills that the run can see.
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
        SkillError::Broken { id, reason: format!("its files cannot be copied: {error}") }.into()
    })
}

/// The folders with skills that the run must not find. With `partial` isolation it may see all skills anyway.
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
        let message = format!("the project is inside {}, which contains skills", around.display());
        let hint = "use a project in another folder, or partial isolation";
        return Err(ApiError::invalid("project", message).hint(hint));
    }
    Ok(hidden)
}

fn is_in(project: &Path, folder: &Path) -> bool {
    project.starts_with(folder) || folder.canonicalize().is_ok_and(|real| project.starts_with(real))
}
