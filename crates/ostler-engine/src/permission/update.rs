//! Changes of permissions, ordered by the host: in the session, and in settings files where they are to be kept.
//!
//! A change is checked whole before any of it is carried out, and written before it counts: what fails widens nothing.

use std::path::PathBuf;

use ostler_proto::permission::{
    DirectoriesUpdate, PermissionDestination, PermissionMode, PermissionUpdate, RulesUpdate,
    SetModeUpdate,
};

use super::policy::Policy;
use super::rule::{Behavior, Rule, RuleError, Source};
use crate::settings::{Folders, SettingsError, write};

/// Why a change was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum UpdateError {
    /// A rule in it is none.
    #[error(transparent)]
    Rule(#[from] RuleError),
    /// It is of a kind, or meant for a place, that this version does not know.
    #[error("the change of permissions is not understood: {0}")]
    Unknown(String),
    /// There is no such mode here.
    #[error(
        "Cannot set permission mode: must be one of acceptEdits, bypassPermissions, default, dontAsk, plan, not {0}"
    )]
    Mode(PermissionMode),
    /// The mode that asks nothing was not granted at the start.
    #[error(
        "Cannot set permission mode to bypassPermissions because the session was not launched with --dangerously-skip-permissions"
    )]
    NoBypass,
    /// The settings file could not be written.
    #[error(transparent)]
    Settings(#[from] SettingsError),
}

impl UpdateError {
    /// The code that hosts know it by.
    pub(crate) fn code(&self) -> Option<&'static str> {
        match self {
            Self::Mode(_) => Some("invalid_mode"),
            Self::NoBypass => Some("bypass_not_launched"),
            _ => None,
        }
    }
}

impl Policy {
    /// Carries a change out for this session. Nothing is written.
    ///
    /// # Errors
    /// When it makes no sense or is not permitted; then nothing has changed.
    pub fn apply(&mut self, update: &PermissionUpdate) -> Result<(), UpdateError> {
        match update {
            PermissionUpdate::AddRules(update) => {
                let (behavior, source, rules) = checked(update)?;
                rules.into_iter().for_each(|rule| self.add_rule(behavior, rule, source));
            }
            PermissionUpdate::ReplaceRules(update) => {
                let (behavior, source, rules) = checked(update)?;
                self.remove_rules(behavior, source, |_| true);
                rules.into_iter().for_each(|rule| self.add_rule(behavior, rule, source));
            }
            PermissionUpdate::RemoveRules(update) => {
                let (behavior, source, rules) = checked(update)?;
                self.remove_rules(behavior, source, |rule| rules.contains(rule));
            }
            PermissionUpdate::SetMode(update) => self.mode = self.checked_mode(update)?,
            PermissionUpdate::AddDirectories(DirectoriesUpdate {
                directories,
                destination,
                ..
            }) => {
                let source = source(destination)?;
                directories.iter().for_each(|directory| self.add_directory(directory, source));
            }
            PermissionUpdate::RemoveDirectories(DirectoriesUpdate {
                directories,
                destination,
                ..
            }) => {
                let source = source(destination)?;
                directories.iter().for_each(|directory| self.remove_directory(directory, source));
            }
            other => return Err(UpdateError::Unknown(format!("{other:?}"))),
        }
        Ok(())
    }

    /// Carries a change out, and keeps it where it is meant to be kept. Touches the disk.
    ///
    /// # Errors
    /// When it makes no sense, is not permitted or cannot be written; then it does not hold in this session either.
    pub fn apply_and_keep(
        &mut self,
        update: &PermissionUpdate,
        folders: &Folders,
    ) -> Result<(), UpdateError> {
        let mut changed = self.clone();
        changed.apply(update)?;
        if let Some(file) = kept_in(update, folders)? {
            write::keep(&file, update)?;
        }
        *self = changed;
        Ok(())
    }

    fn checked_mode(&self, update: &SetModeUpdate) -> Result<PermissionMode, UpdateError> {
        source(&update.destination)?;
        match &update.mode {
            PermissionMode::BypassPermissions if !self.bypass_available => {
                Err(UpdateError::NoBypass)
            }
            PermissionMode::Auto | PermissionMode::Other(_) => {
                Err(UpdateError::Mode(update.mode.clone()))
            }
            mode => Ok(mode.clone()),
        }
    }
}

/// The file a change is kept in, if it is kept in one.
pub(crate) fn kept_in(
    update: &PermissionUpdate,
    folders: &Folders,
) -> Result<Option<PathBuf>, UpdateError> {
    let destination = match update {
        PermissionUpdate::AddRules(update)
        | PermissionUpdate::ReplaceRules(update)
        | PermissionUpdate::RemoveRules(update) => &update.destination,
        PermissionUpdate::SetMode(update) => &update.destination,
        PermissionUpdate::AddDirectories(update) | PermissionUpdate::RemoveDirectories(update) => {
            &update.destination
        }
        other => return Err(UpdateError::Unknown(format!("{other:?}"))),
    };
    Ok(folders.file(source(destination)?))
}

fn checked(update: &RulesUpdate) -> Result<(Behavior, Source, Vec<Rule>), UpdateError> {
    let rules: Result<Vec<_>, _> = update.rules.iter().map(Rule::from_wire).collect();
    Ok((Behavior::from_wire(&update.behavior), source(&update.destination)?, rules?))
}

fn source(destination: &PermissionDestination) -> Result<Source, UpdateError> {
    Source::from_wire(destination)
        .ok_or_else(|| UpdateError::Unknown(format!("there is no place called {destination}")))
}
