//! What a session runs with.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ostler_process::Environment;
use ostler_proto::SessionId;
use ostler_proto::control::AccountInfo;
use ostler_proto::hook::SetupTrigger;
use ostler_proto::launch::Answerer;
use serde_json::{Map, Value};

use super::{Compaction, Delegation, Limits, StateEvents};
use crate::context::memory::MemoryFile;
use crate::library::Library;
use crate::mcp::{Connector, KnownServer};
use crate::model::{Aliases, Model, Prices, Sampling};
use crate::outbox::Notice;
use crate::permission::Policy;
use crate::record::Recording;
use crate::settings::{Folders, ServerLists};
use crate::settings_watcher::WatchedSettings;
use crate::store::OpenedSession;
use crate::tool::AnyTool;

/// What a session runs with.
pub struct SessionOptions {
    /// The model.
    pub model: Arc<dyn Model>,
    /// The tools on offer, beside those the engine brings along.
    pub tools: Vec<Arc<dyn AnyTool>>,
    /// Tools of the engine itself that are not offered: `Agent`, `Skill`.
    pub withheld: Vec<String>,
    /// What short names of models stand for.
    pub aliases: Aliases,
    /// What files offer.
    pub library: Library,
    /// Reads again what files offer, when the host asks for it; `None` where that is not possible.
    pub reload: Option<Reload>,
    /// The kind of agent that leads the conversation.
    pub agent: Option<String>,
    /// The style of the answers.
    pub output_style: Option<String>,
    /// How work is handed to subagents.
    pub delegation: Delegation,
    /// The working directory.
    pub cwd: PathBuf,
    /// What decides about tool calls.
    pub policy: Policy,
    /// Where changes of it are kept.
    pub folders: Folders,
    /// What ends a turn that the model would not end.
    pub limits: Limits,
    /// What models cost, for limits in dollars and for the cost of results.
    pub prices: Prices,
    /// How the model answers.
    pub sampling: Sampling,
    /// When the conversation is compacted.
    pub compaction: Compaction,
    /// A system prompt in place of the engine's own. An empty one is a prompt too.
    pub system_prompt: Option<String>,
    /// Added to the system prompt.
    pub append_system_prompt: Option<String>,
    /// Standing instructions, see [`crate::context::memory::load`].
    pub memory: Vec<MemoryFile>,
    /// The session's file and what it holds, see [`crate::store::Projects::open`]; `None` keeps nothing.
    pub opened: Option<OpenedSession>,
    /// The id of a session that keeps nothing; one that is kept has the id it was opened with.
    pub session_id: Option<SessionId>,
    /// The shape the answer must have.
    pub json_schema: Option<Value>,
    /// Hooks, as they stand under `hooks` in each settings file.
    pub hooks: Vec<Value>,
    /// Settings whose hooks hold too, and that are looked at again while the session runs.
    pub live: Option<WatchedSettings>,
    /// The model that hooks ask which name none; the session's own where this is not said.
    pub small_model: Option<String>,
    /// Hooks that prepare or tend the folder run first.
    pub prepare: Option<SetupTrigger>,
    /// The session ends when hooks have had their say at its start.
    pub only_prepare: bool,
    /// Whether a person writes the prompts, one after the other.
    pub is_conversation: bool,
    /// The environment of what the session starts: commands of tools and of hooks.
    pub env: Environment,
    /// Whether the events of a response are sent as they come.
    pub partial_messages: bool,
    /// Whether the host sees the hooks of settings run (`hook_started` and so on).
    pub hook_events: bool,
    /// How long the session waits for a prompt before hooks are told that it does; `None` tells them never.
    pub idle_notice: Option<Duration>,
    /// What reaches MCP servers; without it there are none.
    pub connector: Option<Arc<dyn Connector>>,
    /// MCP servers by name. Those inside the host may also come with `initialize`.
    pub mcp_servers: BTreeMap<String, KnownServer>,
    /// Which MCP servers the settings let the session have.
    pub server_lists: ServerLists,
    /// What the user should know about the start of the session. The host is told after the first `init`.
    pub notices: Vec<Notice>,
    /// Whether the host hears what the session is doing: `session_state_changed`.
    pub state_events: Option<StateEvents>,
    /// How long background tasks may go on once the host has nothing more to say; `None` for as long as they like.
    pub background_wait: Option<Duration>,
    /// Whether anything may go on in the background.
    pub background_tasks: bool,
    /// Who answers permission questions.
    pub answerer: Answerer,
    /// Whether prompts are sent back as they are taken up.
    pub replay_user_messages: bool,
    /// Whether the host gets what is written to the session's file.
    pub mirror: bool,
    /// Whether files are kept as they were before each prompt, to be put back.
    pub checkpoints: bool,
    /// What settings say, by the wire's names of where they stand; the later ones win. Only to be shown to hosts.
    pub settings: Vec<(String, Map<String, Value>)>,
    /// Who pays.
    pub account: AccountInfo,
    /// What tool calls are recorded on, or replayed from; the model has its own part in that.
    pub tape: Option<Recording>,
}

/// Reads what files offer.
pub type Reload = Arc<dyn Fn() -> Library + Send + Sync>;

/// How long background tasks may go on after the last prompt, where nobody says otherwise.
pub const BACKGROUND_WAIT: Duration = Duration::from_secs(600);

impl SessionOptions {
    /// A model that works in the policy's working directory, without tools, limits, memory or hooks; nothing is kept.
    pub fn new(model: Arc<dyn Model>, policy: Policy) -> Self {
        Self {
            model,
            tools: Vec::new(),
            withheld: Vec::new(),
            aliases: Aliases::default(),
            library: Library::default(),
            reload: None,
            agent: None,
            output_style: None,
            delegation: Delegation::default(),
            cwd: policy.cwd.clone(),
            policy,
            folders: Folders::default(),
            limits: Limits::default(),
            prices: Prices::default(),
            sampling: Sampling::default(),
            compaction: Compaction::default(),
            system_prompt: None,
            append_system_prompt: None,
            memory: Vec::new(),
            opened: None,
            session_id: None,
            json_schema: None,
            hooks: Vec::new(),
            live: None,
            small_model: None,
            prepare: None,
            only_prepare: false,
            is_conversation: false,
            env: Environment::default(),
            partial_messages: false,
            hook_events: false,
            idle_notice: None,
            connector: None,
            mcp_servers: BTreeMap::new(),
            server_lists: ServerLists::default(),
            notices: Vec::new(),
            state_events: None,
            background_wait: Some(BACKGROUND_WAIT),
            background_tasks: true,
            answerer: Answerer::Host,
            replay_user_messages: false,
            mirror: false,
            checkpoints: false,
            settings: Vec::new(),
            account: AccountInfo::default(),
            tape: None,
        }
    }
}
