//! Which backend builds the sandboxes.

use std::sync::Arc;

use crate::backend::Backend;
use crate::error::SandboxError;
use crate::seatbelt::SeatbeltBackend;
use crate::setup::{BackendChoice, Setup};

/// A program that does nothing, with which a sandbox is tried.
#[cfg(target_os = "linux")]
pub(crate) const TRIAL: &str = "/bin/true";
#[cfg(not(target_os = "linux"))]
pub(crate) const TRIAL: &str = "/usr/bin/true";

/// The backend that the setup names, and no other one.
///
/// # Errors
/// When it is not available here.
pub(crate) fn backend(setup: Setup) -> Result<Arc<dyn Backend>, SandboxError> {
    match setup.backend {
        BackendChoice::Auto if cfg!(target_os = "macos") => seatbelt(setup),
        BackendChoice::Seatbelt => seatbelt(setup),
        _ => of_linux(setup),
    }
}

fn seatbelt(setup: Setup) -> Result<Arc<dyn Backend>, SandboxError> {
    Ok(Arc::new(SeatbeltBackend::find(setup)?))
}

#[cfg(target_os = "linux")]
fn of_linux(setup: Setup) -> Result<Arc<dyn Backend>, SandboxError> {
    use crate::bubblewrap::BubblewrapBackend;
    use crate::container::{ContainerBackend, Engine};
    let helper = crate::helper::program().ok_or_else(|| {
        SandboxError::Unavailable(
            "this program cannot start a sandbox: call ostler::engine::sandbox::run_if_called() first in its main \
             function, or name another program that does with ostler::engine::sandbox::use_helper()"
                .to_owned(),
        )
    })?;
    let helper = helper.to_owned();
    Ok(match setup.backend {
        BackendChoice::Podman => Arc::new(ContainerBackend::find(Engine::Podman, setup, helper)?),
        BackendChoice::Docker => Arc::new(ContainerBackend::find(Engine::Docker, setup, helper)?),
        _ => Arc::new(BubblewrapBackend::find(setup, helper)?),
    })
}

#[cfg(not(target_os = "linux"))]
fn of_linux(setup: Setup) -> Result<Arc<dyn Backend>, SandboxError> {
    Err(SandboxError::Unavailable(format!(
        "this system has no sandbox of the kind {:?}: bubblewrap and containers need Linux. On macOS remove sandbox.backend",
        setup.backend
    )))
}
