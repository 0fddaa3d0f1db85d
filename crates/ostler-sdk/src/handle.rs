//! [`Handle`]: what can be done to a session from anywhere.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use ostler_proto::control::{
    AccountInfo, AgentInfo, ApplyFlagSettings, Ask, AskEngine, BackgroundTasks, CancelAsyncMessage,
    ContextUsageReply, GetBinaryVersion, GetBinaryVersionReply, GetContextUsage, GetSettings,
    GetSettingsReply, GetTaskOutput, GetTaskOutputReply, GetUsage, Initialize, InitializeReply,
    Interrupt, InterruptReply, ListPermissionRules, McpReadResource, McpReadResourceReply,
    McpReconnect, McpSetServers, McpSetServersReply, McpStatus, McpStatusReply, McpToggle,
    ModelInfo, PermissionRulesState, ReadFile, ReadFileReply, ReloadPlugins, ReloadPluginsReply,
    ReloadSkills, RenameSession, RewindFiles, RewindFilesReply, SeedReadState,
    SetMaxThinkingTokens, SetModel, SetPermissionMode, SlashCommand, StopTask, Success, UsageReply,
};
use ostler_proto::mcp::{McpServerConfig, SdkServer};
use ostler_proto::message::User;
use ostler_proto::permission::PermissionMode;
use ostler_proto::{Num, TaskId, Uuid};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use crate::error::Error;
use crate::mcp::InProcessServer;
use crate::pending;
use crate::session::{Accepted, Command};
use crate::version::EngineVersion;

/// What can be done to a session from anywhere, also while its messages are being read. Cheap to clone.
///
/// Every method that asks the engine something fails in the same three ways, and never hangs: with
/// [`Error::Refused`] when the engine says no, with [`Error::Unsupported`] when it does not know the request, with
/// [`Error::Closed`] when it has gone.
///
/// ```no_run
/// # async fn example() -> Result<(), ostler_sdk::Error> {
/// let mut client = ostler_sdk::Client::connect(ostler_sdk::Options::new()).await?;
/// let handle = client.handle();
/// tokio::spawn(async move {
///     tokio::signal::ctrl_c().await.ok();
///     handle.interrupt().await.ok();
/// });
/// client.prompt("Count to a million").await?;
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Handle {
    commands: mpsc::Sender<Command>,
    introduction: Arc<OnceLock<InitializeReply>>,
    /// The version as far as the engine has told it.
    version: Arc<OnceLock<EngineVersion>>,
    /// What the host said about itself, to be said again.
    initialize: Arc<Initialize>,
}

impl std::fmt::Debug for Handle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Handle").field("is_over", &self.commands.is_closed()).finish()
    }
}

impl Handle {
    pub(crate) fn new(
        commands: mpsc::Sender<Command>,
        version: Arc<OnceLock<EngineVersion>>,
        initialize: Initialize,
    ) -> Self {
        Self { commands, introduction: Arc::default(), version, initialize: Arc::new(initialize) }
    }

    pub(crate) async fn introduce(&self) -> Result<(), Error> {
        let reply = self.ask((*self.initialize).clone()).await?;
        // Older engines tell it with the first `init`, where the session looks at it.
        if let Some(version) = EngineVersion::of_reply(&reply) {
            let warning = version.judge()?;
            // Introduced once only.
            let _ = self.version.set(version);
            if let Some(warning) = warning {
                self.command(Command::WarnOfVersion(warning)).await?;
            }
        }
        // Introduced once only.
        let _ = self.introduction.set(reply);
        Ok(())
    }

    pub(crate) async fn command(&self, command: Command) -> Result<(), Error> {
        let over = |_| Error::Closed("the engine has ended".to_owned());
        self.commands.send(command).await.map_err(over)
    }

    /// Sends a prompt. It waits its turn if the agent is busy. A prompt without a `uuid` is given one.
    ///
    /// # Errors
    /// When the session is over, or its input is closed: a query closes it after its last answer.
    pub async fn send(&self, prompt: impl Into<User>) -> Result<(), Error> {
        let mut prompt = prompt.into();
        pending::name(&mut prompt);
        self.accepted(|taken| Command::Say(Box::new(prompt), taken)).await
    }

    /// Gives a command, and waits until the session has taken it up: one that it cannot carry out is an error.
    pub(crate) async fn accepted(
        &self,
        command: impl FnOnce(Accepted) -> Command,
    ) -> Result<(), Error> {
        let (taken, is_taken) = oneshot::channel();
        self.command(command(taken)).await?;
        is_taken.await.map_err(|_| Error::Closed("the engine has ended".to_owned()))?
    }

    /// Asks the engine anything the protocol has a type for.
    ///
    /// ```no_run
    /// # async fn example(handle: ostler_sdk::Handle) -> Result<(), ostler_sdk::Error> {
    /// use ostler_sdk::proto::control::GetSessionCost;
    ///
    /// println!("{}", handle.ask(GetSessionCost::default()).await?.text);
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// When the engine refuses, does not know the request, or is gone; never a hang.
    pub async fn ask<Q: Ask + Into<AskEngine>>(&self, request: Q) -> Result<Q::Reply, Error> {
        let success = self.ask_raw(Q::SUBTYPE, request.into()).await?;
        Ok(Q::read_reply(success.response.as_ref())?)
    }

    async fn ask_raw(&self, name: &str, request: AskEngine) -> Result<Success, Error> {
        let (answer, answered) = oneshot::channel();
        self.command(Command::Ask(Box::new(request), answer)).await?;
        let over = |_| Error::Closed("the engine has ended".to_owned());
        answered.await.map_err(over)?.map_err(|error| Error::of_call(name, error))
    }
}

#[expect(clippy::missing_errors_doc, reason = "said once, at `Handle`")]
impl Handle {
    /// Stops the turn that runs. The session stays usable, and prompts that wait are still answered.
    pub async fn interrupt(&self) -> Result<InterruptReply, Error> {
        self.ask(Interrupt::default()).await
    }

    /// Stops the turn that runs and drops the prompts that wait.
    pub async fn interrupt_all(&self) -> Result<InterruptReply, Error> {
        self.ask(Interrupt { cancel_queued: Some(true), ..Interrupt::default() }).await
    }

    /// Takes back a prompt that waits, by the `uuid` it was sent with; whether it still waited.
    pub async fn cancel_queued(&self, prompt: Uuid) -> Result<bool, Error> {
        let request = CancelAsyncMessage { message_uuid: prompt, ..CancelAsyncMessage::default() };
        self.ask(request).await.map(|reply| reply.cancelled)
    }

    /// Changes how freely tools run, from the next call on.
    pub async fn set_permission_mode(&self, mode: PermissionMode) -> Result<(), Error> {
        self.ask(SetPermissionMode { mode, ..SetPermissionMode::default() }).await.map(drop)
    }

    /// Changes the model; `None` for the engine's own choice.
    pub async fn set_model(&self, model: Option<String>) -> Result<(), Error> {
        self.ask(SetModel { model, ..SetModel::default() }).await.map(drop)
    }

    /// Changes how much the model may think; `None` for no limit.
    pub async fn set_max_thinking_tokens(&self, tokens: Option<u64>) -> Result<(), Error> {
        let request =
            SetMaxThinkingTokens { max_thinking_tokens: tokens, ..SetMaxThinkingTokens::default() };
        self.ask(request).await.map(drop)
    }

    /// Puts files back to where they were before a prompt, named by its `uuid`. Needs
    /// [`crate::options::SessionOptions::file_checkpointing`].
    pub async fn rewind_files(&self, prompt: Uuid) -> Result<RewindFilesReply, Error> {
        self.ask(RewindFiles { user_message_id: prompt, ..RewindFiles::default() }).await
    }

    /// What [`Handle::rewind_files`] would do; nothing is changed.
    pub async fn rewind_preview(&self, prompt: Uuid) -> Result<RewindFilesReply, Error> {
        let (user_message_id, dry_run) = (prompt, Some(true));
        self.ask(RewindFiles { user_message_id, dry_run, ..RewindFiles::default() }).await
    }

    /// How the MCP servers are.
    pub async fn mcp_server_status(&self) -> Result<McpStatusReply, Error> {
        self.ask(McpStatus::default()).await
    }

    /// Replaces the MCP servers that were added while the session runs; those of the options stay.
    pub async fn set_mcp_servers(
        &self,
        servers: BTreeMap<String, McpServerConfig>,
    ) -> Result<McpSetServersReply, Error> {
        self.ask(McpSetServers { servers, ..McpSetServers::default() }).await
    }

    /// The same with servers in this process among them.
    pub async fn set_servers(
        &self,
        in_process: Vec<Arc<dyn InProcessServer>>,
        mut others: BTreeMap<String, McpServerConfig>,
    ) -> Result<McpSetServersReply, Error> {
        for server in &in_process {
            let name = server.name();
            let config = SdkServer { name: name.clone(), ..SdkServer::default() };
            if others.insert(name.clone(), McpServerConfig::Sdk(config)).is_some() {
                return Err(Error::Options(format!("there are two MCP servers named {name}")));
            }
        }
        // Known before the engine asks for them.
        self.command(Command::Serve(in_process)).await?;
        self.set_mcp_servers(others).await
    }

    /// Connects an MCP server anew.
    pub async fn reconnect_mcp_server(&self, name: impl Into<String>) -> Result<(), Error> {
        let request = McpReconnect { server_name: name.into(), ..McpReconnect::default() };
        self.ask(request).await.map(drop)
    }

    /// Switches an MCP server on or off.
    pub async fn toggle_mcp_server(
        &self,
        name: impl Into<String>,
        enabled: bool,
    ) -> Result<(), Error> {
        let request = McpToggle { server_name: name.into(), enabled, ..McpToggle::default() };
        self.ask(request).await.map(drop)
    }

    /// Reads a resource of an MCP server.
    pub async fn read_mcp_resource(
        &self,
        server: impl Into<String>,
        uri: impl Into<String>,
    ) -> Result<McpReadResourceReply, Error> {
        let (server_name, uri) = (server.into(), uri.into());
        self.ask(McpReadResource { server_name, uri, ..McpReadResource::default() }).await
    }

    /// Ends a background task.
    pub async fn stop_task(&self, task_id: TaskId) -> Result<(), Error> {
        self.ask(StopTask { task_id, ..StopTask::default() }).await.map(drop)
    }

    /// The end of what a background task has written.
    pub async fn task_output(&self, task_id: TaskId) -> Result<GetTaskOutputReply, Error> {
        self.ask(GetTaskOutput { task_id, ..GetTaskOutput::default() }).await
    }

    /// Lets the tools that run go on in the background, so that the turn can.
    pub async fn move_to_background(&self) -> Result<(), Error> {
        self.ask(BackgroundTasks::default()).await.map(drop)
    }

    /// What fills the context window.
    pub async fn context_usage(&self) -> Result<ContextUsageReply, Error> {
        self.ask(GetContextUsage::default()).await
    }

    /// What the session used, in tokens and money.
    pub async fn usage(&self) -> Result<UsageReply, Error> {
        self.ask(GetUsage::default()).await
    }

    /// The settings that hold, and where they come from.
    pub async fn settings(&self) -> Result<GetSettingsReply, Error> {
        self.ask(GetSettings::default()).await
    }

    /// Changes settings for this session, as if they had been in [`crate::options::ContextOptions::settings`].
    pub async fn apply_settings(&self, settings: impl Into<Value>) -> Result<(), Error> {
        let settings = settings.into();
        self.ask(ApplyFlagSettings { settings, ..ApplyFlagSettings::default() }).await.map(drop)
    }

    /// The permission rules and folders that hold.
    pub async fn permission_rules(&self) -> Result<PermissionRulesState, Error> {
        self.ask(ListPermissionRules::default()).await.map(|reply| reply.state)
    }

    /// Gives the session a title.
    pub async fn rename(&self, title: impl Into<String>) -> Result<(), Error> {
        self.ask(RenameSession { title: title.into(), ..RenameSession::default() }).await.map(drop)
    }

    /// Reads a file as the engine sees it.
    pub async fn read_file(&self, path: impl AsRef<Path>) -> Result<ReadFileReply, Error> {
        let path = path.as_ref().display().to_string();
        self.ask(ReadFile { path, ..ReadFile::default() }).await
    }

    /// Says that the host has read a file, as it was at a time (Unix milliseconds): the agent may then change it
    /// without reading it first.
    pub async fn seed_read_state(
        &self,
        path: impl AsRef<Path>,
        mtime: impl Into<Num>,
    ) -> Result<(), Error> {
        let path = path.as_ref().display().to_string();
        let request = SeedReadState { path, mtime: mtime.into(), ..SeedReadState::default() };
        self.ask(request).await.map(drop)
    }

    /// Reads the skills anew; all there are then.
    pub async fn reload_skills(&self) -> Result<Vec<SlashCommand>, Error> {
        self.ask(ReloadSkills::default()).await.map(|reply| reply.skills)
    }

    /// Reads the plugins anew.
    pub async fn reload_plugins(&self) -> Result<ReloadPluginsReply, Error> {
        self.ask(ReloadPlugins::default()).await
    }

    /// The engine's version.
    pub async fn engine_version(&self) -> Result<GetBinaryVersionReply, Error> {
        self.ask(GetBinaryVersion::default()).await
    }

    /// Introduces the host once more, for an engine that may have lost sight of it. Questions that are still open
    /// come again, and go to the same callbacks; those that are being answered already are not asked twice.
    pub async fn reinitialize(&self) -> Result<InitializeReply, Error> {
        self.ask((*self.initialize).clone()).await
    }
}

impl Handle {
    /// What the engine said when the session began.
    pub fn introduction(&self) -> Option<&InitializeReply> {
        self.introduction.get()
    }

    /// The slash commands there are.
    pub fn supported_commands(&self) -> Vec<SlashCommand> {
        self.introduction().and_then(|reply| reply.commands.clone()).unwrap_or_default()
    }

    /// The models there are.
    pub fn supported_models(&self) -> Vec<ModelInfo> {
        self.introduction().and_then(|reply| reply.models.clone()).unwrap_or_default()
    }

    /// Which engine it is. `None` with engines before Claude Code 2.1.325 until their first turn begins, and with
    /// those that do not tell their version.
    pub fn reported_version(&self) -> Option<EngineVersion> {
        self.version.get().cloned()
    }

    /// The subagents there are.
    pub fn supported_agents(&self) -> Vec<AgentInfo> {
        self.introduction().and_then(|reply| reply.agents.clone()).unwrap_or_default()
    }

    /// Whose account it is.
    pub fn account_info(&self) -> Option<AccountInfo> {
        self.introduction().and_then(|reply| reply.account.clone())
    }
}
