//! Which hosts may be reached: patterns, lists of them, and the verdict on a target. Pure.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

use crate::address::{AddressKind, is_same};
use crate::host::{Host, HostError, Target, parse_port, split_port};

/// One entry of a list: `example.com`, `*.example.com` (every name below it, not the name itself), `*`, or an address, each
/// with or without a `:port`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPattern {
    hosts: Hosts,
    /// Every port if missing.
    port: Option<u16>,
    /// Whether names that it covers may lead to this machine and its network.
    local: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Hosts {
    Every,
    Exactly(Host),
    /// The part behind `*.`.
    Below(String),
}

/// Why a text is not a pattern.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{pattern:?} is not a valid host pattern: {problem}. Examples: example.com, *.example.com, example.com:443, 127.0.0.1:8080"
)]
pub struct PatternError {
    pattern: String,
    problem: Problem,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum Problem {
    #[error("{0}")]
    Host(#[from] HostError),
    #[error("write the host alone, without scheme, path or user")]
    Url,
    #[error("a * stands for the whole name or for everything before its first dot")]
    Star,
    #[error("it allows every host; that needs a separate option (HostRules::allow_every_host)")]
    Everything,
    #[error("it allows every name of a top-level domain, which anyone can register")]
    TopLevel,
}

impl HostPattern {
    /// Parses a pattern.
    ///
    /// # Errors
    /// If the text is not a pattern.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        let parsed = Self::parse_parts(text);
        parsed.map_err(|problem| PatternError { pattern: text.to_owned(), problem })
    }

    fn parse_parts(text: &str) -> Result<Self, Problem> {
        if text.contains(['/', '@', '?', '#']) {
            return Err(Problem::Url);
        }
        // Without brackets there is no room for a port.
        if let Ok(address) = text.parse::<Ipv6Addr>() {
            let hosts = Hosts::Exactly(Host::address(address.into()));
            return Ok(Self { hosts, port: None, local: false });
        }
        let (name, port) = split_port(text);
        let hosts = if name == "*" {
            Hosts::Every
        } else if let Some(rest) = name.strip_prefix("*.") {
            match Host::parse(rest).map_err(|error| star_or(rest, error))? {
                Host::Name(rest) => Hosts::Below(rest),
                Host::Address(_) => return Err(Problem::Star),
            }
        } else {
            Hosts::Exactly(Host::parse(name).map_err(|error| star_or(name, error))?)
        };
        let port = port.map(parse_port).transpose()?;
        Ok(Self { hosts, port, local: false })
    }

    /// Whether the pattern covers a target.
    #[must_use]
    pub fn covers(&self, target: &Target) -> bool {
        let host = match (&self.hosts, &target.host) {
            (Hosts::Every, _) => true,
            (Hosts::Exactly(one), other) => one == other,
            (Hosts::Below(end), Host::Name(name)) => {
                name.strip_suffix(end).is_some_and(|start| start.ends_with('.'))
            }
            (Hosts::Below(_), Host::Address(_)) => false,
        };
        host && self.covers_port(target.port)
    }

    /// Whether the pattern is this very address.
    fn names(&self, address: IpAddr, port: u16) -> bool {
        self.hosts == Hosts::Exactly(Host::address(address)) && self.covers_port(port)
    }

    /// Whether the pattern is this address in any form, such as tunnelled in IPv6. Wider than [`HostPattern::names`], so
    /// it is right for what is denied and wrong for what is allowed.
    fn names_in_any_form(&self, address: IpAddr, port: u16) -> bool {
        let named = matches!(self.hosts, Hosts::Exactly(Host::Address(it)) if is_same(it, address));
        named && self.covers_port(port)
    }

    fn covers_port(&self, port: u16) -> bool {
        self.port.is_none_or(|it| it == port)
    }
}

/// A star in the wrong place deserves its own explanation.
fn star_or(name: &str, error: HostError) -> Problem {
    if name.contains('*') { Problem::Star } else { error.into() }
}

impl fmt::Display for HostPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.hosts {
            Hosts::Every => f.write_str("*")?,
            Hosts::Exactly(host) => host.fmt(f)?,
            Hosts::Below(end) => write!(f, "*.{end}")?,
        }
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

/// What the rules say about a target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is on the list of allowed hosts.
    Allow {
        /// Whether the name may lead to this machine and its network.
        local: bool,
    },
    /// It is refused.
    Deny(DenyReason),
    /// It is on neither list, and the user may be asked.
    Ask,
}

/// Why the rules refuse a host, or an address that its name leads to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DenyReason {
    /// The list of denied hosts covers it.
    #[error("sandbox.network.deniedDomains contains {0}")]
    Denied(String),
    /// It is on neither list, and only allowed hosts may be reached.
    #[error("it is not in sandbox.network.allowedDomains")]
    NotAllowed,
    /// Nothing is allowed at all.
    #[error("sandbox.network.allowedDomains is empty, so the sandbox has no network")]
    NothingAllowed,
    /// An address in place of a name, which is not on the list itself.
    #[error("it is an address, and sandbox.network.allowedDomains does not contain that address")]
    Address,
    /// The name leads to an address that is not public.
    #[error("it leads to {address}, {kind}")]
    Inside {
        /// The address.
        address: IpAddr,
        /// Its kind.
        kind: AddressKind,
    },
    /// The name leads to an address of this machine.
    #[error("it leads to {0}, an address of this machine")]
    Own(IpAddr),
}

/// The lists of a sandbox. The empty value allows nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostRules {
    allowed: Vec<HostPattern>,
    denied: Vec<HostPattern>,
    strict_allowlist: bool,
}

impl HostRules {
    /// Nothing is allowed; the user may be asked.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The lists as they are in settings (`allowedDomains`, `deniedDomains`).
    ///
    /// # Errors
    /// If an entry is not a pattern, or allows too much.
    pub fn from_lists<A, D>(allowed: A, denied: D) -> Result<Self, PatternError>
    where
        A: IntoIterator<Item: AsRef<str>>,
        D: IntoIterator<Item: AsRef<str>>,
    {
        let mut rules = Self::new();
        for pattern in allowed {
            rules = rules.allow(pattern.as_ref())?;
        }
        for pattern in denied {
            rules = rules.deny(pattern.as_ref())?;
        }
        Ok(rules)
    }

    /// Allows what a pattern covers, as long as it leads to public addresses. An address pattern allows that address, whatever
    /// its kind.
    ///
    /// # Errors
    /// If the text is not a pattern, is `*` (see [`HostRules::allow_every_host`]), or is `*.` and a top-level domain.
    pub fn allow(self, pattern: &str) -> Result<Self, PatternError> {
        let parsed = HostPattern::parse(pattern)?;
        let problem = match &parsed.hosts {
            Hosts::Every => Problem::Everything,
            Hosts::Below(end) if !end.contains('.') => Problem::TopLevel,
            _ => return Ok(self.allowing(parsed)),
        };
        Err(PatternError { pattern: pattern.to_owned(), problem })
    }

    /// Allows what a pattern covers, also if it leads to this machine, a private network or a provider's own network: for local
    /// registries. Metadata services and the like stay refused unless their address itself is allowed.
    ///
    /// # Errors
    /// If the text is not a pattern, or is `*`.
    pub fn allow_local(self, pattern: &str) -> Result<Self, PatternError> {
        let parsed = HostPattern::parse(pattern)?;
        if parsed.hosts == Hosts::Every {
            let problem = Problem::Everything;
            return Err(PatternError { pattern: pattern.to_owned(), problem });
        }
        Ok(self.allowing(HostPattern { local: true, ..parsed }))
    }

    /// Allows every host with a public address that is not denied.
    #[must_use]
    pub fn allow_every_host(self) -> Self {
        self.allowing(HostPattern { hosts: Hosts::Every, port: None, local: false })
    }

    fn allowing(mut self, pattern: HostPattern) -> Self {
        self.allowed.push(pattern);
        self
    }

    /// Denies what a pattern covers; denied is stronger than allowed. An address pattern also denies names that lead to it.
    ///
    /// # Errors
    /// If the text is not a pattern.
    pub fn deny(mut self, pattern: &str) -> Result<Self, PatternError> {
        self.denied.push(HostPattern::parse(pattern)?);
        Ok(self)
    }

    /// With `true`, hosts on neither list are refused without a question.
    #[must_use]
    pub fn strict_allowlist(mut self, strict: bool) -> Self {
        self.strict_allowlist = strict;
        self
    }

    /// The verdict on a target, before its name is resolved.
    #[must_use]
    pub fn judge(&self, target: &Target) -> Verdict {
        let mut denied = self.denied.iter();
        let denying = denied.find(|it| match target.host {
            Host::Address(address) if it.names_in_any_form(address, target.port) => true,
            _ => it.covers(target),
        });
        if let Some(pattern) = denying {
            return Verdict::Deny(DenyReason::Denied(pattern.to_string()));
        }
        let mut covering = self.allowed.iter().filter(|it| it.covers(target)).peekable();
        if covering.peek().is_some() {
            return Verdict::Allow { local: covering.any(|it| it.local) };
        }
        match target.host {
            Host::Address(_) => Verdict::Deny(DenyReason::Address),
            Host::Name(_) if !self.strict_allowlist => Verdict::Ask,
            Host::Name(_) if self.allowed.is_empty() => Verdict::Deny(DenyReason::NothingAllowed),
            Host::Name(_) => Verdict::Deny(DenyReason::NotAllowed),
        }
    }

    /// Checks an address that an allowed host leads to. `local` is from the verdict, `own` says whether an interface of
    /// this machine has the address.
    ///
    /// # Errors
    /// If the address must not be dialled.
    pub fn check_address(
        &self,
        address: IpAddr,
        port: u16,
        local: bool,
        own: bool,
    ) -> Result<(), DenyReason> {
        if let Some(pattern) = self.denied.iter().find(|it| it.names_in_any_form(address, port)) {
            return Err(DenyReason::Denied(pattern.to_string()));
        }
        if self.allowed.iter().any(|it| it.names(address, port)) {
            return Ok(());
        }
        let kind = AddressKind::of(address);
        if kind != AddressKind::Public && !(local && kind.is_local()) {
            return Err(DenyReason::Inside { address, kind });
        }
        if own && !local {
            return Err(DenyReason::Own(address));
        }
        Ok(())
    }
}
