//! Events that need more than one line: the input of hooks, and what their answers change.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ostler_proto::hook::HookEvent;
use serde_json::{Value, json};

use super::verdict::Verdict;
use super::{Event, Hooks};
use crate::disk::on_disk;

/// How often watched files are looked at.
const PERIOD: Duration = Duration::from_millis(500);

/// Looks at watched files and settings for as long as it is polled. Costs nothing while no hook watches anything.
pub(crate) async fn keep_watch(hooks: Hooks) {
    loop {
        if hooks.watches_anything() {
            hooks.look_around(false).await;
            tokio::time::sleep(PERIOD).await;
        } else {
            hooks.shared.watch.bell.notified().await;
        }
    }
}

impl Hooks {
    /// Notifies hooks of changes to watched files and settings since the last look. `again`: also asks again about
    /// changed settings to which they gave no answer.
    pub(crate) async fn look_around(&self, again: bool) {
        self.look_at_settings(again).await;
        self.look_at_files().await;
    }

    fn watches_anything(&self) -> bool {
        let has_files = self.any_for(&HookEvent::FileChanged) && !self.watched().is_empty();
        let has_settings = self.scope.permissions.settings_watcher.is_some();
        has_files || (self.any_for(&HookEvent::ConfigChange) && has_settings)
    }

    /// The files that hooks watch.
    pub(super) fn watched(&self) -> BTreeSet<PathBuf> {
        let hooks = self.list.now();
        let names: Vec<&str> =
            hooks.iter().flat_map(|hook| hook.files.iter().map(String::as_str)).collect();
        self.shared.watch.list(&names, &self.place())
    }

    async fn look_at_files(&self) {
        if !self.any_for(&HookEvent::FileChanged) {
            return;
        }
        let _alone = self.shared.looking.lock().await;
        let (files, watch) = (self.watched(), Arc::clone(&self.shared.watch));
        // The disk may be slow. The look itself does not panic.
        let looked = tokio::task::spawn_blocking(move || watch.look(&files)).await;
        for change in looked.unwrap_or_default() {
            let path = change.path.display().to_string();
            let fields = json!({"file_path": path, "event": change.event});
            self.run(Event::new(HookEvent::FileChanged, fields)).await;
        }
    }

    /// The session's shell has changed its directory. Hooks of the main conversation are notified.
    pub(crate) async fn moved(&self, from: &Path, to: &Path) {
        *self.shared.place.lock() = Some(to.to_owned());
        let (watch, files) = (Arc::clone(&self.shared.watch), self.watched());
        on_disk(move || watch.note(&files)).await;
        if self.scope.outbox.subagent.is_none() {
            let (old, new) = (from.display().to_string(), to.display().to_string());
            let fields = json!({"old_cwd": old, "new_cwd": new});
            self.run(Event::new(HookEvent::CwdChanged, fields)).await;
        }
    }

    /// Directories were added. Hooks are not waited for: the directories are accessible already.
    pub(crate) fn directories_added(&self, directories: &[PathBuf]) {
        for directory in directories {
            let directory = directory.display().to_string();
            let fields = json!({"directory": directory, "source": "register_repo_root"});
            self.tell(Event::new(HookEvent::DirectoryAdded, fields));
        }
    }

    /// A command in a prompt is about to be replaced by its text. Text that hooks add follows it.
    ///
    /// # Errors
    /// The objection of a hook.
    pub(crate) async fn expanding(&self, fields: Value) -> Result<Verdict, String> {
        let mut verdict = self.run(Event::new(HookEvent::UserPromptExpansion, fields)).await;
        match verdict.block.take().or(verdict.stop.take()) {
            Some(reason) => Err(reason),
            None => Ok(verdict),
        }
    }

    /// An entry of the task list is created or completed.
    ///
    /// # Errors
    /// The objection of a hook.
    pub(crate) async fn task(&self, event: HookEvent, fields: Value) -> Result<(), String> {
        match self.run(Event::new(event, fields)).await.block {
            Some(reason) if reason.is_empty() => Err("a hook does not want it".to_owned()),
            Some(reason) => Err(reason),
            None => Ok(()),
        }
    }
}
