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
use crate::context::memory::{MemoryFile, NestedMemory};
use crate::context::workplace::Workplace;
use crate::library::Library;
use crate::mcp::{Connector, KnownServer};
use crate::model::{Aliases, Model, Prices, Sampling};
use crate::outbox::Notice;
use crate::permission::Policy;
use crate::record::Recording;
use crate::sandbox::SessionSandbox;
use crate::settings::{Folders, ServerLists};
use crate::settings_watcher::WatchedSettings;
use crate::store::OpenedSession;
use crate::tool::AnyTool;

/// What a session runs with: the launch, and values that follow from it, the settings and the environment.
pub struct SessionOptions {
    /// The options of the host or the command line. The host answers permission requests, unless they say otherwise.
    pub launch: Launch,
    /// The model.
    pub model: Arc<dyn Model>,
    /// The tools, in addition to the engine's own.
    pub tools: Vec<Arc<dyn AnyTool>>,
    /// Tools of the engine itself that are not offered: `Agent`, `Skill`.
    pub withheld: Vec<String>,
    /// The full names for short names of models.
    pub aliases: Aliases,
    /// Agents, commands, skills, styles and plugins from files.
    pub library: Library,
    /// Reads the library again, when the host asks for it; `None` where that is not possible.
    pub reload: Option<Reload>,
    /// The style of the answers.
    pub output_style: Option<String>,
    /// How work is handed to subagents.
    pub delegation: Delegation,
    /// The working directory.
    pub cwd: PathBuf,
    /// What decides about tool calls.
    pub policy: Policy,
    /// Where changes of the policy are written.
    pub folders: Folders,
    /// The most tokens for one prompt, in and out.
    pub max_tokens: Option<u64>,
    /// The longest time for one prompt.
    pub timeout: Option<Duration>,
    /// Whether the model may continue after it gave a structured answer; its last one counts.
    pub goes_on_after_answer: bool,
    /// What models cost, for limits in dollars and for the cost of results.
    pub prices: Prices,
    /// How the model answers.
    pub sampling: Sampling,
    /// When the conversation is compacted.
    pub compaction: Compaction,
    /// Where and when the session works, for the model.
    pub workplace: Workplace,
    /// Standing instructions, see [`crate::context::memory::load`].
    pub memory: Vec<MemoryFile>,
    /// Instructions for some files only, which follow when such a file is read.
    pub nested: NestedMemory,
    /// The session's file and its contents, see [`crate::store::Projects::open`]; `None` stores nothing.
    pub opened: Option<OpenedSession>,
    /// Hooks: the value of `hooks` in each settings file.
    pub hooks: Vec<Value>,
    /// Settings whose hooks also hold, and that are watched for changes while the session runs.
    pub live: Option<WatchedSettings>,
    /// The model for prompt hooks that name none; `None` for the session's own.
    pub small_model: Option<String>,
    /// Whether a person writes the prompts, one after the other.
    pub is_conversation: bool,
    /// The environment of what the session starts: commands of tools and of hooks.
    pub env: Environment,
    /// The sandbox of commands, hooks and MCP servers; `None` if they run without one.
    pub sandbox: Option<Arc<dyn SessionSandbox>>,
    /// How long the session waits for a prompt before hooks are notified; `None` for never.
    pub idle_notice: Option<Duration>,
    /// What reaches MCP servers; without it there are none.
    pub connector: Option<Arc<dyn Connector>>,
    /// MCP servers by name. Those inside the host may also come with `initialize`.
    pub mcp_servers: BTreeMap<String, KnownServer>,
    /// The settings' lists of allowed and denied MCP servers.
    pub server_lists: ServerLists,
    /// Notices for the user about the start of the session. The host receives them after the first `init`.
    pub notices: Vec<Notice>,
    /// Whether, and for whom, `session_state_changed` is sent.
    pub state_events: Option<StateEvents>,
    /// How long background tasks may continue after the host's last prompt; `None` for no limit.
    pub background_wait: Option<Duration>,
    /// Whether background tasks are enabled.
    pub background_tasks: bool,
    /// Whether files are backed up before each prompt, for a rewind.
    pub checkpoints: bool,
    /// The settings by the wire's names of their sources; later ones win. Only for display by hosts.
    pub settings: Vec<(String, Map<String, Value>)>,
    /// The account that pays.
    pub account: AccountInfo,
    /// The recording of tool calls, to write or to replay; the model records its own exchanges.
    pub tape: Option<Recording>,
}

/// Reads the library from files.
pub type Reload = Arc<dyn Fn() -> Library + Send + Sync>;

/// The default for how long background tasks may continue after the last prompt.
pub const BACKGROUND_WAIT: Duration = Duration::from_secs(600);

impl SessionOptions {
    /// A session in the policy's working directory, without tools, limits, memory, hooks or a file.
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
            workplace: Workplace::default(),
            memory: Vec::new(),
            nested: NestedMemory::default(),
            opened: None,
            hooks: Vec::new(),
            live: None,
            small_model: None,
            is_conversation: false,
            env: Environment::default(),
            sandbox: None,
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
