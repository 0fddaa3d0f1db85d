//! Logins made with the vendor's program: which one is used, and that its token stays where it is.

use std::fs;
use std::path::Path;

use ostler_testkit::{Script, ScriptedApi, reply, when};
use serde_json::{Value, json};

use crate::run::{OFFLINE, Ostler};
use crate::serve_options::Served;

const TOKEN: &str = "sk-ant-oat01-canary-0123456789";

/// Writes a login into the home of a test.
fn log_in(ostler: &Ostler) {
    let file = ostler.path("no-home/.claude/.credentials.json");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    let login = json!({"claudeAiOauth": {"accessToken": TOKEN, "subscriptionType": "max"}});
    fs::write(file, login.to_string()).unwrap();
}

/// Whether a text is in any file of a folder, except in the login itself.
fn is_in_a_file(folder: &Path, text: &str) -> bool {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).any(|path| {
        if path.is_dir() {
            return is_in_a_file(&path, text);
        }
        let content = fs::read(&path).unwrap_or_default();
        !path.ends_with(".credentials.json") && String::from_utf8_lossy(&content).contains(text)
    })
}

// Mutants: the variables are left in the environment (`without_logins`; also together with `SECRETS` of commands); the token
// is sent as a key.
#[tokio::test(flavor = "multi_thread")]
async fn a_long_lived_token_is_sent_as_such_and_reaches_no_child_and_no_file() {
    let look = json!({"command": "env; env > seen.txt", "description": "Look"});
    let script = Script::new()
        .rule(when().turn(0), reply().tool_use("Bash", look))
        .rule(when(), reply().text("{{tool_result}}"));
    let api = ScriptedApi::start(script).await;
    let ostler = Ostler::new()
        .env("CLAUDE_CODE_OAUTH_TOKEN", TOKEN)
        .env("ANTHROPIC_BASE_URL", &api.base_url());
    let hook = json!({"hooks": {"SessionStart": [{"hooks": [
        {"type": "command", "command": "env > hook.txt"}]}]}});
    let debug = ostler.path("debug.txt");
    let ran = ostler.run(&[
        "-p",
        "--permission-mode=bypassPermissions",
        "--output-format=stream-json",
        &format!("--debug-file={}", debug.display()),
        &format!("--settings={hook}"),
        "look",
    ]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for request in api.requests() {
        // Their values are not recorded.
        assert!(request.headers.contains_key("authorization"));
        assert!(!request.headers.contains_key("x-api-key"));
        let betas = &request.headers["anthropic-beta"];
        assert!(betas.contains("oauth-2025-04-20"), "{betas}");
    }
    assert!(ostler.path("seen.txt").exists() && ostler.path("hook.txt").exists());
    assert!(!ran.stdout.contains(TOKEN) && !ran.stderr.contains(TOKEN));
    assert!(!is_in_a_file(ostler.folder.path(), TOKEN));
    let init: Value = serde_json::from_str(
        ran.stdout.lines().find(|line| line.contains("\"subtype\":\"init\"")).unwrap(),
    )
    .unwrap();
    assert_eq!(init["apiKeySource"], "none");
}

// Mutants: the beta of the engine's request is replaced; the proxy does not look for a login; the file is not protected.
#[tokio::test(flavor = "multi_thread")]
async fn agents_of_a_server_use_the_operators_login_and_cannot_read_it() {
    // In the agent's own folder, so that nothing but the rule for this file protects it.
    let read = json!({"file_path": "no-home/.claude/.credentials.json"});
    let script = Script::new()
        .rule(when().turn(0).prompt_contains("look"), reply().tool_use("Read", read))
        .rule(when(), reply().text("Done."));
    let served = Served::furnished(script, &["--pass-env", "ANTHROPIC_BETAS"], |ostler| {
        log_in(&ostler);
        ostler.env(OFFLINE, "0").env("ANTHROPIC_BETAS", "of-the-engine")
    })
    .await;
    let session = served.ask("/sessions", Some(json!({}))).await;
    let runs = format!("/sessions/{}/runs", session["id"].as_str().unwrap());
    let run = served.ask(&runs, Some(json!({"prompt": "look at it"}))).await;
    let path = format!("/runs/{}", run["id"].as_str().unwrap());
    assert_eq!(
        served.settled(&path, "state").await,
        "completed",
        "{}",
        served.ask(&path, None).await
    );
    let requests = served.api.requests();
    for request in &requests {
        // Their values are not recorded.
        assert!(request.headers.contains_key("authorization"));
        assert!(!request.headers.contains_key("x-api-key"));
        let betas = &request.headers["anthropic-beta"];
        assert!(betas.contains("oauth-2025-04-20") && betas.contains("of-the-engine"), "{betas}");
        assert!(!request.body.to_string().contains(TOKEN), "the file was read");
    }
    assert_eq!(requests.len(), 2);
    let told = requests[1].tool_results().pop().unwrap().text;
    assert!(told.contains("deny rule"), "{told}");
}

#[test]
fn auth_status_names_the_source_and_exits_with_one_without_any() {
    let status = |ostler: &Ostler, arguments: &[&str]| {
        let ran = ostler.run(&[&["auth", "status"], arguments].concat());
        assert!(!ran.stdout.contains(TOKEN) && !ran.stdout.contains("hush"), "{ran:?}");
        (ran.code, ran.stdout)
    };
    let json = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    let ostler = Ostler::new();
    let (code, text) = status(&ostler, &[]);
    assert_eq!((code, &json(&text)["loggedIn"]), (Some(1), &json!(false)));
    let (code, text) = status(&ostler, &["--text"]);
    assert!(code == Some(1) && text.contains("Not logged in"), "{text}");
    log_in(&ostler);
    let (code, text) = status(&ostler, &["--json"]);
    assert_eq!(code, Some(0));
    assert_eq!(json(&text)["authMethod"], "claude.ai");
    let (code, text) = status(&ostler, &["--text"]);
    assert!(code == Some(0) && text.contains(".credentials.json"), "{text}");
    let keyed = Ostler::new().env("ANTHROPIC_API_KEY", "hush-hush");
    let text = status(&keyed, &[]).1;
    assert_eq!(json(&text)["authMethod"], "api_key");
    assert_eq!(json(&text)["apiKeySource"], "ANTHROPIC_API_KEY");
    for missing in ["login", "logout"] {
        let ran = ostler.run(&["auth", missing]);
        assert!(ran.code == Some(2) && ran.stderr.contains("claude auth"), "{ran:?}");
    }
}
