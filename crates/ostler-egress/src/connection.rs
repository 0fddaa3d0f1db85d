//! What HTTP and SOCKS5 share: one client's connection, its limits, and what it is currently allowed.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use subtle::ConstantTimeEq as _;
use tokio::net::TcpStream;

use crate::gate::{Gate, Grant};
use crate::host::{HostError, Target};
use crate::refusal::Refusal;
use crate::rules::DenyReason;

/// Limits of a proxy, so that no program in a sandbox can exhaust this process.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// The maximum number of connections at a time; further ones wait in the kernel's queue.
    pub connections: usize,
    /// How long a client may take to send its request, and may be idle between two requests.
    pub request: Duration,
    /// The maximum size of a request's head, in bytes; less than 8192 counts as that.
    pub head_bytes: usize,
    /// How long resolving a name may take, and how long connecting may take.
    pub connect: Duration,
    /// How long a tunnel may be idle after one side has sent everything.
    pub half_closed: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 256,
            request: Duration::from_secs(30),
            head_bytes: 64 * 1024,
            connect: Duration::from_secs(15),
            half_closed: Duration::from_secs(60),
        }
    }
}

/// One connection of a client.
pub(crate) struct Connection {
    pub(crate) gate: Arc<Gate>,
    pub(crate) limits: Limits,
    pub(crate) token: Option<Arc<str>>,
    grant: Mutex<Option<Grant>>,
}

impl Connection {
    pub(crate) fn new(gate: Arc<Gate>, limits: Limits, token: Option<Arc<str>>) -> Self {
        Self { gate, limits, token, grant: Mutex::new(None) }
    }

    /// Connects to what a client wrote, if that is allowed.
    pub(crate) async fn open(&self, target: &Target) -> Result<TcpStream, Refusal> {
        let (stream, grant) = self.gate.open(target).await?;
        *self.grant.lock().unwrap_or_else(PoisonError::into_inner) = Some(grant.clone());
        // The rules may have changed since they were looked at, and `revoked` saw the grant before this one.
        if self.gate.still_allows(&grant) {
            return Ok(stream);
        }
        let refusal = Refusal::from(DenyReason::NotAllowed);
        self.gate.report(&target.host.to_string(), target.port, Some(&refusal));
        Err(refusal)
    }

    /// Reports a host that could not be understood.
    pub(crate) fn malformed(&self, text: &str, error: HostError) -> Refusal {
        let refusal = Refusal::from(error);
        self.gate.report(text, 0, Some(&refusal));
        refusal
    }

    /// Waits until the rules no longer allow what this connection does.
    pub(crate) async fn revoked(&self) {
        let mut changes = self.gate.rules.subscribe();
        loop {
            if changes.changed().await.is_err() {
                // The proxy ends, and this connection with it.
                return std::future::pending().await;
            }
            let grant = self.grant.lock().unwrap_or_else(PoisonError::into_inner).clone();
            if grant.is_some_and(|grant| !self.gate.still_allows(&grant)) {
                return;
            }
        }
    }

    /// Whether a client may use the proxy at all; `given` is its password.
    pub(crate) fn accepts(&self, given: Option<&[u8]>) -> bool {
        match (&self.token, given) {
            (None, _) => true,
            (Some(token), Some(given)) => token.as_bytes().ct_eq(given).into(),
            (Some(_), None) => false,
        }
    }
}
