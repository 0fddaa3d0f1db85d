//! The hosts that commands can reach: those of the settings and of rules, and those that the user allows while a command
//! runs.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ostler_egress::rules::{HostRules, PatternError};
use ostler_egress::{EventReader, HostAnswer, HostOutcome, HostRequest, Proxy, UserProxy};
use ostler_engine::permission::RuleDomains;
use ostler_engine::sandbox::{HostAnswer as Answer, HostAsker};
use ostler_proto::sandbox::SandboxNetwork;

/// How many refused hosts a result names.
const MOST_REFUSED: usize = 5;

/// What the settings say about hosts.
#[derive(Clone, Debug, Default)]
pub(super) struct HostSettings {
    /// `None` if the settings say nothing: then unknown hosts are asked about. An empty list means no network at all.
    allowed: Option<Vec<String>>,
    denied: Vec<String>,
    /// Unknown hosts are refused without a question.
    pub(super) strict: bool,
    /// A proxy of the user, which decides about all hosts.
    pub(super) user_proxy: Option<UserProxy>,
}

impl HostSettings {
    /// # Errors
    /// When an entry is not a host or a pattern.
    pub(super) fn of(network: Option<&SandboxNetwork>) -> Result<Self, String> {
        let Some(network) = network else { return Ok(Self::default()) };
        let settings = Self {
            allowed: network.allowed_domains.clone(),
            denied: network.denied_domains.clone().unwrap_or_default(),
            strict: network.strict_allowlist == Some(true),
            user_proxy: user_proxy(network)?,
        };
        settings.own_rules()?;
        Ok(settings)
    }

    /// Whether there can be hosts to reach. `asks`: whether the user is asked about unknown ones.
    pub(super) fn reach_any(&self, domains: &RuleDomains, asks: bool) -> bool {
        if self.user_proxy.is_some() {
            // The user's proxy does not know the rules, so with a rule that denies a host there is no network.
            return domains.denied.is_empty();
        }
        match &self.allowed {
            Some(allowed) if allowed.is_empty() => false,
            Some(_) => true,
            None => !domains.allowed.is_empty() || (asks && !self.strict),
        }
    }

    /// The rules of the proxy: those of the settings, and the domains that permission rules name.
    pub(super) fn rules(&self, domains: &RuleDomains) -> HostRules {
        let only_denied = || HostRules::new().strict_allowlist(true);
        let own = self.own_rules().unwrap_or_else(|_| only_denied());
        let mut rules = own;
        for domain in &domains.allowed {
            // One that is not a name is left out: the permission rule decides when a command connects.
            rules = both(rules.clone(), domain, HostRules::allow).unwrap_or(rules);
        }
        for domain in &domains.denied {
            rules = match both(rules, domain, HostRules::deny) {
                Ok(rules) => rules,
                // It may stand for every host.
                Err(_) => return only_denied(),
            };
        }
        rules
    }

    fn own_rules(&self) -> Result<HostRules, String> {
        let mut rules = HostRules::new().strict_allowlist(self.strict);
        for pattern in self.allowed.iter().flatten() {
            // An address with a port is meant for this machine, such as a local registry.
            let is_local = pattern.parse::<std::net::SocketAddr>().is_ok();
            let add = if is_local { HostRules::allow_local } else { HostRules::allow };
            rules = add(rules, pattern)
                .map_err(|error| format!("sandbox.network.allowedDomains: {error}"))?;
        }
        for pattern in &self.denied {
            let denied = rules.deny(pattern);
            rules = denied.map_err(|error| format!("sandbox.network.deniedDomains: {error}"))?;
        }
        Ok(rules)
    }
}

/// Adds a domain with its subdomains, as rules about `WebFetch` mean it.
fn both(
    rules: HostRules,
    domain: &str,
    add: fn(HostRules, &str) -> Result<HostRules, PatternError>,
) -> Result<HostRules, PatternError> {
    let domain = domain.trim_start_matches("*.");
    add(add(rules, domain)?, &format!("*.{domain}"))
}

/// The proxy of the user, if the settings name one.
fn user_proxy(network: &SandboxNetwork) -> Result<Option<UserProxy>, String> {
    let proxy = UserProxy { http: network.http_proxy_port, socks: network.socks_proxy_port };
    if proxy == UserProxy::default() {
        return Ok(None);
    }
    let lists = [
        (network.allowed_domains.is_some(), "allowedDomains"),
        (network.denied_domains.is_some(), "deniedDomains"),
        (network.strict_allowlist == Some(true), "strictAllowlist"),
    ];
    match lists.iter().find(|(is_set, _)| *is_set) {
        Some((_, name)) => Err(format!(
            "sandbox.network.{name} cannot be enforced together with httpProxyPort or socksProxyPort, because your own \
             proxy decides about hosts; remove {name} and let your proxy do it, or remove the port"
        )),
        None => Ok(Some(proxy)),
    }
}

/// The proxy through which commands reach hosts.
pub(super) struct HostProxy {
    proxy: Proxy,
    askers: Arc<Askers>,
    /// What the proxy did since the last command.
    events: Mutex<EventReader>,
}

impl HostProxy {
    /// # Errors
    /// When its socket cannot be created.
    pub(super) fn start(
        rules: HostRules,
        user_proxy: Option<UserProxy>,
        socket: &Path,
    ) -> Result<Self, String> {
        let askers = Arc::new(Askers::default());
        let asked = Arc::clone(&askers);
        let ask = move |request: HostRequest| {
            let asker = asked.last();
            async move {
                let Some(asker) = asker else { return HostAnswer::NoOneToAsk };
                match asker(request.host).await {
                    Answer::Allow => HostAnswer::AllowOnce,
                    Answer::Deny => HostAnswer::Deny,
                    Answer::NoOneToAsk => HostAnswer::NoOneToAsk,
                }
            }
        };
        let mut proxy = Proxy::builder(rules).asker(ask);
        if let Some(user_proxy) = user_proxy {
            proxy = proxy.user_proxy(user_proxy);
        }
        let proxy = proxy.start(socket);
        let proxy =
            proxy.map_err(|error| format!("the proxy for hosts does not start: {error}"))?;
        let events = Mutex::new(proxy.events());
        Ok(Self { proxy, askers, events })
    }

    pub(super) fn socket(&self) -> &Path {
        self.proxy.socket()
    }

    pub(super) fn set_rules(&self, rules: HostRules) {
        self.proxy.set_rules(rules);
    }

    /// Asks this one as long as the result lives.
    pub(super) fn ask(&self, asker: HostAsker) -> AskerRegistration {
        let number = self.askers.add(asker);
        AskerRegistration { askers: Arc::clone(&self.askers), number }
    }

    /// The hosts that were refused since this was last called, with reasons.
    pub(super) fn refused(&self) -> Vec<String> {
        let mut events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        let (events, _) = events.take();
        let refused = events.into_iter().filter(|event| event.outcome == HostOutcome::Denied);
        let mut texts: Vec<_> = refused
            .map(|event| format!("{}:{} ({})", event.host, event.port, event.reason))
            .collect();
        texts.dedup();
        texts.truncate(MOST_REFUSED);
        texts
    }
}

/// Who is asked about hosts, for each command that runs.
#[derive(Default)]
struct Askers(Mutex<AskerList>);

#[derive(Default)]
struct AskerList {
    all: Vec<(u64, HostAsker)>,
    last_number: u64,
}

impl Askers {
    fn add(&self, asker: HostAsker) -> u64 {
        let mut list = self.list();
        list.last_number += 1;
        let number = list.last_number;
        list.all.push((number, asker));
        number
    }

    /// That of the command which started last.
    fn last(&self) -> Option<HostAsker> {
        self.list().all.last().map(|(_, asker)| Arc::clone(asker))
    }

    fn list(&self) -> MutexGuard<'_, AskerList> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Someone is asked about hosts as long as this lives.
pub(super) struct AskerRegistration {
    askers: Arc<Askers>,
    number: u64,
}

impl std::fmt::Debug for AskerRegistration {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AskerRegistration").field("number", &self.number).finish_non_exhaustive()
    }
}

impl Drop for AskerRegistration {
    fn drop(&mut self) {
        self.askers.list().all.retain(|(number, _)| *number != self.number);
    }
}
