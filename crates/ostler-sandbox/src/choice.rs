//! Which backend builds the sandboxes.

use std::sync::Arc;

use crate::backend::Backend;
use crate::error::SandboxError;
use crate::setup::Setup;

/// A program that does nothing, with which a sandbox is tried.
#[cfg(target_os = "linux")]
pub(crate) const TRIAL: &str = "/bin/true";
#[cfg(not(target_os = "linux"))]
pub(crate) const TRIAL: &str = "/usr/bin/true";

/// # Errors
/// When the backend is not available here.
#[cfg(target_os = "linux")]
pub(crate) fn backend(setup: Setup) -> Result<Arc<dyn Backend>, SandboxError> {
    let helper = crate::helper::program().ok_or_else(|| {
        SandboxError::Unavailable(
            "this program cannot start a sandbox: call ostler::engine::sandbox::run_if_called() first in its main \
             function, or name another program that does with ostler::engine::sandbox::use_helper()"
                .to_owned(),
        )
    })?;
    Ok(Arc::new(crate::bubblewrap::BubblewrapBackend::find(setup, helper.to_owned())?))
}

/// # Errors
/// Always: this system has no sandbox.
#[cfg(not(target_os = "linux"))]
pub(crate) fn backend(_: Setup) -> Result<Arc<dyn Backend>, SandboxError> {
    Err(SandboxError::Unavailable(
        "this system has no sandbox; it needs Linux with bubblewrap".to_owned(),
    ))
}
