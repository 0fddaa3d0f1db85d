//! The list of tricks that programs try on an allow-list proxy, each at every way in.

use ostler_egress::{HostOutcome, HostRules};

use crate::support::{Sandbox, usual_rules};

/// Hosts that are not on the list, however much they look like it.
const REFUSED: &[&str] = &[
    "unlisted.test",
    "allowed.test.evil.test",
    "evil-allowed.test",
    "evilallowed.test",
    "evilwild.test",
    "wild.test",
    "x.wild.test.evil.test",
    "evil.wild.test",
    "EVIL.wild.test",
    "allowed.test.",
    "ALLOWED.test.",
    "8.8.8.8",
    "127.0.0.1",
    "2130706433",
    "0177.0.0.1",
    "0x7f.0.0.1",
    "0x7f000001",
    "127.1",
    "[::1]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "169.254.169.254",
    "[fd00:ec2::254]",
    "localhost",
];

/// Hosts that have two readings. HTTP libraries refuse some of them before they are judged.
const MALFORMED: &[&str] = &[
    "allowed.test@evil.test",
    "evil.test@allowed.test",
    "allowed.test:80@evil.test",
    "evil.test\0.allowed.test",
    "allowed.test\0.evil.test",
    "evil.test#.allowed.test",
    "evil.test%2eallowed.test",
    "evil.test\\.allowed.test",
    "аllowed.test",
    "",
];

fn is_refused(answer: &str) -> bool {
    answer.starts_with("HTTP/1.1 403 ") || answer.starts_with("HTTP/1.1 400 ")
}

// Mutant: a suffix without its dot; case-sensitive names; `judge` that always allows (`*`).
#[tokio::test]
async fn no_trick_with_a_name_reaches_a_host_that_is_not_on_the_list() {
    let sandbox = Sandbox::start(usual_rules()).await;
    for host in REFUSED {
        let answer = sandbox.connect_to(&format!("{host}:80")).await;
        assert!(answer.starts_with("HTTP/1.1 403 "), "CONNECT {host}: {answer}");
        let answer = sandbox.get(host, "/secret?query").await;
        assert!(answer.starts_with("HTTP/1.1 403 "), "GET {host}: {answer}");
        assert_eq!(sandbox.socks(host.as_bytes(), 80).await, 2, "SOCKS5 {host}");
    }
    for host in MALFORMED {
        let answer = sandbox.connect_to(&format!("{host}:80")).await;
        assert!(is_refused(&answer), "CONNECT {host:?}: {answer}");
        let answer = sandbox.get(host, "/").await;
        assert!(is_refused(&answer), "GET {host:?}: {answer}");
        assert_eq!(sandbox.socks(host.as_bytes(), 80).await, 2, "SOCKS5 {host:?}");
    }
    assert_eq!(
        sandbox.network.resolved(),
        [""; 0],
        "names of refused hosts tell something to a name server"
    );
    assert_eq!(sandbox.network.dialled(), [""; 0]);
    // The same ways are open for hosts on the list, in upper case too.
    for host in ["allowed.test", "ALLOWED.test", "a.wild.test", "a.b.WILD.test"] {
        assert!(sandbox.get(host, "/").await.contains("fetched / for "), "{host}");
        assert_eq!(sandbox.socks(host.as_bytes(), 80).await, 0, "{host}");
    }
    assert_eq!(sandbox.network.dialled().len(), 8);
    assert!(sandbox.network.resolved().iter().all(|name| *name == name.to_lowercase()));
}

// Mutant: `check_address` always Ok, so nothing is checked after a name is resolved.
#[tokio::test]
async fn an_allowed_name_that_leads_inside_is_refused() {
    let rules = usual_rules().allow("198.41.0.9:81").unwrap();
    let sandbox = Sandbox::start(rules).await;
    for addresses in [
        &["127.0.0.1"][..],
        &["10.1.2.3"],
        &["169.254.169.254"],
        &["100.64.0.1"],
        &["0.0.0.0"],
        &["::1"],
        &["::ffff:127.0.0.1"],
        &["64:ff9b::127.0.0.1"],
        &["fd00:ec2::254"],
        // An address of this machine that looks public.
        &["198.41.0.4"],
        &["127.0.0.1", "10.0.0.1", "::1"],
    ] {
        sandbox.network.name("allowed.test", addresses);
        let answer = sandbox.connect_to("allowed.test:80").await;
        let first: std::net::IpAddr = addresses[0].parse().unwrap();
        let reason = format!("it leads to {}", first.to_canonical());
        assert!(answer.starts_with("HTTP/1.1 403 ") && answer.contains(&reason), "{answer}");
        assert!(sandbox.get("allowed.test", "/").await.starts_with("HTTP/1.1 403 "));
        assert_eq!(sandbox.socks(b"allowed.test", 80).await, 2);
    }
    assert_eq!(sandbox.network.dialled(), [""; 0]);
}

// Mutant: every resolved address is dialled if one of them is allowed.
#[tokio::test]
async fn of_several_addresses_only_the_checked_ones_are_dialled() {
    let sandbox = Sandbox::start(usual_rules()).await;
    sandbox.network.name("allowed.test", &["127.0.0.1", "93.184.216.34", "10.0.0.1"]);
    assert!(sandbox.get("allowed.test", "/").await.contains("fetched / for allowed.test"));
    assert_eq!(sandbox.network.dialled(), ["93.184.216.34:80"]);
    assert_eq!(sandbox.network.resolved(), ["allowed.test"], "it is resolved once");
}

#[tokio::test]
async fn a_name_for_a_local_registry_needs_a_rule_for_local_addresses() {
    let sandbox = Sandbox::start(usual_rules().allow_local("registry.test:8080").unwrap()).await;
    sandbox.network.name("registry.test", &["127.0.0.1"]);
    assert!(
        sandbox.get("registry.test:8080", "/").await.contains("fetched / for registry.test:8080")
    );
    assert!(sandbox.get("registry.test:8081", "/").await.starts_with("HTTP/1.1 403 "));
    // Not even such a rule leads to credentials.
    sandbox.network.name("registry.test", &["169.254.169.254"]);
    assert!(sandbox.get("registry.test:8080", "/").await.starts_with("HTTP/1.1 403 "));
    assert_eq!(sandbox.network.dialled(), ["127.0.0.1:8080"]);
}

// Mutant: only the first request of a connection is judged.
#[tokio::test]
async fn a_redirect_inward_is_passed_on_and_its_target_refused() {
    let sandbox = Sandbox::start(usual_rules()).await;
    sandbox.server.page(
        "/away",
        "HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/latest\r\nContent-Length: 0\r\n\r\n",
    );
    // Both requests on one connection.
    let answer = sandbox
        .send(
            "GET http://allowed.test/away HTTP/1.1\r\nHost: allowed.test\r\n\r\n\
             GET http://169.254.169.254/latest HTTP/1.1\r\nHost: 169.254.169.254\r\nConnection: close\r\n\r\n",
        )
        .await;
    assert!(answer.starts_with("HTTP/1.1 302 ") && answer.contains("HTTP/1.1 403 "), "{answer}");
    assert_eq!(sandbox.network.dialled().len(), 1);
    assert_eq!(sandbox.server.heads().len(), 1);
}

// Mutant: `judge` that allows if the list is empty.
#[tokio::test]
async fn an_empty_list_allows_nothing_and_says_so() {
    for rules in [HostRules::new(), HostRules::new().strict_allowlist(true)] {
        let sandbox = Sandbox::start(rules).await;
        let mut events = sandbox.proxy.events();
        let answer = sandbox.connect_to("allowed.test:443").await;
        assert!(answer.starts_with("HTTP/1.1 403 "), "{answer}");
        assert!(answer.contains("sandbox.network.allowedDomains"), "{answer}");
        assert_eq!(sandbox.socks(b"allowed.test", 443).await, 2);
        let (events, dropped) = events.take();
        assert_eq!((events.len(), dropped), (2, 0));
        assert!(events.iter().all(|it| it.outcome == HostOutcome::Denied && it.port == 443));
        assert_eq!(sandbox.network.dialled(), [""; 0]);
    }
}

#[tokio::test]
async fn a_refusal_names_the_host_the_reason_and_the_way_out_but_never_the_url() {
    let sandbox = Sandbox::start(usual_rules()).await;
    let mut events = sandbox.proxy.events();
    let answer = sandbox.get("unlisted.test:8080", "/secret?token=x").await;
    let text = "The sandbox refused a connection to unlisted.test:8080: it is not in \
        sandbox.network.allowedDomains. To allow it, add \"unlisted.test\" to sandbox.network.allowedDomains, or ";
    assert!(answer.contains(text), "{answer}");
    let status = "proxy-status: ostler; error=http_request_denied; details=\"it is not in sandbox.network.allowedDomains\"";
    assert!(answer.to_lowercase().contains(&status.to_lowercase()), "{answer}");
    let answer = sandbox.get("evil.wild.test", "/").await;
    assert!(answer.contains("remove that entry from sandbox.network.deniedDomains"), "{answer}");
    let (events, _) = events.take();
    assert_eq!(events[0].host, "unlisted.test");
    assert!(!format!("{events:?}").contains("secret"), "{events:?}");
}
