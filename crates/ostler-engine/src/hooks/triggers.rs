//! Moments that need more than one line: what hooks are told then, and what their words do.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use ostler_proto::hook::HookEvent;
use serde_json::{Value, json};

use super::verdict::Verdict;
use super::{Event, Hooks};
use crate::disk::on_disk;
use crate::host::Host;
use crate::settings_watcher;

/// How often watched files are looked at.
const PERIOD: Duration = Duration::from_millis(500);

/// Looks at watched files and settings for as long as it is polled. Costs nothing while nobody wants to hear of any.
pub(crate) async fn keep_watch(host: Host, cwd: PathBuf) {
    loop {
        let hooks = host.hooks();
        if hooks.watches_anything(&host, &cwd) {
            look_around(&host, &cwd, false).await;
            tokio::time::sleep(PERIOD).await;
        } else {
            hooks.shared.watch.bell.notified().await;
        }
    }
}

/// Tells hooks what happened to watched files and settings since they were last looked at. `again`: also asks once more
/// about settings where they gave no answer.
pub(crate) async fn look_around(host: &Host, cwd: &Path, again: bool) {
    settings_watcher::look(host, cwd, again).await;
    host.hooks().look_at_files(host, cwd).await;
}

impl Hooks {
    fn watches_anything(&self, host: &Host, cwd: &Path) -> bool {
        let has_files = self.any_for(&HookEvent::FileChanged) && !self.watched(cwd).is_empty();
        has_files || (self.any_for(&HookEvent::ConfigChange) && host.live.is_some())
    }

    /// The files that hooks want to hear of.
    pub(super) fn watched(&self, cwd: &Path) -> BTreeSet<PathBuf> {
        let names: Vec<&str> =
            self.hooks.iter().flat_map(|hook| hook.files.iter().map(String::as_str)).collect();
        self.shared.watch.list(&names, &self.place(cwd))
    }

    async fn look_at_files(&self, host: &Host, cwd: &Path) {
        if !self.any_for(&HookEvent::FileChanged) {
            return;
        }
        let _alone = self.shared.looking.lock().await;
        let (files, watch) = (self.watched(cwd), Arc::clone(&self.shared.watch));
        // A disk may be far away. The look itself does not panic.
        let looked = tokio::task::spawn_blocking(move || watch.look(&files)).await;
        for change in looked.unwrap_or_default() {
            let path = change.path.display().to_string();
            let fields = json!({"file_path": path, "event": change.event});
            self.run(host, cwd, Event::new(HookEvent::FileChanged, fields)).await;
        }
    }

    /// The session's shell has gone somewhere else. Hooks hear of it in the main conversation.
    pub(crate) async fn moved(&self, host: &Host, cwd: &Path, from: &Path, to: &Path) {
        *self.shared.place.lock().unwrap_or_else(PoisonError::into_inner) = Some(to.to_owned());
        let (watch, files) = (Arc::clone(&self.shared.watch), self.watched(cwd));
        on_disk(move || watch.note(&files)).await;
        if host.agent.is_none() {
            let (old, new) = (from.display().to_string(), to.display().to_string());
            let fields = json!({"old_cwd": old, "new_cwd": new});
            self.run(host, cwd, Event::new(HookEvent::CwdChanged, fields)).await;
        }
    }

    /// A directory was added. Nobody waits for hooks: it is there already.
    pub(crate) fn directory_added(&self, host: &Host, cwd: &Path, directory: &Path, source: &str) {
        let fields = json!({"directory": directory.display().to_string(), "source": source});
        self.tell(host, cwd, Event::new(HookEvent::DirectoryAdded, fields));
    }

    /// A command in a prompt is about to be replaced by its text. What hooks add goes along with the text.
    ///
    /// # Errors
    /// Why it is not to be.
    pub(crate) async fn expanding(
        &self,
        host: &Host,
        cwd: &Path,
        fields: Value,
    ) -> Result<Verdict, String> {
        let mut verdict =
            self.run(host, cwd, Event::new(HookEvent::UserPromptExpansion, fields)).await;
        match verdict.block.take().or(verdict.stop.take()) {
            Some(reason) => Err(reason),
            None => Ok(verdict),
        }
    }

    /// An entry of the list of tasks is made, or done.
    ///
    /// # Errors
    /// Why it is not to be.
    pub(crate) async fn task(
        &self,
        host: &Host,
        cwd: &Path,
        event: HookEvent,
        fields: Value,
    ) -> Result<(), String> {
        match self.run(host, cwd, Event::new(event, fields)).await.block {
            Some(reason) if reason.is_empty() => Err("a hook does not want it".to_owned()),
            Some(reason) => Err(reason),
            None => Ok(()),
        }
    }
}
