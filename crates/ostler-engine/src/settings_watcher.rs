//! Settings files that change while a session runs.
//!
//! The files are checked before every prompt, and all the time if there are hooks for `ConfigChange`. Of the user's and
//! the administrator's files, permission rules, directories and hooks are read again. Everyone who works in a project
//! can write its files, the agent included, so of these only new rules that deny or ask take effect, and
//! `disableBypassPermissionsMode`; everything else waits for the next session. So do mode, model and variables. A file
//! that is malformed, or that a hook objects to, changes nothing. Hooks cannot object to the administrator's files.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

use crate::file_stamp::FileStamp;
use crate::permission::Source;
use crate::settings::{Settings, SettingsError};

/// Settings that may change.
#[derive(Clone)]
pub struct WatchedSettings {
    /// The settings at the start; their hooks are those of the session.
    pub now: Settings,
    /// The files.
    pub files: Vec<(Source, PathBuf)>,
    /// Folders with skills.
    pub skills: Vec<PathBuf>,
    /// Reads all settings again.
    pub load: LoadSettings,
}

/// Reads settings.
pub type LoadSettings = Arc<dyn Fn() -> Result<Settings, SettingsError> + Send + Sync>;

/// The settings files of a session, as they were at the last check.
pub(crate) struct SettingsWatcher {
    files: Vec<(Source, PathBuf)>,
    skills: Vec<PathBuf>,
    pub(crate) load: LoadSettings,
    known: Mutex<BTreeMap<PathBuf, Option<FileStamp>>>,
    /// Changed files about which hooks gave no answer.
    unheard: Mutex<BTreeSet<PathBuf>>,
    /// Locked during a check, so that a change is reported once.
    pub(crate) looking: tokio::sync::Mutex<()>,
}

impl fmt::Debug for SettingsWatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SettingsWatcher").field("files", &self.files).finish_non_exhaustive()
    }
}

/// A file that has changed.
pub(crate) struct ChangedFile {
    /// The settings it belongs to; a skill to none.
    pub(crate) source: Option<Source>,
    pub(crate) path: PathBuf,
    /// Its current state.
    pub(crate) now: Option<FileStamp>,
}

impl SettingsWatcher {
    /// The files as they are now. Touches the disk.
    pub(crate) fn new(settings: WatchedSettings) -> Self {
        let WatchedSettings { files, skills, load, .. } = settings;
        let watcher = Self {
            files,
            skills,
            load,
            known: Mutex::default(),
            unheard: Mutex::default(),
            looking: tokio::sync::Mutex::default(),
        };
        let files = watcher.files.iter().map(|(_, path)| path.clone()).chain(watcher.skill_files());
        let known: BTreeMap<_, _> =
            files.map(|path| (path.clone(), FileStamp::of(&path))).collect();
        *watcher.lock() = known;
        watcher
    }

    /// Notes that the session itself has written a file, which is not reported as a change.
    pub(crate) fn wrote(&self, path: &Path) {
        self.lock().insert(path.to_owned(), FileStamp::of(path));
    }

    /// The files that have changed. `again`: also those about which hooks gave no answer.
    pub(crate) fn changed(&self, with_skills: bool, again: bool) -> Vec<ChangedFile> {
        let skills = if with_skills { self.skill_files() } else { Vec::new() };
        let files = self.files.iter().map(|(source, path)| (Some(*source), path.clone()));
        let all = files.chain(skills.into_iter().map(|path| (None, path)));
        all.filter_map(|(source, path)| {
            let now = FileStamp::of(&path);
            let is_due = self.lock().get(&path).copied().flatten() != now
                || (again && self.lock_unheard().contains(&path));
            is_due.then_some(ChangedFile { source, path, now })
        })
        .collect()
    }

    /// Notes that a change was handled. If hooks gave no answer, it is reported again with the next prompt.
    pub(crate) fn settle(&self, path: &Path, now: Option<FileStamp>, is_heard: bool) {
        self.lock().insert(path.to_owned(), now);
        let mut unheard = self.lock_unheard();
        match is_heard {
            true => _ = unheard.remove(path),
            false => _ = unheard.insert(path.to_owned()),
        }
    }

    /// The files of skills, including those that are gone.
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
        self.unheard.lock()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<PathBuf, Option<FileStamp>>> {
        self.known.lock()
    }
}
