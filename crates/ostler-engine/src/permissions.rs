//! What a conversation may do: rules, mode, and their changes during a session.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ostler_process::Environment;
use ostler_proto::launch::Answerer;
use ostler_proto::permission::{PermissionMode, PermissionUpdate};
use parking_lot::{Mutex, MutexGuard};

use crate::disk::on_disk;
use crate::permission::{Behavior, Narrowing, Policy, Rule, Source, UpdateError};
use crate::settings::{Folders, KeepError, kept_in, write};
use crate::settings_watcher::SettingsWatcher;

/// The permissions of one conversation. Cheap to clone; subagents share the policy and may have a narrowing of their
/// own.
#[derive(Clone, Debug)]
pub(crate) struct Permissions {
    /// Decides about calls; the host may change it at any moment.
    policy: Arc<Mutex<Policy>>,
    /// What a subagent may not do that its parent may.
    pub(crate) narrowing: Arc<Narrowing>,
    /// Rules that a command grants; they hold until the turn ends.
    granted: Arc<Mutex<Vec<Rule>>>,
    /// The mode before plan mode.
    before_planning: Arc<Mutex<Option<PermissionMode>>>,
    /// Locked while a change is written to a settings file, so that changes take effect in the order of the writes.
    writing: Arc<tokio::sync::Mutex<()>>,
    /// Where changes are written.
    pub(crate) folders: Arc<Folders>,
    /// The settings files that are read again when they change; `None` if they are not.
    pub(crate) settings_watcher: Option<Arc<SettingsWatcher>>,
    /// Who answers permission questions.
    pub(crate) answerer: Arc<Answerer>,
}

impl Permissions {
    pub(crate) fn new(
        policy: Policy,
        folders: Folders,
        settings_watcher: Option<SettingsWatcher>,
        answerer: Answerer,
    ) -> Self {
        Self {
            policy: Arc::new(Mutex::new(policy)),
            narrowing: Arc::default(),
            granted: Arc::default(),
            before_planning: Arc::default(),
            writing: Arc::default(),
            folders: Arc::new(folders),
            settings_watcher: settings_watcher.map(Arc::new),
            answerer: Arc::new(answerer),
        }
    }

    /// The current policy, with the rules granted for the turn and with the subagent's narrowing.
    pub(crate) fn policy(&self) -> Policy {
        let mut policy = self.lock().clone();
        for rule in self.granted.lock().iter() {
            policy.add_rule(Behavior::Allow, rule.clone(), Source::Session);
        }
        policy.narrowed(&self.narrowing)
    }

    pub(crate) fn mode(&self) -> PermissionMode {
        self.policy().effective_mode()
    }

    /// The policy of the session, to change it.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Policy> {
        self.policy.lock()
    }

    /// Sets the environment of commands, which decisions about them depend on.
    pub(crate) fn set_environment(&self, env: &Environment) {
        self.lock().set_environment(env);
    }

    /// Lets calls run without approval until the turn is over.
    pub(crate) fn grant(&self, rule: Rule) {
        self.granted.lock().push(rule);
    }

    /// Removes the rules of the turn that is over.
    pub(crate) fn forget_grants(&self) {
        self.granted.lock().clear();
    }

    /// A copy with one granted rule in place of those of the turn.
    pub(crate) fn granting_only(&self, rule: Rule) -> Self {
        Self { granted: Arc::new(Mutex::new(vec![rule])), ..self.clone() }
    }

    /// A copy for a subagent with a narrowing.
    pub(crate) fn with_narrowing(&self, narrowing: Narrowing) -> Self {
        Self { narrowing: Arc::new(narrowing), ..self.clone() }
    }

    /// Changes the permissions, in settings files too if the update says so. Returns the directories that were added
    /// and were not accessible before.
    ///
    /// A change is written before it holds. The policy is not locked meanwhile: another session may hold the file, and
    /// every call of this one needs the policy.
    pub(crate) async fn change(
        &self,
        update: &PermissionUpdate,
    ) -> Result<Vec<PathBuf>, KeepError> {
        let Some(file) = kept_in(update, &self.folders)? else {
            return Ok(self.change_session(update)?);
        };
        let _alone = self.writing.lock().await;
        // An invalid change must not be written.
        self.lock().clone().apply(update)?;
        let (watcher, update_to_write) = (self.settings_watcher.clone(), update.clone());
        let folders = Arc::clone(&self.folders);
        on_disk(move || {
            write::keep(&folders, &file, &update_to_write)?;
            if let Some(watcher) = watcher {
                watcher.wrote(&file);
            }
            Ok::<_, KeepError>(())
        })
        .await?;
        Ok(self.change_session(update)?)
    }

    /// Changes the permissions of this session; nothing is written. Returns the directories that were added and were
    /// not accessible before.
    pub(crate) fn change_session(
        &self,
        update: &PermissionUpdate,
    ) -> Result<Vec<PathBuf>, UpdateError> {
        let before = self.policy();
        self.lock().apply(update)?;
        if !matches!(update, PermissionUpdate::AddDirectories(_)) {
            return Ok(Vec::new());
        }
        let is_known =
            |folder: &&Path| before.working_directories().any(|known| folder.starts_with(known));
        let now = self.policy();
        Ok(now.directories().filter(|folder| !is_known(folder)).map(Path::to_owned).collect())
    }

    /// Enters plan mode, or returns to the mode before it. Returns whether the mode changed.
    pub(crate) fn set_planning(&self, is_on: bool) -> bool {
        let mut policy = self.lock();
        let mut before = self.before_planning.lock();
        // The host's answer may have set a mode already.
        if (policy.mode == PermissionMode::Plan) == is_on {
            return false;
        }
        let back = before.take().unwrap_or(PermissionMode::Default);
        let mode = if is_on { PermissionMode::Plan } else { back };
        let was = std::mem::replace(&mut policy.mode, mode);
        *before = is_on.then_some(was);
        true
    }
}
