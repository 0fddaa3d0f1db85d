//! Applies the host's changes of permissions to the session. `settings/keep.rs` writes them to files.
//!
//! A change is checked completely before any of it is applied: an invalid change grants nothing.

use ostler_proto::permission::{
    DirectoriesUpdate, PermissionDestination, PermissionMode, PermissionUpdate, RulesUpdate,
    SetModeUpdate,
};

use super::policy::Policy;
use super::rule::{Behavior, Rule, RuleError, Source};

/// Why a change was not applied.
#[derive(Debug, thiserror::Error)]
pub enum UpdateError {
    /// A rule in it is not valid.
    #[error(transparent)]
    Rule(#[from] RuleError),
    /// Its kind or destination is unknown to this version.
    #[error("the change of permissions is not supported: {0}")]
    Unknown(String),
    /// The mode is not supported.
    #[error(
        "Cannot set permission mode: must be one of acceptEdits, bypassPermissions, default, dontAsk, plan, not {0}"
    )]
    Mode(PermissionMode),
    /// `bypassPermissions` was not enabled at the start.
    #[error(
        "Cannot set permission mode to bypassPermissions because the session was not launched with --dangerously-skip-permissions"
    )]
    NoBypass,
}

impl UpdateError {
    /// The error code for hosts.
    pub fn code(&self) -> Option<&'static str> {
        match self {
            Self::Mode(_) => Some("invalid_mode"),
            Self::NoBypass => Some("bypass_not_launched"),
            _ => None,
        }
    }
}

impl Policy {
    /// Applies a change to this session. Nothing is written.
    ///
    /// # Errors
    /// When it is invalid or not permitted; then nothing has changed.
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

/// The destination of a change.
pub(crate) fn source_of(update: &PermissionUpdate) -> Result<Source, UpdateError> {
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
    source(destination)
}

fn checked(update: &RulesUpdate) -> Result<(Behavior, Source, Vec<Rule>), UpdateError> {
    let rules: Result<Vec<_>, _> = update.rules.iter().map(Rule::from_wire).collect();
    Ok((Behavior::from_wire(&update.behavior), source(&update.destination)?, rules?))
}

fn source(destination: &PermissionDestination) -> Result<Source, UpdateError> {
    Source::from_wire(destination)
        .ok_or_else(|| UpdateError::Unknown(format!("{destination} is not a valid destination")))
}
