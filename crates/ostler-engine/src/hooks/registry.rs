//! Reads which hooks there are: callbacks that the host registered, and hooks from settings, which are commands, URLs,
//! prompts for a model or tools of MCP servers.
//!
//! Hooks can be registered for every event of the protocol; `event.rs` lists those that never happen.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ostler_proto::hook::{HookEvent, HookMatcher, OnFailure};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::event;
use super::matcher::Matcher;
use super::mcp::McpHook;
use super::question::PromptHook;
use crate::library::Library;
use crate::permission::{Rule, Source};

/// One hook.
#[derive(Clone, Debug)]
pub(crate) struct Hook {
    pub(super) event: HookEvent,
    matcher: Matcher,
    /// The files its matcher names, for `FileChanged`.
    pub(super) files: Vec<String>,
    /// The settings it comes from; `None` for hooks of the host or a plugin.
    pub(super) source: Option<Source>,
    /// The plugin that brings it.
    pub(super) plugin: Option<String>,
    /// The parts of it that are only displayed.
    pub(super) label: Label,
    /// A rule that the call must match.
    pub(super) condition: Option<Rule>,
    pub(super) kind: Kind,
    /// Callbacks have no limit unless one was set.
    pub(super) timeout: Option<Duration>,
    pub(super) on_failure: FailurePolicy,
    /// It runs in the background.
    pub(super) is_async: bool,
    /// It runs in the background, and its objection wakes the model for a turn.
    pub(super) wakes: bool,
    /// Whether it has run; `None` for a hook that may run more than once.
    has_run: Option<Arc<AtomicBool>>,
}

/// The parts of a hook that are only displayed.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Label {
    /// Its matcher as it is written.
    pub(super) matcher: String,
    /// Its timeout in seconds, if it has one.
    pub(super) timeout: Option<f64>,
    /// What the user reads while it runs.
    pub(super) status_message: Option<String>,
}

/// How a hook is run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Kind {
    /// The host runs it.
    Callback(String),
    /// A program: a line for the shell, or one with its arguments.
    Command { command: String, args: Option<Vec<String>> },
    /// A server is asked.
    Http(HttpHook),
    /// A model is asked.
    Prompt(PromptHook),
    /// A tool of an MCP server is called.
    Mcp(McpHook),
    /// A kind that this version cannot run.
    Unsupported(String),
}

/// A server that is asked.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct HttpHook {
    pub(super) url: String,
    pub(super) headers: BTreeMap<String, String>,
    /// The variables that headers may use.
    pub(super) variables: Vec<String>,
}

/// What a hook's failure means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FailurePolicy {
    /// An objection where it guards, except for the exit codes that only complain.
    Usual,
    /// Nothing, but it is reported.
    Continue,
    /// An objection where it guards, whatever the exit code.
    Block,
}

impl Hook {
    /// Whether the hook is for this event; `subject` is the value that matchers are compared with.
    pub(super) fn is_for(&self, event: &HookEvent, subject: Option<&str>) -> bool {
        self.event == *event && self.matcher.fits(subject)
    }

    /// Whether it runs only once.
    pub(super) fn runs_once(&self) -> bool {
        self.has_run.is_some()
    }

    /// Whether it may run now. Asking counts as running.
    pub(super) fn take_turn(&self) -> bool {
        self.has_run.as_ref().is_none_or(|ledger| !ledger.swap(true, Ordering::Relaxed))
    }
}

/// The hooks a host registers in `initialize`.
pub(crate) fn callbacks(hooks: &BTreeMap<String, Vec<HookMatcher>>) -> Vec<Hook> {
    let entries = hooks
        .iter()
        .flat_map(|(event, matchers)| matchers.iter().map(move |matcher| (event, matcher)));
    let hooks = entries.flat_map(|(event, entry)| {
        entry.hook_callback_ids.iter().map(move |id| Hook {
            event: HookEvent::from(event.as_str()),
            // A hook that runs too often is better than a guard that never runs.
            matcher: Matcher::parse(&HookEvent::from(event.as_str()), entry.matcher.as_deref())
                .unwrap_or(Matcher::All),
            files: files(&HookEvent::from(event.as_str()), entry.matcher.as_deref()),
            source: None,
            plugin: None,
            label: Label::default(),
            condition: None,
            kind: Kind::Callback(id.clone()),
            timeout: entry
                .timeout
                .as_ref()
                .and_then(|seconds| Duration::try_from_secs_f64(seconds.get()).ok()),
            on_failure: match entry.on_failure {
                Some(OnFailure::Continue) => FailurePolicy::Continue,
                Some(_) => FailurePolicy::Block,
                None => FailurePolicy::Usual,
            },
            is_async: false,
            wakes: false,
            has_run: None,
        })
    });
    hooks.collect()
}

/// A hook as it is written in settings. Unknown fields are ignored: newer files have more.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct HookConfig {
    r#type: String,
    command: Option<String>,
    args: Option<Vec<String>>,
    shell: Option<String>,
    url: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    allowed_env_vars: Vec<String>,
    prompt: Option<String>,
    model: Option<String>,
    #[serde(default)]
    continue_on_block: bool,
    server: Option<String>,
    tool: Option<String>,
    #[serde(default)]
    input: Map<String, Value>,
    r#if: Option<String>,
    timeout: Option<f64>,
    status_message: Option<String>,
    on_failure: Option<String>,
    #[serde(default)]
    once: bool,
    #[serde(default)]
    r#async: bool,
    #[serde(default)]
    async_rewake: bool,
}

/// The hooks of a settings file: `{"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", …}]}]}`.
///
/// # Errors
/// When the section is malformed: a misspelt guard must not be left out silently.
pub(crate) fn commands(settings: &Value) -> Result<Vec<Hook>, String> {
    let events = settings.as_object().ok_or("`hooks` is not an object")?;
    let mut hooks = Vec::new();
    for (name, entries) in events {
        let event = HookEvent::from(name.as_str());
        if matches!(event, HookEvent::Other(_)) {
            return Err(format!("`hooks.{name}`: there is no such event; check its spelling"));
        }
        let entries = entries.as_array().ok_or_else(|| format!("`hooks.{name}` is not a list"))?;
        for (index, entry) in entries.iter().enumerate() {
            let place = format!("`hooks.{name}[{index}]`");
            hooks.extend(of_entry(&event, entry).map_err(|error| format!("{place}: {error}"))?);
        }
    }
    Ok(hooks)
}

/// Reads the hooks of an agent. Its `Stop` hooks become `SubagentStop` hooks.
///
/// # Errors
/// As for those of settings.
pub(crate) fn commands_of_agent(settings: &Value) -> Result<Vec<Hook>, String> {
    let mut hooks = commands(settings)?;
    for hook in hooks.iter_mut().filter(|hook| hook.event == HookEvent::Stop) {
        hook.event = HookEvent::SubagentStop;
    }
    Ok(hooks)
}

/// Reads the hooks of all plugins in use.
///
/// # Errors
/// As for those of settings, with the plugin's name.
pub(crate) fn of_plugins(library: &Library) -> Result<Vec<Hook>, String> {
    let mut all = Vec::new();
    for plugin in &library.plugins {
        if let Some(hooks) = &plugin.hooks {
            all.extend(of_plugin(&plugin.name, hooks)?);
        }
    }
    Ok(all)
}

/// Reads the hooks of a plugin.
///
/// # Errors
/// As for those of settings, with the plugin's name.
pub(super) fn of_plugin(plugin: &str, settings: &Value) -> Result<Vec<Hook>, String> {
    let hooks = commands(settings).map_err(|error| format!("the plugin {plugin}: {error}"))?;
    let named = |hook| Hook { plugin: Some(plugin.to_owned()), ..hook };
    Ok(hooks.into_iter().map(named).collect())
}

/// Reads the hooks of several settings files, each with its source.
pub(crate) fn of_settings(settings: &[(Source, Value)]) -> Result<Vec<Hook>, String> {
    let mut all = Vec::new();
    for (source, hooks) in settings {
        let of_source = |hook| Hook { source: Some(*source), ..hook };
        all.extend(commands(hooks)?.into_iter().map(of_source));
    }
    Ok(all)
}

fn of_entry(event: &HookEvent, entry: &Value) -> Result<Vec<Hook>, String> {
    let matcher = match entry.get("matcher") {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) => Some(text.as_str()),
        Some(other) => return Err(format!("its matcher is not text: {other}")),
    };
    // Also without hooks: a misspelling is reported at once.
    Matcher::parse(event, matcher)?;
    let list = entry["hooks"].as_array().ok_or("it has no list of `hooks`")?;
    list.iter().map(|hook| read(event, matcher, hook)).collect()
}

/// The files that a matcher names: plain names in the working directory.
fn files(event: &HookEvent, matcher: Option<&str>) -> Vec<String> {
    if *event != HookEvent::FileChanged {
        return Vec::new();
    }
    let names = matcher.unwrap_or_default().split('|').map(str::trim);
    names.filter(|name| !matches!(*name, "" | "*")).map(str::to_owned).collect()
}

fn read(event: &HookEvent, matcher: Option<&str>, hook: &Value) -> Result<Hook, String> {
    let written: HookConfig =
        HookConfig::deserialize(hook).map_err(|error| format!("a hook is malformed: {error}"))?;
    let timeout = match written.timeout {
        None => event::default_timeout(event, &written.r#type),
        Some(seconds) => Duration::try_from_secs_f64(seconds)
            .map_err(|_| format!("{seconds} is not a valid timeout in seconds"))?,
    };
    let on_failure = match written.on_failure.as_deref() {
        None => FailurePolicy::Usual,
        Some("continue") => FailurePolicy::Continue,
        Some("block") => FailurePolicy::Block,
        Some(other) => return Err(format!("onFailure is `{other}`; it can be continue or block")),
    };
    let condition = written.r#if.as_deref().map(str::parse::<Rule>).transpose();
    Ok(Hook {
        event: event.clone(),
        matcher: Matcher::parse(event, matcher)?,
        files: files(event, matcher),
        source: None,
        plugin: None,
        label: Label {
            matcher: matcher.unwrap_or_default().to_owned(),
            timeout: written.timeout,
            status_message: written.status_message.clone(),
        },
        condition: condition.map_err(|error| format!("its `if` is not a valid rule: {error}"))?,
        timeout: Some(timeout),
        on_failure,
        is_async: written.r#async || written.async_rewake,
        wakes: written.async_rewake,
        has_run: written.once.then(Arc::default),
        kind: kind(event, written)?,
    })
}

fn kind(event: &HookEvent, written: HookConfig) -> Result<Kind, String> {
    match written.r#type.as_str() {
        "command" => {
            if let Some(shell) = written.shell.filter(|shell| shell != "bash") {
                return Err(format!("the shell `{shell}` is not supported; use bash"));
            }
            let command = written.command.ok_or("a hook of type command has no `command`")?;
            Ok(Kind::Command { command, args: written.args })
        }
        "http" => {
            let url = written.url.ok_or("a hook of type http has no `url`")?;
            let is_web =
                reqwest::Url::parse(&url).is_ok_and(|url| matches!(url.scheme(), "http" | "https"));
            if !is_web {
                return Err(format!("`{url}` is not an http or https address"));
            }
            let variables = written.allowed_env_vars;
            Ok(Kind::Http(HttpHook { url, headers: written.headers, variables }))
        }
        "prompt" if event::can_be_judged(event) => {
            let prompt = written.prompt.ok_or("a hook of type prompt has no `prompt`")?;
            let (model, continues) = (written.model, written.continue_on_block);
            Ok(Kind::Prompt(PromptHook { prompt, model, continues }))
        }
        "prompt" => Err(format!("a model cannot answer {event}; use command, http or mcp_tool")),
        "mcp_tool" => {
            let server = written.server.ok_or("a hook of type mcp_tool has no `server`")?;
            let tool = written.tool.ok_or("a hook of type mcp_tool has no `tool`")?;
            Ok(Kind::Mcp(McpHook { server, tool, input: written.input }))
        }
        // It would have to object to everything, so the session does not start.
        other if event::is_guarded(event) => Err(format!(
            "hooks of type `{other}` are not supported, and leaving out one that guards is not safe; use command, http, prompt or mcp_tool"
        )),
        other => Ok(Kind::Unsupported(other.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn one(event: &str, hook: Value) -> Result<Hook, String> {
        commands(&json!({event: [{"matcher": "Bash", "hooks": [hook]}]}))
            .map(|mut hooks| hooks.remove(0))
    }

    #[test]
    fn settings_give_commands() {
        let hook = json!({"type": "command", "command": "check", "timeout": 5});
        let hook = one("PreToolUse", hook).unwrap();
        assert!(hook.is_for(&HookEvent::PreToolUse, Some("Bash")));
        assert!(!hook.is_for(&HookEvent::PostToolUse, Some("Bash")));
        assert!(!hook.is_for(&HookEvent::PreToolUse, Some("Read")));
        assert_eq!(hook.timeout, Some(Duration::from_secs(5)));
    }

    #[test]
    fn every_event_of_the_protocol_can_be_registered() {
        for event in HookEvent::ALL {
            let hook = one(event.as_str(), json!({"type": "command", "command": "x"})).unwrap();
            assert!(hook.is_for(event, None));
        }
    }

    #[test]
    fn a_misspelt_guard_is_an_error() {
        let command = |more: Value| {
            let mut hook = json!({"type": "command", "command": "x"});
            hook.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            json!({"PreToolUse": [{"hooks": [hook]}]})
        };
        for (settings, words) in [
            (json!([]), "not an object"),
            (json!({"PreToolUse": {}}), "`hooks.PreToolUse` is not a list"),
            (json!({"PreTooluse": []}), "no such event"),
            (json!({"PreToolUse": [{"matcher": "Bash"}]}), "`hooks.PreToolUse[0]`: it has no list"),
            (json!({"PreToolUse": [{"matcher": 3, "hooks": []}]}), "not text"),
            (json!({"PreToolUse": [{"matcher": "Bash(", "hooks": []}]}), "`Bash(`"),
            (json!({"PreToolUse": [{"hooks": [{"type": "command"}]}]}), "no `command`"),
            (json!({"PreToolUse": [{"hooks": [{"command": "x"}]}]}), "`type`"),
            (json!({"PreToolUse": [{"hooks": [{"type": "agent", "prompt": "?"}]}]}), "`agent`"),
            (json!({"PreToolUse": [{"hooks": [{"type": "prompt"}]}]}), "no `prompt`"),
            (json!({"PreCompact": [{"hooks": [{"type": "prompt", "prompt": "?"}]}]}), "PreCompact"),
            (json!({"Stop": [{"hooks": [{"type": "mcp_tool", "server": "s"}]}]}), "no `tool`"),
            (json!({"PreToolUse": [{"hooks": [{"type": "http", "url": "file:///x"}]}]}), "http"),
            (command(json!({"timeout": -1})), "timeout"),
            (command(json!({"timeout": "5"})), "malformed"),
            (command(json!({"if": "Bash("})), "`if`"),
            (command(json!({"onFailure": "shrug"})), "shrug"),
            (command(json!({"shell": "powershell"})), "powershell"),
        ] {
            let error = commands(&settings).unwrap_err();
            assert!(error.contains(words), "{error}");
        }
    }

    #[test]
    fn a_hook_that_runs_once_does_not_run_again() {
        let hook = json!({"type": "command", "command": "x", "once": true});
        let hook = one("Stop", hook).unwrap();
        assert!(hook.take_turn() && !hook.clone().take_turn());
    }
}
