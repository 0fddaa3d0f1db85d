//! How an engine is started: its command line as a value.
//!
//! A host fills in a [`Launch`] and turns it into arguments with [`Launch::to_args`]; an engine reads arguments into
//! one with [`Launch::set`]. The same value starts an engine inside the host's own process, where no command line is
//! needed.
//!
//! Each option is a field and a row in the table of arguments, next to each other: here, or in the file of its group.

mod keyword;
mod limits;
mod model;
mod output;
mod price;
mod recording;
mod rule_list;
mod session;
mod set;
mod table;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde_json::Value;

use self::keyword::keywords;
use self::table::{Arguments, Each, Flag, One, Pair, Row, RuleList, json, last, row, split_list};
use crate::agent::AgentDefinition;
use crate::hook::SetupTrigger;
use crate::permission::PermissionMode;

pub use self::keyword::UnknownKeyword;
pub use self::limits::LimitOptions;
pub use self::model::{Effort, ModelOptions, Thinking, ThinkingDisplay};
pub use self::output::OutputOptions;
pub use self::price::ModelPrice;
pub use self::recording::{RecordingChoice, ReplayMatch, ReplayTiming, ReplayTools};
pub use self::rule_list::split_rules;
pub use self::session::SessionChoice;
pub use self::set::OddArgument;

/// All options of an engine's command line. By default none is set: the engine decides.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Launch {
    /// Which model answers, and how.
    pub model: ModelOptions,
    /// The limits of a turn.
    pub limits: LimitOptions,

    /// The permission mode.
    pub permission_mode: Option<PermissionMode>,
    /// Whether `bypassPermissions` may be used.
    pub allow_skip_permissions: bool,
    /// Who answers permission requests.
    pub permission_prompts: Option<Answerer>,
    /// The tools there are; `None` for the engine's own.
    pub tools: Option<ToolSet>,
    /// Rules for calls that run without approval.
    pub allowed_tools: Vec<String>,
    /// Rules for calls that never run.
    pub disallowed_tools: Vec<String>,
    /// More working directories.
    pub add_dirs: Vec<String>,

    /// A system prompt in place of the engine's own; an empty one is a prompt too.
    pub system_prompt: Option<String>,
    /// Added to the system prompt.
    pub append_system_prompt: Option<String>,
    /// The agent that leads the conversation.
    pub agent: Option<String>,
    /// Agents by name. Hosts send them with `initialize`; people write them on the command line.
    pub agents: BTreeMap<String, AgentDefinition>,
    /// Which settings files are read; `None` for all, an empty list for none.
    pub setting_sources: Option<Vec<SettingSource>>,
    /// More settings: JSON, or the path of a file.
    pub settings: Option<String>,
    /// MCP servers: `{"mcpServers": {…}}`, the path of a file with such, or a list of either.
    pub mcp_config: Option<Value>,
    /// Settings that only make things stricter: JSON.
    pub managed_settings: Option<String>,
    /// Where the project's settings are, if not in the working directory.
    pub project_config_root: Option<String>,
    /// Whether servers from anywhere else are left out.
    pub strict_mcp_config: bool,
    /// Folders of plugins.
    pub plugin_dirs: Vec<String>,
    /// Folders of plugins whose MCP servers are not started.
    pub plugin_dirs_without_servers: Vec<String>,

    /// The options for reports to the host.
    pub output: OutputOptions,

    /// Setup hooks that run first.
    pub setup: Option<SetupTrigger>,
    /// Ends after the setup hooks.
    pub only_setup: bool,

    /// The conversation to use.
    pub session: SessionChoice,
    /// Whether no session file is written.
    pub no_session_persistence: bool,
    /// Whether session file lines are also sent to the host.
    pub session_mirror: bool,

    /// Whether the run is recorded, or replayed from a recording.
    pub tape: RecordingChoice,

    /// Arguments unknown to this version, with or without a value.
    pub extra: Vec<(String, Option<String>)>,
}

/// Who answers permission requests.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Answerer {
    /// The host, with `can_use_tool`.
    Host,
    /// No one: calls that need approval are denied.
    NoOne,
    /// A tool of an MCP server.
    Tool(String),
}

/// The tools there are.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToolSet {
    /// The engine's own.
    Default,
    /// These; an empty list for none.
    Only(Vec<String>),
}

keywords! {
    /// A settings file.
    #[non_exhaustive]
    pub enum SettingSource {
        /// The user's.
        User = "user",
        /// The project's, shared with others.
        Project = "project",
        /// The project's, the user's own.
        Local = "local",
    }
}

impl Launch {
    /// The arguments, always in the same order.
    pub fn to_args(&self) -> Vec<String> {
        let mut args = Arguments::default();
        args.value("output-format", Some("stream-json"));
        args.flag("verbose", true);
        args.value("input-format", Some("stream-json"));
        rows().for_each(|row| (row.write)(self, &mut args));
        for (name, value) in &self.extra {
            match value {
                Some(value) => args.value(name, Some(value)),
                None => args.flag(name, true),
            }
        }
        args.0
    }

    fn mcp_configs(&self) -> Vec<String> {
        let text = |place: &Value| place.as_str().map_or_else(|| place.to_string(), str::to_owned);
        match &self.mcp_config {
            None => Vec::new(),
            Some(Value::Array(places)) => places.iter().map(text).collect(),
            Some(place) => vec![text(place)],
        }
    }

    /// Another MCP configuration. Text that does not look like JSON is a path.
    fn add_servers(&mut self, place: &str) {
        let json = serde_json::from_str(place).ok().filter(Value::is_object);
        let place = json.unwrap_or_else(|| Value::String(place.to_owned()));
        self.mcp_config = Some(match self.mcp_config.take() {
            None => place,
            Some(Value::Array(mut places)) => {
                places.push(place);
                Value::Array(places)
            }
            Some(other) => Value::Array(vec![other, place]),
        });
    }
}

/// The table of arguments, in the order in which they are written.
fn rows() -> impl Iterator<Item = &'static Row> {
    let parts = [
        model::ROWS,
        limits::ROWS,
        model::PRICE_ROWS,
        PERMISSION_ROWS,
        CONTEXT_ROWS,
        output::ROWS,
        session::ROWS,
        START_ROWS,
        recording::ROWS,
        READ_ROWS,
    ];
    parts.into_iter().flatten()
}

const PERMISSION_ROWS: &[Row] = &[
    row!(One<PermissionMode>, "permission-mode", permission_mode),
    row!(Flag, "allow-dangerously-skip-permissions", allow_skip_permissions),
    Row {
        names: &["permission-prompt-tool"],
        takes_value: true,
        write: |launch, args| match &launch.permission_prompts {
            Some(Answerer::Host) => args.value("permission-prompt-tool", Some("stdio")),
            Some(Answerer::Tool(name)) => args.value("permission-prompt-tool", Some(name)),
            Some(Answerer::NoOne) | None => {}
        },
        read: |launch, values| {
            launch.permission_prompts = Some(match last(values) {
                "stdio" => Answerer::Host,
                tool => Answerer::Tool(tool.to_owned()),
            });
            Ok(())
        },
    },
    Row {
        names: &["permission-prompts"],
        takes_value: true,
        write: |launch, args| {
            if launch.permission_prompts == Some(Answerer::NoOne) {
                args.value("permission-prompts", Some("none"));
            }
        },
        read: |launch, values| match last(values) {
            "none" => {
                launch.permission_prompts = Some(Answerer::NoOne);
                Ok(())
            }
            value => Err(format!("is {value:?}, but must be none")),
        },
    },
    Row {
        names: &["tools"],
        takes_value: true,
        write: |launch, args| match &launch.tools {
            Some(ToolSet::Default) => args.value("tools", Some("default")),
            Some(ToolSet::Only(names)) => args.value("tools", Some(names.join(","))),
            None => {}
        },
        read: |launch, values| {
            launch.tools = Some(ToolSet::read(values.iter().copied()));
            Ok(())
        },
    },
    row!(RuleList, "allowedTools" | "allowed-tools", allowed_tools),
    row!(RuleList, "disallowedTools" | "disallowed-tools", disallowed_tools),
    row!(Each, "add-dir", add_dirs),
];

const CONTEXT_ROWS: &[Row] = &[
    row!(One<String>, "system-prompt", system_prompt),
    row!(One<String>, "append-system-prompt", append_system_prompt),
    row!(One<String>, "agent", agent),
    Row {
        names: &["agents"],
        takes_value: true,
        write: |launch, args| {
            // Definitions have string keys, so this does not fail.
            let agents = serde_json::to_string(&launch.agents).ok();
            args.value("agents", agents.filter(|_| !launch.agents.is_empty()));
        },
        read: |launch, values| {
            launch.agents.extend(json::<BTreeMap<_, _>>(last(values))?);
            Ok(())
        },
    },
    Row {
        names: &["setting-sources"],
        takes_value: true,
        write: |launch, args| {
            let list = |sources: &Vec<SettingSource>| {
                sources.iter().map(|source| source.as_str()).collect::<Vec<_>>().join(",")
            };
            args.value("setting-sources", launch.setting_sources.as_ref().map(list));
        },
        read: |launch, values| {
            // A newer host may name a source that this version does not have; nothing is read for it.
            let sources = split_list(last(values)).filter_map(|source| source.parse().ok());
            launch.setting_sources = Some(sources.collect());
            Ok(())
        },
    },
    row!(Pair, "settings", settings),
    row!(Pair, "managed-settings", managed_settings),
    row!(One<String>, "project-config-root", project_config_root),
    Row {
        names: &["mcp-config"],
        takes_value: true,
        write: |launch, args| {
            launch.mcp_configs().iter().for_each(|place| args.pair("mcp-config", place));
        },
        read: |launch, values| {
            values.iter().for_each(|place| launch.add_servers(place));
            Ok(())
        },
    },
    row!(Flag, "strict-mcp-config", strict_mcp_config),
    row!(Each, "plugin-dir", plugin_dirs),
    row!(Each, "plugin-dir-no-mcp", plugin_dirs_without_servers),
];

const START_ROWS: &[Row] = &[
    Row {
        names: &["init-only"],
        takes_value: false,
        write: |launch, args| args.flag("init-only", launch.only_setup),
        read: |launch, _| {
            launch.setup = Some(SetupTrigger::Init);
            launch.only_setup = true;
            Ok(())
        },
    },
    Row {
        names: &["init"],
        takes_value: false,
        write: |launch, args| {
            let is_init = launch.setup == Some(SetupTrigger::Init);
            args.flag("init", is_init && !launch.only_setup);
        },
        read: |launch, _| {
            launch.setup = Some(SetupTrigger::Init);
            Ok(())
        },
    },
    Row {
        names: &["maintenance"],
        takes_value: false,
        write: |launch, args| {
            args.flag("maintenance", launch.setup == Some(SetupTrigger::Maintenance));
        },
        read: |launch, _| {
            launch.setup = Some(SetupTrigger::Maintenance);
            Ok(())
        },
    },
    row!(Flag, "no-session-persistence", no_session_persistence),
    row!(Flag, "session-mirror", session_mirror),
];

/// Arguments that are read and never written.
const READ_ROWS: &[Row] = &[
    Row {
        names: &["dangerously-skip-permissions"],
        takes_value: false,
        write: |_, _| {},
        read: |launch, _| {
            launch.permission_mode = Some(PermissionMode::BypassPermissions);
            Ok(())
        },
    },
    // These are always on.
    Row {
        names: &["verbose", "print", "await-initialize"],
        takes_value: false,
        write: |_, _| {},
        read: |_, _| Ok(()),
    },
];
