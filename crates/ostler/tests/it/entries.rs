//! Rules for every entry point, checked for the embedded engine: changed input, sandbox, root, warnings, models.

use std::sync::{Arc, Mutex};

use ostler::options::SettingSource;
use ostler::{Decision, Error, ErrorKind, Message, Options, PermissionMode, query};
use ostler_proto::message::System;
use ostler_testkit::{Script, ScriptedApi, Status, reply, when};
use serde_json::{Value, json};

fn options(api: &ScriptedApi, home: &std::path::Path) -> Options {
    let mut options = ostler::options()
        .cwd(home)
        .env("HOME", home.display().to_string())
        .env("PATH", std::env::var("PATH").unwrap())
        .env("ANTHROPIC_BASE_URL", api.base_url())
        .env("ANTHROPIC_API_KEY", "test");
    options.engine.env.replaces = true;
    options.context.setting_sources = vec![SettingSource::User];
    options
}

fn calls(tool: &str, input: Value) -> Script {
    Script::new()
        .rule(when().turn(0), reply().tool_use(tool, input))
        .rule(when(), reply().text("{{tool_result}}"))
}

async fn run(options: Options) -> Result<Vec<Message>, Error> {
    let mut messages = Vec::new();
    let mut query = query("go", options);
    while let Some(message) = query.next().await {
        messages.push(message?);
    }
    Ok(messages)
}

fn notices(messages: &[Message]) -> Vec<String> {
    let notice = |message: &Message| match message {
        Message::System(System::Informational(notice)) => Some(notice.content.clone()),
        _ => None,
    };
    messages.iter().filter_map(notice).collect()
}

// Mutant: the input of an answer is prepared and not decided again.
#[tokio::test]
async fn a_callback_cannot_change_a_call_into_one_that_is_denied() {
    let home = tempfile::tempdir().unwrap();
    let secret = home.path().join("denied");
    let input = json!({"command": format!("touch {}", secret.display())});
    for denied in [true, false] {
        let api = ScriptedApi::start(calls("Bash", json!({"command": "make"}))).await;
        let input = input.clone();
        let mut options = options(&api, home.path()).on_permission(move |_| {
            let input = input.clone();
            async move { Decision::allow().with_input(input) }
        });
        if denied {
            options = options.deny(["Bash(touch:*)"]);
        }
        let messages = run(options).await.unwrap();
        assert_eq!(secret.exists(), !denied);
        let result = messages.iter().rev().find_map(Message::as_result).unwrap();
        let text = result.result.clone().unwrap();
        assert_eq!(text.contains("denied"), denied, "{text}");
    }
}

// Mutant: the sandbox is a caution.
#[tokio::test]
async fn a_sandbox_that_is_not_there_is_not_passed_over() {
    let home = tempfile::tempdir().unwrap();
    let run_with = async |sandbox: Value| {
        let api = ScriptedApi::start(Script::new().rule(when(), reply().text("Hi."))).await;
        let mut options = options(&api, home.path());
        options.context.sandbox = Some(serde_json::from_value(sandbox).unwrap());
        run(options).await
    };
    for refused in [json!({"enabled": true}), json!({"enabled": true, "failIfUnavailable": true})] {
        let error = run_with(refused.clone()).await.unwrap_err().to_string();
        assert!(error.contains("sandbox") && error.contains("failIfUnavailable"), "{error}");
    }
    assert!(run_with(json!({"enabled": false, "failIfUnavailable": true})).await.is_ok());
    let messages = run_with(json!({"enabled": true, "failIfUnavailable": false})).await.unwrap();
    assert!(
        notices(&messages).iter().any(|text| text.contains("without the sandbox")),
        "{messages:?}"
    );
    let settings = home.path().join(".claude/settings.json");
    std::fs::create_dir_all(settings.parent().unwrap()).unwrap();
    std::fs::write(settings, r#"{"sandbox": {"enabled": true}}"#).unwrap();
    let error = run_with(json!({})).await.unwrap_err().to_string();
    assert!(error.contains("sandbox.enabled"), "the user's own settings: {error}");
}

/// When a session may run calls without approval.
#[derive(PartialEq)]
enum Bypass {
    Now,
    /// With `set_permission_mode`.
    Later,
    Never,
}

// Mutant: only the command line looks at who runs it.
#[tokio::test]
async fn root_does_not_bypass_permissions_without_a_container() {
    if std::fs::metadata("/proc/self").is_ok_and(|it| std::os::unix::fs::MetadataExt::uid(&it) != 0)
    {
        return;
    }
    let home = tempfile::tempdir().unwrap();
    let api = ScriptedApi::start(Script::new().rule(when(), reply().text("Hi."))).await;
    for (change, contained, starts) in [
        (Bypass::Now, "", false),
        (Bypass::Now, "1", true),
        (Bypass::Later, "", false),
        (Bypass::Later, "1", true),
        (Bypass::Never, "", true),
    ] {
        let mut options = options(&api, home.path()).env("IS_SANDBOX", contained);
        let permissions = &mut options.permissions;
        permissions.allow_dangerously_skip_permissions = change != Bypass::Never;
        if change == Bypass::Now {
            permissions.mode = PermissionMode::BypassPermissions;
        }
        let ran = run(options).await;
        assert_eq!(ran.is_ok(), starts, "{contained}: {:?}", ran.err());
        if let Err(error) = ran {
            assert!(error.to_string().contains("as root"), "{error}");
        }
    }
}

// Mutant: the embedded transport drops warnings.
#[tokio::test]
async fn warnings_about_the_start_reach_the_host() {
    let home = tempfile::tempdir().unwrap();
    let settings = home.path().join(".claude/settings.json");
    std::fs::create_dir_all(settings.parent().unwrap()).unwrap();
    std::fs::write(settings, r#"{"permissions": {"allow": ["Bash("]}}"#).unwrap();
    let api = ScriptedApi::start(Script::new().rule(when(), reply().text("Hi."))).await;
    let received: Arc<Mutex<Vec<String>>> = Arc::default();
    let lines = Arc::clone(&received);
    let options = options(&api, home.path())
        .on_stderr(move |line| lines.lock().unwrap().push(line.to_owned()));
    let messages = run(options).await.unwrap();
    let is_it = |text: &String| text.contains("Bash(") && text.contains("permissions.allow[0]");
    assert!(notices(&messages).iter().any(is_it), "{messages:?}");
    assert!(received.lock().unwrap().iter().any(is_it), "{received:?}");
}

// Mutant: the fallback model is sent as it is written; a budget counts a model without a price as free.
#[tokio::test]
async fn a_fallback_model_may_have_a_short_name_and_a_budget_requires_a_known_price() {
    let home = tempfile::tempdir().unwrap();
    let api = ScriptedApi::start(
        Script::new()
            .rule(when().model("claude-haiku*"), reply().text("Hi."))
            .rule(when(), reply().status(Status::new(529))),
    )
    .await;
    let mut with_fallback = options(&api, home.path());
    with_fallback.model.fallback = Some("haiku".to_owned());
    run(with_fallback).await.unwrap();
    assert!(api.requests().iter().any(|it| it.model().starts_with("claude-haiku-")));
    assert!(api.requests().iter().all(|it| it.model() != "haiku"));
    let unpriced = options(&api, home.path()).model("my-proxy-model").max_budget_usd(0.01);
    let error = run(unpriced).await.unwrap_err().to_string();
    assert!(error.contains("my-proxy-model") && error.contains("price"), "{error}");
}

#[tokio::test]
async fn an_unknown_session_is_an_error_that_names_it() {
    let home = tempfile::tempdir().unwrap();
    let api = ScriptedApi::start(Script::new()).await;
    let missing = "99999999-9999-4999-8999-999999999999";
    let error = run(options(&api, home.path()).resume(missing)).await.unwrap_err();
    assert!(error.to_string().contains(missing), "{error}");
    assert_eq!(error.kind(), ErrorKind::Refused, "{error:?}");
}
