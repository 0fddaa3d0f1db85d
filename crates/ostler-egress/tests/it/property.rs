//! No host outside the list is ever resolved or dialled, whatever a program sends.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::support::{Sandbox, usual_rules};

/// What the rules of [`usual_rules`] mean, written a second time in another way.
fn is_on_the_list(name: &str) -> bool {
    let labels: Vec<&str> = name.split('.').collect();
    match labels.as_slice() {
        ["allowed", "test"] => true,
        ["evil", "wild", "test"] => false,
        [below @ .., "wild", "test"] => !below.is_empty(),
        _ => false,
    }
}

/// Hosts near the list: names of it and pieces of names, put together with what has confused parsers.
fn host() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("allowed.test"),
        Just("wild.test"),
        Just("evil.wild.test"),
        Just("ALLOWED.TEST"),
        Just("WiLd.tEsT"),
        Just("evil.test"),
        Just("allowed"),
        Just("test"),
        Just("a"),
        Just("127.0.0.1"),
        Just("0x7f.1"),
        Just("2130706433"),
        Just("[::1]"),
        Just("xn--llowed-4uf.test"),
    ];
    let glue = prop_oneof![
        4 => Just("."),
        2 => Just(""),
        1 => prop_oneof![
            Just("-"), Just("@"), Just("\0"), Just("%00"), Just("#"), Just("/"), Just("\\"), Just("?"), Just(":"),
            Just(".."), Just(" "), Just("\t"), Just("\r\n"), Just("。"), Just("_"), Just(";"), Just(","), Just("*"),
            Just(":80"), Just("%2e"),
        ],
    ];
    let parts = prop::collection::vec((glue.clone(), piece), 1..4);
    let assembled = (parts, glue).prop_map(|(parts, end)| {
        let text: String = parts.iter().flat_map(|(glue, piece)| [*glue, *piece]).collect();
        let text = text + end;
        // Most begin with a piece.
        text.strip_prefix('.').map_or(text.clone(), ToOwned::to_owned)
    });
    let listed =
        prop::sample::select(vec!["allowed.test", "ALLOWED.test", "a.wild.test", "b.A.WiLd.test"]);
    prop_oneof![8 => assembled, 1 => any::<String>(), 3 => listed.prop_map(ToOwned::to_owned)]
}

fn address() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "93.184.216.34",
        "127.0.0.1",
        "10.0.0.1",
        "169.254.169.254",
        "::1",
        "::ffff:127.0.0.1",
        "2606:4700::1111",
        "198.41.0.4",
        "0.0.0.0",
    ])
}

// Mutant: a suffix without its dot; no check of resolved addresses; names compared with their case.
#[test]
fn whatever_a_program_sends_only_hosts_on_the_list_are_dialled_at_public_addresses() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let sandbox = runtime.block_on(Sandbox::start(usual_rules()));
    let cases = if std::env::var_os("OSTLER_FULL").is_some() { 20_000 } else { 400 };
    let mut runner =
        TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    let input = (host(), prop::collection::vec(address(), 1..3));
    let tried = std::cell::Cell::new((0, 0));
    let result = runner.run(&input, |(host, addresses)| {
        let lower = host.to_lowercase();
        sandbox.network.name(&lower, &addresses);
        let before = (sandbox.network.resolved().len(), sandbox.network.dialled().len());
        runtime.block_on(async {
            sandbox.get(&host, "/").await;
            sandbox
                .send(format!("CONNECT {host}:80 HTTP/1.1\r\nConnection: close\r\n\r\n\r\n\r\n"))
                .await;
            if host.len() < 256 {
                sandbox.socks(host.as_bytes(), 80).await;
            }
        });
        let resolved = sandbox.network.resolved().split_off(before.0);
        let dialled = sandbox.network.dialled().split_off(before.1);
        for name in &resolved {
            prop_assert!(is_on_the_list(name), "{host:?} was resolved as {name:?}");
        }
        for address in &dialled {
            let public = ["93.184.216.34:80", "[2606:4700::1111]:80"].contains(&address.as_str());
            prop_assert!(public, "{host:?} led to {address}");
        }
        prop_assert!(dialled.len() <= resolved.len(), "dialled without a name");
        let plain =
            |label: &str| !label.is_empty() && label.bytes().all(|it| it.is_ascii_alphanumeric());
        if is_on_the_list(&lower) && lower.split('.').all(plain) {
            // The other direction: nothing that is allowed is refused by name.
            prop_assert!(resolved.len() >= 2, "{host:?} is on the list and was refused");
        }
        let (allowed, refused) = tried.get();
        tried.set(if resolved.is_empty() {
            (allowed, refused + 1)
        } else {
            (allowed + 1, refused)
        });
        Ok(())
    });
    result.unwrap();
    let (allowed, refused) = tried.get();
    assert!(allowed >= 20 && refused >= 100, "the cases are one-sided: {allowed} and {refused}");
}
