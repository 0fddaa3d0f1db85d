//! The sandbox of a session, as the engine sees it. What enforces it is given by the caller.

use std::fmt::Debug;
use std::path::Path;
use std::sync::Arc;

use futures::future::BoxFuture;
use ostler_process::{Confine, Guard};
use serde_json::Value;

use crate::permission::Policy;

/// Answers whether a command may reach a host that no setting names.
pub type HostAsker = Arc<dyn Fn(String) -> BoxFuture<'static, HostAnswer> + Send + Sync>;

/// The answer to a question about a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostAnswer {
    /// The command may connect to it.
    Allow,
    /// It may not: the user said no.
    Deny,
    /// It may not: there was no one to ask.
    NoOneToAsk,
}

/// The sandbox in which a session starts its commands, hooks and MCP servers.
pub trait SessionSandbox: Debug + Send + Sync {
    /// The boundary under a policy: its directories can be written, and its denied paths cannot be read or written.
    ///
    /// # Errors
    /// When it cannot be enforced. Then nothing may be started.
    fn boundary(&self, policy: &Policy) -> Result<Arc<dyn Confine>, String>;

    /// What is enforced under a policy, for hosts.
    fn attestation(&self, policy: &Policy) -> Value;

    /// Asks about hosts that commands want to reach and no setting names, as long as the guard lives. Without anyone to
    /// ask, such connections are refused.
    fn ask_about_hosts(&self, asker: HostAsker) -> Option<Box<dyn Guard>> {
        let _ = asker;
        None
    }

    /// The folder that programs inside see as `/tmp`.
    fn temporary(&self) -> &Path;

    /// A line for the model about a command that failed inside, if the sandbox may be the reason.
    fn hint(&self, output: &str, code: Option<i32>) -> Option<String>;
}

/// Whether a program starts in a sandbox.
#[derive(Clone, Debug)]
pub enum Confinement {
    /// It does not.
    None,
    /// It does.
    Inside {
        /// The session's sandbox.
        sandbox: Arc<dyn SessionSandbox>,
        /// The boundary.
        boundary: Arc<dyn Confine>,
    },
}

impl Confinement {
    /// The boundary, if there is one.
    pub fn boundary(&self) -> Option<&dyn Confine> {
        match self {
            Self::None => None,
            Self::Inside { boundary, .. } => Some(&**boundary),
        }
    }

    /// The confinement of a command under a policy.
    ///
    /// # Errors
    /// When the boundary cannot be enforced.
    pub(crate) fn of(
        sandbox: Option<&Arc<dyn SessionSandbox>>,
        policy: &Policy,
        folder: &Path,
        command: &str,
    ) -> Result<Self, String> {
        match sandbox {
            Some(sandbox) if !policy.runs_outside_sandbox(folder, command) => Ok(Self::Inside {
                boundary: sandbox.boundary(policy)?,
                sandbox: Arc::clone(sandbox),
            }),
            _ => Ok(Self::None),
        }
    }
}
