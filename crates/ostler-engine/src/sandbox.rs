//! The sandbox of a session, as the engine sees it. What enforces it is given by the caller.

use std::fmt::Debug;
use std::path::Path;
use std::sync::Arc;

use ostler_process::Confine;
use serde_json::Value;

use crate::permission::Policy;

/// The sandbox in which a session starts its commands, hooks and MCP servers.
pub trait SessionSandbox: Debug + Send + Sync {
    /// The boundary under a policy: its directories can be written, and its denied paths cannot be read or written.
    ///
    /// # Errors
    /// When it cannot be enforced. Then nothing may be started.
    fn boundary(&self, policy: &Policy) -> Result<Arc<dyn Confine>, String>;

    /// What is enforced, for hosts.
    fn attestation(&self) -> Value;

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
