//! The options with which an engine starts.

use std::any::Any;

use async_trait::async_trait;
use ostler::engine::EmbeddedWithTrust;
use ostler::options::{SystemPrompt, ToolSet};
use ostler::{Options, PermissionMode};
use ostler_base::error::Fallible;
use ostler_base::protected_paths::deny_rules;

use super::ask::Waiters;
use crate::config::{Config, EngineChoice};
use crate::confine::environment;
use crate::confine::own_files::OWN;
use crate::model::run::Session;

/// Changes the options of a session's engine: for a skill, or the tools of a page.
#[async_trait]
pub trait EngineSetup: Send + Sync {
    /// Changes the options, and adds what else the engine needs.
    async fn set_up(&self, session: &Session, engine_parts: &mut EngineParts) -> Fallible<()>;

    /// A value that changes whenever a running engine no longer matches its setup and has to be restarted. An error
    /// says that the session cannot continue at all.
    async fn stamp(&self, _: &Session) -> Fallible<String> {
        Ok(String::new())
    }
}

/// Options with what they need.
pub struct EngineParts {
    pub options: Options,
    /// Dropped when the engine has ended; for example a private folder.
    pub guards: Vec<Box<dyn Any + Send + Sync>>,
    /// Why no user can be asked, if so; everything that requires approval is denied with this reason.
    pub nobody_asked: Option<String>,
    /// Rules that a skill lists as approved. A space narrows them.
    pub(crate) skill_allowed: Vec<String>,
    /// Whether no granted rule may answer: the task asks before every tool.
    pub(crate) people_only: bool,
    /// For waiting for users other than for permission requests.
    pub waiting: Waiters,
}

impl EngineParts {
    pub(crate) fn new(options: Options, waiting: Waiters) -> Self {
        Self {
            options,
            guards: Vec::new(),
            nobody_asked: None,
            skill_allowed: Vec::new(),
            people_only: false,
            waiting,
        }
    }
}

/// Appends to the agent's system prompt.
pub fn add_to_prompt(options: &mut Options, more: &str) {
    match &mut options.context.system_prompt {
        SystemPrompt::Text(text) | SystemPrompt::Preset { append: Some(text) } => {
            text.push_str("\n\n");
            text.push_str(more);
        }
        SystemPrompt::Preset { append } => *append = Some(more.to_owned()),
        prompt => *prompt = SystemPrompt::Text(more.to_owned()),
    }
}

/// The options of every engine of this server. `behind` is a message of the conversation, if the engine continues after
/// it in a copy.
pub fn of(config: &Config, session: &Session, behind: Option<String>) -> Options {
    let setup = &session.setup;
    let mut options = match &config.engine {
        EngineChoice::Embedded => {
            let trusted_repositories = config.trusted_repositories.clone();
            Options::new().transport(EmbeddedWithTrust { trusted_repositories, hosting: None })
        }
        EngineChoice::Program(path) => Options::new().executable(path),
    };
    options.context.cwd = Some(setup.cwd.clone());
    options.context.system_prompt = match (&setup.system_prompt, &setup.append_prompt) {
        (Some(text), _) => SystemPrompt::Text(text.clone()),
        (None, append) => SystemPrompt::Preset { append: append.clone() },
    };
    options.model.name = setup.model.clone().or_else(|| config.model.clone());
    options.limits.max_turns = config.limits.max_turns;
    options.limits.max_budget_usd = config.limits.max_budget_usd;
    options.output.partial_messages = true;
    options.output.subagent_text = true;
    options.engine.env = environment::of(config);
    // Subagents work while the turn waits for them, so a run that ends with its turn includes all of them.
    options = options.env("CLAUDE_CODE_SDK_READS_SESSION_STATE", "0");
    options.tools.base = setup.tools.clone().map(ToolSet::Only);
    options.permissions.allowed.extend(setup.allowed.iter().cloned());
    options.permissions.disallowed.extend(setup.denied.iter().cloned());
    options.context.settings.clone_from(&config.settings);
    if let Some(mode) = setup.mode.clone().or_else(|| config.permission_mode.clone()) {
        options.permissions.allow_dangerously_skip_permissions =
            mode == PermissionMode::BypassPermissions && config.allow_bypass;
        options.permissions.mode = mode;
    }
    let own = OWN.map(|name| config.data.join(name)).into_iter();
    let protected: Vec<_> = own.chain(config.secret_files()).collect();
    options.permissions.disallowed.extend(deny_rules(&protected));
    // So that files can be restored to their state before a prompt.
    options.session.file_checkpointing = true;
    let (earlier, behind) = match (&session.engine_session, &session.origin) {
        (Some(earlier), _) => (earlier, behind),
        // Never in the other conversation itself: that belongs to another session.
        (None, Some(origin)) => (&origin.conversation, Some(origin.message.clone())),
        (None, None) => return options,
    };
    options.session.choice.fork = behind.is_some();
    options.session.choice.resume_at = behind;
    options.resume(earlier)
}
