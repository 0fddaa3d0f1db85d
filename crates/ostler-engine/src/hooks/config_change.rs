//! Settings files that change while a session runs: hooks are notified and may object, then the allowed changes take
//! effect.

use std::sync::Arc;

use ostler_proto::hook::HookEvent;
use serde_json::json;

use super::{Event, Hooks, registry};
use crate::disk::on_disk;
use crate::permission::{Behavior, Policy, Source};
use crate::settings::Settings;
use crate::settings_watcher::{ChangedFile, SettingsWatcher};

impl Hooks {
    /// Looks at the settings, notifies hooks of changes, and applies the allowed ones. `again`: also asks again about
    /// changes to which hooks gave no answer. A future that is dropped early has changed nothing: the next look begins
    /// again.
    pub(super) async fn look_at_settings(&self, again: bool) {
        let Some(watcher) = &self.scope.permissions.settings_watcher else { return };
        let _alone = watcher.looking.lock().await;
        let with_skills = self.any_for(&HookEvent::ConfigChange);
        let looking = Arc::clone(watcher);
        // The disk may be slow. The look itself does not panic.
        let changed =
            tokio::task::spawn_blocking(move || looking.changed(with_skills, again)).await;
        for ChangedFile { source, path, now } in changed.unwrap_or_default() {
            let fields = json!({"source": name(source), "file_path": path.display().to_string()});
            let verdict = self.run(Event::new(HookEvent::ConfigChange, fields)).await;
            let is_heard = !verdict.unheard || source == Some(Source::Managed);
            match (source, verdict.block) {
                // Nothing to apply: a skill is read when it is used.
                (None, _) => {}
                (Some(source), Some(reason)) if source != Source::Managed => {
                    let path = path.display();
                    let text = format!("{path} changed; a hook keeps the old settings: {reason}");
                    self.inform(text, "notice", Some("config_change_blocked")).await;
                }
                (Some(source), _) => self.apply_settings(watcher, source).await,
            }
            watcher.settle(&path, now, is_heard);
        }
    }

    async fn apply_settings(&self, watcher: &Arc<SettingsWatcher>, source: Source) {
        let load = Arc::clone(&watcher.load);
        let loaded = tokio::task::spawn_blocking(move || load()).await;
        let applied = match loaded {
            Ok(Ok(settings)) => self.apply(source, &settings),
            Ok(Err(error)) => Err(error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        let hooks = self.clone();
        on_disk(move || hooks.note_watched()).await;
        if let Err(reason) = applied {
            let text = format!("Changed settings are not used, the old ones hold: {reason}");
            self.inform(text, "warning", Some("config_change_failed")).await;
        }
    }

    fn apply(&self, source: Source, settings: &Settings) -> Result<(), String> {
        // Hooks first: malformed settings must change nothing at all.
        let mut hooks: Vec<_> = settings.hooks.clone();
        hooks.retain(|(from, _)| *from == source);
        let hooks = registry::of_settings(&hooks)?;
        change_policy(&mut self.scope.permissions.lock(), source, settings);
        if is_of_project(source) {
            return Ok(());
        }
        let by = &settings.hooks_disabled_by;
        let by_project_only = !by.is_empty() && by.iter().all(|by| is_of_project(*by));
        if by.contains(&source) {
            // Only the administrator can disable the administrator's hooks.
            let is_old = |from| from != Source::Managed || source == Source::Managed;
            self.replace_settings(is_old, hooks);
        } else if !by_project_only {
            self.replace_settings(|from| from == source, hooks);
        }
        Ok(())
    }
}

/// The name of a settings file in the protocol.
fn name(source: Option<Source>) -> &'static str {
    match source {
        None => "skills",
        Some(Source::Project) => "project_settings",
        Some(Source::Local) => "local_settings",
        Some(Source::Managed) => "policy_settings",
        Some(_) => "user_settings",
    }
}

/// Everyone who works in a project can write its settings.
fn is_of_project(source: Source) -> bool {
    matches!(source, Source::Project | Source::Local)
}

fn change_policy(policy: &mut Policy, source: Source, settings: &Settings) {
    let is_new = |from: Source| from == source;
    if !is_of_project(source) {
        for behavior in [Behavior::Allow, Behavior::Ask, Behavior::Deny] {
            policy.remove_rules(behavior, source, |_| true);
        }
        policy.remove_directories(source);
        for (directory, _) in settings.directories.iter().filter(|(_, from)| is_new(*from)) {
            policy.add_directory(directory, source);
        }
    }
    for (behavior, rule, _) in settings.rules.iter().filter(|(_, _, from)| is_new(*from)) {
        if !is_of_project(source) || *behavior != Behavior::Allow {
            policy.add_rule(*behavior, rule.clone(), source);
        }
    }
    policy.bypass_available &= !settings.bypass_disabled;
}
