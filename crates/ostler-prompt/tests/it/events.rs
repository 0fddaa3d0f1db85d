//! Seed 002, "Events Published": which events are published and when, and that subscribers cannot disturb a run.

use std::sync::{Arc, Mutex, mpsc};

use ostler_prompt::{Event, EventBus, PromptExecuted, PromptRendered, Session, ToolInvoked, Usage};
use ostler_testkit::{Script, reply, when};
use serde_json::json;

use crate::fake::prompt;
use crate::stage::{PublishedEvents, Stage, within};

fn one_call() -> Script {
    let usage = ostler_testkit::Usage::tokens;
    Script::new()
        .rule(
            when().turn(0),
            reply()
                .tool_use("Bash", json!({"command": "echo hello"}))
                .usage(usage(60, 40).cached(7, 3)),
        )
        .rule(when(), reply().text("Done.").usage(usage(15, 5)))
}

#[tokio::test]
async fn prompt_rendered_has_the_text_and_the_tools() {
    let stage = Stage::new(one_call()).await;
    let (session, prompt) = (Session::new(), prompt::<()>("go"));
    let mut published = PublishedEvents::of(&session);
    within(stage.adapter().evaluate(&prompt, &session)).await.unwrap();
    let Event::PromptRendered(event) = &published.events()[0] else { panic!() };
    assert_eq!((event.text.as_str(), event.tools.len()), ("## 1. Task\n\ngo\n", 0));
    assert_eq!(
        (event.prompt_name.as_str(), event.adapter.as_str()),
        ("test/prompt", "claude_agent_sdk")
    );
    // It equals what was sent.
    assert!(
        stage.requests()[0].last_user_text().ends_with(&event.text),
        "{:?}",
        stage.requests()[0].last_user_text()
    );
}

#[tokio::test]
async fn tool_invoked_has_name_params_and_result() {
    let stage = Stage::new(one_call()).await;
    let (session, prompt) = (Session::new(), prompt::<()>("go"));
    let mut published = PublishedEvents::of(&session);
    within(stage.adapter().evaluate(&prompt, &session)).await.unwrap();
    let Event::ToolInvoked(event) = &published.events()[1] else { panic!() };
    assert_eq!(event.name, "Bash");
    assert_eq!(event.params, json!({"command": "echo hello"}));
    assert_eq!(event.result["stdout"], "hello");
    assert!(event.duration.is_some());
}

#[tokio::test]
async fn prompt_executed_has_output_usage_and_duration() {
    let script = Script::new().rule(
        when(),
        reply()
            .tool_use("StructuredOutput", json!({"value": 7}))
            .usage(ostler_testkit::Usage::tokens(60, 40).cached(7, 3)),
    );
    let stage = Stage::new(script).await;
    let (session, prompt) = (Session::new(), prompt::<u32>("go"));
    let mut published = PublishedEvents::of(&session);
    let response = within(stage.adapter().evaluate(&prompt, &session)).await.unwrap();
    let events = published.events();
    let Some(Event::PromptExecuted(event)) = events.last() else { panic!("{events:?}") };
    assert_eq!(event.output, Some(json!({"value": 7})));
    assert_eq!(event.usage, Usage { input_tokens: 70, output_tokens: 40, cached_tokens: 3 });
    assert!(!event.duration.is_zero() && response.duration >= event.duration);
    assert_eq!(event.run_id, response.run_id);
    assert_eq!(response.output, 7);
}

#[tokio::test]
async fn events_are_published_during_the_run() {
    let script = Script::new()
        .rule(when().turn(0), reply().tool_use("Bash", json!({"command": "echo hello"})))
        .rule(when(), reply().text("Done.").hold("gate"));
    let stage = Stage::new(script).await;
    let (session, prompt) = (Session::new(), prompt::<()>("go"));
    let mut published = PublishedEvents::of(&session);
    let adapter = stage.adapter();
    let gate = stage.api.gate("gate");
    let look = async {
        gate.reached().await;
        let before = published.lines();
        gate.release();
        before
    };
    let (response, before) = tokio::join!(within(adapter.evaluate(&prompt, &session)), look);
    response.unwrap();
    assert_eq!(before, ["rendered test/prompt", "invoked Bash"]);
    assert_eq!(published.lines(), ["executed test/prompt"]);
}

#[tokio::test]
async fn a_subscriber_chooses_the_type_of_event() {
    let stage = Stage::new(one_call()).await;
    let (session, prompt) = (Session::new(), prompt::<()>("go"));
    let order = Arc::new(Mutex::new(Vec::new()));
    let note = || Arc::clone(&order);
    let (rendered, invoked, executed, all) = (note(), note(), note(), note());
    let bus = session.bus();
    let subscriptions = [
        bus.subscribe(move |_: &PromptRendered| rendered.lock().unwrap().push("rendered")),
        bus.subscribe(move |call: &ToolInvoked| {
            assert_eq!(call.name, "Bash");
            invoked.lock().unwrap().push("invoked");
        }),
        bus.subscribe(move |_: &PromptExecuted| executed.lock().unwrap().push("executed")),
        bus.subscribe(move |_: &Event| all.lock().unwrap().push("event")),
    ];
    within(stage.adapter().evaluate(&prompt, &session)).await.unwrap();
    within(bus.settle()).await;
    let mut order = order.lock().unwrap().clone();
    order.sort_unstable();
    assert_eq!(order, ["event", "event", "event", "executed", "invoked", "rendered"]);
    assert!(subscriptions.iter().all(|it| it.missed() == 0 && it.panics() == 0));
}

#[tokio::test]
async fn a_subscriber_that_panics_or_blocks_does_not_disturb_the_run() {
    let stage = Stage::new(one_call()).await;
    let (session, prompt) = (Session::new(), prompt::<()>("go"));
    let (release, wait) = mpsc::channel::<()>();
    let stuck = session.bus().subscribe(move |_: &Event| {
        // Blocks until the test ends.
        let _ = wait.recv();
    });
    let panics = session.bus().subscribe(|_: &Event| panic!("a subscriber's own affair"));
    let mut published = PublishedEvents::of(&session);
    within(stage.adapter().evaluate(&prompt, &session)).await.unwrap();
    assert_eq!(published.lines().len(), 3);
    drop(release);
    within(session.bus().settle()).await;
    assert_eq!((panics.panics(), stuck.missed()), (3, 0), "it is called again after a panic");
}

#[tokio::test]
async fn what_a_slow_subscriber_misses_is_counted() {
    let bus = EventBus::new();
    let (release, wait) = mpsc::channel::<()>();
    let (seen, sees) = mpsc::channel();
    let slow = bus.subscribe(move |_: &Event| {
        seen.send(()).unwrap();
        let _ = wait.recv();
    });
    let (session, prompt) = (Session::with_bus(bus.clone()), prompt::<()>("go"));
    let stage = Stage::new(one_call()).await;
    let adapter = stage.adapter();
    // Every run dropped at once publishes its start and its end.
    for _ in 0..3000 {
        let late = ostler_prompt::Deadline::at(std::time::Instant::now());
        let _ = adapter.evaluate(&prompt, &session).deadline(late).await;
    }
    assert!(slow.missed() > 0);
    let missed = slow.missed();
    drop(release);
    within(bus.settle()).await;
    drop(slow);
    assert_eq!(sees.iter().count() as u64 + missed, 6000);
}

#[tokio::test]
async fn a_dropped_subscription_is_not_called() {
    let bus = EventBus::new();
    let session = Session::with_bus(bus.clone());
    let calls = Arc::new(Mutex::new(0));
    let counts = Arc::clone(&calls);
    drop(bus.subscribe(move |_: &Event| *counts.lock().unwrap() += 1));
    let late = ostler_prompt::Deadline::at(std::time::Instant::now());
    let stage = Stage::new(Script::new()).await;
    let _ = stage.adapter().evaluate(&prompt::<()>("go"), &session).deadline(late).await;
    within(bus.settle()).await;
    assert_eq!(*calls.lock().unwrap(), 0);
}

#[tokio::test]
async fn dropping_a_run_publishes_its_end() {
    let stage = Stage::new(Script::new().rule(when(), reply().text("never").hold("gate"))).await;
    let (session, prompt) = (Session::new(), prompt::<()>("go"));
    let mut published = PublishedEvents::of(&session);
    let mut evaluation = stage.adapter().evaluate(&prompt, &session).stream();
    assert!(within(evaluation.next()).await.is_some());
    drop(evaluation);
    assert_eq!(
        published.lines(),
        ["rendered test/prompt", "failed test/prompt: the run was cancelled"]
    );
    // A run that was not started is not published.
    drop(stage.adapter().evaluate(&prompt, &session).stream());
    assert!(published.lines().is_empty());
}

#[tokio::test]
async fn calls_of_prompt_tools_and_subagents_are_published_once_with_their_ids() {
    let tool = ostler_prompt::tool_with_context("note", "Notes something", |(): (), _| async {
        Ok::<_, String>("noted")
    });
    let prompt = ostler_prompt::Prompt::<()>::builder("test", "prompt")
        .section(ostler_prompt::Markdown::new("Task", "task", "go").tool(tool))
        .build()
        .unwrap();
    let delegate =
        json!({"description": "d", "prompt": "note it", "subagent_type": "general-purpose"});
    let script = Script::new()
        .rule(
            when().prompt_contains("note it").turn(0),
            reply().tool_use("mcp__ostler__note", json!({})),
        )
        .rule(when().prompt_contains("note it"), reply().text("Noted."))
        .rule(
            when().turn(0),
            reply().tool_use("mcp__ostler__note", json!({})).tool_use("Agent", delegate),
        )
        .rule(when(), reply().text("Done."));
    let stage = Stage::new(script).await;
    let session = Session::new();
    let mut published = PublishedEvents::of(&session);
    within(stage.adapter().evaluate(&prompt, &session)).await.unwrap();
    let calls: Vec<_> = published
        .events()
        .into_iter()
        .filter_map(|event| match event {
            Event::ToolInvoked(call) => {
                Some((call.name.clone(), call.agent_id.is_some(), call.call_id.clone()))
            }
            _ => None,
        })
        .collect();
    let mut names: Vec<_> = calls.iter().map(|(name, agent, _)| (name.as_str(), *agent)).collect();
    names.sort_unstable();
    assert_eq!(
        names,
        [("Agent", false), ("mcp__ostler__note", false), ("mcp__ostler__note", true)]
    );
    let ids: std::collections::HashSet<_> = calls.iter().map(|(.., id)| id).collect();
    assert_eq!(ids.len(), 3);
}

#[tokio::test]
async fn a_call_that_an_engine_reports_repeatedly_is_published_once() {
    // The third and fourth hook are those for successful and failed tool calls.
    let asks = r#"
ask() {
  printf '{"type":"control_request","request_id":"q%s","request":{"subtype":"hook_callback","callback_id":"hook_%s","tool_use_id":"t","input":{"hook_event_name":"%s","session_id":"s","transcript_path":"","cwd":"/","tool_name":"Bash","tool_input":{},"tool_response":{},"error":"e","tool_use_id":"t"}}}\n' "$1" "$2" "$3"
  read -r answer
}
ask 1 2 PostToolUse; ask 2 2 PostToolUse; ask 3 3 PostToolUseFailure"#;
    let result = crate::result!(r#""subtype":"success","is_error":false,"result":"ok""#);
    let fake = crate::fake::Fake::new(&[crate::fake::INTRODUCES, asks, result]);
    let (session, prompt) = (Session::new(), prompt::<()>("go"));
    let mut published = PublishedEvents::of(&session);
    let response = within(ostler_prompt::Adapter::new(fake.options()).evaluate(&prompt, &session))
        .await
        .unwrap();
    assert_eq!(published.lines(), ["rendered test/prompt", "invoked Bash", "executed test/prompt"]);
    assert_eq!((response.tool_calls, response.hooks.calls), (1, 3));
}
