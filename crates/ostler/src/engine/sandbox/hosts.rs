//! The hosts that commands can reach: those of the settings and of rules, and those that the user allows while a command
//! runs.

use std::os::unix::fs::DirBuilderExt as _;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::{fmt, fs, io};

use ostler_egress::rules::{HostRules, PatternError};
use ostler_egress::{EventReader, HostAnswer, HostOutcome, HostRequest, Proxy, UserProxy};
use ostler_engine::permission::RuleDomains;
use ostler_engine::sandbox::{HostAnswer as Answer, HostAsker, HostQuestion, HostQuestions};
use ostler_proto::sandbox::SandboxNetwork;
use parking_lot::{Mutex, MutexGuard};

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
            // The user's proxy does not know the rules, so a rule that denies a host takes the whole network.
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

/// The proxies through which programs reach hosts: one for each program, so that questions and answers belong to the program
/// that caused them.
pub(super) struct HostProxies {
    settings: HostSettings,
    /// The folder of their sockets.
    folder: PathBuf,
    /// A socket on which nothing listens, for the boundary of a session before a program has its own.
    unused: PathBuf,
    n_started: AtomicU64,
    running: Mutex<Vec<Weak<HostProxy>>>,
}

impl fmt::Debug for HostProxies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostProxies").field("folder", &self.folder).finish_non_exhaustive()
    }
}

impl HostProxies {
    /// # Errors
    /// When the folder cannot be made.
    pub(super) fn new(settings: HostSettings, folder: PathBuf) -> io::Result<Self> {
        fs::DirBuilder::new().mode(0o700).create(&folder)?;
        let unused = folder.join("none");
        // Its listener is gone at once.
        UnixListener::bind(&unused)?;
        let (n_started, running) = (AtomicU64::new(0), Mutex::default());
        Ok(Self { settings, folder, unused, n_started, running })
    }

    /// The socket in the boundary of a session, before a program has its own.
    pub(super) fn unused_socket(&self) -> &Path {
        &self.unused
    }

    /// Starts the proxy of a program. It ends with the result.
    ///
    /// # Errors
    /// When its socket cannot be created.
    pub(super) fn start(&self, asker: Arc<dyn HostAsker>) -> Result<Arc<HostProxy>, String> {
        let number = self.n_started.fetch_add(1, Ordering::Relaxed);
        let socket = self.folder.join(number.to_string());
        let questions = Arc::new(HostQuestions::new(asker));
        let rules = self.rules_for(&questions);
        let proxy = HostProxy::start(questions, rules, self.settings.user_proxy, &socket)?;
        let proxy = Arc::new(proxy);
        let mut running = self.running();
        running.retain(|proxy| proxy.strong_count() > 0);
        running.push(Arc::downgrade(&proxy));
        Ok(proxy)
    }

    /// Lets every running program reach what its policy allows by now; connections that it denies end.
    pub(super) fn renew_rules(&self) {
        let running: Vec<_> = self.running().iter().filter_map(Weak::upgrade).collect();
        for proxy in running {
            proxy.proxy.set_rules(self.rules_for(&proxy.questions));
        }
    }

    fn rules_for(&self, questions: &HostQuestions) -> HostRules {
        self.settings.rules(&questions.policy().rule_domains(self.settings.strict))
    }

    fn running(&self) -> MutexGuard<'_, Vec<Weak<HostProxy>>> {
        self.running.lock()
    }
}

/// The proxy of one program.
pub(super) struct HostProxy {
    proxy: Proxy,
    questions: Arc<HostQuestions>,
    /// What the proxy did since it was last read.
    events: Mutex<EventReader>,
}

impl HostProxy {
    fn start(
        questions: Arc<HostQuestions>,
        rules: HostRules,
        user_proxy: Option<UserProxy>,
        socket: &Path,
    ) -> Result<Self, String> {
        let asked = Arc::clone(&questions);
        let ask = move |HostRequest { host, port, .. }: HostRequest| {
            let questions = Arc::clone(&asked);
            async move {
                match questions.may_reach(HostQuestion { host, port }).await {
                    Answer::Allow => HostAnswer::AllowOnce,
                    Answer::Deny => HostAnswer::Deny,
                    Answer::NoOneToAsk => HostAnswer::NoOneToAsk,
                    Answer::Refused(reason) => HostAnswer::Refused(reason),
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
        Ok(Self { proxy, questions, events })
    }

    pub(super) fn socket(&self) -> &Path {
        self.proxy.socket()
    }

    /// The hosts that were refused since this was last called, with reasons.
    pub(super) fn refused(&self) -> Vec<RefusedHost> {
        let mut events = self.events.lock();
        let (events, _) = events.take();
        let refused = events.into_iter().filter(|event| event.outcome == HostOutcome::Denied);
        let mut hosts: Vec<_> = refused
            .map(|event| RefusedHost {
                host: event.host,
                port: event.port,
                reason: event.reason,
                advice: event.advice,
            })
            .collect();
        hosts.dedup();
        hosts.truncate(MOST_REFUSED);
        hosts
    }
}

impl fmt::Debug for HostProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostProxy").field("socket", &self.socket()).finish_non_exhaustive()
    }
}

/// A host that a program could not reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RefusedHost {
    pub(super) host: String,
    pub(super) port: u16,
    /// Why, as the end of a sentence.
    pub(super) reason: String,
    /// What would allow it, as a sentence.
    pub(super) advice: String,
}
