//! `ostler doctor`: finds problems and says how to fix them.

use std::fs;

use ostler_testkit::{Script, ScriptedApi, Status, reply, when};

use crate::run::Ostler;

#[test]
fn on_a_fresh_machine_only_the_key_is_missing_and_the_demo_needs_none() {
    let ran = Ostler::new().env("OSTLER_OFFLINE", "0").run(&["doctor"]);
    ran.shows(&[
        "✗ key: no key is set",
        "offline demo",
        "→ export ANTHROPIC_API_KEY=",
        "✓ settings: no files",
    ]);
    ran.shows(&["✓ disk: sessions are saved in", "✓ shell: ", "1 problem found."]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(1), ""));
    let ran = Ostler::new().run(&["doctor"]);
    ran.shows(&["✓ model: offline-demo", "Everything that is needed works."]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_model_is_asked_for_one_token_and_the_key_is_not_shown() {
    let api = ScriptedApi::start(Script::new().rule(when(), reply().text("Yes."))).await;
    let ostler = Ostler::new()
        .env("ANTHROPIC_API_KEY", "sk-very-secret")
        .env("ANTHROPIC_MODEL", "some-model")
        .env("ANTHROPIC_BASE_URL", &api.base_url());
    let ran = ostler.run(&["doctor"]);
    ran.shows(&[
        "✓ key: ANTHROPIC_API_KEY is set",
        "✓ model: some-model answers at",
        &api.base_url(),
    ]);
    assert!(!ran.stdout.contains("secret") && !ran.stderr.contains("secret"), "{}", ran.stdout);
    assert_eq!(ran.code, Some(0), "{}", ran.stdout);
    assert_eq!(api.requests().len(), 1);
    assert_eq!(api.requests()[0].body["max_tokens"], 1);
    api.finish();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_does_not_answer_is_a_problem_with_a_fix() {
    for (status, fix) in
        [(401, "check the value of the key"), (404, "choose another model"), (529, "try again")]
    {
        let script = Script::new().rule(when(), reply().status(Status::new(status)));
        let api = ScriptedApi::start(script).await;
        let ostler = Ostler::new()
            .env("ANTHROPIC_AUTH_TOKEN", "token")
            .env("ANTHROPIC_BASE_URL", &api.base_url());
        let ran = ostler.run(&["doctor"]);
        ran.shows(&[
            "✓ key: ANTHROPIC_AUTH_TOKEN is set",
            "✗ model: ",
            "→ ",
            fix,
            "1 problem found.",
        ]);
        assert_eq!((ran.code, api.requests().len()), (Some(1), 1), "{}", ran.stdout);
    }
    let ostler = Ostler::new()
        .env("ANTHROPIC_API_KEY", "key")
        .env("ANTHROPIC_BASE_URL", "http://127.0.0.1:1");
    let ran = ostler.run(&["doctor"]);
    ran.shows(&["✗ model: ", "→ check the network, ANTHROPIC_BASE_URL"]);
    assert_eq!(ran.code, Some(1));
}

#[test]
fn broken_settings_are_named_with_file_and_line() {
    let ostler = Ostler::new();
    fs::create_dir_all(ostler.path(".claude")).unwrap();
    fs::create_dir_all(ostler.path("no-home/.claude")).unwrap();
    fs::write(ostler.path(".claude/settings.json"), "{\n  \"permissions\": {\n    oops\n").unwrap();
    fs::write(ostler.path("no-home/.claude/settings.json"), r#"{"hooks": {"PreToolUse": 7}}"#)
        .unwrap();
    let ran = ostler.run(&["doctor"]);
    ran.shows(&["✗ settings: ", ".claude/settings.json", "line 3", "→ correct the file"]);
    assert_eq!(ran.code, Some(1), "{}", ran.stdout);

    fs::write(
        ostler.path(".claude/settings.json"),
        r#"{"permissions": {"allow": ["Bash(ls:*)"]}}"#,
    )
    .unwrap();
    let ran = ostler.run(&["doctor"]);
    ran.shows(&["! settings: ", "not trusted", "→ pass --trust-project", "✗ settings: ", "hooks"]);
    assert_eq!(ran.code, Some(1), "{}", ran.stdout);
}

#[test]
fn a_folder_that_cannot_be_written_is_reported() {
    let ostler = Ostler::new().env("CLAUDE_CONFIG_DIR", "/dev/null/nowhere");
    let ran = ostler.run(&["doctor"]);
    ran.shows(&[
        "✗ disk: sessions cannot be saved in /dev/null/nowhere",
        "→ ",
        "CLAUDE_CONFIG_DIR",
    ]);
    assert_eq!(ran.code, Some(1));
}

#[test]
fn an_invalid_variable_is_reported() {
    let ostler =
        Ostler::new().env("ANTHROPIC_API_KEY", "key").env("ANTHROPIC_BASE_URL", "ftp://somewhere");
    let ran = ostler.run(&["doctor"]);
    ran.shows(&["✗ key: ANTHROPIC_BASE_URL begins with ftp:", "→ correct or unset"]);
    assert_eq!(ran.code, Some(1));
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_can_name_the_key_and_the_model() {
    let api = ScriptedApi::start(Script::new().rule(when(), reply().text("Yes."))).await;
    let ostler =
        Ostler::new().env("OSTLER_OFFLINE", "0").env("ANTHROPIC_BASE_URL", &api.base_url());
    fs::create_dir_all(ostler.path("no-home/.claude")).unwrap();
    let settings = r#"{"model": "my-model", "apiKeyHelper": "echo very-secret"}"#;
    fs::write(ostler.path("no-home/.claude/settings.json"), settings).unwrap();
    let ran = ostler.run(&["doctor"]);
    ran.shows(&["✓ key: apiKeyHelper of the settings gives one", "✓ model: my-model answers at"]);
    assert!(!ran.stdout.contains("secret") && !ran.stderr.contains("secret"), "{}", ran.stdout);
    assert_eq!(ran.code, Some(0), "{}", ran.stdout);
    api.finish();
}
