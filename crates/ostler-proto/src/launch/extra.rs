//! Arguments given by name, parsed like a command line.

use std::fmt::Display;
use std::str::FromStr;

use serde_json::Value;

use super::{Answerer, Launch, ModelPrice, Thinking, ToolSet};
use crate::hook::SetupTrigger;
use crate::permission::PermissionMode;

/// An invalid argument.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("--{name} {reason}")]
pub struct OddArgument {
    /// Its name.
    pub name: String,
    /// What is wrong with it.
    pub reason: String,
}

impl Launch {
    /// Parses the arguments in [`Launch::extra`], for an engine without a command line. The last value of a repeated
    /// argument counts; lists are appended.
    ///
    /// ```
    /// use ostler_proto::launch::Launch;
    ///
    /// let extra = vec![("max-turns".to_owned(), Some("3".to_owned()))];
    /// let mut launch = Launch { extra, ..Launch::default() };
    /// launch.take_extra().unwrap();
    /// assert_eq!(launch, Launch { max_turns: Some(3), ..Launch::default() });
    /// ```
    ///
    /// # Errors
    /// When one is not known, or makes no sense; nothing is passed over.
    pub fn take_extra(&mut self) -> Result<(), OddArgument> {
        for (name, value) in std::mem::take(&mut self.extra) {
            let taken = match value {
                Some(value) => self.take_value(&name, &value),
                None if self.take_flag(&name) => Ok(()),
                // Tried only to distinguish two errors.
                None => match Self::default().take_value(&name, "1") {
                    Err(reason) if reason == UNKNOWN => Err(reason),
                    _ => Err("needs a value".to_owned()),
                },
            };
            taken.map_err(|reason| OddArgument { name, reason })?;
        }
        Ok(())
    }

    /// Returns false if it is not a flag.
    fn take_flag(&mut self, name: &str) -> bool {
        let flag = match name {
            "allow-dangerously-skip-permissions" => &mut self.allow_skip_permissions,
            "dangerously-skip-permissions" => {
                self.permission_mode = Some(PermissionMode::BypassPermissions);
                return true;
            }
            "strict-mcp-config" => &mut self.strict_mcp_config,
            "include-partial-messages" => &mut self.include_partial_messages,
            "include-hook-events" => &mut self.include_hook_events,
            "replay-user-messages" => &mut self.replay_user_messages,
            "continue" => &mut self.session.go_on,
            "fork-session" => &mut self.session.fork,
            "no-session-persistence" => &mut self.no_session_persistence,
            "session-mirror" => &mut self.session_mirror,
            "init" | "init-only" => {
                self.setup = Some(SetupTrigger::Init);
                self.only_setup |= name == "init-only";
                return true;
            }
            "maintenance" => {
                self.setup = Some(SetupTrigger::Maintenance);
                return true;
            }
            // These are always on.
            "verbose" | "print" | "await-initialize" => return true,
            _ => return false,
        };
        *flag = true;
        true
    }

    fn take_value(&mut self, name: &str, value: &str) -> Result<(), String> {
        match name {
            "thinking" => self.thinking = Some(thinking(value)?),
            "max-thinking-tokens" => self.thinking = Some(Thinking::Budget(parsed(value)?)),
            "max-turns" if value == "0" => return Err("must be 1 or more".to_owned()),
            "max-turns" => self.max_turns = Some(parsed(value)?),
            "max-budget-usd" => self.max_budget_usd = Some(parsed(value)?),
            "task-budget" => self.task_budget = Some(parsed(value)?),
            "model-price" => self.model_prices.extend([ModelPrice::read(value)?]),
            "permission-mode" => self.permission_mode = Some(permission_mode(value)?),
            "permission-prompts" if value == "none" => {
                self.permission_prompts = Some(Answerer::NoOne);
            }
            "permission-prompts" => return Err(format!("is {value:?}, but must be none")),
            "permission-prompt-tool" => {
                self.permission_prompts = Some(match value {
                    "stdio" => Answerer::Host,
                    tool => Answerer::Tool(tool.to_owned()),
                });
            }
            "tools" => self.tools = Some(ToolSet::read([value])),
            "agents" => self.agents.extend(json::<super::BTreeMap<_, _>>(value)?),
            "json-schema" => self.json_schema = Some(json(value)?),
            "setting-sources" => self.setting_sources = Some(words(value)),
            "mcp-config" => self.add_servers(value),
            _ => {
                if let Some(list) = self.list(name) {
                    list.extend(split(name, value));
                } else if let Some(text) = self.text(name) {
                    *text = Some(value.to_owned());
                } else if Self::default().take_flag(name) {
                    return Err("takes no value".to_owned());
                } else {
                    return Err(UNKNOWN.to_owned());
                }
            }
        }
        Ok(())
    }

    fn list(&mut self, name: &str) -> Option<&mut Vec<String>> {
        Some(match name {
            "betas" => &mut self.betas,
            "allowedTools" | "allowed-tools" => &mut self.allowed_tools,
            "disallowedTools" | "disallowed-tools" => &mut self.disallowed_tools,
            "add-dir" => &mut self.add_dirs,
            "plugin-dir" => &mut self.plugin_dirs,
            "plugin-dir-no-mcp" => &mut self.plugin_dirs_without_servers,
            _ => return None,
        })
    }

    fn text(&mut self, name: &str) -> Option<&mut Option<String>> {
        Some(match name {
            "model" => &mut self.model,
            "fallback-model" => &mut self.fallback_model,
            "thinking-display" => &mut self.thinking_display,
            "effort" => &mut self.effort,
            "system-prompt" => &mut self.system_prompt,
            "append-system-prompt" => &mut self.append_system_prompt,
            "agent" => &mut self.agent,
            "settings" => &mut self.settings,
            "managed-settings" => &mut self.managed_settings,
            "project-config-root" => &mut self.project_config_root,
            "resume" => &mut self.session.resume,
            "resume-session-at" => &mut self.session.resume_at,
            "resume-drops-turn" => &mut self.session.resume_drops_turn,
            "session-id" => &mut self.session.id,
            "record" => &mut self.tape.record,
            "replay" => &mut self.tape.replay,
            "replay-tools" => &mut self.tape.replay_tools,
            "replay-match" => &mut self.tape.replay_match,
            "replay-timing" => &mut self.tape.replay_timing,
            _ => return None,
        })
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

/// The message for an unknown argument.
const UNKNOWN: &str =
    "is not known to the engine in this process: remove it, or start an executable";

fn thinking(word: &str) -> Result<Thinking, String> {
    match word {
        "adaptive" => Ok(Thinking::Adaptive),
        "disabled" => Ok(Thinking::Disabled),
        _ => Err(format!("is {word:?}, but must be adaptive or disabled")),
    }
}

fn permission_mode(word: &str) -> Result<PermissionMode, String> {
    match PermissionMode::from(word) {
        PermissionMode::Other(_) | PermissionMode::Auto => Err(format!(
            "is {word:?}, but must be default, acceptEdits, plan, dontAsk or bypassPermissions"
        )),
        mode => Ok(mode),
    }
}

fn parsed<T: FromStr<Err: Display>>(value: &str) -> Result<T, String> {
    value.parse().map_err(|error| format!("is {value:?}, which is not a valid number: {error}"))
}

fn json<T: serde::de::DeserializeOwned>(value: &str) -> Result<T, String> {
    serde_json::from_str(value).map_err(|error| format!("is not valid JSON for it: {error}"))
}

fn words(list: &str) -> Vec<String> {
    list.split(',').map(str::trim).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// The values of a list argument. Folders are given one at a time.
fn split(name: &str, value: &str) -> Vec<String> {
    match name {
        "betas" => words(value),
        name if name.ends_with("ools") => split_rules([value]),
        _ => vec![value.to_owned()],
    }
}

impl ToolSet {
    /// The tools that an argument names.
    pub fn read<'a>(lists: impl IntoIterator<Item = &'a str>) -> Self {
        let names = split_rules(lists);
        match names.iter().any(|name| name == "default") {
            true => Self::Default,
            false => Self::Only(names),
        }
    }
}

/// Splits lists of rules at commas and blanks outside parentheses.
///
/// ```
/// use ostler_proto::launch::split_rules;
///
/// assert_eq!(split_rules(["Read,Bash(git log:*) Grep"]), ["Read", "Bash(git log:*)", "Grep"]);
/// ```
pub fn split_rules<'a>(lists: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut rules = vec![String::new()];
    for list in lists {
        let mut depth = 0_usize;
        for character in list.chars() {
            match character {
                '(' => depth += 1,
                ')' => depth = depth.saturating_sub(1),
                ',' | ' ' if depth == 0 => {
                    rules.push(String::new());
                    continue;
                }
                _ => {}
            }
            if let Some(rule) = rules.last_mut() {
                rule.push(character);
            }
        }
        rules.push(String::new());
    }
    rules.retain(|rule| !rule.is_empty());
    rules
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(extra: &[(&str, Option<&str>)]) -> Result<Launch, String> {
        let of =
            |(name, value): &(&str, Option<&str>)| ((*name).to_owned(), value.map(str::to_owned));
        let mut launch = Launch { extra: extra.iter().map(of).collect(), ..Launch::default() };
        launch.take_extra().map_err(|error| error.to_string())?;
        assert_eq!(launch.extra, []);
        Ok(launch)
    }

    #[test]
    fn the_last_value_counts_and_lists_are_appended() {
        let launch = read(&[
            ("model", Some("a")),
            ("allowedTools", Some("Read,Bash(git log:*)")),
            ("model", Some("b")),
            ("allowed-tools", Some("Grep")),
            ("mcp-config", Some("{\"mcpServers\":{}}")),
            ("mcp-config", Some("a.json")),
            ("continue", None),
        ])
        .unwrap();
        assert_eq!(launch.model.as_deref(), Some("b"));
        assert_eq!(launch.allowed_tools, ["Read", "Bash(git log:*)", "Grep"]);
        assert_eq!(launch.mcp_config, Some(serde_json::json!([{"mcpServers": {}}, "a.json"])));
        assert!(launch.session.go_on);
    }

    #[test]
    fn invalid_arguments_are_named() {
        for (name, value, message) in [
            ("no-such-thing", None, "--no-such-thing is not known"),
            ("no-such-thing", Some("1"), "--no-such-thing is not known"),
            ("cwd", Some("/"), "--cwd is not known"),
            ("model", None, "--model needs a value"),
            ("max-turns", None, "--max-turns needs a value"),
            ("thinking", None, "--thinking needs a value"),
            ("continue", Some("yes"), "--continue takes no value"),
            ("verbose", Some("yes"), "--verbose takes no value"),
            ("max-turns", Some("many"), "--max-turns is \"many\", which is not a valid number"),
            ("max-turns", Some("-1"), "--max-turns is \"-1\""),
            ("max-turns", Some("0"), "--max-turns must be 1 or more"),
            ("permission-mode", Some("sure"), "must be default, acceptEdits"),
            ("permission-prompts", Some("all"), "must be none"),
            ("thinking", Some("hard"), "must be adaptive or disabled"),
            ("json-schema", Some("{"), "--json-schema is not valid JSON"),
            ("agents", Some("[]"), "--agents is not valid JSON"),
        ] {
            let error = read(&[(name, value)]).unwrap_err();
            assert!(error.contains(message), "{error}");
        }
    }
}
