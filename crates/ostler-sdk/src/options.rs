//! [`Options`]: what a session is to be like.
//!
//! # Coming from another SDK
//!
//! | in TypeScript | here |
//! |---|---|
//! | `abortController` | [`Options::cancel_with`] |
//! | `additionalDirectories`, `cwd`, `plugins`, `sandbox`, `settings`, `settingSources` | [`ContextOptions`] |
//! | `agent` | [`ContextOptions::agent`] |
//! | `agents` | [`Options::agent`] |
//! | `allowedTools`, `disallowedTools` | [`Options::allow`], [`Options::deny`] |
//! | `allowDangerouslySkipPermissions`, `permissionMode` | [`PermissionOptions`] |
//! | `betas`, `effort`, `fallbackModel`, `model`, `thinking`, `maxThinkingTokens` | [`ModelOptions`]; the last two are one, [`Thinking`] |
//! | `canUseTool` | [`Options::on_permission`], and [`Options::on_question`] for the agent's own questions |
//! | `continue`, `resume`, `forkSession`, `resumeSessionAt`, `sessionId` | [`Options::continue_newest`], [`Options::resume`], [`Options::fork`], [`SessionChoice`] |
//! | `enableFileCheckpointing`, `persistSession` | [`SessionOptions`] |
//! | `env`, `extraArgs`, `stderr`, Python's `user` | [`EngineOptions`] |
//! | `executable`, `executableArgs`, `pathToClaudeCodeExecutable` | [`Options::executable`], [`crate::Process`] |
//! | `hooks` | [`Options::hook`] |
//! | `includePartialMessages`, `includeHookEvents`, `forwardSubagentText`, `replayUserMessages` | [`OutputOptions`] |
//! | `maxBudgetUsd`, `maxTurns`, `taskBudget` | [`LimitOptions`] |
//! | `mcpServers`, `strictMcpConfig` | [`Options::mcp_server`], [`Options::server`] for those made of functions, [`ToolOptions`] |
//! | `onElicitation` | [`Options::on_elicitation`] |
//! | `onUserDialog`, `supportedDialogKinds` | [`Options::on_dialog`] |
//! | `outputFormat` | [`crate::prompt_as`], [`OutputOptions::schema`] |
//! | `sessionStore` | [`Options::session_store`] |
//! | `systemPrompt` | [`SystemPrompt`]; without one the model is told nothing, as in the other SDKs |
//! | `tools` | [`ToolOptions::base`] |

mod shadow;
mod start;

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

pub(crate) use self::start::hook_id;
pub use ostler_proto::agent::AgentDefinition;
pub use ostler_proto::launch::{
    Effort, LimitOptions, ModelOptions, ModelPrice, OutputOptions, RecordingChoice, ReplayMatch,
    ReplayTiming, ReplayTools, SessionChoice, SettingSource, Thinking, ThinkingDisplay, ToolSet,
};
pub use ostler_proto::mcp::McpServerConfig;
pub use ostler_proto::permission::PermissionMode;
pub use ostler_proto::sandbox::SandboxSettings;
use tokio_util::sync::CancellationToken;

use crate::callback::Reply;
use crate::dialog::{Dialog, DialogRequest, OnDialog};
use crate::elicitation::{ElicitationRequest, Elicited, OnElicitation, on_elicitation};
use crate::hook::Hook;
use crate::mcp::InProcessServer;
use crate::permission::{
    Answers, Decision, OnPermission, OnQuestion, PermissionRequest, QuestionRequest, on_permission,
    on_question,
};
use crate::process::Process;
use crate::session_store::SessionStoreOptions;
pub use crate::transport::Environment;
use crate::transport::{StderrListener, Transport};

/// Hears every message of a session.
pub type MessageListener = Arc<dyn Fn(&crate::Message) + Send + Sync>;

/// What a session is to be like. The default leaves everything to the engine, and loads no settings files.
///
/// What is used often has a method here; everything stands in one of the groups:
///
/// ```
/// use ostler_sdk::Options;
///
/// let mut options = Options::new().model("claude-sonnet-5-5").cwd("/tmp").max_turns(5).allow(["Read", "Grep"]);
/// options.limits.max_budget_usd = Some(0.5);
/// options.output.partial_messages = true;
/// ```
///
/// `E` is the engine that runs if no other one is named: an executable in the crate `ostler-sdk`, the engine in this
/// process in the crate `ostler`. Both crates call the type `Options`, and everything takes either of them
/// ([`IntoOptions`]).
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct OptionsFor<E> {
    /// Which model, and how it answers.
    pub model: ModelOptions,
    /// What ends a turn that the model would not end.
    pub limits: LimitOptions,
    /// Where the agent works and what it is told beforehand.
    pub context: ContextOptions,
    /// What the agent can do.
    pub tools: ToolOptions,
    /// What it may do.
    pub permissions: PermissionOptions,
    /// Hooks.
    pub hooks: Vec<Hook>,
    /// Which conversation it is.
    pub session: SessionOptions,
    /// What is reported.
    pub output: OutputOptions,
    /// Whether the run is recorded, or replayed from a recording; for `ostler` as the engine.
    pub tape: RecordingChoice,
    /// The engine itself.
    pub engine: EngineOptions,
    default_engine: PhantomData<fn() -> E>,
}

/// Options of a session that runs an executable, unless they say otherwise; see [`OptionsFor`].
pub type Options = OptionsFor<Process>;

/// Options with any default engine: what everything that starts a session takes.
pub trait IntoOptions {
    /// The same options; the default engine is now named in them.
    fn into_options(self) -> Options;
}

impl<E: Transport + Default> IntoOptions for OptionsFor<E> {
    fn into_options(mut self) -> Options {
        self.engine.transport.get_or_insert_with(|| Arc::new(E::default()));
        OptionsFor {
            model: self.model,
            limits: self.limits,
            context: self.context,
            tools: self.tools,
            permissions: self.permissions,
            hooks: self.hooks,
            session: self.session,
            output: self.output,
            tape: self.tape,
            engine: self.engine,
            default_engine: PhantomData,
        }
    }
}

/// Where the agent works and what it is told beforehand.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ContextOptions {
    /// The working directory; this process's own if `None`.
    pub cwd: Option<PathBuf>,
    /// More directories it may work in.
    pub additional_directories: Vec<PathBuf>,
    /// Its system prompt.
    pub system_prompt: SystemPrompt,
    /// Which settings files are read; none if empty.
    pub setting_sources: Vec<SettingSource>,
    /// More settings: JSON, or the path of a file.
    pub settings: Option<String>,
    /// How commands are confined.
    pub sandbox: Option<SandboxSettings>,
    /// The agent that leads the conversation, by its name.
    pub agent: Option<String>,
    /// Folders of plugins.
    pub plugins: Vec<PathBuf>,
}

/// A system prompt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SystemPrompt {
    /// None: the model sees the tools and the conversation.
    #[default]
    Empty,
    /// This text.
    Text(String),
    /// The engine's own, with something added.
    Preset {
        /// What is added.
        append: Option<String>,
    },
}

/// What the agent can do.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct ToolOptions {
    /// The built-in tools there are; all of the engine's own if `None`.
    pub base: Option<ToolSet>,
    /// MCP servers by name.
    pub mcp_servers: BTreeMap<String, McpServerConfig>,
    /// MCP servers in this process.
    pub in_process: Vec<Arc<dyn InProcessServer>>,
    /// Whether MCP servers from anywhere else are left out.
    pub strict_mcp: bool,
    /// Subagents by name.
    pub agents: BTreeMap<String, AgentDefinition>,
}

/// What the agent may do.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct PermissionOptions {
    /// How freely tools run.
    pub mode: PermissionMode,
    /// Must be set for [`PermissionMode::BypassPermissions`].
    pub allow_dangerously_skip_permissions: bool,
    /// Rules for calls that run without a question: `Read`, `Bash(git:*)`.
    pub allowed: Vec<String>,
    /// Tools that are not there, and rules for calls that never run.
    pub disallowed: Vec<String>,
    /// How long callbacks may take; for ever if `None`. What is not answered in time is denied.
    pub timeout: Option<Duration>,
    pub(crate) on_permission: Option<OnPermission>,
    pub(crate) on_question: Option<OnQuestion>,
    pub(crate) on_elicitation: Option<OnElicitation>,
    pub(crate) on_dialog: Option<OnDialog>,
}

impl PermissionOptions {
    /// Whether a callback decides about calls.
    pub fn has_callback(&self) -> bool {
        self.on_permission.is_some()
    }
}

/// Which conversation it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionOptions {
    /// A conversation to go on with; a new one by default.
    pub choice: SessionChoice,
    /// Whether nothing is kept on disk.
    pub ephemeral: bool,
    /// Whether every change of a file can be taken back.
    pub file_checkpointing: bool,
    /// A store that keeps the session in addition to the disk, see [`crate::session_store`].
    pub store: Option<SessionStoreOptions>,
}

/// The engine itself.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct EngineOptions {
    /// How it is reached; the default engine of the crate if `None`, see [`OptionsFor`].
    pub transport: Option<Arc<dyn Transport>>,
    /// Its environment.
    pub env: Environment,
    /// The user it runs as, by name or number: with that user's rights and main group, and no other group. For
    /// executables; this process must have the right to become that user. The environment stays as it is: set `HOME`
    /// with [`Options::env`].
    pub user: Option<String>,
    /// Arguments this version has no name for: the name without its dashes, and the value if it takes one. The engine in
    /// this process reads those that `ostler` knows, and refuses others.
    pub extra_args: Vec<(String, Option<String>)>,
    /// Hears what it writes to its error output.
    pub stderr: Option<StderrListener>,
    /// Hears every message, see [`Options::on_message`].
    pub messages: Option<MessageListener>,
    /// How long it may take to start; 60 s if `None`.
    pub start_timeout: Option<Duration>,
    /// Ends the session when it fires, as dropping it does; what is being read then ends with [`crate::Error::Cancelled`].
    pub cancellation: Option<CancellationToken>,
}

impl<E> OptionsFor<E> {
    /// The defaults.
    pub fn new() -> Self
    where
        E: Default,
    {
        Self::default()
    }

    /// The model.
    #[must_use]
    pub fn model(mut self, name: impl Into<String>) -> Self {
        self.model.name = Some(name.into());
        self
    }

    /// How much trouble the model takes.
    ///
    /// ```
    /// use ostler_sdk::Options;
    /// use ostler_sdk::options::Effort;
    ///
    /// let options = Options::new().effort(Effort::Low);
    /// ```
    #[must_use]
    pub fn effort(mut self, effort: Effort) -> Self {
        self.model.effort = Some(effort);
        self
    }

    /// The working directory.
    #[must_use]
    pub fn cwd(mut self, folder: impl Into<PathBuf>) -> Self {
        self.context.cwd = Some(folder.into());
        self
    }

    /// A system prompt in place of the engine's own.
    #[must_use]
    pub fn system_prompt(mut self, text: impl Into<String>) -> Self {
        self.context.system_prompt = SystemPrompt::Text(text.into());
        self
    }

    /// The engine's own system prompt.
    #[must_use]
    pub fn preset_prompt(mut self) -> Self {
        self.context.system_prompt = SystemPrompt::Preset { append: None };
        self
    }

    /// The most model calls per prompt.
    #[must_use]
    pub fn max_turns(mut self, turns: u64) -> Self {
        self.limits.max_turns = Some(turns);
        self
    }

    /// The most dollars.
    #[must_use]
    pub fn max_budget_usd(mut self, dollars: f64) -> Self {
        self.limits.max_budget_usd = Some(dollars);
        self
    }

    /// What a model costs, in dollars per million tokens: it counts for [`LimitOptions::max_budget_usd`] and for the cost of
    /// results, in place of the engine's own price list. A `*` at the end of the name stands for any end. For `ostler` as
    /// the engine, which refuses a limit in dollars with a model whose price it does not know.
    ///
    /// ```
    /// use ostler_sdk::Options;
    /// use ostler_sdk::options::ModelPrice;
    ///
    /// let options = Options::new().model("my-model").max_budget_usd(2.0).model_price("my-model", ModelPrice::new(3.0, 15.0));
    /// ```
    #[must_use]
    pub fn model_price(mut self, model: impl Into<String>, price: ModelPrice) -> Self {
        self.model.prices.insert(model.into(), price);
        self
    }

    /// Calls that run without a question: `Read`, `Bash(git:*)`.
    #[must_use]
    pub fn allow<R: Into<String>>(mut self, rules: impl IntoIterator<Item = R>) -> Self {
        self.permissions.allowed.extend(rules.into_iter().map(Into::into));
        self
    }

    /// Calls that never run.
    #[must_use]
    pub fn deny<R: Into<String>>(mut self, rules: impl IntoIterator<Item = R>) -> Self {
        self.permissions.disallowed.extend(rules.into_iter().map(Into::into));
        self
    }

    /// How freely tools run.
    #[must_use]
    pub fn permission_mode(mut self, mode: PermissionMode) -> Self {
        self.permissions.mode = mode;
        self
    }

    /// Who decides on calls that no rule decides on. A callback that panics, or takes longer than
    /// [`PermissionOptions::timeout`], denies. It returns its decision, or a future of it.
    ///
    /// Rules of [`Options::allow`] come first. If one of them allows every call of a tool, so that the callback is never
    /// asked about that tool, a warning says so (`tracing`, and the listener of [`Options::on_stderr`]).
    ///
    /// ```
    /// use ostler_sdk::{Decision, Options};
    ///
    /// let short = Options::new().on_permission(|call| Decision::deny(format!("no {}", call.tool_name)));
    /// let with_waiting = Options::new().on_permission(|call| async move {
    ///     tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    ///     Decision::allow()
    /// });
    /// ```
    #[must_use]
    pub fn on_permission<F, R, K>(mut self, callback: F) -> Self
    where
        F: Fn(PermissionRequest) -> R + Send + Sync + 'static,
        R: Reply<Decision, K>,
    {
        self.permissions.on_permission = Some(on_permission(callback));
        self
    }

    /// Who answers the agent's questions. They never come as permission questions.
    #[must_use]
    pub fn on_question<F, R, K>(mut self, callback: F) -> Self
    where
        F: Fn(QuestionRequest) -> R + Send + Sync + 'static,
        R: Reply<Answers, K>,
    {
        self.permissions.on_question = Some(on_question(callback));
        self
    }

    /// Who answers what MCP servers ask. Without anybody, and when the callback panics, the answer is no.
    #[must_use]
    pub fn on_elicitation<F, R, K>(mut self, callback: F) -> Self
    where
        F: Fn(ElicitationRequest) -> R + Send + Sync + 'static,
        R: Reply<Elicited, K>,
    {
        self.permissions.on_elicitation = Some(on_elicitation(callback));
        self
    }

    /// Who shows dialogs, and which kinds of them: engines only ask for kinds that are named here. A dialog is cancelled
    /// when the callback panics, or takes longer than [`PermissionOptions::timeout`]. The kinds are the engine's; newer
    /// versions of Claude Code have some, Ostler's own engine has none.
    #[must_use]
    pub fn on_dialog<N, F, R, K>(mut self, kinds: impl IntoIterator<Item = N>, callback: F) -> Self
    where
        N: Into<String>,
        F: Fn(DialogRequest) -> R + Send + Sync + 'static,
        R: Reply<Dialog, K>,
    {
        let kinds = kinds.into_iter().map(Into::into).collect();
        self.permissions.on_dialog = Some(OnDialog::new(kinds, callback));
        self
    }

    /// Hears what the engine writes to its error output. The end of it is kept for errors in any case.
    #[must_use]
    pub fn on_stderr(mut self, listener: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.engine.stderr = Some(Arc::new(listener));
        self
    }

    /// Hears every message as it comes: before it can be read, and before anything is answered that the engine asks
    /// later. Hooks can so rely on what was said before them, however slowly the messages are read. It must not take
    /// long; if it panics, the session goes on.
    #[must_use]
    pub fn on_message(
        mut self,
        listener: impl Fn(&crate::Message) + Send + Sync + 'static,
    ) -> Self {
        self.engine.messages = Some(Arc::new(listener));
        self
    }

    /// Ends the session when the token fires.
    #[must_use]
    pub fn cancel_with(mut self, token: CancellationToken) -> Self {
        self.engine.cancellation = Some(token);
        self
    }

    /// Adds a hook.
    #[must_use]
    pub fn hook(mut self, hook: Hook) -> Self {
        self.hooks.push(hook);
        self
    }

    /// Adds an MCP server that lives in this process.
    #[must_use]
    pub fn server(mut self, server: impl InProcessServer) -> Self {
        self.tools.in_process.push(Arc::new(server));
        self
    }

    /// Adds an MCP server.
    #[must_use]
    pub fn mcp_server(mut self, name: impl Into<String>, server: McpServerConfig) -> Self {
        self.tools.mcp_servers.insert(name.into(), server);
        self
    }

    /// Adds a subagent.
    #[must_use]
    pub fn agent(mut self, name: impl Into<String>, agent: AgentDefinition) -> Self {
        self.tools.agents.insert(name.into(), agent);
        self
    }

    /// Sends the events of a response as they come.
    #[must_use]
    pub fn partial_messages(mut self) -> Self {
        self.output.partial_messages = true;
        self
    }

    /// Asks for all answers of the session in the shape of this type: the engine checks them, and
    /// [`crate::Client::prompt_as`] returns them. See [`crate::answer_schema`].
    #[must_use]
    pub fn answers<T: schemars::JsonSchema>(mut self) -> Self {
        self.output.schema = Some(crate::answer_schema::<T>());
        self
    }

    /// Goes on with a conversation.
    #[must_use]
    pub fn resume(mut self, session: impl Into<String>) -> Self {
        self.session.choice.resume = Some(session.into());
        self
    }

    /// Goes on with the newest conversation of the working directory.
    #[must_use]
    pub fn continue_newest(mut self) -> Self {
        self.session.choice.go_on = true;
        self
    }

    /// Goes on in a copy, and leaves the original as it is.
    #[must_use]
    pub fn fork(mut self) -> Self {
        self.session.choice.fork = true;
        self
    }

    /// Keeps the session in a store as well, and resumes it from there. See [`crate::session_store`].
    #[must_use]
    pub fn session_store(mut self, store: impl Into<SessionStoreOptions>) -> Self {
        self.session.store = Some(store.into());
        self
    }

    /// Sets a variable of the engine's environment.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.engine.env.variables.insert(name.into(), value.into());
        self
    }

    /// The engine's executable.
    #[must_use]
    pub fn executable(self, path: impl AsRef<std::path::Path>) -> Self {
        self.transport(Process::new(path))
    }

    /// Adds all traffic with the model to a recording, without secrets. For `ostler` as the engine, in this process or
    /// as a program.
    #[must_use]
    pub fn record(mut self, file: impl AsRef<std::path::Path>) -> Self {
        self.tape.record = Some(file.as_ref().display().to_string());
        self
    }

    /// Lets a recording answer in the model's place: no key, no network, the same answers every time.
    #[must_use]
    pub fn replay(mut self, file: impl AsRef<std::path::Path>) -> Self {
        self.tape.replay = Some(file.as_ref().display().to_string());
        self
    }

    /// Has a replay take the results of tools from the recording, too: nothing is looked at or touched.
    #[must_use]
    pub fn replay_tools(mut self) -> Self {
        self.tape.replay_tools = Some(ReplayTools::Recorded);
        self
    }

    /// How the engine is reached.
    #[must_use]
    pub fn transport(mut self, transport: impl Transport) -> Self {
        self.engine.transport = Some(Arc::new(transport));
        self
    }
}
