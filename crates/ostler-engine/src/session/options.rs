//! What a session runs with.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ostler_process::Environment;
use ostler_proto::control::AccountInfo;
use ostler_proto::launch::Launch;
use serde_json::{Map, Value};

use super::{Compaction, Delegation, StateEvents};
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

/// What a session runs with: the launch, and what follows from it, the settings and the environment.
pub struct SessionOptions {
    /// What the host or the command line asks for. Where nothing is said about permission requests, the host answers
    /// them.
    pub launch: Launch,
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
    /// The most tokens for one prompt, in and out.
    pub max_tokens: Option<u64>,
    /// The longest time for one prompt.
    pub timeout: Option<Duration>,
    /// Whether the model may continue after it gave the answer in the shape the host asked for; its last one counts.
    pub goes_on_after_answer: bool,
    /// What models cost, for limits in dollars and for the cost of results.
    pub prices: Prices,
    /// How the model answers.
    pub sampling: Sampling,
    /// When the conversation is compacted.
    pub compaction: Compaction,
    /// Standing instructions, see [`crate::context::memory::load`].
    pub memory: Vec<MemoryFile>,
    /// The session's file and what it holds, see [`crate::store::Projects::open`]; `None` keeps nothing.
    pub opened: Option<OpenedSession>,
    /// Hooks, as they stand under `hooks` in each settings file.
    pub hooks: Vec<Value>,
    /// Settings whose hooks hold too, and that are looked at again while the session runs.
    pub live: Option<WatchedSettings>,
    /// The model that hooks ask which name none; the session's own where this is not said.
    pub small_model: Option<String>,
    /// Whether a person writes the prompts, one after the other.
    pub is_conversation: bool,
    /// The environment of what the session starts: commands of tools and of hooks.
    pub env: Environment,
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
            launch: Launch::default(),
            model,
            tools: Vec::new(),
            withheld: Vec::new(),
            aliases: Aliases::default(),
            library: Library::default(),
            reload: None,
            output_style: None,
            delegation: Delegation::default(),
            cwd: policy.cwd.clone(),
            policy,
            folders: Folders::default(),
            max_tokens: None,
            timeout: None,
            goes_on_after_answer: false,
            prices: Prices::default(),
            sampling: Sampling::default(),
            compaction: Compaction::default(),
            memory: Vec::new(),
            opened: None,
            hooks: Vec::new(),
            live: None,
            small_model: None,
            is_conversation: false,
            env: Environment::default(),
            idle_notice: None,
            connector: None,
            mcp_servers: BTreeMap::new(),
            server_lists: ServerLists::default(),
            notices: Vec::new(),
            state_events: None,
            background_wait: Some(BACKGROUND_WAIT),
            background_tasks: true,
            checkpoints: false,
            settings: Vec::new(),
            account: AccountInfo::default(),
            tape: None,
        }
    }
}
