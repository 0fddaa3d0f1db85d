//! [`Handle`]: what can be done to a session from anywhere.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use ostler_proto::control::{
    AccountInfo, Ask, AskEngine, ContextUsageReply, GetContextUsage, GetTaskOutput,
    GetTaskOutputReply, InitializeReply, Interrupt, InterruptReply, McpReconnect, McpSetServers,
    McpSetServersReply, McpStatus, McpStatusReply, McpToggle, ModelInfo, RewindFiles,
    RewindFilesReply, SetMaxThinkingTokens, SetModel, SetPermissionMode, SlashCommand, StopTask,
    Success,
};
use ostler_proto::mcp::McpServerConfig;
use ostler_proto::message::User;
use ostler_proto::permission::PermissionMode;
use ostler_proto::{TaskId, Uuid};
use tokio::sync::{mpsc, oneshot};

use crate::error::Error;
use crate::session::Command;

/// What can be done to a session from anywhere, also while its messages are being read. Cheap to clone.
#[derive(Clone)]
pub struct Handle {
    commands: mpsc::Sender<Command>,
    introduction: Arc<OnceLock<InitializeReply>>,
}

impl Handle {
    pub(crate) fn new(commands: mpsc::Sender<Command>) -> Self {
        Self { commands, introduction: Arc::default() }
    }

    pub(crate) fn introduced(&self, reply: InitializeReply) {
        // Introduced once only.
        let _ = self.introduction.set(reply);
    }

    pub(crate) fn commands(&self) -> mpsc::Sender<Command> {
        self.commands.clone()
    }

    pub(crate) async fn command(&self, command: Command) -> Result<(), Error> {
        let over = |_| Error::Closed("the engine has ended".to_owned());
        self.commands.send(command).await.map_err(over)
    }

    /// Says something. It waits its turn if the agent is busy.
    ///
    /// # Errors
    /// When the session is over.
    pub async fn send(&self, prompt: impl Into<User>) -> Result<(), Error> {
        self.command(Command::Say(Box::new(prompt.into()))).await
    }

    /// Asks the engine anything the protocol has a type for.
    ///
    /// # Errors
    /// When the engine refuses, does not know the request, or is gone; never a hang.
    pub async fn ask<Q: Ask>(&self, request: AskEngine) -> Result<Q::Reply, Error> {
        let success = self.ask_raw(Q::SUBTYPE, request).await?;
        Ok(Q::read_reply(success.response.as_ref())?)
    }

    pub(crate) async fn ask_raw(&self, name: &str, request: AskEngine) -> Result<Success, Error> {
        let (answer, answered) = oneshot::channel();
        self.command(Command::Ask(Box::new(request), answer)).await?;
        let over = |_| Error::Closed("the engine has ended".to_owned());
        answered.await.map_err(over)?.map_err(|error| Error::of_call(name, error))
    }

    /// Stops the turn that runs. The session stays usable.
    ///
    /// # Errors
    /// As [`Handle::ask`]; so with all of the following.
    pub async fn interrupt(&self) -> Result<InterruptReply, Error> {
        self.ask::<Interrupt>(AskEngine::Interrupt(Interrupt::default())).await
    }

    /// Changes how freely tools run, from the next call on.
    #[expect(clippy::missing_errors_doc, reason = "see `interrupt`")]
    pub async fn set_permission_mode(&self, mode: PermissionMode) -> Result<(), Error> {
        let request = SetPermissionMode { mode, ..SetPermissionMode::default() };
        self.ask::<SetPermissionMode>(AskEngine::SetPermissionMode(request)).await.map(drop)
    }

    /// Changes the model; `None` for the engine's own choice.
    #[expect(clippy::missing_errors_doc, reason = "see `interrupt`")]
    pub async fn set_model(&self, model: Option<String>) -> Result<(), Error> {
        let request = SetModel { model, ..SetModel::default() };
        self.ask::<SetModel>(AskEngine::SetModel(request)).await.map(drop)
    }

    /// Changes how much the model may think; `None` for no limit.
    #[expect(clippy::missing_errors_doc, reason = "see `interrupt`")]
    pub async fn set_max_thinking_tokens(&self, tokens: Option<u64>) -> Result<(), Error> {
        let request =
            SetMaxThinkingTokens { max_thinking_tokens: tokens, ..SetMaxThinkingTokens::default() };
        self.ask::<SetMaxThinkingTokens>(AskEngine::SetMaxThinkingTokens(request)).await.map(drop)
    }

    /// Puts files back to where they were before a prompt. Needs file checkpointing.
    #[expect(clippy::missing_errors_doc, reason = "see `interrupt`")]
    pub async fn rewind_files(&self, prompt: Uuid) -> Result<RewindFilesReply, Error> {
        let request = RewindFiles { user_message_id: prompt, ..RewindFiles::default() };
        self.ask::<RewindFiles>(AskEngine::RewindFiles(request)).await
    }

    /// How the MCP servers are.
    #[expect(clippy::missing_errors_doc, reason = "see `interrupt`")]
    pub async fn mcp_server_status(&self) -> Result<McpStatusReply, Error> {
        self.ask::<McpStatus>(AskEngine::McpStatus(McpStatus::default())).await
    }

    /// Replaces the MCP servers that were added while the session runs.
    #[expect(clippy::missing_errors_doc, reason = "see `interrupt`")]
    pub async fn set_mcp_servers(
        &self,
        servers: BTreeMap<String, McpServerConfig>,
    ) -> Result<McpSetServersReply, Error> {
        let request = McpSetServers { servers, ..McpSetServers::default() };
        self.ask::<McpSetServers>(AskEngine::McpSetServers(request)).await
    }

    /// Connects an MCP server anew.
    #[expect(clippy::missing_errors_doc, reason = "see `interrupt`")]
    pub async fn reconnect_mcp_server(&self, name: impl Into<String>) -> Result<(), Error> {
        let request = McpReconnect { server_name: name.into(), ..McpReconnect::default() };
        self.ask::<McpReconnect>(AskEngine::McpReconnect(request)).await.map(drop)
    }

    /// Switches an MCP server on or off.
    #[expect(clippy::missing_errors_doc, reason = "see `interrupt`")]
    pub async fn toggle_mcp_server(
        &self,
        name: impl Into<String>,
        enabled: bool,
    ) -> Result<(), Error> {
        let request = McpToggle { server_name: name.into(), enabled, ..McpToggle::default() };
        self.ask::<McpToggle>(AskEngine::McpToggle(request)).await.map(drop)
    }

    /// Ends a background task.
    #[expect(clippy::missing_errors_doc, reason = "see `interrupt`")]
    pub async fn stop_task(&self, task_id: TaskId) -> Result<(), Error> {
        let request = StopTask { task_id, ..StopTask::default() };
        self.ask::<StopTask>(AskEngine::StopTask(request)).await.map(drop)
    }

    /// The end of what a background task has written.
    #[expect(clippy::missing_errors_doc, reason = "see `interrupt`")]
    pub async fn task_output(&self, task_id: TaskId) -> Result<GetTaskOutputReply, Error> {
        let request = GetTaskOutput { task_id, ..GetTaskOutput::default() };
        self.ask::<GetTaskOutput>(AskEngine::GetTaskOutput(request)).await
    }

    /// What fills the context window.
    #[expect(clippy::missing_errors_doc, reason = "see `interrupt`")]
    pub async fn context_usage(&self) -> Result<ContextUsageReply, Error> {
        self.ask::<GetContextUsage>(AskEngine::GetContextUsage(GetContextUsage::default())).await
    }

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

    /// Whose account it is.
    pub fn account_info(&self) -> Option<AccountInfo> {
        self.introduction().and_then(|reply| reply.account.clone())
    }
}
