//! A login with the vendor's program: the file `.credentials.json` in its folder. It is read before each request, so that
//! a login, a logout or a renewal by another program counts at once. A token that is about to expire is renewed here,
//! under the lock that the vendor's program uses too.

mod file;
mod renew;

use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ostler_files::{FileLock, RealPath};

pub use self::file::Tokens;
use self::renew::Endpoint;
use super::Credential;

/// A token that expires sooner is renewed before it is used.
const MARGIN: Duration = Duration::from_secs(5 * 60);

/// A login of the user with the vendor's program.
#[derive(Clone, Debug)]
pub struct Login {
    file: PathBuf,
    endpoint: Endpoint,
}

impl Login {
    /// The login of which the tokens are in this file; `endpoint` renews them in place of the vendor's.
    ///
    /// # Errors
    /// When the endpoint is not an address with `https`, or on this machine.
    pub fn new(file: impl Into<PathBuf>, endpoint: Option<&str>) -> Result<Self, String> {
        Ok(Self { file: file.into(), endpoint: Endpoint::new(endpoint)? })
    }

    /// The tokens in the file; `None` if there is no login.
    ///
    /// # Errors
    /// When the file exists and cannot be used.
    pub fn tokens(&self) -> Result<Option<Tokens>, String> {
        let real = RealPath::resolve(&self.file);
        let real = real.map_err(|error| self.wrong(&error.to_string()))?;
        file::read(&real).map_err(|reason| self.wrong(&reason))
    }

    /// A token that can be used now, and that is not the one the API refused. Blocks while it is renewed.
    ///
    /// # Errors
    /// When the user is logged out, or the token cannot be renewed. No error contains a token.
    pub fn credential(&self, refused: Option<&Credential>) -> Result<Credential, String> {
        let is_usable = |tokens: &Tokens| {
            let is_refused = refused.is_some_and(|it| it.secrets().contains(&&*tokens.access));
            !is_refused && !tokens.expires_within(MARGIN, now())
        };
        let logged_out = || self.wrong("the user has logged out");
        let tokens = self.tokens()?.ok_or_else(logged_out)?;
        if is_usable(&tokens) || tokens.refresh.is_none() {
            return Ok(Credential::Login(tokens.access));
        }
        let wrong = |reason: String| self.wrong(&reason);
        let real = RealPath::resolve(&self.file).map_err(|error| self.wrong(&error.to_string()))?;
        let folder = real.parent().map_err(|error| self.wrong(&error.to_string()))?;
        let _lock = FileLock::take(&folder, true).map_err(wrong)?;
        // Another program may have renewed it meanwhile.
        let tokens = file::read(&real).map_err(wrong)?.ok_or_else(logged_out)?;
        if is_usable(&tokens) {
            return Ok(Credential::Login(tokens.access));
        }
        let renewed = self.endpoint.renew(&tokens, now()).map_err(wrong)?;
        file::write(&real, &renewed).map_err(wrong)?;
        Ok(Credential::Login(renewed.access))
    }

    fn wrong(&self, reason: &str) -> String {
        format!("the login in {} cannot be used: {reason}", self.file.display())
    }
}

/// The time since 1970.
fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

#[cfg(test)]
mod tests;
