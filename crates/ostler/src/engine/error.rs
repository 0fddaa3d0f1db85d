//! [`StartError`].

use std::path::PathBuf;

use ostler_engine::settings::SettingsError;
use ostler_engine::store::StoreError;

/// Why an engine does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// The working directory cannot be used.
    #[error("cannot work in {}: {reason}", .folder.display())]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// Why it cannot be used.
        reason: String,
    },
    /// A settings file is invalid. The engine does not start without it, because it may contain rules that deny.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// The conversation to resume does not exist or cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The model cannot be reached: no key, or a malformed configuration.
    #[error("{0}")]
    Model(String),
    /// An option is invalid, or the settings forbid it.
    #[error("{0}")]
    Refused(String),
}
