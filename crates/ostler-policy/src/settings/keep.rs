//! Changes of permissions that are kept in settings files. A change is written before it holds: what cannot be written widens
//! nothing.

use std::path::PathBuf;

use ostler_proto::permission::PermissionUpdate;

use super::{Folders, SettingsError, write};
use crate::permission::{Policy, UpdateError, source_of};

/// Why a change was not kept.
#[derive(Debug, thiserror::Error)]
pub enum KeepError {
    /// It makes no sense, or is not permitted.
    #[error(transparent)]
    Update(#[from] UpdateError),
    /// The settings file could not be written.
    #[error(transparent)]
    Settings(#[from] SettingsError),
}

impl Policy {
    /// Carries a change out, and keeps it where it is meant to be kept. Touches the disk.
    ///
    /// # Errors
    /// When it makes no sense, is not permitted or cannot be written; then it does not hold in this session either.
    pub fn apply_and_keep(
        &mut self,
        update: &PermissionUpdate,
        folders: &Folders,
    ) -> Result<(), KeepError> {
        let mut changed = self.clone();
        changed.apply(update)?;
        if let Some(file) = kept_in(update, folders)? {
            write::keep(&file, update)?;
        }
        *self = changed;
        Ok(())
    }
}

/// The file a change is kept in, if it is kept in one.
pub fn kept_in(
    update: &PermissionUpdate,
    folders: &Folders,
) -> Result<Option<PathBuf>, UpdateError> {
    Ok(folders.file(source_of(update)?))
}
