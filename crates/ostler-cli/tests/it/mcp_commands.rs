//! `ostler mcp …`, `/mcp`, and what is said about MCP servers that cannot be used.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};

use ostler_testkit::{Script, reply, when};
use serde_json::{Value, json};

use crate::mcp::{calling, place, shell_server};
use crate::run::{Ostler, Ran};
use crate::sign_in::{browser, open, tokens};

fn with_home() -> Ostler {
    let ostler = Ostler::new();
    fs::create_dir(ostler.path("no-home")).unwrap();
    ostler
}

fn user_file(ostler: &Ostler) -> Value {
    serde_json::from_str(&fs::read_to_string(ostler.path("no-home/.claude.json")).unwrap()).unwrap()
}

fn project_key(ostler: &Ostler) -> String {
    ostler.folder.path().canonicalize().unwrap().display().to_string()
}

fn succeeds(ran: &Ran) {
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
}

// Mutant: the word without a command is a prompt.
#[tokio::test(flavor = "multi_thread")]
async fn the_command_alone_shows_help_and_asks_no_model() {
    let (api, ostler) = place(Script::new().rule(when(), reply().text("Hm?"))).await;
    let ran = ostler.run(&["mcp"]);
    succeeds(&ran);
    ran.shows(&[
        "add",
        "add-json",
        "list",
        "get",
        "remove",
        "login",
        "logout",
        "reset-project-choices",
    ]);
    let ran = ostler.run(&["-p", "mcp"]);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(api.requests().is_empty());
}

// Mutants: `--env`, `--header`, `--client-id` or `--callback-port` is dropped.
#[test]
fn servers_are_added_to_their_scopes_in_the_vendors_format() {
    let ostler = with_home();
    for arguments in [
        &["a", "-e", "X=1", "--env", "Y=a=b", "--", "prog", "--flag", "x"][..],
        &[
            "-s",
            "user",
            "-t",
            "http",
            "h",
            "https://h.example/mcp",
            "-H",
            "X-A: b:c",
            "--header",
            "X-B: d",
        ],
        &["--scope", "project", "p", "prog"],
        &[
            "--transport",
            "sse",
            "s",
            "http://s.example",
            "--client-id",
            "c",
            "--callback-port",
            "99",
        ],
        &["-t", "ws", "w", "wss://w.example/socket", "-s", "user"],
    ] {
        succeeds(&ostler.run(&[&["mcp", "add"], arguments].concat()));
    }
    let json = r#"{"type": "streamable-http", "url": "https://j.example", "new": 1}"#;
    succeeds(&ostler.run(&["mcp", "add-json", "--scope", "user", "j", json]));
    let user = user_file(&ostler);
    let headers = json!({"X-A": "b:c", "X-B": "d"});
    assert_eq!(
        user["mcpServers"],
        json!({
            "h": {"type": "http", "url": "https://h.example/mcp", "headers": headers},
            "w": {"type": "ws", "url": "wss://w.example/socket"},
            "j": {"type": "streamable-http", "url": "https://j.example", "new": 1},
        })
    );
    let local = &user["projects"][project_key(&ostler)];
    let env = json!({"X": "1", "Y": "a=b"});
    let oauth = json!({"clientId": "c", "callbackPort": 99});
    assert_eq!(
        local["mcpServers"],
        json!({
            "a": {"type": "stdio", "command": "prog", "args": ["--flag", "x"], "env": env},
            "s": {"type": "sse", "url": "http://s.example", "oauth": oauth},
        })
    );
    assert_eq!(local["enabledMcpjsonServers"], json!(["p"]));
    let shared: Value =
        serde_json::from_str(&fs::read_to_string(ostler.path(".mcp.json")).unwrap()).unwrap();
    let entry = json!({"type": "stdio", "command": "prog", "args": [], "env": {}});
    assert_eq!(shared, json!({"mcpServers": {"p": entry}}));
}

#[test]
fn what_cannot_be_added_is_refused_with_advice_and_nothing_is_written() {
    let ostler = with_home();
    let denied = json!({"deniedMcpServers": [{"serverCommand": ["evil", "x"]}, {"serverUrl": "https://*.evil.example/*"}]});
    fs::create_dir(ostler.path("no-home/.claude")).unwrap();
    fs::write(ostler.path("no-home/.claude/settings.json"), denied.to_string()).unwrap();
    for (arguments, advice) in [
        (&["add", "bad name!", "x"][..], "letters, digits"),
        (&["add", "x", "https://x.example"], "-t http"),
        (&["add", "-t", "http", "x", "x.example"], "begins with"),
        (&["add", "-t", "http", "x", "https://x", "-e", "A=1"], "-H"),
        (&["add", "-t", "http", "x", "https://x", "more"], "no arguments"),
        (&["add", "x", "prog", "-H", "A: b"], "-t http"),
        (&["add", "x", "prog", "-H", "nonsense"], "NAME: VALUE"),
        (&["add", "x", "prog", "-e", "nonsense"], "NAME=VALUE"),
        (&["add-json", "x", "{"], "not valid JSON"),
        (&["add-json", "x", r#"{"url": "https://x"}"#], "`type`"),
        (&["add-json", "x", r#"{"command": 3}"#], "command"),
        (&["add", "x", "evil", "x"], "deniedMcpServers"),
        (
            &["add-json", "x", r#"{"type": "ws", "url": "https://a.evil.example/x"}"#],
            "deniedMcpServers",
        ),
        (&["get", "x"], "there is no MCP server x"),
        (&["remove", "x"], "there is no MCP server x"),
        (&["login", "x"], "there is no MCP server x"),
    ] {
        let ran = ostler.run(&[&["mcp"], arguments].concat());
        assert_ne!(ran.code, Some(0), "{arguments:?}: {}", ran.stdout);
        assert!(ran.stderr.contains(advice), "{arguments:?}: {}", ran.stderr);
    }
    assert!(!ostler.path("no-home/.claude.json").exists());
    succeeds(&ostler.run(&["mcp", "add", "x", "prog"]));
    let again = ostler.run(&["mcp", "add", "x", "prog"]);
    assert!(again.stderr.contains("exists already"), "{}", again.stderr);
}

// Mutants: servers that wait are connected; a failed one has no reason; hooks run.
#[test]
fn a_list_connects_and_says_how_each_server_is() {
    let ostler = with_home();
    let add = |arguments: &[&str]| succeeds(&ostler.run(&[&["mcp"], arguments].concat()));
    add(&["add-json", "-s", "user", "good", &shell_server("x").to_string()]);
    add(&["add", "broken", "/no/such/program"]);
    add(&["add-json", "far", r#"{"type": "http", "url": "http://127.0.0.1:9/mcp"}"#]);
    let stranger = json!({"mcpServers": {"stranger": {"command": "touch", "args": ["started"]}}});
    fs::write(ostler.path(".mcp.json"), stranger.to_string()).unwrap();
    fs::create_dir_all(ostler.path("no-home/.claude")).unwrap();
    let hook = json!([{"hooks": [{"type": "command", "command": "touch hooked"}]}]);
    let hooks = json!({"hooks": {"SessionStart": hook, "SessionEnd": hook, "Setup": hook}});
    fs::write(ostler.path("no-home/.claude/settings.json"), hooks.to_string()).unwrap();
    let ran = ostler.run(&["mcp", "list"]);
    succeeds(&ran);
    let line = |name: &str| {
        let line = ran.stdout.lines().find(|line| line.starts_with(&format!("{name}: ")));
        line.unwrap_or_else(|| panic!("{name} in {}", ran.stdout)).to_owned()
    };
    assert!(line("good").ends_with("✓ connected, 4 tools"), "{}", ran.stdout);
    assert!(line("broken").contains("✗ failed: ") && line("broken").contains("No such file"));
    assert!(line("far").contains("(http) - ✗ failed: "), "{}", ran.stdout);
    assert!(line("stranger").contains("waits for your approval"), "{}", ran.stdout);
    assert!(!ostler.path("started").exists() && !ostler.path("hooked").exists());
    let one = ostler.run(&["mcp", "get", "good"]);
    succeeds(&one);
    one.shows(&["good:", "Scope: user", ".claude.json", "✓ connected", "Command: /bin/sh"]);
    assert!(one.stdout.contains("Variables (values hidden): GREETED"), "{}", one.stdout);
    let rejected = json!({"disabledMcpjsonServers": ["stranger"]}).to_string();
    let ran = ostler.run(&["mcp", "--settings", &rejected, "list"]);
    assert!(ran.stdout.contains("rejected by disabledMcpjsonServers"), "{}", ran.stdout);
}

#[test]
fn a_server_is_removed_from_the_scope_that_has_it() {
    let ostler = with_home();
    for scope in ["local", "user", "project"] {
        succeeds(&ostler.run(&["mcp", "add", "-s", scope, "x", "prog"]));
    }
    let several = ostler.run(&["mcp", "remove", "x"]);
    assert!(several.stderr.contains("ostler mcp remove x -s local"), "{}", several.stderr);
    for scope in ["local", "project"] {
        succeeds(&ostler.run(&["mcp", "remove", "x", "--scope", scope]));
        let gone = ostler.run(&["mcp", "remove", "x", "-s", scope]);
        assert!(gone.stderr.contains(&format!("no MCP server x in the {scope} scope")));
    }
    succeeds(&ostler.run(&["mcp", "remove", "x"]));
    assert_eq!(user_file(&ostler)["mcpServers"], json!({}));
    succeeds(&ostler.run(&["mcp", "reset-project-choices"]));
    let local = user_file(&ostler)["projects"][project_key(&ostler)].clone();
    assert_eq!(local, json!({"mcpServers": {}}), "the approval is forgotten");
}

// Mutants: the pasted address is not read; the tokens stay.
#[tokio::test(flavor = "multi_thread")]
async fn a_user_signs_in_at_the_terminal_with_the_browser_or_a_pasted_address_and_out() {
    let base = open().await;
    let ostler = with_home();
    succeeds(&ostler.run(&["mcp", "add", "-t", "http", "far", &format!("{base}/mcp")]));
    let listed = || ostler.run(&["mcp", "list"]).stdout;
    assert!(listed().contains("needs sign-in: ostler mcp login far"), "{}", listed());
    for is_pasted in [false, true] {
        let mut login = ostler.spawn(&["mcp", "login", "far"]);
        let mut lines = BufReader::new(login.stdout.take().unwrap()).lines().map(Result::unwrap);
        let url = lines.find(|line| line.starts_with("http")).unwrap();
        let policy = match is_pasted {
            true => reqwest::redirect::Policy::none(),
            false => reqwest::redirect::Policy::default(),
        };
        let answer = browser(policy).get(&url).send().await.unwrap();
        if is_pasted {
            let back = answer.headers()["location"].to_str().unwrap();
            let mut stdin = login.stdin.take().unwrap();
            // The first one is a mistake, which can be corrected.
            writeln!(stdin, "http://localhost/?code=x&state=forged\n\n{back}").unwrap();
        }
        assert!(lines.any(|line| line == "Signed in to far."));
        assert!(login.wait().unwrap().success());
        assert!(listed().contains("✓ connected, 1 tool"), "{}", listed());
        assert_eq!(tokens(&ostler).len(), 1);
        succeeds(&ostler.run(&["mcp", "logout", "far"]));
        assert!(tokens(&ostler).is_empty());
    }
    succeeds(&ostler.run(&["mcp", "add", "near", "prog"]));
    let ran = ostler.run(&["mcp", "login", "near"]);
    assert!(ran.stderr.contains("has no sign-in"), "{}", ran.stderr);
}

// Mutants: `/mcp` is a prompt; a word after it is not understood.
#[tokio::test(flavor = "multi_thread")]
async fn servers_are_shown_and_switched_in_a_conversation() {
    let (api, ostler) = place(Script::new().rule(when(), reply().text("Fine."))).await;
    fs::create_dir(ostler.path("no-home")).unwrap();
    let entry = shell_server("x").to_string();
    succeeds(&ostler.run(&["mcp", "add-json", "shell", &entry]));
    succeeds(&ostler.run(&["mcp", "add", "broken", "/no/such/program"]));
    let ran = ostler.type_lines(&[
        "hello",
        "/mcp",
        "/mcp disable shell",
        "/mcp enable shell",
        "/mcp reconnect broken",
        "/mcp login shell",
        "/mcp what",
    ]);
    succeeds(&ran);
    ran.shows(&[
        "MCP server broken: failed: ",
        "✗ broken (local): failed: ",
        "/no/such/program",
        "✓ shell (local): connected, 4 tools",
        "- shell (local): switched off",
        "✓ shell (local): connected, 4 tools",
        "/no/such/program",
        "only a server behind a URL has a sign-in",
        "/mcp reconnect NAME",
    ]);
    assert_eq!(api.requests().len(), 1, "only the prompt reaches the model");
}

// Mutants: nothing is said; it is said on standard output.
#[tokio::test(flavor = "multi_thread")]
async fn a_failed_server_is_named_once_on_standard_error_and_by_the_doctor() {
    let (_api, ostler) = place(calling("Read", json!({"file_path": "README.md"}))).await;
    fs::create_dir(ostler.path("no-home")).unwrap();
    succeeds(&ostler.run(&["mcp", "add", "broken", "/no/such/program"]));
    let ran = ostler.run(&["-p", "hello"]);
    succeeds(&ran);
    assert_eq!(ran.stderr.matches("MCP server broken: failed: ").count(), 1, "{}", ran.stderr);
    assert!(ran.stderr.contains("/no/such/program") && !ran.stdout.contains("broken"));
    let ran = ostler.run(&["doctor"]);
    ran.shows(&["✗ MCP server broken: failed: ", "/no/such/program", "ostler mcp get broken"]);
    assert_eq!(ran.code, Some(1));
}
