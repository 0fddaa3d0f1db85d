//! Random nested commands: every part must be found.

use ostler_shell::{is_harmless, literal, parts};
use proptest::prelude::*;

/// A command, and whether it would run the marker.
fn nested() -> impl Strategy<Value = (String, bool)> {
    let leaf = prop_oneof![
        Just(("ls -la".to_owned(), false)),
        Just(("echo 'marker x'".to_owned(), false)),
        Just(("cat a.txt".to_owned(), false)),
        Just(("git status".to_owned(), false)),
        Just(("marker x".to_owned(), true)),
        Just(("m''arker \"y\"".to_owned(), true)),
    ];
    leaf.prop_recursive(5, 24, 2, |inner| {
        prop_oneof![
            (inner.clone(), inner.clone(), joint())
                .prop_map(|(a, b, joint)| (format!("{}{joint}{}", a.0, b.0), a.1 || b.1)),
            (inner.clone(), frame())
                .prop_map(|(a, (before, after))| (format!("{before}{}{after}", a.0), a.1)),
            inner.prop_map(|a| (format!("bash -c '{}'", a.0.replace('\'', "'\\''")), a.1)),
        ]
    })
}

fn joint() -> impl Strategy<Value = &'static str> {
    prop_oneof![
        Just(" && "),
        Just(" || "),
        Just("; "),
        Just(" | "),
        Just("\n"),
        Just(" & "),
        Just(" |& ")
    ]
}

fn frame() -> impl Strategy<Value = (&'static str, &'static str)> {
    prop_oneof![
        Just(("echo $(", ")")),
        Just(("echo \"a $(", ") b\"")),
        Just(("(", ")")),
        Just(("{ ", "; }")),
        Just(("if ", "; then ls; fi")),
        Just(("if ls; then ", "; fi")),
        Just(("for i in 1 2; do ", "; done")),
        Just(("while ", "; do ls; done")),
        Just(("case a in a) ", ";; esac")),
        Just(("cat <(", ")")),
        Just(("x=$(", ")")),
        Just(("echo ${x:-$(", ")}")),
        Just(("TZ=$(", ") ls")),
        Just(("f() { ", "; }")),
        Just(("timeout 5 echo $(", ")")),
        Just(("ls # comment\n", "")),
        Just(("cat <<'E'\nmarker\nE\n", "")),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_nested_part_is_missed((command, has_marker) in nested()) {
        let Ok(judged) = parts(&command) else { return Ok(()) };
        let found = judged.parts.iter().any(|part| part.name() == "marker");
        prop_assert_eq!(found, has_marker, "{}", command);
        let is_harmless = literal(&command).is_ok_and(|list| list.parts.iter().all(is_harmless));
        prop_assert!(!is_harmless || !has_marker, "{}", command);
    }

    #[test]
    fn random_text_does_not_panic(command in "[a-z $(){};&|<>'\"`\\\\\n#=\\[\\]*~!]{0,40}") {
        let _ = parts(&command);
    }

    #[test]
    fn a_command_after_random_text_is_found_or_unclear(junk in "[a-z ${};&|<'\"`\\\\#=*~!-]{0,20}") {
        // Whatever the random text means to a shell, the last command must be found or the whole be unclear.
        let command = format!("{junk}\nmarker x");
        if let Ok(judged) = parts(&command) {
            let is_seen = judged.parts.iter().any(|part| part.source.contains("marker"));
            prop_assert!(is_seen || junk.ends_with('\\') || in_quotes(&junk), "{}", command);
        }
    }
}

fn in_quotes(junk: &str) -> bool {
    junk.contains(['\'', '"', '`', '<'])
}
