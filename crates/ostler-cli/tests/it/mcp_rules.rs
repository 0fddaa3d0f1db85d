//! Rules with wildcards for the tools of MCP servers.

use serde_json::{Value, json};

use crate::mcp::{calling, place, shell_server};
use crate::run::Ran;

/// Calls `mcp__shell__greet`. Returns the run, and whether its tools `greet` and `permit` were offered.
async fn run(arguments: &[&str]) -> (Ran, bool, bool) {
    let (api, ostler) = place(calling("mcp__shell__greet", json!({}))).await;
    let config = json!({"mcpServers": {"shell": shell_server("all")}}).to_string();
    let ran = ostler.run(&[&["-p", "greet", "--mcp-config", &config], arguments].concat());
    let requests = api.requests();
    let has = |tool: &str| requests.first().is_some_and(|it| it.tool_names().contains(&tool));
    (ran, has("mcp__shell__greet"), has("mcp__shell__permit"))
}

fn settings(kind: &str, rule: &str) -> Value {
    json!({"permissions": {kind: [rule], "allow": ["mcp__shell"]}})
}

// Mutants: a star is only a star; denied tools are offered.
#[tokio::test(flavor = "multi_thread")]
async fn wildcards_name_several_tools_in_every_kind_of_rule() {
    for (arguments, runs, offered) in [
        (vec!["--allowed-tools".to_owned(), "mcp__shell__gr*".to_owned()], true, (true, true)),
        (vec!["--allowed-tools".to_owned(), "mcp__*".to_owned()], true, (true, true)),
        (vec!["--allowed-tools".to_owned(), "mcp__shell__*".to_owned()], true, (true, true)),
        (vec!["--allowed-tools".to_owned(), "mcp__shell__p*".to_owned()], false, (true, true)),
        (
            vec![
                "--disallowed-tools".to_owned(),
                "mcp__shell__gr*".to_owned(),
                "--allowed-tools".to_owned(),
                "mcp__shell".to_owned(),
            ],
            false,
            (false, true),
        ),
        (
            vec![
                "--disallowed-tools".to_owned(),
                "mcp__*".to_owned(),
                "--allowed-tools".to_owned(),
                "mcp__shell".to_owned(),
            ],
            false,
            (false, false),
        ),
        (
            vec!["--settings".to_owned(), settings("deny", "mcp__*__greet").to_string()],
            false,
            (false, true),
        ),
        (
            vec!["--settings".to_owned(), settings("ask", "mcp__sh*").to_string()],
            false,
            (true, true),
        ),
    ] {
        let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let (ran, greet, permit) = run(&words).await;
        assert_eq!(
            ran.stdout.contains("hello all"),
            runs,
            "{words:?}: {}{}",
            ran.stdout,
            ran.stderr
        );
        assert_eq!((greet, permit), offered, "{words:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rule_that_cannot_be_read_still_stops_the_start() {
    for arguments in [
        ["--disallowed-tools".to_owned(), "*".to_owned()],
        ["--disallowed-tools".to_owned(), "mcp__".to_owned()],
        ["--settings".to_owned(), settings("deny", "mcp_*").to_string()],
        ["--settings".to_owned(), settings("ask", "mcp__ x").to_string()],
    ] {
        let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let (ran, ..) = run(&words).await;
        assert_eq!(ran.code, Some(1), "{words:?}: {}", ran.stdout);
        assert!(ran.stderr.contains("not a valid permission rule"), "{words:?}: {}", ran.stderr);
    }
}
