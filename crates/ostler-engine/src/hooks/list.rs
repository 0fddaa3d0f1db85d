//! The list of a conversation's hooks. Settings, plugins and the host may change it while the session runs.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ostler_proto::hook::HookEvent;
use parking_lot::Mutex;

use super::registry::{Hook, Kind};
use super::{HookScope, Hooks, Shared, event};
use crate::permission::Source;

/// Hooks that can change. Clones are the same list.
#[derive(Clone, Debug, Default)]
pub(super) struct HookList(Arc<Mutex<Arc<Vec<Hook>>>>);

impl HookList {
    pub(super) fn new(hooks: Vec<Hook>) -> Self {
        Self(Arc::new(Mutex::new(Arc::new(hooks))))
    }

    /// The hooks as they are now.
    pub(super) fn now(&self) -> Arc<Vec<Hook>> {
        Arc::clone(&self.0.lock())
    }

    /// Removes some hooks and adds others.
    fn replace(&self, stays: impl Fn(&Hook) -> bool, new: Vec<Hook>) {
        let mut list = self.0.lock();
        let kept = list.iter().filter(|hook| stays(hook)).cloned();
        *list = Arc::new(kept.chain(new).collect());
    }
}

impl Hooks {
    /// No hooks yet, in a session that begins in `cwd`, works on `project` and writes to `transcript`.
    pub(crate) fn new(
        scope: HookScope,
        cwd: &Path,
        project: &Path,
        transcript: Option<PathBuf>,
        shows_hooks: bool,
    ) -> Self {
        let shared = Shared {
            cwd: Arc::new(cwd.to_owned()),
            project: Arc::new(project.to_owned()),
            transcript: text(transcript),
            shows_hooks,
            ..Shared::default()
        };
        Self { list: HookList::default(), shared, scope: Arc::new(scope), in_background: false }
    }

    /// The same hooks for another conversation of the session.
    pub(crate) fn bound_to(&self, scope: HookScope) -> Self {
        Self { scope: Arc::new(scope), ..self.clone() }
    }

    /// A copy of the list for a session that replaces this one and writes to another file.
    pub(crate) fn for_next_session(&self, scope: HookScope, transcript: Option<PathBuf>) -> Self {
        let mut hooks = self.bound_to(scope);
        hooks.list = HookList::new(self.list.now().to_vec());
        hooks.shared.transcript = text(transcript);
        hooks
    }

    /// These hooks and more, which only this conversation has.
    pub(crate) fn with(&self, more: Vec<Hook>) -> Self {
        let list = HookList::new([self.list.now().to_vec(), more].concat());
        self.ring();
        Self { list, ..self.clone() }
    }

    pub(crate) fn add(&self, more: Vec<Hook>) {
        self.replace(|_| true, more);
    }

    /// Replaces the hooks from some settings.
    pub(crate) fn replace_settings(&self, is_old: impl Fn(Source) -> bool, new: Vec<Hook>) {
        self.replace(|hook| !hook.source.is_some_and(&is_old), new);
    }

    /// Replaces the hooks from plugins.
    pub(crate) fn replace_plugins(&self, new: Vec<Hook>) {
        self.replace(|hook| hook.plugin.is_none(), new);
    }

    /// Replaces the host's callbacks, when it sends `initialize` again.
    pub(crate) fn replace_callbacks(&self, new: Vec<Hook>) {
        self.replace(|hook| !matches!(hook.kind, Kind::Callback(_)), new);
    }

    fn replace(&self, stays: impl Fn(&Hook) -> bool, new: Vec<Hook>) {
        self.list.replace(stays, new);
        self.ring();
    }

    /// Makes the watcher look at the new files at once. Not done here, because the disk may be slow.
    fn ring(&self) {
        self.shared.watch.bell.notify_one();
    }

    /// Whether any hook watches files.
    pub(crate) fn watches_files(&self) -> bool {
        self.list.now().iter().any(|hook| !hook.files.is_empty())
    }

    /// Notes the watched files as they are now: only later changes are reported. Touches the disk.
    pub(crate) fn note_watched(&self) {
        self.shared.watch.note(&self.watched());
    }

    /// Whether any hook is registered for an event.
    pub(crate) fn any_for(&self, event: &HookEvent) -> bool {
        self.list.now().iter().any(|hook| hook.event == *event)
    }

    /// The events that settings have hooks for and that never happen in this version.
    pub(crate) fn idle_events(&self) -> Vec<&'static str> {
        let hooks = self.list.now();
        let is_written = |event: &HookEvent| {
            hooks.iter().any(|hook| hook.event == *event && !matches!(hook.kind, Kind::Callback(_)))
        };
        let events = event::WITHOUT_OCCASION.iter().filter(|event| is_written(event));
        events.map(HookEvent::as_str).collect()
    }
}

fn text(path: Option<PathBuf>) -> String {
    path.map(|path| path.display().to_string()).unwrap_or_default()
}
