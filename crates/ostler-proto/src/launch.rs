//! How an engine is started: its command line as a value.
//!
//! A host fills in a [`Launch`] and turns it into arguments with [`Launch::to_args`]; an engine reads arguments into
//! one. The same value starts an engine inside the host's own process, where no command line is needed.

mod extra;
mod price;

use std::collections::BTreeMap;

use serde_json::Value;

use crate::agent::AgentDefinition;
use crate::hook::SetupTrigger;
use crate::permission::PermissionMode;

pub use self::extra::{OddArgument, split_rules};
pub use self::price::ModelPrice;

/// All options of an engine's command line. By default none is set: the engine decides.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Launch {
    /// The model.
    pub model: Option<String>,
    /// The model that takes over when the other one is overloaded.
    pub fallback_model: Option<String>,
    /// Beta features of the API.
    pub betas: Vec<String>,
    /// How the model thinks.
    pub thinking: Option<Thinking>,
    /// How much of its thinking is shown: `summarized` or `omitted`.
    pub thinking_display: Option<String>,
    /// The effort level: `low`, `medium`, `high`, `xhigh`, `max`.
    pub effort: Option<String>,

    /// The most model calls per prompt.
    pub max_turns: Option<u64>,
    /// The most dollars.
    pub max_budget_usd: Option<f64>,
    /// The API's own budget for a task, in tokens.
    pub task_budget: Option<u64>,
    /// Model prices by name; a name may end in `*`. Only `ostler` supports them.
    pub model_prices: BTreeMap<String, ModelPrice>,

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
    pub setting_sources: Option<Vec<String>>,
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
    /// Folders of plugins whose MCP servers are left alone.
    pub plugin_dirs_without_servers: Vec<String>,

    /// The schema the answer must have.
    pub json_schema: Option<Value>,
    /// Whether the events of a response are sent as they come.
    pub include_partial_messages: bool,
    /// Whether hooks are reported.
    pub include_hook_events: bool,
    /// Whether prompts are sent back as they are taken up.
    pub replay_user_messages: bool,

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

/// How a model thinks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Thinking {
    /// As much as it finds right.
    Adaptive,
    /// Up to this many tokens.
    Budget(u64),
    /// Not at all.
    Disabled,
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

/// The conversation that an engine uses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionChoice {
    /// Continue the newest one of the folder.
    pub go_on: bool,
    /// Resume this one.
    pub resume: Option<String>,
    /// Whether to continue in a copy.
    pub fork: bool,
    /// Resume up to this message only.
    pub resume_at: Option<String>,
    /// The prompt that may be lost by `resume_at`.
    pub resume_drops_turn: Option<String>,
    /// The id of a new one.
    pub id: Option<String>,
}

/// A recording of the model's traffic. Only `ostler` supports it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordingChoice {
    /// Record to this file.
    pub record: Option<String>,
    /// Replay from this file.
    pub replay: Option<String>,
    /// Where the results of tools come from in a replay: `real` or `recorded`.
    pub replay_tools: Option<String>,
    /// How closely a request must match a recorded one: `strict` or `loose`.
    pub replay_match: Option<String>,
    /// The timing of events in a replay: `instant` or `recorded`.
    pub replay_timing: Option<String>,
}

impl Launch {
    /// The arguments, always in the same order. Each value is in one argument with its flag, so that it cannot be
    /// taken for a flag; no shell is involved.
    pub fn to_args(&self) -> Vec<String> {
        let mut args = Arguments::default();
        args.value("output-format", Some("stream-json"));
        args.flag("verbose", true);
        args.value("input-format", Some("stream-json"));
        self.model_args(&mut args);
        self.permission_args(&mut args);
        self.context_args(&mut args);
        self.session_args(&mut args);
        self.tape_args(&mut args);
        for (name, value) in &self.extra {
            match value {
                Some(value) => args.value(name, Some(value)),
                None => args.flag(name, true),
            }
        }
        args.0
    }

    fn model_args(&self, args: &mut Arguments) {
        args.value("model", self.model.as_deref());
        args.value("fallback-model", self.fallback_model.as_deref());
        args.list("betas", &self.betas);
        match self.thinking {
            Some(Thinking::Adaptive) => args.value("thinking", Some("adaptive")),
            Some(Thinking::Disabled) => args.value("thinking", Some("disabled")),
            Some(Thinking::Budget(tokens)) => args.number("max-thinking-tokens", Some(tokens)),
            None => {}
        }
        args.value("thinking-display", self.thinking_display.as_deref());
        args.value("effort", self.effort.as_deref());
        args.number("max-turns", self.max_turns);
        args.number("max-budget-usd", self.max_budget_usd);
        args.number("task-budget", self.task_budget);
        for (name, price) in &self.model_prices {
            args.value("model-price", Some(&format!("{name}={price}")));
        }
    }

    fn permission_args(&self, args: &mut Arguments) {
        args.number("permission-mode", self.permission_mode.as_ref());
        args.flag("allow-dangerously-skip-permissions", self.allow_skip_permissions);
        match &self.permission_prompts {
            Some(Answerer::Host) => args.value("permission-prompt-tool", Some("stdio")),
            Some(Answerer::Tool(name)) => args.value("permission-prompt-tool", Some(name)),
            Some(Answerer::NoOne) => args.value("permission-prompts", Some("none")),
            None => {}
        }
        match &self.tools {
            Some(ToolSet::Default) => args.value("tools", Some("default")),
            Some(ToolSet::Only(names)) => args.value("tools", Some(&names.join(","))),
            None => {}
        }
        args.list("allowedTools", &self.allowed_tools);
        args.list("disallowedTools", &self.disallowed_tools);
        args.each("add-dir", &self.add_dirs);
    }

    fn context_args(&self, args: &mut Arguments) {
        args.value("system-prompt", self.system_prompt.as_deref());
        args.value("append-system-prompt", self.append_system_prompt.as_deref());
        args.value("agent", self.agent.as_deref());
        // Definitions have string keys, so this does not fail.
        let agents = serde_json::to_string(&self.agents).ok().filter(|_| !self.agents.is_empty());
        args.value("agents", agents.as_deref());
        if let Some(sources) = &self.setting_sources {
            args.value("setting-sources", Some(&sources.join(",")));
        }
        // These two read everything up to the next flag, so the value must be a separate argument. It starts with a
        // brace, or is a path.
        args.pair("settings", self.settings.as_deref());
        args.pair("managed-settings", self.managed_settings.as_deref());
        args.value("project-config-root", self.project_config_root.as_deref());
        for place in self.mcp_configs() {
            args.pair("mcp-config", Some(&place));
        }
        args.flag("strict-mcp-config", self.strict_mcp_config);
        args.each("plugin-dir", &self.plugin_dirs);
        args.each("plugin-dir-no-mcp", &self.plugin_dirs_without_servers);
        args.number("json-schema", self.json_schema.as_ref());
        args.flag("include-partial-messages", self.include_partial_messages);
        args.flag("include-hook-events", self.include_hook_events);
        args.flag("replay-user-messages", self.replay_user_messages);
    }

    fn mcp_configs(&self) -> Vec<String> {
        let text = |place: &Value| place.as_str().map_or_else(|| place.to_string(), str::to_owned);
        match &self.mcp_config {
            None => Vec::new(),
            Some(Value::Array(places)) => places.iter().map(text).collect(),
            Some(place) => vec![text(place)],
        }
    }

    fn session_args(&self, args: &mut Arguments) {
        let session = &self.session;
        args.flag("continue", session.go_on);
        args.value("resume", session.resume.as_deref());
        args.flag("fork-session", session.fork);
        args.value("resume-session-at", session.resume_at.as_deref());
        args.value("resume-drops-turn", session.resume_drops_turn.as_deref());
        args.value("session-id", session.id.as_deref());
        args.flag("init-only", self.only_setup);
        args.flag("init", self.setup == Some(SetupTrigger::Init) && !self.only_setup);
        args.flag("maintenance", self.setup == Some(SetupTrigger::Maintenance));
        args.flag("no-session-persistence", self.no_session_persistence);
        args.flag("session-mirror", self.session_mirror);
    }
}

impl Launch {
    fn tape_args(&self, args: &mut Arguments) {
        let RecordingChoice { record, replay, replay_tools, replay_match, replay_timing } =
            &self.tape;
        args.value("record", record.as_deref());
        args.value("replay", replay.as_deref());
        args.value("replay-tools", replay_tools.as_deref());
        args.value("replay-match", replay_match.as_deref());
        args.value("replay-timing", replay_timing.as_deref());
    }
}

/// Arguments in the making.
#[derive(Default)]
struct Arguments(Vec<String>);

impl Arguments {
    fn flag(&mut self, name: &str, is_set: bool) {
        if is_set {
            self.0.push(format!("--{name}"));
        }
    }

    fn value(&mut self, name: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.0.push(format!("--{name}={value}"));
        }
    }

    fn number(&mut self, name: &str, value: Option<impl ToString>) {
        self.value(name, value.map(|value| value.to_string()).as_deref());
    }

    fn pair(&mut self, name: &str, value: Option<&str>) {
        if let Some(value) = value {
            self.0.extend([format!("--{name}"), value.to_owned()]);
        }
    }

    fn list(&mut self, name: &str, values: &[String]) {
        if !values.is_empty() {
            self.value(name, Some(&values.join(",")));
        }
    }

    fn each(&mut self, name: &str, values: &[String]) {
        for value in values {
            self.value(name, Some(value));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The arguments without those that are always present.
    fn args(launch: Launch) -> String {
        let args = launch.to_args();
        let always = ["--output-format=stream-json", "--verbose", "--input-format=stream-json"];
        assert_eq!(args[..3], always);
        args[3..].join(" ")
    }

    fn session(session: SessionChoice) -> Launch {
        Launch { session, ..Launch::default() }
    }

    #[test]
    fn every_option_has_its_argument() {
        let some = |text: &str| Some(text.to_owned());
        let list = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let nothing = Launch::default;
        for (launch, expected) in [
            (nothing(), ""),
            (Launch { model: some("m"), ..nothing() }, "--model=m"),
            (Launch { fallback_model: some("f"), ..nothing() }, "--fallback-model=f"),
            (Launch { setup: Some(SetupTrigger::Init), ..nothing() }, "--init"),
            (Launch { setup: Some(SetupTrigger::Maintenance), ..nothing() }, "--maintenance"),
            (
                Launch { setup: Some(SetupTrigger::Init), only_setup: true, ..nothing() },
                "--init-only",
            ),
            (Launch { betas: list(&["a", "b"]), ..nothing() }, "--betas=a,b"),
            (Launch { thinking: Some(Thinking::Adaptive), ..nothing() }, "--thinking=adaptive"),
            (Launch { thinking: Some(Thinking::Disabled), ..nothing() }, "--thinking=disabled"),
            (
                Launch { thinking: Some(Thinking::Budget(9)), ..nothing() },
                "--max-thinking-tokens=9",
            ),
            (
                Launch { thinking_display: some("omitted"), ..nothing() },
                "--thinking-display=omitted",
            ),
            (Launch { effort: some("high"), ..nothing() }, "--effort=high"),
            (Launch { max_turns: Some(3), ..nothing() }, "--max-turns=3"),
            (Launch { max_budget_usd: Some(0.5), ..nothing() }, "--max-budget-usd=0.5"),
            (Launch { task_budget: Some(1000), ..nothing() }, "--task-budget=1000"),
            (
                Launch { permission_mode: Some(PermissionMode::AcceptEdits), ..nothing() },
                "--permission-mode=acceptEdits",
            ),
            (
                Launch { allow_skip_permissions: true, ..nothing() },
                "--allow-dangerously-skip-permissions",
            ),
            (
                Launch { permission_prompts: Some(Answerer::Host), ..nothing() },
                "--permission-prompt-tool=stdio",
            ),
            (
                Launch { permission_prompts: Some(Answerer::NoOne), ..nothing() },
                "--permission-prompts=none",
            ),
            (
                Launch {
                    permission_prompts: Some(Answerer::Tool("mcp__a__b".into())),
                    ..nothing()
                },
                "--permission-prompt-tool=mcp__a__b",
            ),
            (
                Launch {
                    model_prices: [("mine".to_owned(), ModelPrice::new(3.0, 15.5))].into(),
                    ..nothing()
                },
                "--model-price=mine=3/15.5",
            ),
            (Launch { tools: Some(ToolSet::Default), ..nothing() }, "--tools=default"),
            (Launch { tools: Some(ToolSet::Only(Vec::new())), ..nothing() }, "--tools="),
            (
                Launch { tools: Some(ToolSet::Only(list(&["Read", "Bash"]))), ..nothing() },
                "--tools=Read,Bash",
            ),
            (
                Launch { allowed_tools: list(&["Bash(git:*)", "Read"]), ..nothing() },
                "--allowedTools=Bash(git:*),Read",
            ),
            (Launch { disallowed_tools: list(&["Write"]), ..nothing() }, "--disallowedTools=Write"),
            (Launch { add_dirs: list(&["/a", "-b"]), ..nothing() }, "--add-dir=/a --add-dir=-b"),
            (Launch { system_prompt: some(""), ..nothing() }, "--system-prompt="),
            (
                Launch { append_system_prompt: some("x y"), ..nothing() },
                "--append-system-prompt=x y",
            ),
            (Launch { agent: some("reviewer"), ..nothing() }, "--agent=reviewer"),
            (
                Launch { agents: [("a".to_owned(), Default::default())].into(), ..nothing() },
                r#"--agents={"a":{"description":"","prompt":""}}"#,
            ),
            (Launch { setting_sources: Some(Vec::new()), ..nothing() }, "--setting-sources="),
            (
                Launch { setting_sources: Some(list(&["user", "local"])), ..nothing() },
                "--setting-sources=user,local",
            ),
            (Launch { settings: some("{}"), ..nothing() }, "--settings {}"),
            (
                Launch { mcp_config: Some(json!({"mcpServers": {}})), ..nothing() },
                r#"--mcp-config {"mcpServers":{}}"#,
            ),
            (
                Launch { mcp_config: Some(json!([{}, "a.json"])), ..nothing() },
                "--mcp-config {} --mcp-config a.json",
            ),
            (Launch { managed_settings: some("{}"), ..nothing() }, "--managed-settings {}"),
            (Launch { project_config_root: some("/p"), ..nothing() }, "--project-config-root=/p"),
            (Launch { strict_mcp_config: true, ..nothing() }, "--strict-mcp-config"),
            (Launch { plugin_dirs: list(&["/p"]), ..nothing() }, "--plugin-dir=/p"),
            (
                Launch { plugin_dirs_without_servers: list(&["/p"]), ..nothing() },
                "--plugin-dir-no-mcp=/p",
            ),
            (
                Launch { json_schema: Some(json!({"type": "object"})), ..nothing() },
                r#"--json-schema={"type":"object"}"#,
            ),
            (Launch { include_partial_messages: true, ..nothing() }, "--include-partial-messages"),
            (Launch { include_hook_events: true, ..nothing() }, "--include-hook-events"),
            (Launch { replay_user_messages: true, ..nothing() }, "--replay-user-messages"),
            (session(SessionChoice { go_on: true, ..Default::default() }), "--continue"),
            (session(SessionChoice { resume: some("r"), ..Default::default() }), "--resume=r"),
            (session(SessionChoice { fork: true, ..Default::default() }), "--fork-session"),
            (
                session(SessionChoice { resume_at: some("u"), ..Default::default() }),
                "--resume-session-at=u",
            ),
            (
                session(SessionChoice { resume_drops_turn: some("u"), ..Default::default() }),
                "--resume-drops-turn=u",
            ),
            (session(SessionChoice { id: some("i"), ..Default::default() }), "--session-id=i"),
            (Launch { no_session_persistence: true, ..nothing() }, "--no-session-persistence"),
            (Launch { session_mirror: true, ..nothing() }, "--session-mirror"),
            (
                Launch { extra: vec![("a".into(), some("-1")), ("b".into(), None)], ..nothing() },
                "--a=-1 --b",
            ),
        ] {
            assert_eq!(args(launch.clone()), expected, "{launch:?}");
        }
    }
}
