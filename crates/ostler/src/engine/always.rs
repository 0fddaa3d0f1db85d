//! "Always allow": the permissions that the user granted permanently in a project.
//!
//! They are stored in the project's `.claude/settings.local.json`, where other programs read them too. But such a file
//! can come with the project, so what it allows counts only in a trusted project, or if a copy in the user's own folder
//! confirms that the user granted it. A rule that is removed from the project's file no longer counts.

use std::path::{Path, PathBuf};

use ostler_engine::permission::{Behavior, Policy, Source};
use ostler_engine::settings::{self, Folders, KeepError, ServerLists, Settings, Sources};
use ostler_proto::permission::{PermissionMode, PermissionUpdate};

/// The copy, in the user's own folder, of the permissions that the user granted in a project.
#[derive(Clone, Debug)]
pub struct AlwaysRules {
    /// The folder that stands for the project. It has a settings file of the same name.
    folder: PathBuf,
}

impl AlwaysRules {
    /// The copy for a project; `None` if the user has no configuration folder.
    pub fn of(folders: &Folders) -> Option<Self> {
        let project = folders.project.strip_prefix("/").ok()?;
        Some(Self { folder: folders.user.as_ref()?.join("ostler/always").join(project) })
    }

    /// Stores permissions that the user has just granted. Writes to the disk.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn remember(&self, updates: &[PermissionUpdate]) -> Result<(), KeepError> {
        let mut policy = Policy::new(&self.folder, PermissionMode::Default);
        let folders = private(&self.folder);
        updates.iter().try_for_each(|update| policy.apply_and_keep(update, &folders))
    }

    /// Adds to `settings` what the project's local file allows, as far as the user granted it.
    pub fn confirm(&self, folders: &Folders, settings: &mut Settings) {
        // A project's file that cannot be read was reported already; without the copy nothing is confirmed.
        let (Some(granted), Some(local)) = (read(&self.folder), read(&folders.project)) else {
            return;
        };
        let is_complete = is_confirmed(&local, &granted);
        let rules = local.rules.into_iter().filter(|rule| granted.rules.contains(rule));
        settings.rules.extend(rules.filter(|(behavior, ..)| *behavior == Behavior::Allow));
        let directories = local.directories.into_iter();
        settings.directories.extend(directories.filter(|it| granted.directories.contains(it)));
        if local.default_mode == granted.default_mode && settings.default_mode.is_none() {
            settings.default_mode = local.default_mode;
        }
        if is_complete {
            let file = folders.file(Source::Local);
            settings.warnings.retain(|warning| Some(&warning.path) != file.as_ref());
        }
    }
}

/// Whether the user granted everything in the project's local file that allows something.
fn is_confirmed(local: &Settings, granted: &Settings) -> bool {
    let mut rest = local.clone();
    rest.rules.retain(|rule| rule.0 == Behavior::Allow && !granted.rules.contains(rule));
    rest.directories.retain(|directory| !granted.directories.contains(directory));
    if rest.default_mode == granted.default_mode {
        rest.default_mode = None;
    }
    rest.bypass_disabled = false;
    rest.server_lists = ServerLists::default();
    rest.mcpjson.disabled.clear();
    rest.extra.shift_remove("disabledMcpjsonServers");
    rest.hooks_disabled_by.clear();
    rest == Settings::default()
}

/// Folders in which only the local settings file of a project is looked for.
fn private(project: &Path) -> Folders {
    Folders { user: None, project: project.to_owned(), managed: None }
}

fn read(project: &Path) -> Option<Settings> {
    let only = Sources { local: true, trusts_project: true, ..Sources::default() };
    settings::load(&private(project), &only).ok()
}
