//! Which addresses are outside: reachable by everyone on the internet, and not part of this machine or its network.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What an address is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AddressKind {
    /// On the internet.
    Public,
    /// This machine.
    Loopback,
    /// A private network (RFC 1918, `fc00::/7`).
    Private,
    /// A provider's own network (`100.64.0.0/10`).
    Shared,
    /// A cloud's metadata service, which gives out credentials.
    Metadata,
    /// A link-local address.
    LinkLocal,
    /// A multicast address.
    Multicast,
    /// `0.0.0.0/8` or `::`, which Linux takes for this machine.
    Unspecified,
    /// Reserved, for documentation, or an obsolete way to write IPv4 addresses.
    Reserved,
}

impl AddressKind {
    /// The kind of an address. An IPv6 address that leads to an IPv4 address (mapped, NAT64, 6to4) has the kind of that.
    #[must_use]
    pub fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => of_v4(address),
            IpAddr::V6(address) => match embedded(address) {
                Some(inner) => of_v4(inner),
                None => of_v6(address),
            },
        }
    }

    /// Whether a rule for local addresses covers it. The other kinds that are not public need a rule that names the address itself.
    #[must_use]
    pub fn is_local(self) -> bool {
        matches!(self, Self::Loopback | Self::Private | Self::Shared)
    }
}

impl fmt::Display for AddressKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Public => "a public address",
            Self::Loopback => "an address of this machine",
            Self::Private => "an address of a private network",
            Self::Shared => "an address of a provider's own network",
            Self::Metadata => "the address of a cloud's metadata service",
            Self::LinkLocal => "a link-local address",
            Self::Multicast => "a multicast address",
            Self::Unspecified => "an unspecified address",
            Self::Reserved => "a reserved address",
        })
    }
}

/// Whether two addresses lead to the same place, however they are written.
#[must_use]
pub(crate) fn is_same(one: IpAddr, other: IpAddr) -> bool {
    innermost(one) == innermost(other)
}

/// The IPv4 address that an IPv6 address leads to, or the address itself.
fn innermost(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V6(v6) => embedded(v6).map_or(address, IpAddr::V4),
        IpAddr::V4(_) => address,
    }
}

/// The IPv4 address inside an IPv6 address: mapped, translated (NAT64), tunnelled (6to4).
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let (high, low) = match address.segments() {
        [0, 0, 0, 0, 0, 0xffff, high, low] => (high, low),
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => (high, low),
        [0x2002, high, low, ..] => (high, low),
        _ => return None,
    };
    let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
    Some(Ipv4Addr::new(a, b, c, d))
}

fn of_v4(address: Ipv4Addr) -> AddressKind {
    match address.octets() {
        [0, ..] => AddressKind::Unspecified,
        [127, ..] => AddressKind::Loopback,
        // Amazon and most others; Amazon's containers; Alibaba; Azure; Oracle.
        [169, 254, 169, 254] | [169, 254, 170, 2] | [100, 100, 100, 200] => AddressKind::Metadata,
        [168, 63, 129, 16] | [192, 0, 0, 192] => AddressKind::Metadata,
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => AddressKind::Private,
        [100, 64..=127, ..] => AddressKind::Shared,
        [169, 254, ..] => AddressKind::LinkLocal,
        [192, 0, 0, _] | [192, 0, 2, _] | [192, 88, 99, _] | [198, 18..=19, ..] => {
            AddressKind::Reserved
        }
        [198, 51, 100, _] | [203, 0, 113, _] | [240..=255, ..] => AddressKind::Reserved,
        [224..=239, ..] => AddressKind::Multicast,
        _ => AddressKind::Public,
    }
}

fn of_v6(address: Ipv6Addr) -> AddressKind {
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0] => AddressKind::Unspecified,
        [0, 0, 0, 0, 0, 0, 0, 1] => AddressKind::Loopback,
        // Amazon, Google.
        [0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254] | [0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254] => {
            AddressKind::Metadata
        }
        [0xfc00..=0xfdff, ..] => AddressKind::Private,
        [0xfe80..=0xfebf, ..] => AddressKind::LinkLocal,
        [0xff00..=0xffff, ..] => AddressKind::Multicast,
        // Special purposes (Teredo and others); documentation.
        [0x2001, 0..=0x1ff, ..] | [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => {
            AddressKind::Reserved
        }
        [0x2000..=0x3fff, ..] => AddressKind::Public,
        // IPv4-compatible addresses (`::127.0.0.1`), `64:ff9b:1::/48`, and everything that is not assigned.
        _ => AddressKind::Reserved,
    }
}
