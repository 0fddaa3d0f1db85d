//! Writes changes of permissions to settings files. A change is written before it holds: one that cannot be written
//! grants nothing.

use std::path::PathBuf;

use ostler_proto::permission::PermissionUpdate;

use super::{Folders, SettingsError, write};
use crate::permission::{Policy, UpdateError, source_of};

/// Why a change was not written.
#[derive(Debug, thiserror::Error)]
pub enum KeepError {
    /// It is invalid, or not permitted.
    #[error(transparent)]
    Update(#[from] UpdateError),
    /// The settings file could not be written.
    #[error(transparent)]
    Settings(#[from] SettingsError),
}

impl Policy {
    /// Applies a change, and writes it to its destination. Touches the disk.
    ///
    /// # Errors
    /// When it is invalid, not permitted or cannot be written; then it does not hold in this session either.
    pub fn apply_and_keep(
        &mut self,
        update: &PermissionUpdate,
        folders: &Folders,
    ) -> Result<(), KeepError> {
        let mut changed = self.clone();
        changed.apply(update)?;
        if let Some(file) = kept_in(update, folders)? {
            write::keep(folders, &file, update)?;
        }
        *self = changed;
        Ok(())
    }
}

/// The file that a change is written to, if its destination is a file.
pub fn kept_in(
    update: &PermissionUpdate,
    folders: &Folders,
) -> Result<Option<PathBuf>, UpdateError> {
    Ok(folders.file(source_of(update)?))
}
