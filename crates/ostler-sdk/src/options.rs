//! [`Options`]: the options of a session.
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
//! | `systemPrompt` | [`SystemPrompt`]; empty by default, as in the other SDKs |
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
pub use ostler_proto::sandbox::{SandboxFilesystem, SandboxNetwork, SandboxSettings};
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

/// Receives every message of a session.
pub type MessageListener = Arc<dyn Fn(&crate::Message) + Send + Sync>;

/// The options of a session. The default leaves everything to the engine, and loads no settings files.
///
/// Every option is a field of one of the groups. Those that are used often also have a method:
///
/// ```
/// use ostler_sdk::Options;
///
/// let mut options = Options::new().model("claude-sonnet-5-5").cwd("/tmp").max_turns(5).allow(["Read", "Grep"]);
/// options.limits.max_budget_usd = Some(0.5);
/// options.output.partial_messages = true;
/// ```
///
/// `E` is the default engine: an executable in the crate `ostler-sdk`, the engine inside this process in the crate
/// `ostler`. In both crates the type is named `Options`, and all functions accept both ([`IntoOptions`]).
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct OptionsFor<E> {
    /// The model and its parameters.
    pub model: ModelOptions,
    /// Limits that end a turn.
    pub limits: LimitOptions,
    /// The working directory, the system prompt and the settings.
    pub context: ContextOptions,
    /// The tools, MCP servers and subagents of the agent.
    pub tools: ToolOptions,
    /// Which calls may run.
    pub permissions: PermissionOptions,
    /// Hooks.
    pub hooks: Vec<Hook>,
    /// Which conversation to resume, and how sessions are stored.
    pub session: SessionOptions,
    /// What the host receives.
    pub output: OutputOptions,
    /// Whether the run is recorded, or replayed from a recording; only for `ostler` as the engine.
    pub tape: RecordingChoice,
    /// How the engine is started.
    pub engine: EngineOptions,
    default_engine: PhantomData<fn() -> E>,
}

/// Options whose default engine is an executable; see [`OptionsFor`].
pub type Options = OptionsFor<Process>;

/// Options with any default engine. All functions that start a session accept them.
pub trait IntoOptions {
    /// The same options, with the default engine written into them.
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

/// The working directory, the system prompt and the settings of the agent.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ContextOptions {
    /// The working directory; that of this process if `None`.
    pub cwd: Option<PathBuf>,
    /// More directories in which the agent may work.
    pub additional_directories: Vec<PathBuf>,
    /// The system prompt.
    pub system_prompt: SystemPrompt,
    /// Which settings files are read; none if empty.
    pub setting_sources: Vec<SettingSource>,
    /// More settings: JSON, or the path of a file.
    pub settings: Option<String>,
    /// The sandbox for commands.
    pub sandbox: Option<SandboxSettings>,
    /// The name of the agent that runs the main conversation.
    pub agent: Option<String>,
    /// Folders of plugins.
    pub plugins: Vec<PathBuf>,
}

/// A system prompt.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SystemPrompt {
    /// No system prompt: the model sees only the tools and the conversation.
    #[default]
    Empty,
    /// This text.
    Text(String),
    /// The engine's own system prompt.
    Preset {
        /// A text to append to it.
        append: Option<String>,
    },
}

/// The tools, MCP servers and subagents of the agent.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct ToolOptions {
    /// The built-in tools that the agent has; the engine's default if `None`.
    pub base: Option<ToolSet>,
    /// MCP servers by name.
    pub mcp_servers: BTreeMap<String, McpServerConfig>,
    /// MCP servers in this process.
    pub in_process: Vec<Arc<dyn InProcessServer>>,
    /// Whether MCP servers that these options do not name are left out.
    pub strict_mcp: bool,
    /// Subagents by name.
    pub agents: BTreeMap<String, AgentDefinition>,
}

/// Which calls may run, and the callbacks that decide.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct PermissionOptions {
    /// The permission mode.
    pub mode: PermissionMode,
    /// Must be set for [`PermissionMode::BypassPermissions`].
    pub allow_dangerously_skip_permissions: bool,
    /// Rules for calls that run without approval: `Read`, `Bash(git:*)`.
    pub allowed: Vec<String>,
    /// Rules for calls that never run. A tool that is denied without conditions is not offered to the model.
    pub disallowed: Vec<String>,
    /// The timeout of callbacks; none if `None`. A request that is not answered in time is denied.
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

/// Which conversation to resume, and how the session is stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionOptions {
    /// The conversation to resume; a new one by default.
    pub choice: SessionChoice,
    /// Whether the session is not stored on disk.
    pub ephemeral: bool,
    /// Whether changes of files can be undone with [`crate::Handle::rewind_files`].
    pub file_checkpointing: bool,
    /// A store for the session in addition to the disk, see [`crate::session_store`].
    pub store: Option<SessionStoreOptions>,
}

/// How the engine is started.
#[derive(Clone, Default)]
#[non_exhaustive]
pub struct EngineOptions {
    /// The transport; the default engine of the crate if `None`, see [`OptionsFor`].
    pub transport: Option<Arc<dyn Transport>>,
    /// The engine's environment.
    pub env: Environment,
    /// The user that the engine runs as, by name or number, with that user's main group and no other group. Only for
    /// executables; this process must be allowed to become that user. The environment does not change: set `HOME` with
    /// [`Options::env`].
    pub user: Option<String>,
    /// Arguments that this version has no option for: the name without its dashes, and the value if there is one. The
    /// embedded engine accepts those that `ostler` knows, and refuses others.
    pub extra_args: Vec<(String, Option<String>)>,
    /// Receives what the engine writes to stderr.
    pub stderr: Option<StderrListener>,
    /// Receives every message, see [`Options::on_message`].
    pub messages: Option<MessageListener>,
    /// How long the engine may take to start; 60 s if `None`.
    pub start_timeout: Option<Duration>,
    /// Ends the session when it fires, as dropping it does. A pending read then returns [`crate::Error::Cancelled`].
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

    /// The effort of the model.
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

    /// The most requests to the model per prompt.
    #[must_use]
    pub fn max_turns(mut self, turns: u64) -> Self {
        self.limits.max_turns = Some(turns);
        self
    }

    /// The limit on cost, in dollars.
    #[must_use]
    pub fn max_budget_usd(mut self, dollars: f64) -> Self {
        self.limits.max_budget_usd = Some(dollars);
        self
    }

    /// The price of a model, in dollars per million tokens. It replaces the engine's own price in
    /// [`LimitOptions::max_budget_usd`] and in the cost of results. A `*` at the end of the name matches any rest. Only
    /// for `ostler` as the engine, which refuses a limit in dollars for a model without a known price.
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

    /// Adds rules for calls that run without approval: `Read`, `Bash(git:*)`.
    #[must_use]
    pub fn allow<R: Into<String>>(mut self, rules: impl IntoIterator<Item = R>) -> Self {
        self.permissions.allowed.extend(rules.into_iter().map(Into::into));
        self
    }

    /// Adds rules for calls that never run.
    #[must_use]
    pub fn deny<R: Into<String>>(mut self, rules: impl IntoIterator<Item = R>) -> Self {
        self.permissions.disallowed.extend(rules.into_iter().map(Into::into));
        self
    }

    /// The permission mode.
    #[must_use]
    pub fn permission_mode(mut self, mode: PermissionMode) -> Self {
        self.permissions.mode = mode;
        self
    }

    /// The callback that decides on calls that no rule decides on. It returns its decision, or a future of it. If it
    /// panics, or takes longer than [`PermissionOptions::timeout`], the call is denied.
    ///
    /// Rules of [`Options::allow`] come first. If one of them allows every call of a tool, the callback is never asked
    /// about that tool, and the SDK warns (`tracing`, and the listener of [`Options::on_stderr`]).
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

    /// The callback that answers the agent's questions. They are never passed to [`Options::on_permission`].
    #[must_use]
    pub fn on_question<F, R, K>(mut self, callback: F) -> Self
    where
        F: Fn(QuestionRequest) -> R + Send + Sync + 'static,
        R: Reply<Answers, K>,
    {
        self.permissions.on_question = Some(on_question(callback));
        self
    }

    /// The callback that answers questions of MCP servers. Without one, and when it panics, the answer is no.
    #[must_use]
    pub fn on_elicitation<F, R, K>(mut self, callback: F) -> Self
    where
        F: Fn(ElicitationRequest) -> R + Send + Sync + 'static,
        R: Reply<Elicited, K>,
    {
        self.permissions.on_elicitation = Some(on_elicitation(callback));
        self
    }

    /// The callback that shows dialogs of these kinds; engines request no other kinds. A dialog is cancelled when the
    /// callback panics, or takes longer than [`PermissionOptions::timeout`]. The engine defines the kinds: newer
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

    /// The listener that receives what the engine writes to stderr. Errors contain the end of stderr in any case.
    #[must_use]
    pub fn on_stderr(mut self, listener: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.engine.stderr = Some(Arc::new(listener));
        self
    }

    /// The listener that receives every message on arrival: before the message can be read, and before later requests
    /// of the engine are answered. So hooks know all earlier messages, however slowly the messages are read. The
    /// listener must not take long. If it panics, the session continues.
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

    /// Adds an MCP server inside this process.
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

    /// Turns on partial messages: the host receives the events of a response as they arrive.
    #[must_use]
    pub fn partial_messages(mut self) -> Self {
        self.output.partial_messages = true;
        self
    }

    /// Requests all answers of the session as this type: the engine checks them, and [`crate::Client::prompt_as`]
    /// returns them. See [`crate::answer_schema`].
    #[must_use]
    pub fn answers<T: schemars::JsonSchema>(mut self) -> Self {
        self.output.schema = Some(crate::answer_schema::<T>());
        self
    }

    /// Resumes a conversation.
    #[must_use]
    pub fn resume(mut self, session: impl Into<String>) -> Self {
        self.session.choice.resume = Some(session.into());
        self
    }

    /// Resumes the newest conversation of the working directory.
    #[must_use]
    pub fn continue_newest(mut self) -> Self {
        self.session.choice.go_on = true;
        self
    }

    /// Resumes a copy of the conversation. The original does not change.
    #[must_use]
    pub fn fork(mut self) -> Self {
        self.session.choice.fork = true;
        self
    }

    /// Also stores the session in a store, and resumes it from there. See [`crate::session_store`].
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

    /// Appends all traffic with the model to a recording, without secrets. Only for `ostler` as the engine, embedded or
    /// as a program.
    #[must_use]
    pub fn record(mut self, file: impl AsRef<std::path::Path>) -> Self {
        self.tape.record = Some(file.as_ref().display().to_string());
        self
    }

    /// Answers from a recording in place of the model: no key, no network, the same answers every time.
    #[must_use]
    pub fn replay(mut self, file: impl AsRef<std::path::Path>) -> Self {
        self.tape.replay = Some(file.as_ref().display().to_string());
        self
    }

    /// Takes the results of tools from the recording too: no tool runs.
    #[must_use]
    pub fn replay_tools(mut self) -> Self {
        self.tape.replay_tools = Some(ReplayTools::Recorded);
        self
    }

    /// The transport, which starts the engine.
    #[must_use]
    pub fn transport(mut self, transport: impl Transport) -> Self {
        self.engine.transport = Some(Arc::new(transport));
        self
    }
}
