//! The verdict on targets, without a network.

use ostler_egress::rules::DenyReason;
use ostler_egress::{Host, HostError, HostPattern, HostRules, Target, Verdict};

fn target(text: &str) -> Target {
    Target::parse(text, Some(443)).unwrap()
}

fn is_allowed(rules: &HostRules, text: &str) -> bool {
    matches!(Target::parse(text, Some(443)).map(|it| rules.judge(&it)), Ok(Verdict::Allow { .. }))
}

#[track_caller]
fn check(patterns: &[&str], allowed: &[&str], refused: &[&str]) {
    let rules = HostRules::from_lists(patterns, [""; 0]).unwrap().strict_allowlist(true);
    for text in allowed {
        assert!(is_allowed(&rules, text), "{patterns:?} should allow {text}");
    }
    for text in refused {
        assert!(!is_allowed(&rules, text), "{patterns:?} should refuse {text}");
    }
}

// Mutant: `strip_suffix(end).is_some()` in `covers`, without the dot; names compared without `to_ascii_lowercase`.
#[test]
fn a_pattern_covers_exactly_its_names() {
    check(
        &["example.com"],
        &["example.com", "EXAMPLE.Com", "example.com:443", "example.com:80"],
        &[
            "www.example.com",
            "example.com.evil.test",
            "evil-example.com",
            "evilexample.com",
            "example.co",
            "xample.com",
            "example.com.",
            "com",
        ],
    );
    check(
        &["*.Example.com"],
        &["www.example.com", "a.b.example.com", "WWW.EXAMPLE.COM"],
        &[
            "example.com",
            "evilexample.com",
            "evil-example.com",
            "www.example.com.evil.test",
            ".example.com",
            "www.example.com.",
        ],
    );
    check(&["example.com:443"], &["example.com:443"], &["example.com:80", "example.com:4430"]);
    check(&["*.example.com:8443"], &["a.example.com:8443"], &["a.example.com:443"]);
    check(
        &["127.0.0.1:8080"],
        &["127.0.0.1:8080", "[::ffff:127.0.0.1]:8080"],
        &["127.0.0.1:80", "127.0.0.2:8080", "[::1]:8080"],
    );
    check(&["[2606:4700::1111]:443"], &["[2606:4700:0::1111]:443"], &["[2606:4700::1112]:443"]);
    check(&["::1"], &["[::1]:1", "[0:0:0:0:0:0:0:1]:2"], &["127.0.0.1:1"]);
    // Tunnelled to 8.8.8.8, but another machine.
    check(&["8.8.8.8"], &["8.8.8.8"], &["[2002:808:808::1]", "[64:ff9b::8.8.8.8]"]);
    check(&[], &[], &["example.com", "8.8.8.8", "localhost"]);
}

#[test]
fn denied_is_stronger_than_allowed_in_every_case_and_form() {
    let rules = HostRules::from_lists(
        ["*.example.com", "8.8.8.8"],
        ["Evil.example.com", "*.bad.example.com", "x.example.com:25", "8.8.8.8"],
    )
    .unwrap();
    for text in [
        "evil.example.com",
        "EVIL.example.COM",
        "a.bad.example.com",
        "x.example.com:25",
        "8.8.8.8",
        "[::ffff:8.8.8.8]",
        "[2002:808:808::1]",
        "[64:ff9b::8.8.8.8]",
    ] {
        let verdict = rules.judge(&target(text));
        assert!(matches!(verdict, Verdict::Deny(DenyReason::Denied(_))), "{text}: {verdict:?}");
    }
    for text in ["a.evil.example.com", "bad.example.com", "x.example.com:26"] {
        assert_eq!(rules.judge(&target(text)), Verdict::Allow { local: false }, "{text}");
    }
    let nothing = HostRules::from_lists(["a.test"], ["*"]).unwrap();
    assert!(!is_allowed(&nothing, "a.test"));
}

#[test]
fn names_on_neither_list_are_a_question_unless_the_list_is_strict_and_addresses_never_are() {
    let rules = HostRules::from_lists(["a.test"], ["b.test"]).unwrap();
    assert_eq!(rules.judge(&target("c.test")), Verdict::Ask);
    assert_eq!(rules.judge(&target("9.9.9.9")), Verdict::Deny(DenyReason::Address));
    let strict = rules.strict_allowlist(true);
    assert_eq!(strict.judge(&target("c.test")), Verdict::Deny(DenyReason::NotAllowed));
    let empty = HostRules::new().strict_allowlist(true);
    assert_eq!(empty.judge(&target("c.test")), Verdict::Deny(DenyReason::NothingAllowed));
}

#[test]
fn every_host_is_allowed_only_by_a_separate_call() {
    assert!(HostRules::new().allow("*").is_err());
    assert!(HostRules::new().allow("*:443").is_err());
    assert!(HostRules::new().allow_local("*").is_err());
    let rules = HostRules::new().allow_every_host().deny("*.evil.test").unwrap();
    assert!(is_allowed(&rules, "any.test") && is_allowed(&rules, "9.9.9.9"));
    assert!(!is_allowed(&rules, "a.evil.test"));
}

// Mutant: `is_number` always false; the check for `@` removed; the check for a dot at the end removed.
#[test]
fn a_host_with_two_readings_is_refused() {
    let long_label = "a".repeat(64);
    let long_name = ["a".repeat(62).as_str(); 5].join(".");
    for (text, error) in [
        ("", HostError::Empty),
        ("allowed.test@evil.test", HostError::UserInfo),
        ("evil.test%40allowed.test", HostError::Character('%')),
        ("evil.test\0.allowed.test", HostError::Control),
        ("evil.test\r\nHost: allowed.test", HostError::Control),
        ("evil.test allowed.test", HostError::Control),
        ("evil.test\u{7f}", HostError::Control),
        ("allowed.test.", HostError::TrailingDot),
        ("allowed.test..", HostError::TrailingDot),
        (".allowed.test", HostError::EmptyLabel),
        ("allowed..test", HostError::EmptyLabel),
        (".", HostError::EmptyLabel),
        ("аllowed.test", HostError::NotAscii),
        ("allowed。test", HostError::NotAscii),
        ("allowed.test/evil", HostError::Character('/')),
        ("evil.test\\allowed.test", HostError::Character('\\')),
        ("evil.test#allowed.test", HostError::Character('#')),
        ("evil.test?allowed.test", HostError::Character('?')),
        ("*.allowed.test", HostError::Character('*')),
        ("-allowed.test", HostError::Hyphen),
        ("allowed-.test", HostError::Hyphen),
        (long_label.as_str(), HostError::TooLong),
        (long_name.as_str(), HostError::TooLong),
        ("2130706433", HostError::AddressSpelling),
        ("0x7f000001", HostError::AddressSpelling),
        ("0X7F000001", HostError::AddressSpelling),
        ("017700000001", HostError::AddressSpelling),
        ("0177.0.0.1", HostError::AddressSpelling),
        ("0x7f.0.0.1", HostError::AddressSpelling),
        ("127.0.0.0x1", HostError::AddressSpelling),
        ("127.1", HostError::AddressSpelling),
        ("127.0.1", HostError::AddressSpelling),
        ("127.0.0.01", HostError::AddressSpelling),
        ("127.0.0.1.", HostError::TrailingDot),
        ("127.0.0.256", HostError::AddressSpelling),
        ("127.0.0.1.2", HostError::AddressSpelling),
        ("allowed.test.127", HostError::AddressSpelling),
        ("0", HostError::AddressSpelling),
        ("0x", HostError::AddressSpelling),
        ("::1", HostError::Character(':')),
        ("[::1", HostError::Ipv6),
        ("[::1%25lo]", HostError::Ipv6),
        ("[127.0.0.1]", HostError::Ipv6),
        ("[::1]allowed.test", HostError::Ipv6),
    ] {
        assert_eq!(Host::parse(text), Err(error), "{text:?}");
    }
    assert_eq!(Host::from_bytes(b"\xff\xfe.test"), Err(HostError::NotAscii));
}

#[test]
fn ports_are_decimal_numbers_above_zero() {
    for text in [
        "a.test:0",
        "a.test:65536",
        "a.test:+80",
        "a.test:",
        "a.test: 80",
        "a.test:80x",
        "a.test:0x50",
    ] {
        assert_eq!(Target::parse(text, Some(80)), Err(HostError::Port), "{text}");
    }
    assert_eq!(Target::parse("a.test", None), Err(HostError::Port));
    assert_eq!(Target::parse("[::1]", Some(80)).unwrap().to_string(), "[::1]:80");
    assert_eq!(Target::parse("A.test:8080", None).unwrap().to_string(), "a.test:8080");
}

#[test]
fn patterns_that_mean_something_else_than_they_say_are_errors_that_name_them() {
    for text in [
        "",
        "https://example.com",
        "example.com/path",
        "user@example.com",
        "*example.com",
        "a.*.com",
        "example.*",
        "**.example.com",
        "*.*.example.com",
        "*.127.0.0.1",
        "*.",
        ".example.com",
        "example.com.",
        "example.com:http",
        "example.com:0",
        "exämple.com",
        "2130706433",
        "*.com",
    ] {
        let error = HostRules::new().allow(text).unwrap_err().to_string();
        assert!(error.contains(&format!("{text:?}")) && error.contains("Examples: "), "{error}");
    }
    // A denied top-level domain, and a local one that the operator owns.
    assert!(HostRules::new().deny("*.com").is_ok());
    assert!(HostRules::new().allow_local("*.internal").is_ok());
    for text in ["example.com", "*.example.com:8443", "*", "127.0.0.1:8080", "[::1]:80"] {
        assert_eq!(HostPattern::parse(text).unwrap().to_string(), text);
    }
}
