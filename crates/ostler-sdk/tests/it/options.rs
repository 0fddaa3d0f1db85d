//! Options: how they reach the engine, and which contradictions are refused before an engine starts.

use ostler_sdk::hook::{HookOutput, PreToolUseInput};
use ostler_sdk::mcp::Server;
use ostler_sdk::options::{
    Effort, PermissionMode, ReplayMatch, ReplayTiming, SettingSource, SystemPrompt, Thinking,
    ThinkingDisplay, ToolSet,
};
use ostler_sdk::{Answers, Client, Decision, Dialog, ErrorKind, Hook, Options};
use serde_json::{Value, json};

use crate::fake::{Fake, KEEPS_INTRODUCTION, within};

async fn refusal(change: impl FnOnce(&mut Options)) -> String {
    let fake = Fake::new(&["touch started"]);
    let mut options = fake.options();
    change(&mut options);
    let error = Client::connect(options).await.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Usage, "{error}");
    assert!(!fake.folder.path().join("started").exists());
    error.to_string()
}

#[tokio::test]
async fn the_error_for_contradictory_options_names_them() {
    use ostler_proto::permission::PermissionMode::BypassPermissions;
    let text = refusal(|options| options.permissions.mode = BypassPermissions).await;
    assert!(text.contains("allow_dangerously_skip_permissions"), "{text}");
    let text = refusal(|options| options.limits.max_turns = Some(0)).await;
    assert!(text.contains("max_turns"), "{text}");
    for dollars in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let text = refusal(|options| options.limits.max_budget_usd = Some(dollars)).await;
        assert!(text.contains("max_budget_usd"), "{text}");
    }
    let text = refusal(|options| {
        options.model.name = Some("a".to_owned());
        options.model.fallback = Some("a".to_owned());
    })
    .await;
    assert!(text.contains("fallback"), "{text}");
    let text = refusal(|options| options.session.choice.fork = true).await;
    assert!(text.contains("fork"), "{text}");
    let text = refusal(|options| options.session.choice.resume_at = Some("u".to_owned())).await;
    assert!(text.contains("resume_at"), "{text}");
    let text = refusal(|options| {
        options.session.choice.resume = Some("s".to_owned());
        options.session.choice.go_on = true;
    })
    .await;
    assert!(text.contains("two conversations"), "{text}");
    let text = refusal(|options| {
        options.context.settings = Some("settings.json".to_owned());
        options.context.sandbox = Some(ostler_proto::sandbox::SandboxSettings::default());
    })
    .await;
    assert!(text.contains("sandbox"), "{text}");
}

#[tokio::test]
async fn every_option_is_one_argument_and_does_not_pass_through_a_shell() {
    let fake = Fake::new(&[r#"for word in "$@"; do printf '%s\n' "$word" >> args; done; exit 1"#]);
    let mut options = fake.options().model("$(touch hacked)").allow(["Bash(git log:*)"]);
    options.context.system_prompt = SystemPrompt::Text("; touch hacked".to_owned());
    assert!(Client::connect(options).await.is_err());
    let args = std::fs::read_to_string(fake.folder.path().join("args")).unwrap();
    assert!(args.contains("$(touch hacked)") && args.contains("; touch hacked"), "{args}");
    assert!(!fake.folder.path().join("hacked").exists());
}

/// The arguments that an engine is started with.
async fn arguments(change: impl FnOnce(Options) -> Options) -> Vec<String> {
    let fake = Fake::new(&[r#"for word in "$@"; do printf '%s\n' "$word" >> args; done; exit 1"#]);
    assert!(Client::connect(change(fake.options())).await.is_err());
    let args = std::fs::read_to_string(fake.folder.path().join("args")).unwrap();
    args.lines().map(str::to_owned).collect()
}

type Change = fn(Options) -> Options;

/// A change of one field.
macro_rules! set {
    ($($field:ident).+ = $value:expr) => {
        |mut options: Options| {
            options.$($field).+ = $value;
            options
        }
    };
}

#[rustfmt::skip]
fn every_option() -> Vec<(Change, &'static str)> {
    fn some(text: &str) -> Option<String> {
        Some(text.to_owned())
    }
    vec![
        (|options| options.model("m"), "--model=m"),
        (set!(model.fallback = some("f")), "--fallback-model=f"),
        (set!(model.thinking = Some(Thinking::Adaptive)), "--thinking=adaptive"),
        (set!(model.thinking = Some(Thinking::Disabled)), "--thinking=disabled"),
        (set!(model.thinking = Some(Thinking::Budget(9))), "--max-thinking-tokens=9"),
        (set!(model.thinking_display = Some(ThinkingDisplay::Omitted)), "--thinking-display=omitted"),
        (set!(model.thinking_display = Some(ThinkingDisplay::Summarized)), "--thinking-display=summarized"),
        (|options| options.effort(Effort::Low), "--effort=low"),
        (|options| options.effort(Effort::Medium), "--effort=medium"),
        (|options| options.effort(Effort::High), "--effort=high"),
        (|options| options.effort(Effort::Xhigh), "--effort=xhigh"),
        (|options| options.effort(Effort::Max), "--effort=max"),
        (set!(model.betas = vec!["a".to_owned(), "b".to_owned()]), "--betas=a,b"),
        (|options| options.max_turns(3), "--max-turns=3"),
        (|options| options.max_budget_usd(0.5), "--max-budget-usd=0.5"),
        (set!(limits.task_budget = Some(7)), "--task-budget=7"),
        (set!(context.additional_directories = vec!["/a".into(), "-b".into()]), "--add-dir=/a --add-dir=-b"),
        (|options| options.system_prompt("s"), "--system-prompt=s"),
        (|options| options.preset_prompt(), ""),
        (set!(context.system_prompt = SystemPrompt::Preset { append: some("a") }), "--append-system-prompt=a"),
        (set!(context.setting_sources = vec![SettingSource::User, SettingSource::Project, SettingSource::Local]), "--setting-sources=user,project,local"),
        (set!(context.settings = some("{}")), "--settings {}"),
        (set!(context.sandbox = Some(serde_json::from_value(json!({"enabled": true})).unwrap())), r#"--settings {"sandbox":{"enabled":true}}"#),
        (|mut options| {
            options.context.settings = some(r#"{"model":"m"}"#);
            options.context.sandbox = Some(serde_json::from_value(json!({"enabled": true})).unwrap());
            options
        }, r#"--settings {"model":"m","sandbox":{"enabled":true}}"#),
        (set!(context.agent = some("a")), "--agent=a"),
        (set!(context.plugins = vec!["/p".into()]), "--plugin-dir=/p"),
        (set!(tools.base = Some(ToolSet::Default)), "--tools=default"),
        (set!(tools.base = Some(ToolSet::Only(vec!["Read".to_owned()]))), "--tools=Read"),
        (set!(tools.base = Some(ToolSet::Only(Vec::new()))), "--tools="),
        (|options| options.server(Server::new("calc", "1")), r#"--mcp-config {"mcpServers":{"calc":{"type":"sdk","name":"calc"}}}"#),
        (|options| options.mcp_server("s", serde_json::from_value(json!({"type": "stdio", "command": "c"})).unwrap()), r#"--mcp-config {"mcpServers":{"s":{"type":"stdio","command":"c"}}}"#),
        (set!(tools.strict_mcp = true), "--strict-mcp-config"),
        (|options| options.permission_mode(PermissionMode::Plan), "--permission-mode=plan"),
        (set!(permissions.allow_dangerously_skip_permissions = true), "--allow-dangerously-skip-permissions"),
        (|options| options.allow(["Read", "Bash(git:*)"]), "--allowedTools=Read,Bash(git:*)"),
        (|options| options.deny(["Write"]), "--disallowedTools=Write"),
        (|options| options.on_permission(|_| async { Decision::allow() }), "--permission-prompt-tool=stdio"),
        (|options| options.on_question(|_| async { Answers::new() }), "--permission-prompt-tool=stdio"),
        (|options| options.resume("s"), "--resume=s"),
        (|options| options.resume("s").fork(), "--resume=s --fork-session"),
        (|options| options.continue_newest(), "--continue"),
        (|mut options| {
            options.session.choice.resume_at = some("u");
            options.resume("s")
        }, "--resume=s --resume-session-at=u"),
        (set!(session.choice.id = some("i")), "--session-id=i"),
        (set!(session.ephemeral = true), "--no-session-persistence"),
        (|options| options.partial_messages(), "--include-partial-messages"),
        (set!(output.hook_events = true), "--include-hook-events"),
        (set!(output.replay_user_messages = true), "--replay-user-messages"),
        (set!(output.schema = Some(json!({"type": "object"}))), r#"--json-schema={"type":"object"}"#),
        (|options| options.record("/r"), "--record=/r"),
        (|options| options.replay("/r"), "--replay=/r"),
        (|options| options.replay("/r").replay_tools(), "--replay=/r --replay-tools=recorded"),
        (set!(tape.replay_match = Some(ReplayMatch::Loose)), "--replay-match=loose"),
        (set!(tape.replay_timing = Some(ReplayTiming::Recorded)), "--replay-timing=recorded"),
        (|mut options| {
            options.session.choice.resume_at = some("u");
            options.session.choice.resume_drops_turn = some("v");
            options.resume("s")
        }, "--resume=s --resume-session-at=u --resume-drops-turn=v"),
        (set!(engine.extra_args = vec![("a".to_owned(), None), ("b".to_owned(), some("c"))]), "--a --b=c"),
    ]
}

#[tokio::test]
async fn every_option_has_its_arguments() {
    let always = arguments(|options| options).await;
    let defaults = "--output-format=stream-json --verbose --input-format=stream-json \
                    --permission-mode=default --system-prompt= --setting-sources=";
    assert_eq!(always.join(" "), defaults);
    for (change, expected) in every_option() {
        let mut args = arguments(change).await;
        args.retain(|arg| !always.contains(arg));
        assert_eq!(args.join(" "), expected);
    }
}

/// The `initialize` request that the engine receives.
async fn introduction(change: impl FnOnce(Options) -> Options) -> Value {
    let fake = Fake::new(&[KEEPS_INTRODUCTION, "cat > /dev/null"]);
    drop(within(Client::connect(change(fake.options()))).await.unwrap());
    let line = std::fs::read_to_string(fake.folder.path().join("introduction")).unwrap();
    let mut request = serde_json::from_str::<Value>(&line).unwrap()["request"].take();
    assert_eq!(request["subtype"].take(), "initialize");
    request.as_object_mut().unwrap().remove("subtype");
    request
}

#[rustfmt::skip]
fn every_option_of_the_introduction() -> Vec<(Change, Value)> {
    vec![
        (|options| options, json!({})),
        (|options| options.server(Server::new("calc", "1")), json!({"sdkMcpServers": ["calc"]})),
        (|options| options.agent("tester", serde_json::from_value(json!({"description": "d", "prompt": "p"})).unwrap()), json!({"agents": {"tester": {"description": "d", "prompt": "p"}}})),
        (|options| options.hook(Hook::new(|_: PreToolUseInput, _| async { HookOutput::none() }).matching("Bash")), json!({"hooks": {"PreToolUse": [{"matcher": "Bash", "hookCallbackIds": ["hook_0"]}]}})),
        (|options| options.on_dialog(["pick"], |_| async { Dialog::cancelled() }), json!({"supportedDialogKinds": ["pick"]})),
        (set!(output.subagent_text = true), json!({"forwardSubagentText": true})),
    ]
}

#[tokio::test]
async fn every_option_without_an_argument_is_part_of_initialize() {
    for (change, expected) in every_option_of_the_introduction() {
        assert_eq!(introduction(change).await, expected);
    }
}

/// The lines of the file `output`, which the engine wrote before it ended.
async fn output_of(engine: &str, change: impl FnOnce(Options) -> Options) -> Vec<String> {
    let fake = Fake::new(&[engine, "exit 1"]);
    // The engine may run as another user, who must be able to write here.
    let all_users = std::os::unix::fs::PermissionsExt::from_mode(0o777);
    std::fs::set_permissions(fake.folder.path(), all_users).unwrap();
    assert!(within(Client::connect(change(fake.options()))).await.is_err());
    let output = std::fs::read_to_string(fake.folder.path().join("output")).unwrap();
    output.lines().map(str::to_owned).collect()
}

#[tokio::test]
async fn the_environment_is_added_to_ours_or_replaces_it() {
    let variables = |replaces| async move {
        let change = |mut options: Options| {
            options.engine.env.replaces = replaces;
            options.session.file_checkpointing = true;
            options.env("GREETING", "a b;c")
        };
        output_of("/usr/bin/env > output", change).await
    };
    // Cargo sets this variable for every test.
    let inherited = format!("CARGO_MANIFEST_DIR={}", env!("CARGO_MANIFEST_DIR"));
    let added = variables(false).await;
    let alone = variables(true).await;
    assert!(added.contains(&inherited) && !alone.contains(&inherited), "{alone:?}");
    for expected in [
        "GREETING=a b;c",
        "CLAUDE_CODE_ENTRYPOINT=sdk-rs",
        "CLAUDE_CODE_SDK_READS_SESSION_STATE=1",
        "CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING=true",
    ] {
        let expected = expected.to_owned();
        assert!(added.contains(&expected) && alone.contains(&expected), "{expected}");
    }
}

#[tokio::test]
async fn an_engine_runs_as_the_user_of_the_options() {
    use nix::unistd::{Uid, User, geteuid};
    // Only root can become another user; other users can only choose themselves.
    let user = match geteuid().is_root() {
        true => User::from_name("nobody").unwrap().expect("the user exists"), // plain-english: the name of a system user
        false => User::from_uid(Uid::effective()).unwrap().expect("the current user has a name"),
    };
    let ids = format!("{} {}", user.uid, user.gid);
    for name in [user.name, user.uid.to_string()] {
        let run_as = |mut options: Options| {
            options.engine.user = Some(name);
            options
        };
        let printed = output_of("echo $(id -u) $(id -g) > output", run_as).await;
        assert_eq!(printed.join("\n"), ids);
    }
}

#[tokio::test]
async fn the_error_for_a_user_that_does_not_exist_names_it() {
    let text = refusal(|options| options.engine.user = Some("no-such-user".to_owned())).await;
    assert!(text.contains("engine.user: no-such-user: this user does not exist"), "{text}");
}
