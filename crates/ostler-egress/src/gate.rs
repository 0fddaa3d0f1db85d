//! The one place that dials: judges a target, asks if need be, resolves its name once, checks every address and connects to
//! a checked one.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::sync::{Semaphore, broadcast, watch};
use tokio::time::timeout;

use crate::ask::{Answered, HostRequest, Questions};
use crate::events::{HostEvent, HostOutcome};
use crate::host::{Host, Target};
use crate::network::Network;
use crate::refusal::{Refusal, shown};
use crate::rules::{HostRules, Verdict};

/// How many names are resolved at once: each occupies a thread.
const MOST_LOOKUPS: usize = 16;
/// How many addresses of a name are tried.
const MOST_ADDRESSES: usize = 8;

pub(crate) struct Gate {
    pub(crate) rules: watch::Sender<Arc<HostRules>>,
    pub(crate) questions: Arc<Questions>,
    network: Arc<dyn Network>,
    events: broadcast::Sender<HostEvent>,
    lookups: Semaphore,
    /// How long a lookup may take, and how long connecting may take.
    patience: Duration,
}

/// What an open connection is allowed by.
#[derive(Clone, Debug)]
pub(crate) struct Grant {
    target: Target,
    /// A rule; otherwise an answer, which outlives a change of the rules unless they now deny the host.
    by_rule: bool,
    /// Where it is connected to.
    address: IpAddr,
}

/// What a target is allowed by, before it is dialled.
struct Permit {
    by_rule: bool,
    /// Whether it may lead to this machine and its network.
    local: bool,
}

impl Gate {
    pub(crate) fn new(
        rules: HostRules,
        questions: Arc<Questions>,
        network: Arc<dyn Network>,
        events: broadcast::Sender<HostEvent>,
        patience: Duration,
    ) -> Self {
        let (rules, lookups) = (watch::Sender::new(Arc::new(rules)), Semaphore::new(MOST_LOOKUPS));
        Self { rules, questions, network, events, lookups, patience }
    }

    /// Connects to a target if it is allowed, and reports what came of it.
    pub(crate) async fn open(&self, target: &Target) -> Result<(TcpStream, Grant), Refusal> {
        let result = self.connect(target).await;
        self.report(&target.host.to_string(), target.port, result.as_ref().err());
        result
    }

    /// Sends an event.
    pub(crate) fn report(&self, host: &str, port: u16, refusal: Option<&Refusal>) {
        let outcome = match refusal {
            None => HostOutcome::Allowed,
            Some(refusal) if refusal.is_denial() => HostOutcome::Denied,
            Some(_) => HostOutcome::Failed,
        };
        let reason = refusal.map(ToString::to_string).unwrap_or_default();
        let advice = refusal.map(|refusal| refusal.advice(&shown(host))).unwrap_or_default();
        tracing::debug!(host, port, ?outcome, reason, "connection of a sandbox");
        // No reader is not an error.
        _ = self.events.send(HostEvent { host: shown(host), port, outcome, reason, advice });
    }

    async fn connect(&self, target: &Target) -> Result<(TcpStream, Grant), Refusal> {
        let permit = self.permit(target).await?;
        let addresses = self.addresses(target).await?;
        let (stream, address) = self.dial(target, permit.local, &addresses).await?;
        Ok((stream, Grant { target: target.clone(), by_rule: permit.by_rule, address }))
    }

    async fn permit(&self, target: &Target) -> Result<Permit, Refusal> {
        match self.judge(target) {
            Verdict::Allow { local } => return Ok(Permit { by_rule: true, local }),
            Verdict::Deny(reason) => return Err(reason.into()),
            Verdict::Ask => {}
        }
        match self.questions.ask(HostRequest::new(target)).await {
            Answered::Yes => {}
            Answered::No => return Err(Refusal::Answer),
            Answered::NoOneToAsk => return Err(Refusal::NoOneToAsk),
            Answered::Refused(reason) => return Err(Refusal::NotAsked(reason)),
            Answered::TooManyOpen => return Err(Refusal::TooManyQuestions),
        }
        // The rules may have changed while the user was thinking.
        match self.judge(target) {
            Verdict::Deny(reason) => Err(reason.into()),
            Verdict::Allow { .. } | Verdict::Ask => Ok(Permit { by_rule: false, local: false }),
        }
    }

    fn judge(&self, target: &Target) -> Verdict {
        self.rules.borrow().judge(target)
    }

    /// Whether an open connection is still allowed.
    pub(crate) fn still_allows(&self, grant: &Grant) -> bool {
        let rules = Arc::clone(&self.rules.borrow());
        let local = match rules.judge(&grant.target) {
            Verdict::Allow { local } => local,
            Verdict::Ask if !grant.by_rule => false,
            Verdict::Ask | Verdict::Deny(_) => return false,
        };
        // Interfaces do not change with the rules.
        rules.check_address(grant.address, grant.target.port, local, false).is_ok()
    }

    async fn addresses(&self, target: &Target) -> Result<Vec<IpAddr>, Refusal> {
        let name = match &target.host {
            Host::Address(address) => return Ok(vec![*address]),
            Host::Name(name) => name,
        };
        let lookup = async {
            let _permit = self.lookups.acquire().await.map_err(io::Error::other)?;
            self.network.resolve(name).await
        };
        let found = timeout(self.patience, lookup).await.unwrap_or_else(|late| Err(late.into()));
        match found {
            Ok(addresses) if addresses.is_empty() => {
                Err(Refusal::Resolve(io::Error::new(io::ErrorKind::NotFound, "no address")))
            }
            Ok(addresses) => Ok(addresses),
            Err(error) => Err(Refusal::Resolve(error)),
        }
    }

    /// Whether an address may be dialled.
    fn check(&self, address: IpAddr, port: u16, local: bool) -> Result<(), Refusal> {
        let own = self.network.is_own(address).map_err(Refusal::OwnAddress)?;
        let rules = Arc::clone(&self.rules.borrow());
        Ok(rules.check_address(address, port, local, own)?)
    }

    /// Connects to the first address that may be dialled and answers.
    async fn dial(
        &self,
        target: &Target,
        local: bool,
        addresses: &[IpAddr],
    ) -> Result<(TcpStream, IpAddr), Refusal> {
        let (mut checked, mut refused) = (Vec::new(), None);
        for address in addresses.iter().take(MOST_ADDRESSES) {
            // What was checked is what is dialled, also if it is IPv4 inside IPv6.
            let address = address.to_canonical();
            match self.check(address, target.port, local) {
                Ok(()) => checked.push(address),
                Err(reason) => refused = refused.or(Some(reason)),
            }
        }
        if let (true, Some(reason)) = (checked.is_empty(), refused) {
            return Err(reason);
        }
        let each = self.patience / u32::try_from(checked.len().max(1)).unwrap_or(1);
        let mut last = io::Error::from(io::ErrorKind::NotFound);
        for address in checked {
            let connecting = self.network.connect(SocketAddr::new(address, target.port));
            match timeout(each, connecting).await.unwrap_or_else(|late| Err(late.into())) {
                Ok(stream) => return Ok((stream, address)),
                Err(error) => last = error,
            }
        }
        Err(Refusal::Connect(last))
    }
}
