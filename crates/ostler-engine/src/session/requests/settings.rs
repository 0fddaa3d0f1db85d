//! Requests about the session's settings: reading and changing them.

use std::collections::BTreeMap;
use std::sync::Arc;

use ostler_proto::build;
use ostler_proto::control::{
    GetSettingsReply, PermissionRuleEntry, PermissionRulesState, UpdateSettings, WorkspaceDirectory,
};
use ostler_proto::permission::PermissionBehavior;
use ostler_proto::sandbox::SandboxSettings;
use serde_json::{Map, Value, json};

use crate::model::Effort;
use crate::permission::{Behavior, Rule, Source};
use crate::session::Session;
use crate::settings::FilePermissions;
use crate::settings::write::{self, join};

/// The source of settings that the host applies while the session runs.
const FLAG: &str = "flagSettings";

impl Session {
    /// All active rules.
    pub(super) fn permission_rules(&self) -> Value {
        let policy = self.context.permissions.policy();
        let rules = policy.rules().iter().map(|kept| {
            let behavior = match kept.behavior {
                Behavior::Allow => PermissionBehavior::Allow,
                Behavior::Deny => PermissionBehavior::Deny,
                Behavior::Ask => PermissionBehavior::Ask,
            };
            build!(PermissionRuleEntry {
                source: source_name(kept.source).to_owned(),
                editability: editability(kept.source).to_owned(),
                ..PermissionRuleEntry::new(behavior, kept.rule.to_string())
            })
        });
        let directories = policy.kept_directories().map(|(path, source)| {
            build!(WorkspaceDirectory {
                path: path.display().to_string(),
                source: source_name(source).to_owned(),
            })
        });
        let state = build!(PermissionRulesState {
            rules: rules.collect(),
            workspace_directories: directories.collect(),
            original_cwd: self.context.cx.cwd.display().to_string(),
            managed_only: false
        });
        json!({"state": state})
    }

    /// The active settings and their sources. Values under `env` may be secrets and are not shown.
    pub(super) fn settings(&self) -> Value {
        let mut effective = Map::new();
        let mut sources = Vec::new();
        for (source, settings) in &self.setup.settings {
            let mut settings = settings.clone();
            hide_variables(&mut settings);
            join(&mut effective, &settings);
            sources.push(json!({"source": source, "settings": settings}));
        }
        let effort = self.setup.base.sampling.effort;
        let reply = build!(GetSettingsReply {
            effective: Value::Object(effective),
            sources,
            applied: Some(json!({"model": self.context.model_name.as_ref(), "effort": effort})),
        });
        serde_json::to_value(reply).unwrap_or_default()
    }

    /// Changes settings as if they had been given on the command line. All of them hold from the next turn on, or none;
    /// settings that have no effect while a session runs are reported.
    pub(super) async fn apply_settings(&mut self, settings: &Value) -> Result<Value, String> {
        let Value::Object(given) = settings else {
            return Err("the settings are not an object".to_owned());
        };
        // All settings applied so far are checked together.
        let mut applied = self.setup.applied.clone();
        join(&mut applied, given);
        let rules = applied.get("permissions").map(read_rules).transpose()?.unwrap_or_default();
        let effort = given.get("effortLevel").map(read_effort).transpose()?;
        let model = given.get("model").map(read_model).transpose()?;
        let variables = given.get("env").map(read_variables).transpose()?;
        let has_sandbox = self.setup.base.sandbox.is_some();
        given.get("sandbox").map(|it| check_sandbox(it, has_sandbox)).transpose()?;
        if let Some(trouble) = model.as_ref().and_then(|it| self.model_trouble(it.as_deref())) {
            return Err(trouble);
        }
        // Everything has been read: from here on nothing fails.
        const WITH_EFFECT: &[&str] = &["model", "env", "permissions", "effortLevel"];
        let names = given.keys().filter(|name| !WITH_EFFECT.contains(&name.as_str()));
        let without_effect: Vec<String> = names.cloned().collect();
        if let Some(model) = model {
            self.change_model(model.as_deref()).await;
        }
        if let Some(variables) = variables {
            self.update_environment(variables);
        }
        if let Some(effort) = effort {
            self.setup.base.sampling.effort = effort;
        }
        self.setup.applied = applied;
        if given.contains_key("permissions") {
            let mut policy = self.context.permissions.lock();
            policy.forget(Source::Flag);
            // The rules from the start stay: a host can only add rules, and a deny rule stays.
            let started = self.setup.flag_rules.iter().cloned();
            let started = started.map(|kept| (kept.behavior, kept.rule));
            for (behavior, rule) in started.chain(rules) {
                policy.add_rule(behavior, rule, Source::Flag);
            }
        }
        self.remember(given);
        self.context = self.setup.context();
        if !without_effect.is_empty() {
            let list = without_effect.join(", ");
            let text = format!("these settings have no effect while a session runs: {list}");
            self.context.outbox.inform(text, "warning", Some("settings_without_effect")).await;
        }
        Ok(json!({}))
    }

    fn remember(&mut self, given: &Map<String, Value>) {
        let known = &mut self.setup.settings;
        let at = known.iter().position(|(source, _)| source == FLAG);
        let at = at.unwrap_or_else(|| {
            known.push((FLAG.to_owned(), Map::new()));
            known.len() - 1
        });
        join(&mut known[at].1, given);
    }

    /// Writes to a settings file of the user. The change holds for sessions that start later.
    ///
    /// Waits for other sessions that write the file, so it must run on a blocking thread.
    pub(in crate::session) fn settings_update(
        &self,
        update: &UpdateSettings,
    ) -> Result<impl FnOnce() -> Result<Value, String> + Send + use<>, String> {
        let source = match update.source.as_str() {
            "userSettings" => Source::User,
            "localSettings" => Source::Local,
            other => {
                return Err(format!(
                    "{other} cannot be changed; use userSettings or localSettings"
                ));
            }
        };
        let Value::Object(change) = &update.settings else {
            return Err("the settings are not an object".to_owned());
        };
        if let Some(permissions) = change.get("permissions") {
            read_rules(permissions)?;
        }
        let folders = Arc::clone(&self.context.permissions.folders);
        let path = folders.file(source).ok_or_else(|| "there is no folder for it".to_owned())?;
        let change = change.clone();
        Ok(move || {
            write::merge(&folders, &path, &change).map_err(|error| error.to_string())?;
            Ok(json!({}))
        })
    }
}

/// Reads rules from settings: all of them, or an error.
fn read_rules(permissions: &Value) -> Result<Vec<(Behavior, Rule)>, String> {
    let read: FilePermissions = serde_json::from_value(permissions.clone())
        .map_err(|error| format!("permissions: {error}"))?;
    let mut rules = Vec::new();
    for (behavior, texts) in
        [(Behavior::Allow, read.allow), (Behavior::Deny, read.deny), (Behavior::Ask, read.ask)]
    {
        for text in texts {
            let rule = text.parse().map_err(|error| format!("the rule {text}: {error}"))?;
            rules.push((behavior, rule));
        }
    }
    Ok(rules)
}

fn read_model(model: &Value) -> Result<Option<String>, String> {
    match model {
        Value::Null => Ok(None),
        Value::String(name) => Ok(Some(name.clone())),
        other => Err(format!("model is not a string: {other}")),
    }
}

/// Reads variables by name; `null` removes one.
fn read_variables(variables: &Value) -> Result<BTreeMap<String, String>, String> {
    let Value::Object(variables) = variables else {
        return Err(format!("env is not an object: {variables}"));
    };
    let texts = variables.iter().filter(|(_, value)| !value.is_null());
    let texts = texts.map(|(name, value)| match value.as_str() {
        Some(value) => Ok((name.clone(), value.to_owned())),
        None => Err(format!("env.{name} is not a string")),
    });
    texts.collect()
}

/// Refuses to change the sandbox: what was started with one boundary would continue in it.
fn check_sandbox(sandbox: &Value, has_sandbox: bool) -> Result<(), String> {
    let wanted: SandboxSettings =
        serde_json::from_value(sandbox.clone()).map_err(|error| format!("sandbox: {error}"))?;
    let refused = |what: &str| {
        Err(format!(
            "sandbox: {what} while the session runs; start a new session with this setting"
        ))
    };
    match wanted.enabled {
        Some(false) if has_sandbox => refused("it cannot be left"),
        _ if wanted.is_required() && !has_sandbox => refused("it cannot be entered"),
        _ if has_sandbox && wanted != SandboxSettings::default() => {
            let same = SandboxSettings { enabled: Some(true), ..SandboxSettings::default() };
            if wanted == same { Ok(()) } else { refused("its boundary cannot be changed") }
        }
        _ => Ok(()),
    }
}

fn read_effort(word: &Value) -> Result<Option<Effort>, String> {
    match word {
        Value::Null => Ok(None),
        word => word
            .as_str()
            .and_then(|word| word.parse().ok())
            .map(Some)
            .ok_or_else(|| format!("{word} is not a valid effort")),
    }
}

fn hide_variables(settings: &mut Map<String, Value>) {
    if let Some(Value::Object(variables)) = settings.get_mut("env") {
        variables.values_mut().for_each(|value| *value = json!("(hidden)"));
    }
}

fn source_name(source: Source) -> &'static str {
    match source {
        Source::User => "userSettings",
        Source::Project => "projectSettings",
        Source::Local => "localSettings",
        Source::Flag => FLAG,
        Source::CliArg => "cliArg",
        Source::Session => "session",
        Source::Managed => "policySettings",
    }
}

fn editability(source: Source) -> &'static str {
    match source {
        Source::User | Source::Project | Source::Local => "persistent",
        Source::Session => "session",
        Source::Flag | Source::CliArg | Source::Managed => "readonly",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_joined_field_by_field() {
        let mut into =
            json!({"a": {"x": 1, "y": 2}, "b": [1], "c": 1}).as_object().unwrap().clone();
        join(&mut into, json!({"a": {"y": 3}, "b": [2], "c": null}).as_object().unwrap());
        assert_eq!(Value::Object(into), json!({"a": {"x": 1, "y": 3}, "b": [2]}));
    }

    #[test]
    fn an_invalid_rule_is_refused() {
        assert!(read_rules(&json!({"deny": ["Bash(ls:*)"], "ask": ["Read"]})).unwrap().len() == 2);
        assert!(read_rules(&json!({"deny": ["Bash("]})).is_err());
        assert!(read_rules(&json!({"deny": "Bash"})).is_err());
    }
}
