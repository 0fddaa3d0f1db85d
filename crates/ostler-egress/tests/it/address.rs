//! Which addresses may be dialled, without a network but the system's own.

use std::net::{IpAddr, UdpSocket};

use ostler_egress::address::AddressKind::{
    self, LinkLocal, Loopback, Metadata, Multicast, Private, Public, Reserved, Shared, Unspecified,
};
use ostler_egress::{HostRules, Network as _, SystemNetwork};

const KINDS: &[(AddressKind, &[&str])] = &[
    (Unspecified, &["0.0.0.0", "0.1.2.3", "::", "::ffff:0.0.0.0"]),
    (
        Loopback,
        &[
            "127.0.0.1",
            "127.255.255.254",
            "::1",
            "::ffff:127.0.0.1",
            "64:ff9b::127.0.0.1",
            "2002:7f00:1::1",
        ],
    ),
    (
        Private,
        &[
            "10.0.0.1",
            "172.16.0.1",
            "172.31.255.255",
            "192.168.1.1",
            "fc00::1",
            "fdff::1",
            "::ffff:10.0.0.1",
            "64:ff9b::192.168.0.1",
            "2002:a00:1::",
        ],
    ),
    (Shared, &["100.64.0.1", "100.127.255.255", "::ffff:100.64.0.1"]),
    (
        Metadata,
        &[
            "169.254.169.254",
            "169.254.170.2",
            "100.100.100.200",
            "168.63.129.16",
            "192.0.0.192",
            "fd00:ec2::254",
            "fd20:ce::254",
            "::ffff:169.254.169.254",
            "64:ff9b::169.254.169.254",
            "2002:a9fe:a9fe::1",
        ],
    ),
    (LinkLocal, &["169.254.0.1", "fe80::1", "febf::1"]),
    (Multicast, &["224.0.0.1", "239.255.255.255", "ff02::1"]),
    (
        Reserved,
        &[
            "192.0.2.1",
            "198.51.100.1",
            "203.0.113.1",
            "198.18.0.1",
            "198.19.255.255",
            "192.88.99.1",
            "240.0.0.1",
            "255.255.255.255",
            "::127.0.0.1",
            "::2",
            "::ffff:0:8.8.8.8",
            "64:ff9b:1::8.8.8.8",
            "100::1",
            "2001::1",
            "2001:db8::1",
            "3fff::1",
            "5f00::1",
            "fec0::1",
        ],
    ),
    (
        Public,
        &[
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
            "172.15.255.255",
            "172.32.0.1",
            "192.0.1.1",
            "192.169.0.1",
            "198.17.255.255",
            "223.255.255.255",
            "::ffff:8.8.8.8",
            "64:ff9b::8.8.8.8",
            "2001:200::1",
            "2606:4700::1111",
            "2002:808:808::1",
        ],
    ),
];

// Mutant: `embedded` always `None`; `[168, 63, 129, 16]` left out.
#[test]
fn every_address_has_its_kind_also_inside_another_one() {
    for (kind, addresses) in KINDS {
        for address in *addresses {
            assert_eq!(AddressKind::of(address.parse().unwrap()), *kind, "{address}");
        }
    }
}

fn may_dial(rules: &HostRules, address: &str, local: bool, own: bool) -> bool {
    rules.check_address(address.parse().unwrap(), 80, local, own).is_ok()
}

// Mutant: `check_address` always Ok; `local` allows every kind.
#[test]
fn only_public_addresses_are_dialled_and_local_ones_by_a_rule_for_them() {
    let rules = HostRules::new();
    for (kind, addresses) in KINDS {
        for address in *addresses {
            let public = *kind == Public;
            assert_eq!(may_dial(&rules, address, false, false), public, "{address}");
            let local = matches!(kind, Public | Loopback | Private | Shared);
            assert_eq!(may_dial(&rules, address, true, false), local, "{address}");
            assert!(!may_dial(&rules, address, false, true), "{address}");
        }
    }
}

#[test]
fn a_list_that_names_an_address_allows_or_denies_it_whatever_name_leads_there() {
    let rules = HostRules::from_lists(["10.0.0.1:80", "169.254.169.254"], ["8.8.8.8"]).unwrap();
    for address in ["10.0.0.1", "::ffff:10.0.0.1", "169.254.169.254"] {
        assert!(may_dial(&rules, address, false, false), "{address}");
    }
    for address in ["10.0.0.2", "8.8.8.8", "::ffff:8.8.8.8", "2002:808:808::1", "64:ff9b::8.8.8.8"]
    {
        assert!(!may_dial(&rules, address, false, false), "{address}");
    }
    let other_port = rules.check_address("10.0.0.1".parse().unwrap(), 81, false, false);
    assert!(other_port.is_err());
}

// Mutant: `is_own` always false.
#[test]
fn the_system_knows_its_own_addresses() {
    let is_own = |address: IpAddr| SystemNetwork.is_own(address).unwrap();
    assert!(is_own("127.0.0.1".parse().unwrap()));
    assert!(!is_own("93.184.216.34".parse().unwrap()));
    // The address of the interface to the internet, if there is one.
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    if socket.connect("93.184.216.34:9").is_ok() {
        assert!(is_own(socket.local_addr().unwrap().ip()));
    }
}
