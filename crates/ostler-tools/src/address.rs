//! Internal network addresses: this machine, private networks, a cloud's own services.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Why nothing is fetched from an address without the user's permission; `None` for public addresses.
pub(crate) fn inside(address: IpAddr) -> Option<&'static str> {
    match address {
        IpAddr::V4(address) => inside_v4(address),
        IpAddr::V6(address) => inside_v6(address),
    }
}

fn inside_v4(address: Ipv4Addr) -> Option<&'static str> {
    let why = match address.octets() {
        [0, ..] => "an unspecified address",
        [127, ..] => "this machine",
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => "an address of a private network",
        [100, 64..=127, ..] => "an address of a provider's own network",
        [169, 254, ..] => "a link-local address, where clouds keep their credentials",
        // A cloud's platform services, on an address that looks public.
        [168, 63, 129, 16] => "a cloud's own service",
        [192, 0, 0, _] | [192, 0, 2, _] | [192, 88, 99, _] | [198, 18..=19, ..] => {
            "a reserved address"
        }
        [198, 51, 100, _] | [203, 0, 113, _] | [240..=255, ..] => "a reserved address",
        [224..=239, ..] => "a multicast address",
        _ => return None,
    };
    Some(why)
}

fn inside_v6(address: Ipv6Addr) -> Option<&'static str> {
    let segments = address.segments();
    let embedded = |high: u16, low: u16| {
        let ([a, b], [c, d]) = (high.to_be_bytes(), low.to_be_bytes());
        inside_v4(Ipv4Addr::new(a, b, c, d))
    };
    match segments {
        [0, 0, 0, 0, 0, 0, 0, 0] => Some("an unspecified address"),
        [0, 0, 0, 0, 0, 0, 0, 1] => Some("this machine"),
        // IPv6 forms of an IPv4 address: mapped, translated (NAT64), tunnelled (6to4).
        [0, 0, 0, 0, 0, 0xffff, high, low] => embedded(high, low),
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => embedded(high, low),
        [0x2002, high, low, ..] => embedded(high, low),
        [0xfc00..=0xfdff, ..] => Some("an address of a private network"),
        [0xfe80..=0xfebf, ..] => Some("a link-local address"),
        [0xff00..=0xffff, ..] => Some("a multicast address"),
        [0x2001, 0..=0x1ff, ..] | [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => {
            Some("a reserved address")
        }
        [0x2000..=0x3fff, ..] => None,
        _ => Some("a reserved address"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_public_addresses_are_external() {
        for address in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "100.64.0.1",
            "100.100.100.200",
            "100.127.255.255",
            "127.0.0.1",
            "127.255.255.254",
            "168.63.129.16",
            "169.254.0.1",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.192",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::2",
            "::127.0.0.1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::ffff:169.254.169.254",
            "::ffff:0:8.8.8.8",
            "64:ff9b::127.0.0.1",
            "64:ff9b::169.254.169.254",
            "64:ff9b:1::8.8.8.8",
            "100::1",
            "2001::1",
            "2001:0:4136:e378::1",
            "2001:10::1",
            "2001:db8::1",
            "2002:7f00:1::1",
            "2002:a9fe:a9fe::1",
            "3fff::1",
            "5f00::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ] {
            assert!(inside(address.parse().unwrap()).is_some(), "{address}");
        }
        for address in [
            "1.1.1.1",
            "8.8.8.8",
            "9.255.255.255",
            "11.0.0.1",
            "100.63.255.255",
            "100.128.0.1",
            "126.255.255.255",
            "128.0.0.1",
            "168.63.129.17",
            "169.253.255.255",
            "169.255.0.1",
            "172.15.255.255",
            "172.32.0.1",
            "192.0.1.1",
            "192.167.255.255",
            "192.169.0.1",
            "198.17.255.255",
            "198.20.0.1",
            "223.255.255.255",
            "::ffff:8.8.8.8",
            "64:ff9b::8.8.8.8",
            "2001:200::1",
            "2001:4860:4860::8888",
            "2002:808:808::1",
            "2606:4700::1111",
            "3ffe::1",
        ] {
            assert_eq!(inside(address.parse().unwrap()), None, "{address}");
        }
    }
}
