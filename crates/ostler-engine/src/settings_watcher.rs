//! Settings files that change while a session runs.
//!
//! Looked at before every prompt, and all the time where hooks for `ConfigChange` want to hear of it. Of the user's and
//! the administrator's files, permission rules, directories and hooks are read again. A project's files are within
//! reach of everyone who works in the project, the agent included, so of these only new rules that deny or ask are taken,
//! and `disableBypassPermissionsMode`; the rest waits for the next session. So do mode, model and variables. A file that
//! cannot be understood, or that a hook objects to, changes nothing. Hooks cannot object to the administrator's.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::file_stamp::FileStamp;
use crate::permission::Source;
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
    pub(crate) load: LoadSettings,
    known: Mutex<BTreeMap<PathBuf, Option<FileStamp>>>,
    /// Files that changed, and hooks gave no answer whether that may hold.
    unheard: Mutex<BTreeSet<PathBuf>>,
    /// Held during a look, so that a change is reported once.
    pub(crate) looking: tokio::sync::Mutex<()>,
}

impl fmt::Debug for SettingsWatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SettingsWatcher").field("files", &self.files).finish_non_exhaustive()
    }
}

/// A file that is not as it was.
pub(crate) struct ChangedFile {
    /// The settings it belongs to; a skill to none.
    pub(crate) source: Option<Source>,
    pub(crate) path: PathBuf,
    /// What it looks like now.
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

    /// The session itself has written a file: that is no news.
    pub(crate) fn wrote(&self, path: &Path) {
        self.lock().insert(path.to_owned(), FileStamp::of(path));
    }

    /// The files that are not as they were. `again`: also those about which hooks gave no answer.
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

    /// A change has been dealt with; one that hooks gave no answer to comes up again with the next prompt.
    pub(crate) fn settle(&self, path: &Path, now: Option<FileStamp>, is_heard: bool) {
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

    fn lock(&self) -> MutexGuard<'_, BTreeMap<PathBuf, Option<FileStamp>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
