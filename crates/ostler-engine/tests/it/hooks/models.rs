//! Changes of the model: hooks run before and after.

use std::sync::Arc;
use std::time::Duration;

use ostler_engine::model::{ApiConfig, ApiModel, Credential};
use ostler_engine::session;
use ostler_proto::control::{AskEngine, Response, SetModel};
use ostler_proto::frame::ToHost;
use ostler_testkit::{Script, ScriptedApi, Status, Usage, reply, when};
use serde_json::{Value, json};

use super::{HookLog, callback, command, matcher, next_callback, says, specific};
use crate::host::TestHost;

fn script() -> Script {
    Script::new().rule(when(), reply().text("Done.").usage(Usage::tokens(900, 100)))
}

async fn want(host: &TestHost, model: Option<&str>) {
    let set = SetModel { model: model.map(str::to_owned), ..SetModel::default() };
    host.ask("model", AskEngine::SetModel(set)).await;
}

/// The answer to the request for a model.
async fn answer(host: &mut TestHost) -> Result<Value, String> {
    loop {
        if let ToHost::ControlResponse(response) = host.until("control_response").await
            && response.response.request_id() == Some("model".into())
        {
            return match response.response {
                Response::Success(success) => Ok(success.response.unwrap_or_default()),
                Response::Error(failure) => Err(failure.error),
                other => panic!("{other:?}"),
            };
        }
    }
}

async fn model_of_next_answer(host: &mut TestHost) -> String {
    host.prompt("again").await;
    host.result().await;
    host.api.requests().last().unwrap().model().to_owned()
}

#[tokio::test]
async fn hooks_receive_the_cost_of_a_switch_before_it_happens() {
    let mut host = callback(script(), "PreModelSwitch", matcher(json!({})), Ok(json!({}))).await;
    host.answer = None;
    host.prompt("go").await;
    host.result().await;
    want(&host, Some("claude-opus-4-6")).await;
    let (id, input) = next_callback(&mut host).await;
    for (field, value) in [
        ("from_model", json!("test-model")),
        ("to_model", json!("claude-opus-4-6")),
        ("requested_model", json!("claude-opus-4-6")),
        ("source", json!("sdk")),
        ("context_tokens", json!(1000)),
        ("prompt_cache_warm", json!(true)),
        ("cache_ttl", json!("5m")),
        ("estimated_cache_write_usd", json!(0.00625)),
        ("pricing", json!("catalog")),
    ] {
        assert_eq!(input[field], value, "{field}");
    }
    host.respond(id, Ok(json!({}))).await;
    assert_eq!(answer(&mut host).await, Ok(json!({"model": "claude-opus-4-6"})));
    assert_eq!(model_of_next_answer(&mut host).await, "claude-opus-4-6");
}

#[tokio::test]
async fn a_hook_that_objects_keeps_the_model_and_the_host_reads_why() {
    let deny = |word: &str| {
        let fields = json!({"permissionDecision": word, "permissionDecisionReason": "too dear"});
        says(&specific("PreModelSwitch", fields))
    };
    let block = says(&json!({"decision": "block", "reason": "too dear"}));
    let objections =
        [deny("deny"), deny("ask"), deny("maybe"), block, "echo too dear >&2; exit 2".to_owned()];
    for objection in objections {
        let mut host = command(script(), "PreModelSwitch", &objection).await;
        want(&host, Some("other-model")).await;
        let error = answer(&mut host).await.unwrap_err();
        assert!(error.contains("too dear"), "{objection}: {error}");
        assert_eq!(model_of_next_answer(&mut host).await, "test-model", "{objection}");
    }
}

#[tokio::test]
async fn if_a_hook_hangs_or_fails_the_model_stays() {
    let hooks = json!({"PreModelSwitch": [{"hooks": [{"type": "command", "command": "sleep 60", "timeout": 0.2}]}]});
    let mut host = TestHost::with(script(), |options| options.hooks = vec![hooks]).await;
    want(&host, Some("other-model")).await;
    assert!(answer(&mut host).await.unwrap_err().contains("timeout"));
    assert_eq!(model_of_next_answer(&mut host).await, "test-model");
}

#[tokio::test]
async fn hooks_that_allow_or_say_nothing_let_the_switch_happen() {
    let allow = says(&specific("PreModelSwitch", json!({"permissionDecision": "allow"})));
    for word in [allow.as_str(), "true", "exit 3"] {
        let mut host = command(script(), "PreModelSwitch", word).await;
        want(&host, Some("other-model")).await;
        assert_eq!(answer(&mut host).await, Ok(json!({"model": "other-model"})), "{word}");
        assert_eq!(model_of_next_answer(&mut host).await, "other-model", "{word}");
    }
}

#[tokio::test]
async fn a_prompt_waits_until_hooks_have_decided_about_its_model() {
    let mut host = callback(script(), "PreModelSwitch", matcher(json!({})), Ok(json!({}))).await;
    host.answer = None;
    want(&host, Some("second")).await;
    want(&host, Some("third")).await;
    host.prompt("go").await;
    for (from, to) in [("test-model", "second"), ("second", "third")] {
        let (id, input) = next_callback(&mut host).await;
        assert_eq!((&input["from_model"], &input["to_model"]), (&json!(from), &json!(to)));
        assert!(host.api.requests().is_empty());
        host.respond(id, Ok(json!({}))).await;
    }
    host.result().await;
    assert_eq!(host.api.requests()[0].model(), "third");
}

#[tokio::test]
async fn the_new_model_reads_the_text_of_hooks_after_the_switch() {
    let context = specific("PostModelSwitch", json!({"additionalContext": "be brief"}));
    let mut host = command(script(), "PostModelSwitch", &says(&context)).await;
    want(&host, Some("other-model")).await;
    answer(&mut host).await.unwrap();
    model_of_next_answer(&mut host).await;
    let transcript = host.api.requests().last().unwrap().transcript();
    assert!(transcript.contains("be brief"), "{transcript}");
}

#[tokio::test]
async fn switching_to_the_default_model_and_to_the_same_model() {
    let ledger = HookLog::new();
    let hooks = ledger.hooks(&["PreModelSwitch", "PostModelSwitch"]);
    let mut host = TestHost::with(script(), |options| options.hooks = vec![hooks]).await;
    want(&host, Some("test-model")).await;
    answer(&mut host).await.unwrap();
    assert_eq!(ledger.entries().len(), 0, "nothing changes");
    want(&host, Some("other-model")).await;
    answer(&mut host).await.unwrap();
    want(&host, None).await;
    answer(&mut host).await.unwrap();
    model_of_next_answer(&mut host).await;
    let entries = ledger.entries();
    let requested: Vec<_> = entries.iter().map(|entry| &entry["requested_model"]).collect();
    assert_eq!(
        requested,
        [&json!("other-model"), &json!("other-model"), &json!(null), &json!(null)]
    );
    assert_eq!(entries[2]["to_model"], "test-model");
    assert_eq!(entries[0]["pricing"], "default", "an unknown price is assumed");
}

#[tokio::test]
async fn a_matcher_fits_a_model_in_all_spellings_and_an_unknown_model_fits_every_matcher() {
    let hook = json!({"PreModelSwitch": [{"matcher": "claude-opus-4-6",
        "hooks": [{"type": "command", "command": "exit 2"}]}]});
    for (model, is_kept) in [
        ("claude-opus-4-6", true),
        ("us.anthropic.claude-opus-4-6-20260101-v1:0", true),
        ("claude-haiku-4-5", false),
        ("unknown-model", true),
    ] {
        let mut host = TestHost::with(script(), |options| options.hooks = vec![hook.clone()]).await;
        want(&host, Some(model)).await;
        assert_eq!(answer(&mut host).await.is_err(), is_kept, "{model}");
    }
}

#[tokio::test]
async fn a_fallback_to_another_model_is_reported_and_hooks_cannot_object() {
    let script = Script::new()
        .rule(when().model("second"), reply().text("Done."))
        .rule(when(), reply().status(Status::new(529)));
    let api = ScriptedApi::start(script).await;
    let mut config = ApiConfig::new(api.base_url(), Credential::Key("test".into()), "test-model");
    config.retry.first_delay = Duration::from_millis(1);
    config.retry.longest_delay = Duration::from_millis(1);
    config.fallback_models = vec!["second".into()];
    let mut options = TestHost::options(&api);
    options.model = Arc::new(ApiModel::new(config).unwrap());
    let ledger = HookLog::new();
    let hook = |command: String| json!([{"hooks": [{"type": "command", "command": command}]}]);
    options.hooks = vec![json!({
        "PreModelSwitch": hook("exit 2".to_owned()),
        "PostModelSwitch": hook(ledger.note("all")),
        "SessionEnd": hook("true".to_owned()),
    })];
    let connection = session::start(options).unwrap();
    let mut host = TestHost { api, connection, answer: None, seen: Vec::new() };
    super::register(&mut host, "PostModelSwitch", matcher(json!({}))).await;
    host.prompt("go").await;
    let (id, input) = next_callback(&mut host).await;
    assert_eq!(
        (&input["from_model"], &input["to_model"], &input["source"], &input["requested_model"]),
        (&json!("test-model"), &json!("second"), &json!("auto"), &json!(null))
    );
    host.respond(id, Ok(json!({}))).await;
    assert_eq!(host.result().await.result.as_deref(), Some("Done."));
}
