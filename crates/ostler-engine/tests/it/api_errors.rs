//! The API error table, as a host sees it: one row per way in which the API fails.

use std::sync::Arc;

use ostler_engine::model::{ApiConfig, ApiModel, Credential};
use ostler_proto::api::{SYNTHETIC_MODEL, StopReason};
use ostler_proto::frame::ToHost;
use ostler_proto::message::{System, TurnResult};
use ostler_testkit::{Action, Reply, Rule, Script, Status, reply, when};
use serde_json::json;

use crate::host::TestHost;

/// A turn whose model failed.
struct Failed {
    host: TestHost,
    result: TurnResult,
    n_requests: usize,
}

/// Runs the failure, then a prompt that succeeds: no failure of the API ends a session.
async fn fail(failure: Reply) -> Failed {
    let script = Script::new()
        .rule(when().prompt_contains("after that"), reply().text("Fine."))
        .rule(when(), failure);
    let mut host = TestHost::start(script).await;
    host.prompt("go").await;
    let result = host.result().await;
    let n_requests = host.api.requests().len();
    let frames = std::mem::take(&mut host.seen);
    host.prompt("after that").await;
    assert_eq!(host.result().await.result.as_deref(), Some("Fine."));
    host.seen = frames;
    Failed { host, result, n_requests }
}

impl Failed {
    /// The frame in place of the model's answer.
    fn error_frame(&self) -> (String, String) {
        let mut frames = self.host.seen.iter().filter_map(|frame| match frame {
            ToHost::Assistant(frame) if frame.error.is_some() => Some(frame),
            _ => None,
        });
        let frame = frames.next().expect("an error frame");
        assert!(frames.next().is_none(), "sent once");
        assert_eq!(frame.message.model, "<synthetic>");
        let stop_reason = frame.message.stop_reason.as_ref().unwrap().as_str();
        assert!(["stop_sequence", "refusal"].contains(&stop_reason), "{stop_reason}");
        let text = frame.message.content[0].as_text().unwrap().to_owned();
        (frame.error.as_ref().unwrap().to_string(), text)
    }

    fn retries(&self) -> Vec<(u64, u64, Option<u16>, String)> {
        let retries = self.host.seen.iter().filter_map(|frame| match frame {
            ToHost::System(System::ApiRetry(retry)) => Some((
                retry.attempt,
                retry.max_retries,
                retry.error_status,
                retry.error.to_string(),
            )),
            _ => None,
        });
        retries.collect()
    }
}

fn status(code: u16) -> Reply {
    reply().status(Status::new(code).message("words"))
}

/// Columns: the failure, the kind of error, the text for the user, the number of retries.
#[tokio::test]
async fn each_failure_has_its_kind_its_text_and_its_number_of_attempts() {
    let api_error = |code: u16| format!("API Error: {code} words");
    let long = Status::new(400).message("prompt is too long: 9 tokens > 8 maximum");
    let poor = Status::new(400).message("Your credit balance is too low to access the API");
    for (row, failure, kind, words, n_retries) in [
        ("400", status(400), "unknown", api_error(400), 0),
        (
            "401",
            status(401),
            "authentication_failed",
            "Invalid API key · Fix external API key".to_owned(),
            2,
        ),
        ("403", status(403), "authentication_failed", api_error(403), 0),
        (
            "404",
            status(404),
            "model_not_found",
            "There's an issue with the selected model".to_owned(),
            0,
        ),
        ("413", status(413), "invalid_request", api_error(413), 0),
        ("429", status(429), "rate_limit", api_error(429), 10),
        ("500", status(500), "server_error", api_error(500), 10),
        ("529", status(529), "server_error", api_error(529), 10),
        (
            "dropped connection",
            reply().text("x").cut(0),
            "server_error",
            "connection to the model failed".to_owned(),
            10,
        ),
        (
            "prompt is too long",
            reply().status(long),
            "invalid_request",
            "Prompt is too long".to_owned(),
            0,
        ),
        (
            "credit balance",
            reply().status(poor),
            "billing_error",
            "Credit balance is too low".to_owned(),
            0,
        ),
    ] {
        let failed = fail(failure).await;
        let (error_kind, text) = failed.error_frame();
        assert_eq!(error_kind, kind, "{row}");
        assert!(text.starts_with(&words), "{row}: {text}");
        let result = &failed.result;
        assert_eq!(result.subtype.as_str(), "success", "{row}");
        assert!(result.is_error, "{row}");
        assert_eq!(result.result.as_deref(), Some(text.as_str()), "{row}");
        assert_eq!(failed.n_requests, n_retries + 1, "{row}");
        assert_eq!(failed.retries().len(), n_retries, "{row}: each retry is reported");
        let code = row.parse().ok();
        assert!(code.is_none_or(|code: u16| result.api_error_status == Some(code)), "{row}");
        let reason = if row == "prompt is too long" { "prompt_too_long" } else { "api_error" };
        assert_eq!(result.terminal_reason.as_ref().unwrap().as_str(), reason, "{row}");
    }
}

#[tokio::test]
async fn a_failed_attempt_is_reported_with_its_number_status_and_kind() {
    let failed = fail(status(529)).await;
    let retries = failed.retries();
    assert_eq!(retries[0], (1, 10, Some(529), "overloaded".to_owned()));
    assert_eq!(retries[9].0, 10);
}

#[tokio::test]
async fn an_error_that_a_retry_solves_leaves_no_trace_in_the_conversation() {
    for bad in [status(500), status(529), reply().text("lost").cut(1), status(429)] {
        let script = Script::new()
            .with(Rule::new(when(), bad).times(1))
            .rule(when(), reply().text("Here I am."));
        let mut host = TestHost::start(script).await;
        host.prompt("go").await;
        let result = host.result().await;
        assert_eq!((result.is_error, result.result.as_deref()), (false, Some("Here I am.")));
        assert!(host.story().contains(&"system api_retry".to_owned()));
        host.prompt("and now").await;
        host.result().await;
        assert_eq!(host.api.requests()[2].messages().len(), 3);
    }
}

/// As observed with the vendor's program 2.1.325.
#[tokio::test]
async fn the_fallback_model_takes_over_and_the_host_learns_why() {
    for (code, n_retries, trigger) in [
        (529, 2, "overloaded"),
        (500, 0, "server_error"),
        (404, 0, "model_not_found"),
        (400, 0, "last_resort"),
    ] {
        let script = Script::new()
            .rule(when().model("first"), status(code))
            .rule(when().model("second"), reply().text("Instead."));
        let mut host = TestHost::start(script).await;
        let mut config = ApiConfig::new(host.api.base_url(), Credential::Key("k".into()), "first");
        config.retry.first_delay = std::time::Duration::from_millis(1);
        config.retry.longest_delay = std::time::Duration::from_millis(1);
        config.fallback_models = vec!["second".into()];
        let mut options = TestHost::options(&host.api);
        options.model = Arc::new(ApiModel::new(config).unwrap());
        host.connection = ostler_engine::session::start(options).unwrap();
        host.prompt("go").await;
        assert_eq!(host.result().await.result.as_deref(), Some("Instead."), "{code}");
        let mut story = vec!["system init"];
        story.extend(std::iter::repeat_n("system api_retry", n_retries));
        story.extend(["system model_fallback", "assistant: Instead.", "result success: Instead."]);
        assert_eq!(host.story(), story, "{code}");
        let triggers = host.seen.iter().filter_map(|frame| match frame {
            ToHost::System(System::ModelFallback(frame)) => Some(frame.trigger.as_str()),
            _ => None,
        });
        assert_eq!(triggers.collect::<Vec<_>>(), [trigger], "{code}");
    }
}

#[tokio::test]
async fn a_broken_stream_is_asked_for_once_more_without_a_stream() {
    for action in [Action::Cut, Action::End, Action::MalformedJson, Action::overloaded()] {
        let script = Script::new()
            .rule(when().streaming(true), reply().text_pieces(["half", "way"]).interrupt(3, action))
            .rule(when().streaming(false), reply().text("The whole."));
        let mut host = TestHost::start(script).await;
        host.prompt("go").await;
        let result = host.result().await;
        assert_eq!((result.is_error, result.result.as_deref()), (false, Some("The whole.")));
        let ToHost::Assistant(frame) = &host.seen[host.seen.len() - 2] else {
            panic!("{:?}", host.story())
        };
        let stop_reason = frame.message.stop_reason.as_ref().map(|reason| reason.as_str());
        assert_eq!(stop_reason, Some("end_turn"), "a whole answer has its stop reason");
        assert_eq!(host.api.requests().len(), 2);
    }
}

#[tokio::test]
async fn a_host_that_follows_the_events_sees_the_end_of_a_broken_stream() {
    let script = Script::new()
        .rule(when().streaming(true), reply().text_pieces(["half", "way"]).cut(3))
        .rule(when().streaming(false), reply().text("The whole."));
    let mut host =
        TestHost::with(script, |options| options.launch.output.partial_messages = true).await;
    host.prompt("go").await;
    host.result().await;
    let story = host.story();
    let end = &story[story.len() - 5..];
    assert_eq!(
        end,
        [
            "stream_event content_block_stop",
            "stream_event message_stop",
            "system status",
            "assistant: The whole.",
            "result success: The whole."
        ]
    );
    let stop = serde_json::to_value(&host.seen[story.len() - 4]).unwrap();
    assert_eq!(stop["abandoned_blocks"]["from_block_index"], 0);
}

#[tokio::test]
async fn a_cut_answer_is_continued_three_times_and_then_is_its_own_kind_of_error() {
    let cut = reply().text("part").stop_reason("max_tokens");
    let failed = fail(cut).await;
    assert_eq!(failed.error_frame().0, "max_output_tokens");
    assert_eq!(failed.n_requests, 4);
    let synthetic =
        failed.host.seen.iter().filter(
            |frame| matches!(frame, ToHost::User(frame) if frame.is_synthetic == Some(true)),
        );
    assert_eq!(synthetic.count(), 3, "the host sees each continuation");
}

#[tokio::test]
async fn a_refusal_is_an_invalid_request() {
    let failed = fail(reply().text("I will not.").stop_reason("refusal")).await;
    assert_eq!(failed.error_frame().0, "invalid_request");
    assert!(failed.result.is_error);
    assert_eq!(failed.result.stop_reason.as_ref().unwrap().as_str(), "refusal");
}

#[tokio::test]
async fn a_refusal_is_tried_once_more_and_then_reported() {
    let script = Script::new()
        .rule(when().prompt_contains("next"), reply().text("Fine."))
        .rule(when(), reply().text("I will not.").stop_reason("refusal"));
    let mut host = TestHost::start(script).await;
    host.prompt("bad").await;
    host.result().await;
    let at = host
        .seen
        .iter()
        .position(|frame| matches!(frame, ToHost::System(System::ModelRefusalNoFallback(_))));
    let ToHost::Assistant(error) = &host.seen[at.unwrap() + 1] else { panic!("no error frame") };
    assert_eq!(error.message.stop_reason, Some(StopReason::Refusal));
    assert_eq!(error.message.model, SYNTHETIC_MODEL);
    host.prompt("next").await;
    assert_eq!(host.result().await.result.as_deref(), Some("Fine."));
    let requests = host.api.requests();
    assert_eq!(requests.len(), 3);
    let sent = format!("{:?}", requests[2].messages());
    assert!(!sent.contains("I will not"), "the refused answer is not sent again: {sent}");
}

#[tokio::test]
async fn unknown_tools_and_bad_input_reach_neither_hooks_nor_host() {
    for (tool, input, words) in [
        ("Nowhere", json!({}), "<tool_use_error>Error: No such tool available: Nowhere"),
        ("Change", json!({"wrong": 1}), "<tool_use_error>InputValidationError: "),
    ] {
        let script = Script::new()
            .rule(when().has_tool_error(true), reply().text("I see."))
            .rule(when(), reply().tool_use(tool, input));
        let hook = json!({"PreToolUse": [{"hooks": [{"type": "command", "command": "exit 2"}]}]});
        let mut host = TestHost::with(script, |options| options.hooks = vec![hook]).await;
        host.prompt("go").await;
        let result = host.result().await;
        assert!(result.permission_denials.is_empty());
        let story = host.story();
        assert!(
            story.iter().any(|line| line.starts_with(&format!("user: failed: {words}"))),
            "{story:?}"
        );
        assert!(!story.iter().any(|line| line.starts_with("control_request")), "{story:?}");
    }
}
