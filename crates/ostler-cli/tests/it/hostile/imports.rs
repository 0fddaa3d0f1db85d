//! Imports in the instructions of a project (`CLAUDE.md` and similar files).

use super::{SECRET, Stage};

/// The instruction files that a project can have.
const PLACES: &[&str] = &["CLAUDE.md", ".claude/CLAUDE.md", "CLAUDE.local.md"];

/// A way to reach the secret: the import, and how to prepare the project for it.
struct Import {
    text: &'static str,
    /// Whether the user's trust makes it work.
    works_with_trust: bool,
}

const IMPORTS: &[Import] = &[
    Import { text: "@~/.ssh/id_rsa", works_with_trust: true },
    Import { text: "@{outside}/home/.ssh/id_rsa", works_with_trust: true },
    Import { text: "@{outside}/project/../home/.ssh/id_rsa", works_with_trust: true },
    Import { text: "@{outside}/project/link.md", works_with_trust: true },
    Import { text: "@{outside}/project/folder/id_rsa", works_with_trust: true },
    Import { text: "@{outside}/project/docs/nested.md", works_with_trust: true },
    Import { text: "@/proc/self/environ", works_with_trust: false },
    Import { text: "@{outside}/project/environ", works_with_trust: false },
    Import { text: "@/dev/zero", works_with_trust: false },
    Import { text: "@{outside}/project/zero", works_with_trust: false },
    Import { text: "@{outside}/project/pipe", works_with_trust: false },
];

async fn stage() -> Stage {
    let stage = Stage::new().await;
    stage.write("home/.ssh/id_rsa", &format!("-----BEGIN {SECRET}"));
    stage.link("project/link.md", "../home/.ssh/id_rsa");
    stage.link("project/folder", "../home/.ssh");
    stage.write("project/docs/nested.md", "see @../../home/.ssh/id_rsa");
    stage.link("project/environ", "/proc/self/environ");
    stage.link("project/zero", "/dev/zero");
    stage.fifo("project/pipe");
    stage
}

// Mutant: `Boundary::inside` in `memory::load` replaced by `Boundary::anywhere`.
#[tokio::test(flavor = "multi_thread")]
async fn instructions_of_an_untrusted_project_import_nothing_from_outside() {
    for place in PLACES {
        for Import { text, .. } in IMPORTS {
            let stage = stage().await;
            let text =
                text.replace("{outside}", stage.path("").to_str().unwrap().trim_end_matches('/'));
            stage.write(&format!("project/{place}"), &format!("own words\n{text}\n"));
            let seen = stage.run(&[], "hello");
            assert!(!seen.shows_secret(), "{place}: {text}");
            assert!(seen.requests.contains("own words"), "{place}: {text}: {}", seen.ran.stderr);
            assert!(seen.ran.stderr.contains("left out"), "{place}: {text}: {}", seen.ran.stderr);
        }
    }
}

// Seen to fail with the checks of `KERNEL_FOLDERS` and of the file's type taken out of `Boundary`.
#[tokio::test(flavor = "multi_thread")]
async fn trust_allows_imports_from_outside_but_never_devices_pipes_and_proc() {
    for Import { text, works_with_trust } in IMPORTS {
        let stage = stage().await;
        let text =
            text.replace("{outside}", stage.path("").to_str().unwrap().trim_end_matches('/'));
        stage.write("project/CLAUDE.md", &format!("own words\n{text}\n"));
        let seen = stage.run(&["--trust-project"], "hello");
        assert_eq!(seen.shows_secret(), *works_with_trust, "{text}: {}", seen.ran.stderr);
        let is_reported = seen.ran.stderr.contains("left out");
        assert_eq!(is_reported, !works_with_trust, "{text}: {}", seen.ran.stderr);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_users_own_instructions_import_any_file_but_no_devices() {
    for Import { text, works_with_trust } in IMPORTS {
        let stage = stage().await;
        let text =
            text.replace("{outside}", stage.path("").to_str().unwrap().trim_end_matches('/'));
        stage.write("home/.claude/CLAUDE.md", &format!("own words\n{text}\n"));
        let seen = stage.run(&[], "hello");
        assert_eq!(seen.shows_secret(), *works_with_trust, "{text}: {}", seen.ran.stderr);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn instructions_may_be_links_and_imports_within_the_project() {
    let stage = Stage::new().await;
    stage.write("project/AGENTS.md", "shared words, see @docs/style.md");
    stage.write("project/docs/style.md", "use tabs");
    stage.link("project/CLAUDE.md", "AGENTS.md");
    let seen = stage.run(&[], "hello");
    let shows = |text: &str| seen.requests.contains(text);
    assert!(shows("shared words") && shows("use tabs"), "{}", seen.ran.stderr);
    assert!(!seen.ran.stderr.contains("left out"), "{}", seen.ran.stderr);
}

/// A file in the project that a rule protects from reading, and ways to have it read anyway.
// Seen to fail with `may_show` left out of `Boundary::open_import` and of `Boundary::open`.
#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_a_rule_protects_is_not_imported_even_with_trust() {
    let deny = r#"{"permissions": {"deny": ["Read(.env)"]}}"#;
    let ask = r#"{"permissions": {"ask": ["Read(.env)"]}}"#;
    for settings in [deny, ask] {
        for trust in [&[][..], &["--trust-project"]] {
            for form in ["import", "import of a link", "link", "command"] {
                let stage = Stage::new().await;
                stage.write("project/.env", &format!("KEY={SECRET}"));
                stage.link("project/env.md", ".env");
                match form {
                    "import" => stage.write("project/CLAUDE.md", "@.env"),
                    "import of a link" => stage.write("project/CLAUDE.md", "@env.md"),
                    "link" => stage.link("project/CLAUDE.md", ".env"),
                    _ => stage.link("project/.claude/commands/e.md", "../../.env"),
                }
                let prompt = if form == "command" { "/e" } else { "hello" };
                let seen = stage.run(&[trust, &["--settings", settings]].concat(), prompt);
                assert!(!seen.shows_secret(), "{form} {trust:?} {settings}");
                assert!(seen.ran.stderr.contains("left out"), "{form}: {}", seen.ran.stderr);
                let seen = stage.run(trust, prompt);
                assert!(seen.shows_secret(), "without the rule it is read: {form} {trust:?}");
            }
        }
    }
}

// Mutant: as for the first test here; the same engine answers at a terminal.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_at_a_terminal_leaves_out_the_same_imports() {
    let mut stage = stage().await;
    stage.write("project/CLAUDE.md", "own words\n@~/.ssh/id_rsa @/proc/self/environ\n");
    stage.link("project/.claude/commands/e.md", "../../../home/.ssh/id_rsa");
    stage.ostler = stage.ostler.args(&["--cwd", "project"]);
    let ran = stage.ostler.type_lines(&["hello", "/e"]);
    let requests: String = stage.api.requests().iter().map(|it| it.body.to_string()).collect();
    assert!(requests.contains("own words"), "{}{}", ran.stdout, ran.stderr);
    assert!(!requests.contains(SECRET) && !ran.stdout.contains(SECRET), "{}", ran.stdout);
    assert!(
        ran.stderr.contains("id_rsa") && ran.stderr.contains("--trust-project"),
        "{}",
        ran.stderr
    );
}
