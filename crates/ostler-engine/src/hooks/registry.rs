//! Which hooks there are: callbacks the host registered, commands from settings.

use std::collections::BTreeMap;
use std::time::Duration;

use ostler_proto::hook::{HookEvent, HookMatcher, OnFailure};
use serde_json::Value;

/// How long a command may take unless it says otherwise.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(60);

/// One hook.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Hook {
    event: HookEvent,
    matcher: Matcher,
    pub(crate) kind: Kind,
    /// Callbacks have no limit unless one was set.
    pub(crate) timeout: Option<Duration>,
    /// The host wants a failure of this hook to change nothing.
    pub(crate) may_fail: bool,
}

/// How a hook is run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Kind {
    /// The host runs it.
    Callback(String),
    /// A shell runs it.
    Command(String),
}

/// Which tools a hook is for.
#[derive(Clone, Debug, PartialEq)]
enum Matcher {
    All,
    Names(Vec<String>),
}

impl Hook {
    /// Whether the hook wants to hear of this.
    pub(crate) fn is_for(&self, event: &HookEvent, tool: Option<&str>) -> bool {
        self.event == *event && self.matcher.fits(tool)
    }
}

impl Matcher {
    /// Nothing, an empty text and `*` mean all; otherwise names separated by `|`, each with `*` for any letters.
    fn parse(text: Option<&str>) -> Self {
        match text.map(str::trim) {
            None | Some("" | "*" | ".*") => Self::All,
            Some(text) => {
                Self::Names(text.split('|').map(|name| name.trim().replace(".*", "*")).collect())
            }
        }
    }

    fn fits(&self, tool: Option<&str>) -> bool {
        match (self, tool) {
            // Events without a tool know no narrower matcher.
            (Self::All, _) | (_, None) => true,
            (Self::Names(names), Some(tool)) => names.iter().any(|name| fits(name, tool)),
        }
    }
}

/// Whether a pattern with `*` fits the whole name.
fn fits(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((start, rest)) => name.strip_prefix(start).is_some_and(|name| {
            (0..=name.len())
                .filter(|at| name.is_char_boundary(*at))
                .any(|at| fits(rest, &name[at..]))
        }),
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
            matcher: Matcher::parse(entry.matcher.as_deref()),
            kind: Kind::Callback(id.clone()),
            timeout: entry
                .timeout
                .as_ref()
                .and_then(|seconds| Duration::try_from_secs_f64(seconds.get()).ok()),
            may_fail: entry.on_failure == Some(OnFailure::Continue),
        })
    });
    hooks.collect()
}

/// The hooks of a settings file: `{"PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", …}]}]}`.
///
/// # Errors
/// In words, when the section is not of that shape: a guard that is misspelt must not be left out quietly.
pub(crate) fn commands(settings: &Value) -> Result<Vec<Hook>, String> {
    let events = settings.as_object().ok_or("`hooks` is not an object")?;
    let mut hooks = Vec::new();
    for (event, entries) in events {
        for entry in entries.as_array().ok_or_else(|| format!("`hooks.{event}` is not a list"))? {
            let list = entry["hooks"]
                .as_array()
                .ok_or_else(|| format!("`hooks.{event}` has an entry without `hooks`"))?;
            for hook in list {
                hooks.extend(command(event, entry["matcher"].as_str(), hook)?);
            }
        }
    }
    Ok(hooks)
}

fn command(event: &str, matcher: Option<&str>, hook: &Value) -> Result<Option<Hook>, String> {
    match hook["type"].as_str() {
        Some("command") => {}
        // Kinds of hooks that need a model or a network are not there yet; saying nothing would be a lie.
        other => {
            return Err(format!(
                "`hooks.{event}` has a hook of type {}, which is not supported",
                other.unwrap_or("?")
            ));
        }
    }
    let command = hook["command"]
        .as_str()
        .ok_or_else(|| format!("`hooks.{event}` has a hook without `command`"))?;
    let timeout = match hook.get("timeout") {
        None => COMMAND_TIMEOUT,
        Some(seconds) => seconds
            .as_f64()
            .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
            .ok_or_else(|| {
                format!("`hooks.{event}` has a timeout that is not a number of seconds")
            })?,
    };
    Ok(Some(Hook {
        event: HookEvent::from(event),
        matcher: Matcher::parse(matcher),
        kind: Kind::Command(command.to_owned()),
        timeout: Some(timeout),
        may_fail: false,
    }))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_matcher_names_tools() {
        for (matcher, tool, expected) in [
            (None, "Bash", true),
            (Some("*"), "Bash", true),
            (Some(""), "Bash", true),
            (Some("Bash"), "Bash", true),
            (Some("Bash"), "BashOutput", false),
            (Some("Edit|Write"), "Write", true),
            (Some("mcp__.*"), "mcp__a__b", true),
            (Some("mcp__*__b"), "mcp__a__b", true),
            (Some("mcp__*__c"), "mcp__a__b", false),
            (Some("b*"), "Bash", false),
        ] {
            assert_eq!(Matcher::parse(matcher).fits(Some(tool)), expected, "{matcher:?} {tool}");
        }
        assert!(Matcher::parse(Some("Bash")).fits(None));
    }

    #[test]
    fn settings_give_commands() {
        let settings = json!({"PreToolUse": [{"matcher": "Bash", "hooks":
            [{"type": "command", "command": "check", "timeout": 5}]}]});
        let hooks = commands(&settings).unwrap();
        assert!(hooks[0].is_for(&HookEvent::PreToolUse, Some("Bash")));
        assert!(!hooks[0].is_for(&HookEvent::PostToolUse, Some("Bash")));
        assert_eq!(hooks[0].timeout, Some(Duration::from_secs(5)));
    }

    #[test]
    fn a_guard_that_is_misspelt_is_an_error() {
        for settings in [
            json!([]),
            json!({"PreToolUse": {}}),
            json!({"PreToolUse": [{"matcher": "Bash"}]}),
            json!({"PreToolUse": [{"hooks": [{"type": "command"}]}]}),
            json!({"PreToolUse": [{"hooks": [{"type": "prompt", "prompt": "?"}]}]}),
            json!({"PreToolUse": [{"hooks": [{"type": "command", "command": "x", "timeout": -1}]}]}),
        ] {
            assert!(commands(&settings).is_err(), "{settings}");
        }
    }
}
