//! The user's command that prints a key: `apiKeyHelper` of the settings.

use std::path::PathBuf;
use std::time::Duration;

use ostler_engine::model::Credential;
use ostler_sdk::transport::Environment;

use super::helper_command::HelperCommand;

/// How long the command may take. The session does not start before it has ended.
const TIME_LIMIT: Duration = Duration::from_secs(30);

/// The command and its environment.
pub(super) struct KeyHelper(HelperCommand);

impl KeyHelper {
    /// `writable` are the folders that commands in the sandbox can write; empty without a sandbox.
    pub(super) fn new(command: String, env: Environment, writable: Vec<PathBuf>) -> Self {
        let (limit, prints) = (TIME_LIMIT, "key");
        Self(HelperCommand { command, env, folder: None, writable, limit, prints })
    }

    /// Runs the command. Its output may be a key or a token, so it is sent as both.
    pub(super) fn credential(&self) -> Result<Credential, String> {
        let key = self.0.output()?;
        Ok(Credential::Both { key: key.clone(), token: key })
    }
}
