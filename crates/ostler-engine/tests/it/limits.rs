//! Fallback models, budgets that subagents share, heartbeats, and the reasons for a missing answer.

use std::sync::Arc;
use std::time::Duration;

use ostler_engine::model::{ApiConfig, ApiModel, Credential};
use ostler_proto::frame::ToHost;
use ostler_proto::message::System;
use ostler_testkit::{Script, Status, Usage, reply, when};
use serde_json::json;

use crate::host::TestHost;

/// Seen to fail if a model that was overloaded once is never asked again in the session.
#[tokio::test]
async fn the_first_model_is_asked_again_at_the_next_prompt() {
    let script = Script::new()
        .rule(when().model("first").prompt_contains("again"), reply().text("First."))
        .rule(when().model("first"), reply().status(Status::new(529)))
        .rule(when().model("second"), reply().text("Second."));
    let mut host = TestHost::start(script).await;
    let mut config = ApiConfig::new(host.api.base_url(), Credential::Key("k".into()), "first");
    config.retry.first_delay = Duration::from_millis(1);
    config.retry.longest_delay = Duration::from_millis(1);
    config.fallback_models = vec!["second".into()];
    let mut options = TestHost::options(&host.api);
    options.model = Arc::new(ApiModel::new(config).unwrap());
    host.connection = ostler_engine::session::start(options).unwrap();
    for (prompt, expected) in [("go", "Second."), ("again", "First.")] {
        host.prompt(prompt).await;
        assert_eq!(host.result().await.result.as_deref(), Some(expected));
    }
}

/// Seen to fail if every turn has a new counter, which the tool that starts subagents does not share.
#[tokio::test]
async fn the_token_limit_holds_for_a_turn_with_all_its_subagents() {
    let task =
        json!({"description": "look", "prompt": "sub: look", "subagent_type": "general-purpose"});
    let script = || {
        let delegate = reply().tool_use("Agent", task.clone()).usage(Usage::tokens(300, 100));
        let call = reply().tool_use("Look", json!({"word": "x"})).usage(Usage::tokens(300, 100));
        Script::new()
            .rule(when().prompt_contains("sub:").turn(0), call)
            .rule(
                when().prompt_contains("sub:"),
                reply().text("Report.").usage(Usage::tokens(300, 100)),
            )
            .rule(when().turn(0), delegate)
            .rule(when(), reply().text("Done.").usage(Usage::tokens(300, 100)))
    };
    // 400 tokens of the conversation itself, 800 of the subagent, and 400 more for the last request.
    for (limit, n_requests) in [(700, 2), (1_200, 3), (10_000, 4)] {
        let mut host = TestHost::with(script(), |options| options.max_tokens = Some(limit)).await;
        host.prompt("delegate").await;
        let result = host.result().await;
        assert_eq!(host.api.requests().len(), n_requests, "{limit}: {:#?}", host.story());
        assert_eq!(result.is_error, n_requests < 4, "{limit}");
        let reached = result.extra.get("limit_reached").cloned();
        assert_eq!(reached, (n_requests < 4).then(|| json!("tokens")), "{limit}");
    }
}

/// Mutant: `over_limit` is asked only after a response.
#[tokio::test]
async fn with_a_budget_that_an_earlier_prompt_used_up_the_model_is_not_asked() {
    let spend = reply().model("claude-opus-4-5").text("Here.").usage(Usage::tokens(900, 100));
    let script = Script::new().rule(when(), spend);
    let mut host =
        TestHost::with(script, |options| options.launch.limits.max_budget_usd = Some(0.001)).await;
    for _ in 0..2 {
        host.prompt("go").await;
        assert_eq!(host.result().await.subtype.as_str(), "error_max_budget_usd");
    }
    assert_eq!(host.api.requests().len(), 1);
}

/// Mutant: `progress::tell` left out of the call.
#[tokio::test]
async fn a_long_running_tool_sends_heartbeats_and_none_after_its_end() {
    let script = Script::new().rule(when(), reply().tool_use("Hang", json!({"word": "on"})));
    let mut host = TestHost::with(script, |options| {
        options.env.variables.insert("OSTLER_HEARTBEAT_MS".to_owned(), "500".to_owned());
    })
    .await;
    host.prompt("go").await;
    for (n, seconds) in [(0, 0.5), (1, 1.0)] {
        let ToHost::ToolProgress(progress) = host.until("tool_progress").await else {
            unreachable!()
        };
        let call = progress.parent_tool_use_id.clone().unwrap();
        assert_eq!(progress.tool_use_id.as_str(), format!("{call}-heartbeat-{n}"));
        assert_eq!((progress.tool_name.as_str(), progress.heartbeat), ("Hang", Some(true)));
        assert!((progress.elapsed_time_seconds.get() - seconds).abs() < 1e-9);
    }
    host.interrupt().await;
    host.result().await;
    let last =
        host.seen.iter().rposition(|frame| matches!(frame, ToHost::ToolProgress(_))).unwrap();
    let result = host.seen.iter().position(|frame| matches!(frame, ToHost::User(_))).unwrap();
    assert!(last < result, "{:#?}", host.story());
}

/// Seen to fail if the error only says that there is no answer.
#[tokio::test]
async fn a_missing_structured_answer_is_reported_with_the_reason() {
    let schema = json!({"type": "object", "properties": {"verdict": {"type": "object",
        "properties": {"kind": {"type": "string"}}}}, "required": ["verdict"]});
    let wrong = reply().tool_use("StructuredOutput", json!({"verdict": {"kind": 5}}));
    for (reply, expected) in [
        (wrong, "/verdict/kind: 5 is not of type"),
        (reply().text("It is fine."), "it never called StructuredOutput. It said: It is fine."),
    ] {
        let script = Script::new().rule(when(), reply);
        let mut host =
            TestHost::with(script, |options| options.launch.output.schema = Some(schema.clone()))
                .await;
        host.prompt("rate it").await;
        let errors = host.result().await.errors.unwrap();
        assert!(errors[0].contains(expected), "{errors:?}");
    }
}

/// Seen to fail if only the model reads that the answer is invalid.
#[tokio::test]
async fn an_invalid_permission_answer_is_reported_to_the_host() {
    for answer in [Ok(json!({"behavior": "deny"})), Err("callback failed".to_owned())] {
        let script = Script::new()
            .rule(when().turn(0), reply().tool_use("Change", json!({"word": "x"})))
            .rule(when(), reply().text("Done."));
        let mut host = TestHost::start(script).await;
        host.answer = Some(answer);
        host.prompt("change").await;
        host.result().await;
        let notice = host.seen.iter().find_map(|frame| match frame {
            ToHost::System(System::Informational(notice)) => Some(notice),
            _ => None,
        });
        let notice = notice.unwrap();
        assert_eq!(notice.tag.as_deref(), Some("permission_request_failed"));
        assert!(
            notice.content.starts_with("The permission request for Change (toolu"),
            "{}",
            notice.content
        );
    }
}
