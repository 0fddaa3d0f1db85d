//! What a host sends at the start and while the session runs: callbacks, models, limits, settings, notices.

use std::collections::BTreeMap;

use ostler_engine::session::Notice;
use ostler_engine::store::{LineContext, Projects, SessionStart, StartFrom};
use ostler_proto::agent::AgentDefinition;
use ostler_proto::control::{AskEngine, AskHost, Initialize, SetModel};
use ostler_proto::frame::ToHost;
use ostler_proto::hook::HookMatcher;
use ostler_proto::message::System;
use ostler_proto::permission::PermissionMode;
use ostler_testkit::{Script, Usage, reply, when};
use serde_json::{Value, json};

use crate::host::TestHost;
use crate::modes::Room;

fn calls_once(tool: &str, input: Value) -> Script {
    Script::new()
        .rule(when().turn(0), reply().tool_use(tool, input))
        .rule(when(), reply().text("Done."))
}

// Mutant: `initialize` adds the callbacks to those that are there.
#[tokio::test]
async fn a_host_that_sends_initialize_again_has_each_callback_once() {
    for n_times in [1, 2, 3] {
        let mut host = TestHost::start(calls_once("Look", json!({"word": "x"}))).await;
        for _ in 0..n_times {
            let matcher =
                HookMatcher { hook_callback_ids: vec!["hook_0".into()], ..HookMatcher::default() };
            let hooks = BTreeMap::from([("PreToolUse".to_owned(), vec![matcher])]);
            let initialize = Initialize { hooks: Some(hooks), ..Initialize::default() };
            host.ask("init", AskEngine::Initialize(Box::new(initialize))).await;
            host.until("control_response").await;
        }
        host = host.answering(json!({}));
        host.prompt("go").await;
        host.result().await;
        let is_callback = |frame: &&ToHost| match frame {
            ToHost::ControlRequest(request) => matches!(request.request, AskHost::HookCallback(_)),
            _ => false,
        };
        assert_eq!(host.seen.iter().filter(is_callback).count(), 1, "{n_times}");
    }
}

// Mutant: notices are dropped, or sent with every turn.
#[tokio::test]
async fn notices_about_the_start_are_sent_once_after_init() {
    let mut host = TestHost::with(Script::new().rule(when(), reply().text("Hi.")), |options| {
        options.notices = vec![Notice { content: "take care".to_owned(), level: "warning" }];
    })
    .await;
    for _ in 0..2 {
        host.prompt("go").await;
        host.result().await;
    }
    let positions: Vec<usize> = host
        .seen
        .iter()
        .enumerate()
        .filter(|(_, frame)| match frame {
            ToHost::System(System::Informational(notice)) => notice.content == "take care",
            _ => false,
        })
        .map(|(at, _)| at)
        .collect();
    let init = host.story().iter().position(|line| line == "system init").unwrap();
    assert_eq!(positions, [init + 1]);
}

async fn set_model(host: &mut TestHost, model: &str) -> Value {
    let set = SetModel { model: Some(model.to_owned()), ..SetModel::default() };
    host.ask("model", AskEngine::SetModel(set)).await;
    serde_json::to_value(host.until("control_response").await).unwrap()["response"].clone()
}

async fn apply(host: &mut TestHost, settings: Value) -> Value {
    let request = json!({"subtype": "apply_flag_settings", "settings": settings});
    host.ask("apply", serde_json::from_value(request).unwrap()).await;
    serde_json::to_value(host.until("control_response").await).unwrap()["response"].clone()
}

async fn answering_model(host: &mut TestHost) -> String {
    let before = host.api.requests().len();
    host.prompt("go").await;
    host.result().await;
    host.api.requests()[before].model().to_owned()
}

// Mutant: `want_model` takes the name as it is written.
#[tokio::test]
async fn short_names_of_models_are_resolved_wherever_they_are_given() {
    let hi = || Script::new().rule(when(), reply().text(r#"{"ok": true}"#));
    for (short, full) in
        [("haiku", "claude-haiku-"), ("sonnet", "claude-sonnet-"), ("opus", "claude-opus-")]
    {
        let mut host = TestHost::start(hi()).await;
        let response = set_model(&mut host, short).await;
        assert!(response["response"]["model"].as_str().unwrap().starts_with(full), "{response}");
        assert!(answering_model(&mut host).await.starts_with(full), "set_model {short}");
        let mut host = TestHost::start(hi()).await;
        apply(&mut host, json!({ "model": short })).await;
        assert!(answering_model(&mut host).await.starts_with(full), "apply_flag_settings {short}");
        let hook = json!({"type": "prompt", "prompt": "ok?", "model": short});
        let mut host = TestHost::with(hi(), |options| {
            options.hooks = vec![json!({"UserPromptSubmit": [{"hooks": [hook]}]})];
        })
        .await;
        assert!(answering_model(&mut host).await.starts_with(full), "prompt hook {short}");
    }
    let mut host = TestHost::start(hi()).await;
    set_model(&mut host, "my-model").await;
    assert_eq!(answering_model(&mut host).await, "my-model", "a full name stays as it is");
}

// Mutant: a model without a price counts as free while the turn runs. Seen: the turn then never ends.
#[tokio::test]
async fn a_limit_in_dollars_refuses_a_model_without_a_price() {
    let call = reply()
        .model("my-proxy-model")
        .tool_use("Look", json!({"word": "x"}))
        .usage(Usage::tokens(900, 100));
    let script = Script::new().rule(when(), call);
    let mut host =
        TestHost::with(script, |options| options.launch.limits.max_budget_usd = Some(9.0)).await;
    let refused = set_model(&mut host, "my-proxy-model").await;
    assert!(refused["error"].as_str().unwrap().contains("price"), "{refused}");
    host.prompt("spend").await;
    let result = host.result().await;
    assert_eq!(result.subtype.as_str(), "error_max_budget_usd");
    let error = result.errors.unwrap().join(" ");
    assert!(error.contains("my-proxy-model") && error.contains("is unknown"), "{error}");
    assert_eq!(host.api.requests().len(), 1);
}

// Mutant: settings are applied one by one, until one is wrong.
#[tokio::test]
async fn settings_with_one_invalid_part_change_nothing() {
    for wrong in [
        json!({"env": {"OSTLER_TEST_APPLIED": "1"}, "model": 5}),
        json!({"model": "claude-haiku-5-5", "env": {"A": 1}}),
        json!({"model": "claude-haiku-5-5", "env": "A=1"}),
        json!({"model": "claude-haiku-5-5", "effortLevel": "heroic"}),
        json!({"model": "claude-haiku-5-5", "permissions": {"deny": ["Bash("]}}),
        json!({"model": "claude-haiku-5-5", "sandbox": {"enabled": true}}),
    ] {
        let hi = Script::new().rule(when(), reply().text("Hi."));
        let mut host = TestHost::start(hi).await;
        let refused = apply(&mut host, wrong.clone()).await;
        assert_eq!(refused["subtype"], "error", "{wrong}: {refused}");
        assert_eq!(answering_model(&mut host).await, "test-model", "{wrong}");
        host.ask("s", AskEngine::GetSettings(Default::default())).await;
        let response = serde_json::to_value(host.until("control_response").await).unwrap();
        assert!(!response.to_string().contains("OSTLER_TEST_APPLIED"), "{response}");
    }
}

/// The result of a command of an agent with these tools, in `bypassPermissions`.
async fn command_of_agent(as_leader: bool, tools: &[&str], command: &str) -> String {
    let room = Room::new();
    let tools = tools.iter().map(|tool| (*tool).to_owned()).collect();
    let kind = AgentDefinition {
        description: "works".into(),
        prompt: "You are a worker.".into(),
        tools: Some(tools),
        ..AgentDefinition::default()
    };
    let task = json!({"description": "x", "prompt": "sub: go", "subagent_type": "worker"});
    let call = || reply().tool_use("Bash", json!({ "command": command }));
    let script = match as_leader {
        true => Script::new().rule(when().turn(0), call()).rule(when(), reply().text("Done.")),
        false => Script::new()
            .rule(when().prompt_contains("sub:").has_tool_result(true), reply().text("Done."))
            .rule(when().prompt_contains("sub:"), call())
            .rule(when().has_tool_result(true), reply().text("Done."))
            .rule(when(), reply().tool_use("Agent", task)),
    };
    let mut host = TestHost::with(script, |options| {
        room.furnish(options, PermissionMode::BypassPermissions, &[]);
        options.launch.agent = as_leader.then(|| "worker".to_owned());
    })
    .await;
    let agents = BTreeMap::from([("worker".to_owned(), kind)]);
    let initialize = Initialize { agents: Some(agents), ..Initialize::default() };
    host.ask("init", AskEngine::Initialize(Box::new(initialize))).await;
    host.until("control_response").await;
    host.prompt("go").await;
    host.result().await;
    let is_result = |line: &&String| line.contains("= ran") || line.contains("failed: ");
    host.story().iter().find(is_result).cloned().unwrap_or_else(|| format!("{:?}", host.story()))
}

// Mutant: the content of an agent's tools is cut off (`Bash(git:*)` is `Bash`), or its leader is not limited.
#[tokio::test]
async fn an_agent_may_use_its_tools_only_as_their_content_allows() {
    for as_leader in [false, true] {
        for (tools, command, runs) in [
            (&["Bash(git:*)"][..], "git log", true),
            (&["Bash(git:*)"], "touch x", false),
            (&["Bash(git:*)"], "git log; touch x", false),
            (&["Bash(git:*)"], "git log > x", false),
            (&["Bash(git:*)"], "git log $(touch x)", false),
            (&["Bash(git:*)", "Bash(touch:*)"], "git log && touch x", true),
            (&["Bash(git:*)", "Bash"], "touch x", true),
            (&["Bash"], "touch x", true),
        ] {
            let became = command_of_agent(as_leader, tools, command).await;
            assert_eq!(became.contains("= ran"), runs, "{as_leader} {tools:?} {command}: {became}");
            if !runs {
                assert!(became.contains("may only use Bash(git:*)"), "{became}");
            }
        }
    }
}

// Mutant: without `model_trouble` in `apply_settings` the environment changes and the model does not.
#[tokio::test]
async fn settings_with_a_model_that_cannot_be_used_change_nothing() {
    let script = Script::new().rule(when(), reply().text("{{prompt}}"));
    let hook =
        json!({"UserPromptSubmit": [{"hooks": [{"type": "command", "command": "echo [$MINE]"}]}]});
    let mut host = TestHost::with(script, |options| {
        options.hooks = vec![hook];
        options.launch.limits.max_budget_usd = Some(1.0);
    })
    .await;
    let response = apply(&mut host, json!({"env": {"MINE": "x"}, "model": "unknown-model"})).await;
    assert_eq!(response["subtype"], "error", "{response}");
    host.prompt("go").await;
    host.result().await;
    let sent = host.api.requests()[0].body.to_string();
    assert!(sent.contains("[]") && !sent.contains("[x]"), "{sent}");
}

// Mutant: without the notice in `start` the user is not warned.
#[tokio::test]
async fn the_user_is_warned_of_a_session_that_is_open_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    let projects = Projects::new(folder.path());
    let cwd = folder.path().to_owned();
    let scene = || LineContext { cwd: cwd.clone(), version: "0".to_owned(), entrypoint: None };
    let hi = || Script::new().rule(when(), reply().text("Hi."));
    let opened = projects.open(scene(), &SessionStart::default()).unwrap();
    let mut first = TestHost::with(hi(), |options| options.opened = Some(opened)).await;
    first.prompt("go").await;
    first.result().await;
    let latest = SessionStart { begin: StartFrom::Latest, ..SessionStart::default() };
    let opened = projects.open(scene(), &latest).unwrap();
    let mut second = TestHost::with(hi(), |options| options.opened = Some(opened)).await;
    second.prompt("go").await;
    second.result().await;
    let is_warning = |frame: &ToHost| match frame {
        ToHost::System(System::Informational(notice)) => notice.content.contains("--fork-session"),
        _ => false,
    };
    assert!(second.seen.iter().any(is_warning) && !first.seen.iter().any(is_warning));
}

// Mutant: `take_offers` that reports none.
#[tokio::test]
async fn fields_of_the_hosts_agents_without_effect_are_reported() {
    let mut host = TestHost::start(Script::new().rule(when(), reply().text("Hi."))).await;
    let agents = json!({"agents": {"a": {"description": "x", "prompt": "y", "memory": "user"}}});
    let initialize: Initialize = serde_json::from_value(agents).unwrap();
    host.ask("init", AskEngine::Initialize(Box::new(initialize))).await;
    host.until("control_response success").await;
    host.prompt("go").await;
    host.result().await;
    let seen = serde_json::to_string(&host.seen).unwrap();
    assert!(seen.contains("the agent a is used without memory"), "{seen}");
}
