//! Settings files that change while a session runs.
//!
//! Looked at before every prompt, and all the time where hooks for `ConfigChange` want to hear of it. Of the user's and
//! the administrator's files, permission rules, directories and hooks are read again. A project's files are within
//! reach of whoever works in the project, the agent included, so of these only new rules that deny or ask are taken,
//! and `disableBypassPermissionsMode`; the rest waits for the next session. So do mode, model and variables. A file that
//! cannot be understood, or that a hook objects to, changes nothing. Nobody can object to the administrator's.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ostler_proto::hook::HookEvent;
use serde_json::json;

use crate::disk::on_disk;
use crate::hooks::watch::Stamp;
use crate::hooks::{Event, registry};
use crate::host::Host;
use crate::permission::{Behavior, Policy, Source};
use crate::settings::{Settings, SettingsError};

/// Settings that may change.
#[derive(Clone)]
pub struct WatchedSettings {
    /// What they say at the start; its hooks are those of the session.
    pub now: Settings,
    /// The files.
    pub files: Vec<(Source, PathBuf)>,
    /// Folders with skills.
    pub skills: Vec<PathBuf>,
    /// Reads them all again.
    pub load: LoadSettings,
}

/// Reads settings.
pub type LoadSettings = Arc<dyn Fn() -> Result<Settings, SettingsError> + Send + Sync>;

/// The files of a session's settings, as they were last looked at.
pub(crate) struct SettingsWatcher {
    files: Vec<(Source, PathBuf)>,
    skills: Vec<PathBuf>,
    load: LoadSettings,
    known: Mutex<BTreeMap<PathBuf, Option<Stamp>>>,
    /// Files that changed, and hooks gave no answer whether that may hold.
    unheard: Mutex<BTreeSet<PathBuf>>,
    /// Held by whoever looks, so that a change is told once.
    looking: tokio::sync::Mutex<()>,
}

impl fmt::Debug for SettingsWatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SettingsWatcher").field("files", &self.files).finish_non_exhaustive()
    }
}

/// A file that is not as it was.
struct ChangedFile {
    /// The settings it belongs to; a skill to none.
    source: Option<Source>,
    path: PathBuf,
    /// What it looks like now.
    now: Option<Stamp>,
}

impl SettingsWatcher {
    /// The files as they are now. Touches the disk.
    pub(crate) fn new(settings: WatchedSettings) -> Self {
        let WatchedSettings { files, skills, load, .. } = settings;
        let live = Self {
            files,
            skills,
            load,
            known: Mutex::default(),
            unheard: Mutex::default(),
            looking: tokio::sync::Mutex::default(),
        };
        let files = live.files.iter().map(|(_, path)| path.clone()).chain(live.skill_files());
        let known: BTreeMap<_, _> = files.map(|path| (path.clone(), Stamp::of(&path))).collect();
        *live.lock() = known;
        live
    }

    /// The session itself has written a file: that is no news.
    pub(crate) fn wrote(&self, path: &Path) {
        self.lock().insert(path.to_owned(), Stamp::of(path));
    }

    /// The files that are not as they were. `again`: also those about which hooks gave no answer.
    fn changed(&self, with_skills: bool, again: bool) -> Vec<ChangedFile> {
        let skills = if with_skills { self.skill_files() } else { Vec::new() };
        let files = self.files.iter().map(|(source, path)| (Some(*source), path.clone()));
        let all = files.chain(skills.into_iter().map(|path| (None, path)));
        all.filter_map(|(source, path)| {
            let now = Stamp::of(&path);
            let is_due = self.lock().get(&path).copied().flatten() != now
                || (again && self.lock_unheard().contains(&path));
            is_due.then_some(ChangedFile { source, path, now })
        })
        .collect()
    }

    /// A change has been dealt with; one that hooks gave no answer to comes up again with the next prompt.
    fn settle(&self, path: &Path, now: Option<Stamp>, is_heard: bool) {
        self.lock().insert(path.to_owned(), now);
        let mut unheard = self.lock_unheard();
        match is_heard {
            true => _ = unheard.remove(path),
            false => _ = unheard.insert(path.to_owned()),
        }
    }

    /// The files of skills there are, and those that were.
    fn skill_files(&self) -> Vec<PathBuf> {
        let entries = self.skills.iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten();
        let mut files: Vec<PathBuf> =
            entries.flatten().map(|entry| entry.path().join("SKILL.md")).collect();
        let is_skill = |path: &&PathBuf| self.skills.iter().any(|folder| path.starts_with(folder));
        files.extend(self.lock().keys().filter(is_skill).cloned());
        files.sort();
        files.dedup();
        files
    }

    fn lock_unheard(&self) -> MutexGuard<'_, BTreeSet<PathBuf>> {
        self.unheard.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<PathBuf, Option<Stamp>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Looks at the settings, tells hooks what changed, and takes over what may be taken over. `again`: also asks once more
/// where hooks gave no answer. Whoever drops this in the middle has changed nothing: the next one begins again.
pub(crate) async fn look(host: &Host, cwd: &Path, again: bool) {
    let Some(live) = &host.live else { return };
    let _alone = live.looking.lock().await;
    let with_skills = host.hooks().any_for(&HookEvent::ConfigChange);
    let looking = Arc::clone(live);
    // A disk may be far away. The look itself does not panic.
    let changed = tokio::task::spawn_blocking(move || looking.changed(with_skills, again)).await;
    for ChangedFile { source, path, now } in changed.unwrap_or_default() {
        let fields = json!({"source": word(source), "file_path": path.display().to_string()});
        let verdict =
            host.hooks().run(host, cwd, Event::new(HookEvent::ConfigChange, fields)).await;
        let is_heard = !verdict.unheard || source == Some(Source::Managed);
        match (source, verdict.block) {
            // A skill is read when it is used; there is nothing to take over.
            (None, _) => {}
            (Some(source), Some(reason)) if source != Source::Managed => {
                let path = path.display();
                let text = format!("{path} changed; a hook keeps the old settings: {reason}");
                host.inform(text, "notice", Some("config_change_blocked")).await;
            }
            (Some(source), _) => take_over(host, live, source).await,
        }
        live.settle(&path, now, is_heard);
    }
}

fn word(source: Option<Source>) -> &'static str {
    match source {
        None => "skills",
        Some(Source::Project) => "project_settings",
        Some(Source::Local) => "local_settings",
        Some(Source::Managed) => "policy_settings",
        Some(_) => "user_settings",
    }
}

async fn take_over(host: &Host, live: &Arc<SettingsWatcher>, source: Source) {
    let load = Arc::clone(&live.load);
    let loaded = tokio::task::spawn_blocking(move || load()).await;
    let taken = match loaded {
        Ok(Ok(settings)) => take_over_from(host, source, &settings),
        Ok(Err(error)) => Err(error.to_string()),
        Err(error) => Err(error.to_string()),
    };
    let hooks = host.hooks();
    on_disk(move || hooks.note_watched()).await;
    if let Err(reason) = taken {
        let text = format!("Changed settings are not used, the old ones hold: {reason}");
        host.inform(text, "warning", Some("config_change_failed")).await;
    }
}

fn take_over_from(host: &Host, source: Source, settings: &Settings) -> Result<(), String> {
    // Hooks first: what is malformed must change nothing at all.
    let mut hooks: Vec<_> = settings.hooks.clone();
    hooks.retain(|(from, _)| *from == source);
    let hooks = registry::of_settings(&hooks)?;
    change_policy(
        &mut host.policy.lock().unwrap_or_else(PoisonError::into_inner),
        source,
        settings,
    );
    if is_of_project(source) {
        return Ok(());
    }
    let by = &settings.hooks_disabled_by;
    let by_project_only = !by.is_empty() && by.iter().all(|by| is_of_project(*by));
    let mut known = host.hooks.lock().unwrap_or_else(PoisonError::into_inner);
    if by.contains(&source) {
        // Those of the administrator only the administrator can switch off.
        *known =
            known.replacing(|from| from != Source::Managed || source == Source::Managed, hooks);
    } else if !by_project_only {
        *known = known.replacing(|from| from == source, hooks);
    }
    Ok(())
}

/// Whoever works in a project can write its settings.
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
