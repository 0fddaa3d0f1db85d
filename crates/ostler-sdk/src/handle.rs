//! [`Handle`]: requests to a session from any task.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use ostler_proto::control::{
    AccountInfo, AgentInfo, ApplyFlagSettings, Ask, AskEngine, BackgroundTasks, CancelAsyncMessage,
    ContextUsageReply, GetBinaryVersion, GetBinaryVersionReply, GetContextUsage, GetSettings,
    GetSettingsReply, GetTaskOutput, GetTaskOutputReply, GetUsage, Initialize, InitializeReply,
    Interrupt, InterruptReply, ListPermissionRules, McpAuthenticate, McpAuthenticateReply,
    McpClearAuth, McpOauthCallbackUrl, McpReadResource, McpReadResourceReply, McpReconnect,
    McpSetServers, McpSetServersReply, McpStatus, McpStatusReply, McpToggle, ModelInfo,
    PermissionRulesState, ReadFile, ReadFileReply, ReloadPlugins, ReloadPluginsReply, ReloadSkills,
    RenameSession, RewindFiles, RewindFilesReply, SeedReadState, SetMaxThinkingTokens, SetModel,
    SetPermissionMode, SlashCommand, StopTask, Success, UsageReply,
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

/// Sends requests to a session from any task, also while another task reads messages. Cheap to clone.
///
/// Every method that sends a request fails in the same three ways: with [`Error::Refused`] when the engine refuses it,
/// with [`Error::Unsupported`] when the engine does not know it, with [`Error::Closed`] when the engine has ended. It
/// does not hang.
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
    /// The engine's version, once it has reported it.
    version: Arc<OnceLock<EngineVersion>>,
    /// The host's `initialize`, for [`Handle::reinitialize`].
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
        // Older engines report it with the first `init`, where the session checks it.
        if let Some(version) = EngineVersion::of_reply(&reply) {
            let warning = version.judge()?;
            // This method runs once, so the version is not set yet.
            let _ = self.version.set(version);
            if let Some(warning) = warning {
                self.command(Command::WarnOfVersion(warning)).await?;
            }
        }
        // This method runs once, so the introduction is not set yet.
        let _ = self.introduction.set(reply);
        Ok(())
    }

    pub(crate) async fn command(&self, command: Command) -> Result<(), Error> {
        let over = |_| Error::Closed("the engine has ended".to_owned());
        self.commands.send(command).await.map_err(over)
    }

    /// Sends a prompt. If the agent is busy, the prompt is queued. A prompt without a `uuid` gets one.
    ///
    /// # Errors
    /// When the session is over, or its input is closed; a query closes the input after its last answer.
    pub async fn send(&self, prompt: impl Into<User>) -> Result<(), Error> {
        let mut prompt = prompt.into();
        pending::name(&mut prompt);
        self.accepted(|taken| Command::Say(Box::new(prompt), taken)).await
    }

    /// Sends a command and waits until the session accepts or refuses it.
    pub(crate) async fn accepted(
        &self,
        command: impl FnOnce(Accepted) -> Command,
    ) -> Result<(), Error> {
        let (taken, is_taken) = oneshot::channel();
        self.command(command(taken)).await?;
        is_taken.await.map_err(|_| Error::Closed("the engine has ended".to_owned()))?
    }

    /// Sends any request that the protocol has a type for.
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
    /// When the engine refuses the request, does not know it, or has ended.
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
    /// Stops the current turn. The session stays usable, and queued prompts are still answered.
    pub async fn interrupt(&self) -> Result<InterruptReply, Error> {
        self.ask(Interrupt::default()).await
    }

    /// Stops the current turn and drops the queued prompts.
    pub async fn interrupt_all(&self) -> Result<InterruptReply, Error> {
        self.ask(Interrupt { cancel_queued: Some(true), ..Interrupt::default() }).await
    }

    /// Withdraws the queued prompt with this `uuid`. Returns whether it was still queued.
    pub async fn cancel_queued(&self, prompt: Uuid) -> Result<bool, Error> {
        let request = CancelAsyncMessage { message_uuid: prompt, ..CancelAsyncMessage::default() };
        self.ask(request).await.map(|reply| reply.cancelled)
    }

    /// Changes the permission mode, from the next call on.
    pub async fn set_permission_mode(&self, mode: PermissionMode) -> Result<(), Error> {
        self.ask(SetPermissionMode { mode, ..SetPermissionMode::default() }).await.map(drop)
    }

    /// Changes the model; `None` for the engine's own choice.
    pub async fn set_model(&self, model: Option<String>) -> Result<(), Error> {
        self.ask(SetModel { model, ..SetModel::default() }).await.map(drop)
    }

    /// Changes how many tokens the model may use for thinking; `None` for no limit.
    pub async fn set_max_thinking_tokens(&self, tokens: Option<u64>) -> Result<(), Error> {
        let request =
            SetMaxThinkingTokens { max_thinking_tokens: tokens, ..SetMaxThinkingTokens::default() };
        self.ask(request).await.map(drop)
    }

    /// Restores files as they were before the prompt with this `uuid`. Needs
    /// [`crate::options::SessionOptions::file_checkpointing`].
    pub async fn rewind_files(&self, prompt: Uuid) -> Result<RewindFilesReply, Error> {
        self.ask(RewindFiles { user_message_id: prompt, ..RewindFiles::default() }).await
    }

    /// What [`Handle::rewind_files`] would do; nothing is changed.
    pub async fn rewind_preview(&self, prompt: Uuid) -> Result<RewindFilesReply, Error> {
        let (user_message_id, dry_run) = (prompt, Some(true));
        self.ask(RewindFiles { user_message_id, dry_run, ..RewindFiles::default() }).await
    }

    /// The status of the MCP servers.
    pub async fn mcp_server_status(&self) -> Result<McpStatusReply, Error> {
        self.ask(McpStatus::default()).await
    }

    /// Replaces the MCP servers that were added during the session; those of the options stay.
    pub async fn set_mcp_servers(
        &self,
        servers: BTreeMap<String, McpServerConfig>,
    ) -> Result<McpSetServersReply, Error> {
        self.ask(McpSetServers { servers, ..McpSetServers::default() }).await
    }

    /// [`Handle::set_mcp_servers`] with servers inside this process among them.
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
        // The session must know them before the engine connects to them.
        self.command(Command::Serve(in_process)).await?;
        self.set_mcp_servers(others).await
    }

    /// Connects to an MCP server again.
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

    /// Begins to sign the user in to an MCP server with OAuth. The user opens `auth_url` of the answer in a browser. If the
    /// browser runs on the engine's machine, that is all.
    pub async fn sign_in_to_mcp_server(
        &self,
        name: impl Into<String>,
    ) -> Result<McpAuthenticateReply, Error> {
        self.ask(McpAuthenticate { server_name: name.into(), ..McpAuthenticate::default() }).await
    }

    /// Finishes signing in, with the whole address that the browser was led to.
    pub async fn finish_mcp_sign_in(
        &self,
        name: impl Into<String>,
        callback_url: impl Into<String>,
    ) -> Result<(), Error> {
        let (server_name, callback_url) = (name.into(), callback_url.into());
        let request =
            McpOauthCallbackUrl { server_name, callback_url, ..McpOauthCallbackUrl::default() };
        self.ask(request).await.map(drop)
    }

    /// Deletes the tokens of an MCP server.
    pub async fn sign_out_of_mcp_server(&self, name: impl Into<String>) -> Result<(), Error> {
        let request = McpClearAuth { server_name: name.into(), ..McpClearAuth::default() };
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

    /// The end of a background task's output.
    pub async fn task_output(&self, task_id: TaskId) -> Result<GetTaskOutputReply, Error> {
        self.ask(GetTaskOutput { task_id, ..GetTaskOutput::default() }).await
    }

    /// Moves the running tools to the background, so that the turn continues.
    pub async fn move_to_background(&self) -> Result<(), Error> {
        self.ask(BackgroundTasks::default()).await.map(drop)
    }

    /// What fills the context window.
    pub async fn context_usage(&self) -> Result<ContextUsageReply, Error> {
        self.ask(GetContextUsage::default()).await
    }

    /// The usage of the session, in tokens and dollars.
    pub async fn usage(&self) -> Result<UsageReply, Error> {
        self.ask(GetUsage::default()).await
    }

    /// The effective settings, and where they come from.
    pub async fn settings(&self) -> Result<GetSettingsReply, Error> {
        self.ask(GetSettings::default()).await
    }

    /// Changes settings for this session, as if they had been in [`crate::options::ContextOptions::settings`].
    pub async fn apply_settings(&self, settings: impl Into<Value>) -> Result<(), Error> {
        let settings = settings.into();
        self.ask(ApplyFlagSettings { settings, ..ApplyFlagSettings::default() }).await.map(drop)
    }

    /// The effective permission rules and folders.
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

    /// Reports that the host has read a file with this modification time (Unix milliseconds). The agent may then change
    /// the file without reading it first.
    pub async fn seed_read_state(
        &self,
        path: impl AsRef<Path>,
        mtime: impl Into<Num>,
    ) -> Result<(), Error> {
        let path = path.as_ref().display().to_string();
        let request = SeedReadState { path, mtime: mtime.into(), ..SeedReadState::default() };
        self.ask(request).await.map(drop)
    }

    /// Reads the skills again and returns all of them.
    pub async fn reload_skills(&self) -> Result<Vec<SlashCommand>, Error> {
        self.ask(ReloadSkills::default()).await.map(|reply| reply.skills)
    }

    /// Reads the plugins again.
    pub async fn reload_plugins(&self) -> Result<ReloadPluginsReply, Error> {
        self.ask(ReloadPlugins::default()).await
    }

    /// The engine's version.
    pub async fn engine_version(&self) -> Result<GetBinaryVersionReply, Error> {
        self.ask(GetBinaryVersion::default()).await
    }

    /// Sends `initialize` again, for an engine that may have lost the connection to the host. Requests that are still
    /// open are sent again and go to the same callbacks; those that a callback is already answering are not repeated.
    pub async fn reinitialize(&self) -> Result<InitializeReply, Error> {
        self.ask((*self.initialize).clone()).await
    }
}

impl Handle {
    /// The engine's answer to the first `initialize`.
    pub fn introduction(&self) -> Option<&InitializeReply> {
        self.introduction.get()
    }

    /// The available slash commands.
    pub fn supported_commands(&self) -> Vec<SlashCommand> {
        self.introduction().and_then(|reply| reply.commands.clone()).unwrap_or_default()
    }

    /// The available models.
    pub fn supported_models(&self) -> Vec<ModelInfo> {
        self.introduction().and_then(|reply| reply.models.clone()).unwrap_or_default()
    }

    /// The engine and its version. `None` for engines that do not report it; engines before Claude Code 2.1.325 report
    /// it when their first turn begins.
    pub fn reported_version(&self) -> Option<EngineVersion> {
        self.version.get().cloned()
    }

    /// The available subagents.
    pub fn supported_agents(&self) -> Vec<AgentInfo> {
        self.introduction().and_then(|reply| reply.agents.clone()).unwrap_or_default()
    }

    /// The account that the engine uses.
    pub fn account_info(&self) -> Option<AccountInfo> {
        self.introduction().and_then(|reply| reply.account.clone())
    }
}
