//! Why an engine does not start.

use std::path::PathBuf;

use ostler_engine::settings::SettingsError;
use ostler_engine::store::StoreError;

/// Why an engine does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// There is nowhere to work.
    #[error("cannot work in {}: {reason}", .folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// Settings cannot be understood. A rule must not be lost quietly.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The conversation to resume is not there, or cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// There is no way to reach the model.
    #[error("{0}")]
    Model(String),
    /// Something that was asked for cannot be.
    #[error("{0}")]
    Refused(String),
}
