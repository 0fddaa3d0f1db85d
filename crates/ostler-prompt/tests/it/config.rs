//! Seed 002, "Configuration": every row of its tables.

use std::path::Path;

use ostler_prompt::{
    Adapter, ClientConfig, ConfigError, HostMount, ModelConfig, ModelSettings, Session, Workspace,
};
use ostler_sdk::options::SandboxSettings;
use ostler_sdk::transport::Start;
use ostler_sdk::{Options, PermissionMode};
use ostler_testkit::{Script, reply, when};
use serde_json::{Value, json};

use crate::fake::{Fake, INTRODUCES, Noted, prompt};
use crate::result;
use crate::stage::{Stage, within};

/// How an adapter starts an engine.
async fn started(make: impl FnOnce(Options) -> Adapter) -> Start {
    let noted = Noted::default();
    let adapter = make(Options::new().transport(noted.clone()));
    within(adapter.evaluate(&prompt::<()>("go"), &Session::new())).await.unwrap_err();
    noted.start()
}

#[tokio::test]
async fn permissions_are_bypassed_only_if_the_operator_says_so() {
    assert_eq!(ClientConfig::default().permission_mode(), None);
    let launch = started(Adapter::new).await.launch;
    assert_ne!(launch.permission_mode, Some(PermissionMode::BypassPermissions));
    assert!(!launch.allow_skip_permissions);
    let bypass = ClientConfig::default().with_permission_mode(PermissionMode::BypassPermissions);
    let launch = started(|options| Adapter::new(options).with_client(bypass)).await.launch;
    assert_eq!(launch.permission_mode, Some(PermissionMode::BypassPermissions));
    assert!(launch.allow_skip_permissions, "the mode of the configuration is explicit");
}

#[tokio::test]
async fn cwd_is_none_by_default() {
    assert_eq!(ClientConfig::default().cwd(), None);
    assert_eq!(started(Adapter::new).await.cwd, None);
    let config = ClientConfig::default().with_cwd("/tmp");
    let cwd = started(|options| Adapter::new(options).with_client(config)).await.cwd;
    assert_eq!(cwd.as_deref(), Some(Path::new("/tmp")));
}

#[tokio::test]
async fn the_cwd_is_the_workspace_unless_another_is_given() {
    let folder = tempfile::tempdir().unwrap();
    let workspace =
        Workspace::builder().mount(HostMount::new(folder.path()).mount_path("it")).open().unwrap();
    let prompt =
        ostler_prompt::Prompt::<()>::builder("test", "prompt").section(&workspace).build().unwrap();
    let noted = Noted::default();
    let adapter = Adapter::new(Options::new().transport(noted.clone()));
    within(adapter.evaluate(&prompt, &Session::new())).await.unwrap_err();
    assert_eq!(noted.start().cwd.as_deref(), Some(workspace.path()));
    let adapter = adapter.with_client(ClientConfig::default().with_cwd("/tmp"));
    within(adapter.evaluate(&prompt, &Session::new())).await.unwrap_err();
    assert_eq!(noted.start().cwd.as_deref(), Some(Path::new("/tmp")));
}

#[tokio::test]
async fn max_turns_is_none_by_default() {
    assert_eq!(ClientConfig::default().max_turns(), None);
    assert_eq!(started(Adapter::new).await.launch.limits.max_turns, None);
    let config = ClientConfig::default().with_max_turns(7);
    let launch = started(|options| Adapter::new(options).with_client(config)).await.launch;
    assert_eq!(launch.limits.max_turns, Some(7));
}

#[tokio::test]
async fn suppress_stderr_is_true_by_default_and_stderr_is_kept_for_errors_all_the_same() {
    assert!(ClientConfig::default().suppress_stderr());
    assert!(started(Adapter::new).await.stderr.is_none(), "there is no stderr callback");
    let fake = Fake::new(&["echo 'no licence' >&2; exit 3"]);
    let adapter = Adapter::new(fake.options());
    let error = within(adapter.evaluate(&prompt::<()>("go"), &Session::new())).await.unwrap_err();
    assert!(error.to_string().contains("no licence"), "{error}");
}

#[tokio::test]
async fn without_suppress_stderr_the_engines_stderr_is_passed_on() {
    // A separate process, whose stderr can be read.
    let test = "config::writes_to_its_error_output";
    let run = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--include-ignored", "--nocapture"])
        .env("OSTLER_TEST_CHILD", "1")
        .output()
        .unwrap();
    let stderr = String::from_utf8(run.stderr).unwrap();
    assert!(
        run.status.success() && stderr.contains("careful\n") && stderr.contains("listener too\n"),
        "{stderr}"
    );
}

#[tokio::test]
async fn writes_to_its_error_output() {
    if std::env::var_os("OSTLER_TEST_CHILD").is_none() {
        return;
    }
    let result = result!(r#""subtype":"success","is_error":false,"result":"ok""#);
    let fake = Fake::new(&[INTRODUCES, "echo careful >&2", result]);
    let options = fake.options().on_stderr(|_| eprintln!("listener too"));
    let adapter =
        Adapter::new(options).with_client(ClientConfig::default().with_suppress_stderr(false));
    within(adapter.evaluate(&prompt::<()>("go"), &Session::new())).await.unwrap();
}

#[tokio::test]
async fn stop_on_structured_output_is_true_by_default() {
    assert!(ClientConfig::default().stop_on_structured_output());
    // `answers::the_turn_ends_with_the_answer` tests the effect; the story on the older vendor program tests it for an
    // engine that would continue.
    let script =
        Script::new().rule(when(), reply().tool_use("StructuredOutput", json!({"value": 1})));
    let stage = Stage::new(script).await;
    let (session, prompt) = (Session::new(), prompt::<u8>("go"));
    let mut evaluation = stage.adapter().evaluate(&prompt, &session).stream();
    let mut last = None;
    while let Some(message) = within(evaluation.next()).await {
        last = message.as_result().cloned().or(last);
    }
    let reason = serde_json::to_value(last.unwrap().terminal_reason).unwrap();
    assert_eq!(reason, "hook_stopped");
}

/// Whether a command and an edit run in a mode.
async fn in_mode(mode: PermissionMode) -> (bool, bool) {
    let folder = tempfile::tempdir().unwrap();
    let (by_command, by_edit) = (folder.path().join("by_command"), folder.path().join("by_edit"));
    let script = Script::new()
        .rule(
            when().turn(0),
            reply()
                .tool_use("Bash", json!({"command": format!("touch {}", by_command.display())}))
                .tool_use("Write", json!({"file_path": by_edit, "content": "x"})),
        )
        .rule(when(), reply().text("Done."));
    let stage = Stage::new(script).await;
    let client = ClientConfig::default().with_permission_mode(mode).with_cwd(folder.path());
    let (session, prompt) = (Session::new(), prompt::<()>("go"));
    within(stage.adapter_with(client).evaluate(&prompt, &session)).await.unwrap();
    (by_command.exists(), by_edit.exists())
}

#[tokio::test]
async fn mode_bypass_permissions_allows_everything() {
    assert_eq!(in_mode(PermissionMode::BypassPermissions).await, (true, true));
}

#[tokio::test]
async fn mode_accept_edits_allows_edits() {
    let (_, by_edit) = in_mode(PermissionMode::AcceptEdits).await;
    assert!(by_edit);
}

#[tokio::test]
async fn mode_plan_changes_nothing() {
    assert_eq!(in_mode(PermissionMode::Plan).await, (false, false));
}

#[tokio::test]
async fn mode_default_denies_without_a_user_to_ask() {
    assert_eq!(in_mode(PermissionMode::Default).await, (false, false));
}

/// The sandbox settings that an engine gets.
async fn sandbox(settings: Value) -> Value {
    let sandbox: SandboxSettings = serde_json::from_value(settings).unwrap();
    let launch = started(|mut options| {
        options.context.sandbox = Some(sandbox);
        Adapter::new(options)
    })
    .await
    .launch;
    serde_json::from_str::<Value>(&launch.settings.unwrap()).unwrap()["sandbox"].clone()
}

#[tokio::test]
async fn sandbox_enabled_reaches_the_engine() {
    assert_eq!(sandbox(json!({"enabled": true})).await, json!({"enabled": true}));
}

#[tokio::test]
async fn sandbox_network_allowed_domains_reaches_the_engine() {
    let settings = json!({"enabled": true, "network": {"allowedDomains": []}});
    assert_eq!(sandbox(settings.clone()).await, settings);
}

#[tokio::test]
async fn sandbox_allow_unix_sockets_reaches_the_engine() {
    let settings = json!({"network": {"allowUnixSockets": ["/run/it.sock"]}});
    assert_eq!(sandbox(settings.clone()).await, settings);
    // At the top level, as the original writes it.
    let settings = json!({"allowUnixSockets": true});
    assert_eq!(sandbox(settings.clone()).await, settings);
}

#[tokio::test]
async fn sandbox_allow_unsandboxed_commands_reaches_the_engine() {
    let settings = json!({"allowUnsandboxedCommands": false});
    assert_eq!(sandbox(settings.clone()).await, settings);
}

#[tokio::test]
async fn sandbox_excluded_commands_reaches_the_engine() {
    let settings = json!({"excludedCommands": ["docker"]});
    assert_eq!(sandbox(settings.clone()).await, settings);
}

#[tokio::test]
async fn the_default_model_is_that_of_the_original() {
    assert_eq!(ModelConfig::default().model(), "claude-sonnet-4-5-20250929");
    let launch = started(Adapter::new).await.launch;
    assert_eq!(launch.model.name.as_deref(), Some("claude-sonnet-4-5-20250929"));
    let launch =
        started(|options| Adapter::new(options).with_model(ModelConfig::new("other"))).await;
    assert_eq!(launch.launch.model.name.as_deref(), Some("other"));
}

/// The error for one setting.
fn refused(settings: Value) -> String {
    let settings: ModelSettings = serde_json::from_value(settings).unwrap();
    ModelConfig::try_from(settings).unwrap_err().to_string()
}

#[test]
fn seed_is_refused_by_name() {
    assert_eq!(
        refused(json!({"seed": 7})),
        "the model setting `seed` is not supported by agent engines; leave it out"
    );
}

#[test]
fn stop_is_refused_by_name() {
    assert!(refused(json!({"stop": ["END"]})).contains("`stop`"));
}

#[test]
fn presence_penalty_is_refused_by_name() {
    assert!(refused(json!({"presence_penalty": 0.5})).contains("`presence_penalty`"));
}

#[test]
fn frequency_penalty_is_refused_by_name() {
    assert!(refused(json!({"frequency_penalty": 0.5})).contains("`frequency_penalty`"));
}

#[test]
fn other_unsupported_settings_are_refused_by_name_too() {
    assert!(refused(json!({"temperature": 0.5})).contains("`temperature`"));
    assert!(refused(json!({"top_p": 0.5})).contains("`top_p`"));
    assert_eq!(
        refused(json!({"max_tokens": 0})),
        "the model setting `max_tokens` must be 1 or more"
    );
    let unknown = serde_json::from_value::<ModelSettings>(json!({"tempreature": 0.5}));
    assert!(unknown.unwrap_err().to_string().contains("tempreature"));
}

#[tokio::test]
async fn max_tokens_holds_for_every_response() {
    let settings = ModelSettings { max_tokens: Some(123), ..ModelSettings::default() };
    let model: Result<ModelConfig, ConfigError> = settings.try_into();
    let stage = Stage::new(Script::new().rule(when(), reply().text("Done."))).await;
    let adapter = stage.adapter().with_model(model.unwrap());
    within(adapter.evaluate(&prompt::<()>("go"), &Session::new())).await.unwrap();
    assert_eq!(stage.api.requests()[0].body["max_tokens"], 123);
}

#[test]
fn configurations_are_values_that_do_not_change() {
    let before = ClientConfig::default();
    let after = before.clone().with_max_turns(3);
    assert_eq!((before.max_turns(), after.max_turns()), (None, Some(3)));
    let adapter = Adapter::new(Options::new());
    let other = adapter.clone().with_client(after);
    assert_eq!((adapter.client().max_turns(), other.client().max_turns()), (None, Some(3)));
}

// Mutant: only the command line refuses a missing sandbox, and root with bypassed permissions.
#[tokio::test]
async fn a_prompt_is_refused_without_its_sandbox_and_as_root_without_a_container() {
    let stage = Stage::new(Script::new().rule(when(), reply().text("Hi."))).await;
    let mut options = stage.options();
    options.context.sandbox = Some(serde_json::from_value(json!({"enabled": true})).unwrap());
    let adapter = Adapter::new(options).with_model(ModelConfig::new(crate::stage::MODEL));
    let error = within(adapter.evaluate(&prompt::<()>("go"), &Session::new())).await.unwrap_err();
    assert!(format!("{error:?}").contains("failIfUnavailable"), "{error:?}");
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let mut options =
        stage.options().env("IS_SANDBOX", "").permission_mode(PermissionMode::BypassPermissions);
    options.permissions.allow_dangerously_skip_permissions = true;
    let adapter = Adapter::new(options).with_model(ModelConfig::new(crate::stage::MODEL));
    let error = within(adapter.evaluate(&prompt::<()>("go"), &Session::new())).await.unwrap_err();
    assert!(format!("{error:?}").contains("as root"), "{error:?}");
}
