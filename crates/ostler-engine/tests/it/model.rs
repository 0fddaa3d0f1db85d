//! The model client against the scripted API: one test per way in which a request can end.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use futures::StreamExt;
use ostler_engine::model::{
    ApiConfig, ApiModel, ChatMessage, Credential, Effort, Header, Model, ModelError, ModelEvent,
    Renewal, Request, Sampling, Thinking,
};
use ostler_proto::api::{Accumulator, ContentBlock, Folded, Message, Role};
use ostler_testkit::{Action, Disorder, Reply, Rule, Script, ScriptedApi, Status, reply, when};
use serde_json::Value;

/// A client that retries without delay: the delays are in its events.
pub(crate) fn client(base_url: String, change: impl FnOnce(&mut ApiConfig)) -> ApiModel {
    let mut config = ApiConfig::new(base_url, Credential::Key("secret".into()), "first");
    config.retry.first_delay = Duration::from_millis(1);
    config.retry.longest_delay = Duration::from_millis(1);
    change(&mut config);
    ApiModel::new(config).unwrap()
}

pub(crate) fn request() -> Request {
    let said = ChatMessage { role: Role::User, content: vec![ContentBlock::text("hi")] };
    Request::new("first", vec![said])
}

/// The client's events, one line per retry, block, end and error.
pub(crate) async fn ask(model: &ApiModel, request: Request) -> Vec<String> {
    let mut response = Accumulator::default();
    let mut story = Vec::new();
    let mut events = model.respond(request);
    while let Some(event) = events.next().await {
        match event {
            Ok(ModelEvent::Stream(event)) => match response.push(&event).unwrap() {
                Folded::Block(block) => story.push(said(&[block])),
                Folded::Message(_) => story.push("end".to_owned()),
                _ => {}
            },
            Ok(ModelEvent::Whole(Message { content, .. })) => {
                story.push(format!("whole {}", said(&content)));
            }
            Ok(ModelEvent::Retry(retry)) => {
                let status = retry.status.map_or("-".to_owned(), |status| status.to_string());
                let (attempt, max) = (retry.attempt, retry.max_retries);
                story.push(format!("retry {attempt}/{max} {status} {}", retry.error));
            }
            Ok(ModelEvent::Fallback(to)) => story.push(format!("{} falls to {}", to.from, to.to)),
            Ok(ModelEvent::Named(id)) => assert!(id.starts_with("req_"), "{id}"),
            Err(error) if error.is_broken_stream() => story.push(format!("broken: {error}")),
            Err(error) => story.push(format!("failed {}: {error}", error.kind())),
        }
    }
    story
}

fn said(blocks: &[ContentBlock]) -> String {
    blocks.iter().filter_map(ContentBlock::as_text).collect::<Vec<_>>().join("+")
}

/// One bad reply, then good ones.
fn once(bad: Reply) -> Script {
    Script::new().with(Rule::new(when(), bad).times(1)).rule(when(), reply().text("fine"))
}

fn status(code: u16) -> Reply {
    reply().status(Status::new(code).message("words"))
}

async fn check(bad: Reply, expected: &[&str]) {
    let api = ScriptedApi::start(once(bad)).await;
    let story = ask(&client(api.base_url(), |_| {}), request()).await;
    assert_eq!(story, expected);
}

#[tokio::test]
async fn a_good_answer_is_passed_on() {
    check(reply().text("at once").chunk_bytes(3), &["at once", "end"]).await;
    check(reply().text("a").text("b").ping_between_events(), &["a", "b", "end"]).await;
    check(reply(), &["end"]).await;
}

#[tokio::test]
async fn an_error_that_a_retry_cannot_solve_fails_at_once() {
    let api_error = |code: u16| format!("API Error: {code} words");
    for (code, kind, text) in [
        (400, "unknown", api_error(400)),
        (402, "billing_error", "Credit balance is too low".to_owned()),
        (403, "authentication_failed", api_error(403)),
        (413, "invalid_request", api_error(413)),
    ] {
        check(status(code), &[&format!("failed {kind}: {text}")]).await;
    }
    let missing = "failed model_not_found: There's an issue with the selected model: it may not exist, \
                   or you may not have access to it (API Error: 404 words)";
    check(status(404), &[missing]).await;
    let long = Status::new(400).message("prompt is too long: 9 tokens > 8 maximum");
    check(reply().status(long), &["failed invalid_request: Prompt is too long"]).await;
    let poor = Status::new(400).message("Your credit balance is too low to access the API");
    check(reply().status(poor), &["failed billing_error: Credit balance is too low"]).await;
    let page = Status::new(400).body("<html>");
    check(reply().status(page), &["failed unknown: API Error: 400 <html>"]).await;
}

#[tokio::test]
async fn a_temporary_error_is_retried() {
    for (code, kind) in [
        (401, "authentication_failed"),
        (408, "server_error"),
        (409, "server_error"),
        (429, "rate_limit"),
        (500, "server_error"),
        (502, "server_error"),
        (503, "server_error"),
        (504, "server_error"),
        (529, "overloaded"),
    ] {
        check(status(code), &[&format!("retry 1/10 {code} {kind}"), "fine", "end"]).await;
    }
}

#[tokio::test]
async fn retries_are_limited() {
    for (code, retries, last) in [
        (401, 2, "failed authentication_failed: Invalid API key · Fix external API key"),
        (429, 10, "failed rate_limit: API Error: 429 words"),
        (529, 10, "failed server_error: API Error: 529 words"),
    ] {
        let api = ScriptedApi::start(Script::new().rule(when(), status(code))).await;
        let story = ask(&client(api.base_url(), |_| {}), request()).await;
        assert_eq!((story.len(), story.last().unwrap().as_str()), (retries + 1, last));
        assert_eq!(api.requests().len(), retries + 1);
    }
    let api = ScriptedApi::start(Script::new().rule(when(), status(500))).await;
    let story =
        ask(&client(api.base_url(), |config| config.retry.max_retries = 0), request()).await;
    assert_eq!(story, ["failed server_error: API Error: 500 words"]);
}

#[tokio::test]
async fn the_api_says_when_to_retry() {
    let delay_of = async |status: Status| {
        let api = ScriptedApi::start(once(reply().status(status))).await;
        let model = client(api.base_url(), |_| {});
        match model.respond(request()).next().await.unwrap() {
            Ok(ModelEvent::Retry(retry)) => Ok(retry.delay.as_millis()),
            Ok(other) => panic!("what is {other:?}"),
            Err(error) => Err(error),
        }
    };
    assert_eq!(delay_of(Status::new(429).retry_after(7)).await, Ok(7000));
    let past = Status::new(529).retry_after("Sun, 06 Nov 1994 08:49:37 GMT");
    assert_eq!(delay_of(past).await, Ok(0));
    assert_eq!(delay_of(Status::new(500).header("retry-after-ms", "30")).await, Ok(30));
    let late = delay_of(Status::new(429).retry_after(3600)).await.unwrap_err();
    assert_eq!(late.status(), Some(429));
    let never = delay_of(Status::new(500).header("x-should-retry", "false")).await.unwrap_err();
    assert_eq!(never.status(), Some(500));
    check(
        reply().status(Status::new(429).retry_after(0)),
        &["retry 1/10 429 rate_limit", "fine", "end"],
    )
    .await;
}

#[tokio::test]
async fn a_stream_that_fails_before_its_first_block_is_retried() {
    let text = || reply().text("lost");
    let retried = ["retry 1/10 - server_error", "fine", "end"];
    check(text().cut(0), &retried).await;
    check(text().cut(1), &retried).await;
    check(text().interrupt(1, Action::End), &retried).await;
    check(text().interrupt(0, Action::MalformedJson), &retried).await;
    check(text().interrupt(1, Action::MalformedSse), &retried).await;
    for disorder in [
        Disorder::DeltaWithoutStart,
        Disorder::StopWithoutStart,
        Disorder::EarlyMessageStop,
        Disorder::SecondMessageStart,
        Disorder::SwapNextTwo,
    ] {
        check(text().interrupt(1, Action::OutOfOrder(disorder)), &retried).await;
    }
    let overloaded = ["retry 1/10 529 overloaded", "fine", "end"];
    check(text().interrupt(1, Action::overloaded()), &overloaded).await;
    let refused =
        Action::ErrorEvent { error_type: "invalid_request_error".into(), message: "words".into() };
    check(text().interrupt(1, refused), &["failed unknown: API Error: 400 words"]).await;
}

#[tokio::test]
async fn a_stream_that_fails_later_is_broken_and_the_caller_decides() {
    // `message_start`, `content_block_start`, the deltas, `content_block_stop`, `message_delta`, `message_stop`.
    let text = || reply().text_pieces(["half", "way"]);
    let broken = async |bad: Reply, before: &[&str], reason: &str| {
        let api = ScriptedApi::start(Script::new().rule(when(), bad)).await;
        let mut story = ask(&client(api.base_url(), |_| {}), request()).await;
        let last = story.pop().unwrap();
        assert!(last.starts_with("broken: the model's answer broke off: "), "{last}");
        assert!(last.contains(reason), "{last}");
        assert_eq!(story, before);
        assert_eq!(api.requests().len(), 1, "the client does not ask again by itself");
    };
    broken(text().cut(2), &[], "").await;
    broken(text().cut(5), &["halfway"], "").await;
    broken(text().interrupt(3, Action::End), &[], "it has no end").await;
    broken(text().missing_message_stop(), &["halfway"], "it has no end").await;
    broken(text().interrupt(3, Action::MalformedJson), &[], "EOF while parsing").await;
    broken(text().interrupt(3, Action::MalformedSse), &[], "").await;
    broken(text().interrupt(3, Action::overloaded()), &[], "529 Overloaded").await;
    let disorder = |disorder| text().interrupt(3, Action::OutOfOrder(disorder));
    broken(disorder(Disorder::DeltaWithoutStart), &[], "block 1 is not open").await;
    broken(disorder(Disorder::EarlyMessageStop), &[], "block 0 is open").await;
    broken(disorder(Disorder::SecondMessageStart), &[], "has started already").await;
}

#[tokio::test]
async fn events_after_the_end_are_ignored() {
    check(reply().text("all").cut(99), &["all", "end"]).await;
    check(reply().text("all").interrupt(99, Action::MalformedJson), &["all", "end"]).await;
}

#[tokio::test]
async fn a_silent_api_is_asked_again() {
    for bad in [reply().hold("never"), reply().text("lost").stall(0), reply().text("lost").stall(1)]
    {
        let api = ScriptedApi::start(once(bad)).await;
        let model = client(api.base_url(), |config| {
            config.timeouts.first_byte = Duration::from_millis(50);
            config.timeouts.idle = Duration::from_millis(50);
            config.retry.max_retries = 1000;
        });
        // On a busy machine there may be more than one retry, but at least one.
        let story = ask(&model, request()).await;
        assert_eq!(story[0], "retry 1/1000 - server_error");
        assert_eq!(story[story.len() - 2..], ["fine", "end"]);
        api.wait_for("the client to leave", |requests| requests[0].client_left()).await;
    }
}

#[tokio::test]
async fn a_stream_that_falls_silent_is_broken() {
    let stalls = reply().text_pieces(["half", "way"]).stall(3);
    let api = ScriptedApi::start(Script::new().rule(when(), stalls)).await;
    let model = client(api.base_url(), |config| {
        config.timeouts.idle = Duration::from_millis(50);
        config.retry.max_retries = 1000;
    });
    let story = ask(&model, request()).await;
    let expected = "broken: the model's answer broke off: nothing more came";
    assert_eq!(story.last().unwrap(), expected);
}

#[tokio::test]
async fn an_unreachable_server_is_retried_and_then_reported() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base_url = format!("http://{}", listener.local_addr().unwrap());
    let model = client(base_url, |config| config.retry.max_retries = 2);
    let hang_up = async {
        loop {
            // Closed before it has answered anything.
            drop(listener.accept().await.unwrap());
        }
    };
    let story = tokio::select! {
        story = ask(&model, request()) => story,
        () = hang_up => unreachable!(),
    };
    assert_eq!(story[..2], ["retry 1/2 - server_error", "retry 2/2 - server_error"]);
    assert!(
        story[2].starts_with("failed server_error: connection to the model failed"),
        "{story:?}"
    );
    drop(listener);
    let story = ask(&model, request()).await;
    assert!(story[2].contains("refused"), "{story:?}");
}

#[tokio::test]
async fn after_the_third_overload_in_a_row_the_fallback_answers_and_stays() {
    let script = Script::new()
        .rule(when().model("first"), status(529))
        .rule(when().model("second"), reply().text("here"));
    let api = ScriptedApi::start(script).await;
    let model = client(api.base_url(), |config| config.fallback_models = vec!["second".into()]);
    assert_eq!(
        ask(&model, request()).await,
        [
            "retry 1/10 529 overloaded",
            "retry 2/10 529 overloaded",
            "first falls to second",
            "here",
            "end"
        ]
    );
    assert_eq!(model.name(), "first");
    assert_eq!(ask(&model.clone(), request()).await, ["here", "end"]);
    let models: Vec<_> = api.requests().iter().map(|one| one.body["model"].clone()).collect();
    assert_eq!(models, ["first", "first", "first", "second", "second"]);
}

// Mutants: only the first of the list is asked; a model that was given up is asked again.
#[tokio::test]
async fn the_models_of_a_list_take_over_one_after_the_other() {
    let script = Script::new()
        .rule(when().model("first"), status(404))
        .rule(when().model("second"), status(500))
        .rule(when().model("third"), reply().text("here"));
    let api = ScriptedApi::start(script).await;
    let model = client(api.base_url(), |config| {
        config.fallback_models = vec!["second".into(), "third".into()];
    });
    let story = ask(&model, request()).await;
    assert_eq!(story, ["first falls to second", "second falls to third", "here", "end"]);
    assert_eq!(ask(&model, request()).await, ["here", "end"]);
    let models: Vec<_> = api.requests().iter().map(|one| one.body["model"].clone()).collect();
    assert_eq!(models, ["first", "second", "third", "third"]);
    model.prompt_began();
    assert_eq!(ask(&model, request()).await, story, "the first one again with the next prompt");
}

#[tokio::test]
async fn a_fallback_that_also_fails_ends_the_request() {
    let api = ScriptedApi::start(Script::new().rule(when(), status(529))).await;
    let model = client(api.base_url(), |config| {
        config.fallback_models = vec!["second".into()];
        config.retry.max_retries = 1;
    });
    assert_eq!(
        ask(&model, request()).await,
        [
            "retry 1/1 529 overloaded",
            "first falls to second",
            "retry 1/1 529 overloaded",
            "failed server_error: API Error: 529 words"
        ]
    );
}

#[tokio::test]
async fn a_request_without_a_stream_is_answered_whole() {
    let whole = || Request { stream: false, ..request() };
    let script = Script::new()
        .rule(when().streaming(true), reply().text("lost").cut(3))
        .with(Rule::new(when(), status(529)).times(1))
        .with(Rule::new(when(), reply().text("lost").cut(0)).times(1))
        .with(Rule::new(when(), reply().text("lost").interrupt(0, Action::MalformedJson)).times(1))
        .rule(when(), reply().text("a").text("b"));
    let api = ScriptedApi::start(script).await;
    let model = client(api.base_url(), |_| {});
    let broken = ask(&model, request()).await;
    assert!(broken[0].starts_with("broken"), "{broken:?}");
    assert_eq!(
        ask(&model, whole()).await,
        [
            "retry 1/10 529 overloaded",
            "retry 2/10 - server_error",
            "retry 3/10 - server_error",
            "whole a+b"
        ]
    );
    assert_eq!(api.requests()[4].body["stream"], false);
}

#[tokio::test]
async fn an_answer_that_is_dropped_is_cancelled() {
    let api =
        ScriptedApi::start(Script::new().rule(when(), reply().text("slow").gate(3, "g"))).await;
    let model = client(api.base_url(), |_| {});
    let mut events = model.respond(request());
    assert!(matches!(events.next().await, Some(Ok(ModelEvent::Named(_)))));
    assert!(matches!(events.next().await, Some(Ok(ModelEvent::Stream(_)))));
    api.gate("g").reached().await;
    drop(events);
    api.wait_for("the client to leave", |requests| requests[0].client_left()).await;
}

#[tokio::test]
async fn headers_and_path_are_as_configured() {
    let api = ScriptedApi::start(Script::new().rule(when(), reply().text("x"))).await;
    let header = |name: &str, value: &str| Header { name: name.into(), value: value.into() };
    let model = client(format!("{}/some/path/", api.base_url()), |config| {
        config.betas = vec!["one".into(), "two".into()];
        config.headers = vec![
            header("X-Team", "blue"),
            header("anthropic-beta", "three"),
            header("User-Agent", "mine"),
        ];
    });
    ask(&model, request()).await;
    let request = &api.requests()[0];
    assert_eq!(request.path, "/some/path/v1/messages");
    let header = |name: &str| request.headers.get(name).map(String::as_str);
    assert_eq!(header("x-api-key"), Some("[redacted]"));
    assert_eq!(header("authorization"), None);
    assert_eq!(header("anthropic-version"), Some("2023-06-01"));
    assert_eq!(header("anthropic-beta"), Some("one,two,three"));
    assert_eq!(header("x-team"), Some("blue"));
    assert_eq!(header("user-agent"), Some("mine"));
}

#[tokio::test]
async fn a_token_is_sent_in_the_authorization_header() {
    let api = ScriptedApi::start(Script::new().rule(when(), reply().text("x"))).await;
    let model = client(api.base_url(), |config| config.credential = Credential::Token("t".into()));
    ask(&model, request()).await;
    let request = &api.requests()[0];
    assert!(request.headers.contains_key("authorization"));
    assert!(!request.headers.contains_key("x-api-key"));
    assert!(request.headers["user-agent"].starts_with("ostler/"));
}

#[tokio::test]
async fn a_refused_key_is_renewed_before_the_next_attempt() {
    let script = Script::new().rule(when(), [status(401), reply().text("welcome")]);
    let api = ScriptedApi::start(script).await;
    let asked = Arc::new(AtomicU32::new(0));
    let counter = Arc::clone(&asked);
    let model = client(api.base_url(), |config| {
        let give = move |_: Option<&Credential>| {
            counter.fetch_add(1, Ordering::Relaxed);
            Ok(Credential::Both { key: "fresh".into(), token: "fresh".into() })
        };
        config.renewal = Some(Renewal { every: Duration::from_secs(300), give: Arc::new(give) });
    });
    let story = ask(&model, request()).await;
    assert_eq!(story, ["retry 1/10 401 authentication_failed", "welcome", "end"]);
    assert_eq!(asked.load(Ordering::Relaxed), 1);
    // The renewed key is sent in the header for keys and in the one for tokens.
    let has_token = |number: usize| api.requests()[number].headers.contains_key("authorization");
    assert_eq!([has_token(0), has_token(1)], [false, true]);
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let elsewhere = ScriptedApi::start(Script::new()).await;
    let moved = Status::new(307).header("location", &elsewhere.base_url());
    let api = ScriptedApi::start(Script::new().rule(when(), reply().status(moved))).await;
    let story = ask(&client(api.base_url(), |_| {}), request()).await;
    assert!(story[0].contains("ANTHROPIC_BASE_URL"), "{story:?}");
    assert!(elsewhere.all_requests().is_empty(), "the key is not sent elsewhere");
}

#[tokio::test]
async fn the_fields_of_a_request_depend_on_the_model() {
    let script = Script::new()
        .rule(when().model("claude-opus-5-5"), status(529))
        .rule(when(), reply().text("x"));
    let api = ScriptedApi::start(script).await;
    let model = client(api.base_url(), |config| {
        config.fallback_models = vec!["claude-3-5-haiku-20241022".into()];
        config.max_output_tokens = Some(20_000);
        config.retry.max_retries = 0;
    });
    let sampling = Sampling {
        thinking: Some(Thinking::Budget(4000)),
        effort: Some(Effort::Low),
        ..Sampling::default()
    };
    ask(&model, Request { model: "claude-opus-5-5".into(), sampling, ..request() }).await;
    let requests = api.requests();
    let of = |number: usize, field: &str| requests[number].body[field].to_string();
    assert_eq!(of(0, "thinking"), r#"{"type":"adaptive"}"#);
    assert_eq!(of(0, "output_config"), r#"{"effort":"low"}"#);
    assert_eq!(of(0, "max_tokens"), "20000");
    assert_eq!((of(1, "thinking"), of(1, "output_config")), ("null".into(), "null".into()));
    assert_eq!(of(1, "max_tokens"), "8192");
}

#[tokio::test]
async fn the_recorded_requests_of_a_conversation_have_a_stable_prefix() {
    let api = ScriptedApi::start(Script::new().rule(when(), reply().text("x"))).await;
    let model = client(api.base_url(), |_| {});
    let mut asked = Request { system: "Be kind.".into(), ..request() };
    for _ in 0..4 {
        ask(&model, asked.clone()).await;
        let say = |role, text: &str| ChatMessage { role, content: vec![ContentBlock::text(text)] };
        Arc::make_mut(&mut asked.messages).push(say(Role::Assistant, "x"));
        Arc::make_mut(&mut asked.messages).push(say(Role::User, "more"));
    }
    let bodies: Vec<Value> = api.requests().into_iter().map(|request| request.body).collect();
    assert_stable_prefix(&bodies);
}

/// Asserts that each request begins with the bytes of the one before, apart from cache markers.
pub(crate) fn assert_stable_prefix(bodies: &[Value]) {
    let stripped: Vec<String> = bodies.iter().map(|body| without_marks(body).to_string()).collect();
    for pair in stripped.windows(2) {
        let before = pair[0].strip_suffix("]}").expect("messages come last");
        assert!(pair[1].starts_with(before), "the prefix changed:\n{}\n{}", pair[0], pair[1]);
    }
}

/// A request body without its cache markers.
fn without_marks(body: &Value) -> Value {
    match body {
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(name, _)| *name != "cache_control");
            Value::Object(kept.map(|(name, field)| (name.clone(), without_marks(field))).collect())
        }
        Value::Array(items) => items.iter().map(without_marks).collect(),
        other => other.clone(),
    }
}

#[tokio::test]
async fn a_prompt_that_is_too_long_is_a_separate_error() {
    let long = reply().status(Status::new(400).message("prompt is too long: 9 > 8"));
    let api = ScriptedApi::start(once(long)).await;
    let mut events = client(api.base_url(), |_| {}).respond(request());
    let error: ModelError = events.next().await.unwrap().unwrap_err();
    assert!(error.is_prompt_too_long() && error.is_fault_of_request());
    assert!(events.next().await.is_none());
}
