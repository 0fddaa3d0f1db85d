//! "Always": what the user allowed in a project for good.
//!
//! It is kept where other programs look for it too, in the project's `.claude/settings.local.json`. But anybody can
//! put such a file into a project, so what it allows counts only in a trusted project, or if the user's own folder
//! remembers that it was the user who said so. Taken out of the project's file, it is forgotten.

use std::path::{Path, PathBuf};

use ostler_engine::permission::{Behavior, Policy, Source};
use ostler_engine::settings::{self, Folders, KeepError, ServerLists, Settings, Sources};
use ostler_proto::permission::{PermissionMode, PermissionUpdate};

/// What the user's own folder remembers about a project.
#[derive(Clone, Debug)]
pub struct AlwaysRules {
    /// Stands for the project: it has a settings file of the same name.
    folder: PathBuf,
}

impl AlwaysRules {
    /// The memory of a project; `None` without a folder to keep it in.
    pub fn of(folders: &Folders) -> Option<Self> {
        let project = folders.project.strip_prefix("/").ok()?;
        Some(Self { folder: folders.user.as_ref()?.join("ostler/always").join(project) })
    }

    /// Remembers what the user has just said. Touches the disk.
    ///
    /// # Errors
    /// When that cannot be written.
    pub fn remember(&self, updates: &[PermissionUpdate]) -> Result<(), KeepError> {
        let mut policy = Policy::new(&self.folder, PermissionMode::Default);
        let folders = private(&self.folder);
        updates.iter().try_for_each(|update| policy.apply_and_keep(update, &folders))
    }

    /// Adds what the project's private file allows, as far as the user said so.
    pub fn confirm(&self, folders: &Folders, settings: &mut Settings) {
        // A file that cannot be read was reported already, or counts as forgotten.
        let (Some(said), Some(stands)) = (read(&self.folder), read(&folders.project)) else {
            return;
        };
        let is_complete = is_confirmed(&stands, &said);
        let rules = stands.rules.into_iter().filter(|rule| said.rules.contains(rule));
        settings.rules.extend(rules.filter(|(behavior, ..)| *behavior == Behavior::Allow));
        let directories = stands.directories.into_iter();
        settings.directories.extend(directories.filter(|it| said.directories.contains(it)));
        if stands.default_mode == said.default_mode && settings.default_mode.is_none() {
            settings.default_mode = stands.default_mode;
        }
        if is_complete {
            let file = folders.file(Source::Local);
            settings.warnings.retain(|warning| Some(&warning.path) != file.as_ref());
        }
    }
}

/// Whether the user said everything in a file that could make things wider: nothing else is left of it.
fn is_confirmed(stands: &Settings, said: &Settings) -> bool {
    let mut rest = stands.clone();
    rest.rules.retain(|rule| rule.0 == Behavior::Allow && !said.rules.contains(rule));
    rest.directories.retain(|directory| !said.directories.contains(directory));
    if rest.default_mode == said.default_mode {
        rest.default_mode = None;
    }
    rest.bypass_disabled = false;
    rest.server_lists = ServerLists::default();
    rest.hooks_disabled_by.clear();
    rest == Settings::default()
}

/// The private file of a folder, and nothing else.
fn private(project: &Path) -> Folders {
    Folders { user: None, project: project.to_owned(), managed: None }
}

fn read(project: &Path) -> Option<Settings> {
    let only = Sources { local: true, trusts_project: true, ..Sources::default() };
    settings::load(&private(project), &only).ok()
}
