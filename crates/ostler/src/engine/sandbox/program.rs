//! The boundary of one program: that of the session, with a proxy of its own.

use std::io;
use std::sync::Arc;

use ostler_engine::sandbox::{HostAsker, ProgramBoundary};
use ostler_process::{Confine, ConfinedProgram, Guard, InsideProgram};
use ostler_sandbox::{Network, Sandbox};
use parking_lot::{Mutex, MutexGuard};

use super::escalation;
use super::hosts::{HostProxies, HostProxy};
use super::repositories::Repositories;

#[derive(Debug)]
pub(super) struct SandboxedProgram {
    /// The sandbox of the session under the program's policy.
    sandbox: Arc<Sandbox>,
    asker: Arc<dyn HostAsker>,
    shared: Shared,
    /// Whether the model may ask to leave the sandbox.
    may_leave: bool,
    /// The program that was started last. A server that connects again is another program.
    last: Mutex<Option<StartedProgram>>,
}

/// What a program was started with.
#[derive(Clone, Debug)]
struct StartedProgram {
    /// Its own sandbox, which knows the limit that it reaches.
    sandbox: Sandbox,
    proxy: Option<Arc<HostProxy>>,
}

/// What the programs of a session share.
#[derive(Clone, Debug)]
pub(super) struct Shared {
    pub(super) proxies: Arc<HostProxies>,
    pub(super) repositories: Arc<Repositories>,
}

/// What must exist while the program runs.
#[derive(Debug)]
struct ProgramGuard {
    boundary: Box<dyn Guard>,
    _proxy: Option<Arc<HostProxy>>,
}

impl Guard for ProgramGuard {
    fn started(&self, child: u32) {
        self.boundary.started(child);
    }
}

impl SandboxedProgram {
    pub(super) fn new(
        sandbox: Arc<Sandbox>,
        asker: Arc<dyn HostAsker>,
        shared: Shared,
        may_leave: bool,
    ) -> Self {
        Self { sandbox, asker, shared, may_leave, last: Mutex::default() }
    }

    fn last(&self) -> MutexGuard<'_, Option<StartedProgram>> {
        self.last.lock()
    }
}

impl Confine for SandboxedProgram {
    fn confine(&self, program: InsideProgram<'_>) -> io::Result<ConfinedProgram> {
        let mut boundary = self.sandbox.boundary().clone();
        boundary.protected.extend(self.shared.repositories.protected(&boundary.writable));
        let proxy = match &mut boundary.network {
            Network::Proxy(socket) | Network::UserProxy(socket) => {
                let proxy = self.shared.proxies.start(Arc::clone(&self.asker));
                let proxy = proxy.map_err(io::Error::other)?;
                proxy.socket().clone_into(socket);
                Some(proxy)
            }
            Network::None | Network::Host => None,
        };
        let sandbox = self.sandbox.with(boundary).map_err(io::Error::other)?;
        let confined = sandbox.confine(program)?;
        *self.last() = Some(StartedProgram { sandbox, proxy: proxy.clone() });
        let guard = ProgramGuard { boundary: confined.guard, _proxy: proxy };
        Ok(ConfinedProgram { guard: Box::new(guard), ..confined })
    }
}

impl ProgramBoundary for SandboxedProgram {
    fn hint(&self, output: &str, code: Option<i32>) -> Option<String> {
        let StartedProgram { sandbox, proxy } = self.last().clone()?;
        let refused = proxy.map(|proxy| proxy.refused()).unwrap_or_default();
        escalation::hint(&sandbox, &refused, output, code, self.may_leave)
    }

    fn notice(&self) -> Option<String> {
        self.shared.repositories.notice(&self.sandbox.boundary().writable)
    }
}
