//! Hosts and targets, parsed strictly from what a client sent. What has two readings is refused, so that the rules, the
//! resolver and the far end cannot understand a name differently.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The longest host name, in bytes (RFC 1035).
const LONGEST_NAME: usize = 253;
const LONGEST_LABEL: usize = 63;

/// A host: a name in lower case, or an address.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Host {
    /// A host name: ASCII, lower case, no dot at the end. International names are in their `xn--` form.
    Name(String),
    /// An address that the client wrote itself. IPv4 addresses inside IPv6 (`::ffff:1.2.3.4`) are IPv4 here.
    Address(IpAddr),
}

/// Why a text is not a host that can be judged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// Nothing, or only a port.
    #[error("the host name is empty")]
    Empty,
    /// More than 253 bytes, or a label of more than 63.
    #[error("the host name is too long")]
    TooLong,
    /// A NUL byte, a line break, a space and the like.
    #[error("the host name contains a control character or a space")]
    Control,
    /// A character that is not ASCII.
    #[error("the host name is not ASCII; write international names in their xn-- form")]
    NotAscii,
    /// `user@host`, which some programs read as `user` and others as `host`.
    #[error("the host name contains a user name (@)")]
    UserInfo,
    /// `example.com.`, which is not equal to `example.com` as text but resolves alike.
    #[error("the host name ends with a dot; write it without")]
    TrailingDot,
    /// Two dots in a row, or a dot at the beginning.
    #[error("the host name has an empty label")]
    EmptyLabel,
    /// A label that begins or ends with a hyphen.
    #[error("a label of the host name begins or ends with a hyphen")]
    Hyphen,
    /// A character that is not allowed in host names.
    #[error("the host name contains {0:?}")]
    Character(char),
    /// `2130706433`, `0177.0.0.1`, `0x7f.1` and `127.1`: addresses that programs read differently.
    #[error("the host is an address in an unusual spelling; write it as four decimal numbers")]
    AddressSpelling,
    /// Something in brackets that is not an IPv6 address, or brackets that do not close.
    #[error("the host is not a valid IPv6 address")]
    Ipv6,
    /// Not a number from 1 to 65535.
    #[error("the port is missing or is not a number from 1 to 65535")]
    Port,
}

impl Host {
    /// Parses a host without a port. IPv6 addresses are in brackets.
    ///
    /// # Errors
    /// If the text is not a host, or is one that programs could read differently.
    pub fn parse(text: &str) -> Result<Self, HostError> {
        if text.is_empty() {
            return Err(HostError::Empty);
        }
        if text.chars().any(|c| c.is_control() || c == ' ') {
            return Err(HostError::Control);
        }
        if !text.is_ascii() {
            return Err(HostError::NotAscii);
        }
        if text.contains('@') {
            return Err(HostError::UserInfo);
        }
        if let Some(inner) = text.strip_prefix('[') {
            let inner = inner.strip_suffix(']').ok_or(HostError::Ipv6)?;
            let address: Ipv6Addr = inner.parse().map_err(|_| HostError::Ipv6)?;
            return Ok(Self::address(address.into()));
        }
        parse_name(&text.to_ascii_lowercase())
    }

    /// Parses a host from bytes, as SOCKS5 sends them.
    ///
    /// # Errors
    /// As [`Host::parse`]; bytes that are not ASCII are refused.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, HostError> {
        Self::parse(std::str::from_utf8(bytes).map_err(|_| HostError::NotAscii)?)
    }

    /// An address; IPv4 inside IPv6 becomes IPv4.
    #[must_use]
    pub fn address(address: IpAddr) -> Self {
        Self::Address(address.to_canonical())
    }
}

/// A name in lower case, or an IPv4 address.
fn parse_name(name: &str) -> Result<Host, HostError> {
    if let Ok(address) = name.parse::<Ipv4Addr>() {
        return Ok(Host::Address(address.into()));
    }
    if name.len() > LONGEST_NAME + 1 {
        return Err(HostError::TooLong);
    }
    if name.len() > 1 && name.ends_with('.') {
        return Err(HostError::TrailingDot);
    }
    for label in name.split('.') {
        check_label(label)?;
    }
    if name.len() > LONGEST_NAME {
        return Err(HostError::TooLong);
    }
    if is_number(name.rsplit('.').next().unwrap_or_default()) {
        return Err(HostError::AddressSpelling);
    }
    Ok(Host::Name(name.to_owned()))
}

fn check_label(label: &str) -> Result<(), HostError> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if label.is_empty() {
        return Err(HostError::EmptyLabel);
    }
    if let Some(other) = label.chars().find(|c| !is_allowed(*c)) {
        return Err(HostError::Character(other));
    }
    if label.len() > LONGEST_LABEL {
        return Err(HostError::TooLong);
    }
    if label.starts_with('-') || label.ends_with('-') {
        return Err(HostError::Hyphen);
    }
    Ok(())
}

/// Whether a name with this last label is read as an IPv4 address by some programs: in decimal, octal or hexadecimal, with one
/// to four parts. No top-level domain looks like that.
fn is_number(label: &str) -> bool {
    let digits = label.bytes().all(|byte| byte.is_ascii_digit());
    let hexadecimal = label
        .strip_prefix("0x")
        .is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_hexdigit()));
    digits || hexadecimal
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Address(IpAddr::V4(address)) => write!(f, "{address}"),
            Self::Address(IpAddr::V6(address)) => write!(f, "[{address}]"),
        }
    }
}

/// Where a client wants to connect to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Target {
    /// The host.
    pub host: Host,
    /// The port, never 0.
    pub port: u16,
}

impl Target {
    /// A target; port 0 is refused.
    ///
    /// # Errors
    /// [`HostError::Port`] if the port is 0.
    pub fn new(host: Host, port: u16) -> Result<Self, HostError> {
        if port == 0 { Err(HostError::Port) } else { Ok(Self { host, port }) }
    }

    /// Parses `host:port`. Without a port, `default_port` counts.
    ///
    /// # Errors
    /// As [`Host::parse`], and if there is no valid port.
    pub fn parse(text: &str, default_port: Option<u16>) -> Result<Self, HostError> {
        let (host, port) = split_port(text);
        let host = Host::parse(host)?;
        let port = match port {
            Some(port) => parse_port(port)?,
            None => default_port.ok_or(HostError::Port)?,
        };
        Self::new(host, port)
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// Splits at the last colon that is not inside brackets.
pub(crate) fn split_port(text: &str) -> (&str, Option<&str>) {
    match text.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, Some(port)),
        _ => (text, None),
    }
}

pub(crate) fn parse_port(text: &str) -> Result<u16, HostError> {
    // `u16::from_str` accepts a plus sign.
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let port = text.parse().ok().filter(|port| digits && *port != 0);
    port.ok_or(HostError::Port)
}
