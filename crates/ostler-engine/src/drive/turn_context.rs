//! Everything a turn runs with.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use ostler_process::Environment;
use ostler_proto::Uuid;
use ostler_proto::agent::AgentDefinition;
use ostler_proto::api::ToolUseBlock;
use ostler_proto::launch::Launch;
use ostler_proto::permission::{PermissionMode, PermissionUpdate};

use tokio::time::Instant;

use super::server_tools::OfferBase;
use super::tool_session::EngineToolSession;
use crate::agents::{Delegation, FinishedSubagents};
use crate::call::Tools;
use crate::compact::{Compaction, ContextUsage};
use crate::context::memory::{MemoryFile, NestedMemory};
use crate::hooks::{HookScope, Hooks};
use crate::library::Library;
use crate::limits::Limits;
use crate::mcp::{Announced, Servers};
use crate::model::{Aliases, ChatMessage, Model, Request, Sampling, ToolSpec, pricing};
use crate::outbox::Outbox;
use crate::permissions::Permissions;
use crate::sandbox::SessionSandbox;
use crate::session_records::SessionRecords;
use crate::settings::KeepError;
use crate::tool::ToolCx;

/// The room for an answer when the context is measured: enough for long files.
pub(crate) const MAX_OUTPUT_TOKENS: u64 = 32_000;

/// Everything a turn runs with. A subagent gets its own copy.
#[derive(Clone)]
pub(crate) struct TurnContext {
    /// What the session was started with; the host may have changed some of it since.
    pub(crate) launch: Arc<Launch>,
    pub(crate) model: Arc<dyn Model>,
    /// The model's name as it was requested; the host may choose another one.
    pub(crate) model_name: Arc<str>,
    /// The full names for short names of models.
    pub(crate) aliases: Arc<Aliases>,
    pub(crate) tools: Arc<Tools>,
    /// The tools as the model sees them, in a fixed order, so that every request begins with the same bytes.
    pub(crate) specs: Arc<Vec<ToolSpec>>,
    pub(crate) system: Arc<str>,
    /// The section of the system prompt about place and time, for agents with their own.
    pub(crate) place: Arc<str>,
    /// Sends the frames of this conversation to the host.
    pub(crate) outbox: Outbox,
    pub(crate) permissions: Permissions,
    /// Bound to the two above, see [`Self::set_outbox`].
    pub(crate) hooks: Hooks,
    pub(crate) records: SessionRecords,
    pub(crate) cx: ToolCx,
    /// The sandbox of what the turn starts.
    pub(crate) sandbox: Option<Arc<dyn SessionSandbox>>,
    pub(crate) limits: Limits,
    /// The deadline of the prompt. Subagents have none: those that the turn waits for end with their parent, the others
    /// have their own time limit.
    pub(crate) deadline: Option<Instant>,
    pub(crate) sampling: Sampling,
    pub(crate) compaction: Compaction,
    /// How full the context of this conversation is.
    pub(crate) context_usage: ContextUsage,
    /// The MCP servers, whose tools come on top once they are connected.
    pub(crate) servers: Servers,
    /// What this conversation knows about them.
    pub(crate) announced: Announced,
    /// This context without the tools of servers; `None` before they were added.
    pub(crate) offer_base: Option<Arc<OfferBase>>,
    /// The definition of the agent that limits which tools of servers it has.
    pub(crate) limited_to: Option<Arc<AgentDefinition>>,
    /// Where the key comes from, for programs.
    pub(crate) key_source: Option<Arc<str>>,
    /// Agents, commands, skills, styles and plugins of files and the host.
    pub(crate) library: Arc<Library>,
    /// Standing instructions, for agents with their own system prompt.
    pub(crate) memory: Arc<Vec<MemoryFile>>,
    /// Instructions for some files, which follow when such a file is read.
    pub(crate) nested: NestedMemory,
    /// The instructions for plan mode.
    pub(crate) planning: Arc<str>,
    /// The name of the output style.
    pub(crate) style: Arc<str>,
    /// How work is handed to subagents.
    pub(crate) delegation: Delegation,
    /// Subagents that have finished and can be resumed.
    pub(crate) finished_subagents: FinishedSubagents,
    /// The prompts that the turn answers, if the host gave them ids.
    pub(crate) answering: Arc<[Uuid]>,
    /// Tokens of the turn so far, in and out, those of its subagents included.
    pub(crate) tokens: Arc<AtomicU64>,
}

impl TurnContext {
    /// Sends frames elsewhere; hooks do the same.
    pub(crate) fn set_outbox(&mut self, outbox: Outbox) {
        self.outbox = outbox;
        self.bind_hooks();
    }

    /// Decides by other permissions; hooks do the same.
    pub(crate) fn set_permissions(&mut self, permissions: Permissions) {
        self.permissions = permissions;
        self.bind_hooks();
    }

    /// Runs commands with another environment; hooks do the same.
    pub(crate) fn set_environment(&mut self, env: Environment) {
        self.cx.env = Arc::new(env);
        self.permissions.set_environment(&self.cx.env);
        self.bind_hooks();
    }

    /// Ends at another time; hooks do the same.
    pub(crate) fn set_deadline(&mut self, deadline: Option<Instant>) {
        self.deadline = deadline;
        self.bind_hooks();
    }

    /// Makes the context one of work that no turn waits for and no deadline ends.
    pub(crate) fn leave_turn(&mut self) {
        self.outbox.in_background = true;
        self.set_deadline(None);
        self.hooks = self.hooks.in_background();
    }

    fn bind_hooks(&mut self) {
        self.hooks = self.hooks.bound_to(self.hook_scope());
    }

    /// What hooks of this conversation need.
    pub(crate) fn hook_scope(&self) -> HookScope {
        HookScope {
            outbox: self.outbox.clone(),
            permissions: self.permissions.clone(),
            ledger: self.records.ledger.clone(),
            env: Arc::clone(&self.cx.env),
            sandbox: self.sandbox.clone(),
            deadline: self.deadline,
        }
    }

    /// The same for one call of a tool.
    pub(crate) fn for_call(&self, call: &ToolUseBlock) -> Self {
        let session = Some(EngineToolSession::of(self));
        let cx = ToolCx { call: call.id.clone(), session, ..self.cx.clone() };
        Self { cx, ..self.clone() }
    }

    /// Changes the permissions, in settings files too if the update says so, and notifies hooks of added directories.
    pub(crate) async fn change_permissions(
        &self,
        update: &PermissionUpdate,
    ) -> Result<(), KeepError> {
        let added = self.permissions.change(update).await?;
        self.hooks.directories_added(&added);
        if !added.is_empty() {
            self.servers.folders_changed();
        }
        Ok(())
    }

    /// A request to the model, which begins like every other one.
    pub(crate) fn request(&self, messages: Arc<Vec<ChatMessage>>, whole: bool) -> Request {
        Request {
            model: self.asked_model(),
            max_tokens: pricing::usual_output(&self.asked_model()),
            stream: !whole,
            tools: self.specs.clone(),
            server_tools: Vec::new(),
            system: self.system.clone(),
            messages,
            sampling: self.sampling.clone(),
        }
    }

    /// The name of the model for the next request; with `opusplan` it depends on the mode.
    pub(crate) fn asked_model(&self) -> String {
        let is_planning = self.permissions.policy().effective_mode() == PermissionMode::Plan;
        self.aliases.for_mode(&self.model_name, is_planning)
    }
}
