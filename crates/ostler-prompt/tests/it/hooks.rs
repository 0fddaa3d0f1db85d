//! Seed 002, "Hook Integration": what the hooks of a run do, in which order, and what the model reads.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use ostler_prompt::{
    Budget, BudgetTracker, Deadline, Error, Event, Exhausted, HookContext, Session, Tools,
    tool_with_context,
};
use ostler_sdk::hook::{
    HookOutput, PostToolUseInput, PreToolUseInput, StopInput, UserPromptSubmitInput,
};
use ostler_sdk::{Hook, query};
use ostler_testkit::{Script, Usage, reply, when};
use serde_json::{Value, json};

use crate::fake::{Fake, INTRODUCES, prompt};
use crate::result;
use crate::stage::{PublishedEvents, Stage, within};

/// One call of `Bash`, after which the model repeats its result.
fn one_call() -> Script {
    let call = reply().tool_use("Bash", json!({"command": "echo hello"}));
    Script::new()
        .rule(when().turn(0), call.usage(Usage::tokens(60, 40)))
        .rule(when(), reply().text("It says: {{tool_result}}").usage(Usage::tokens(10, 5)))
}

/// The model's text after a denied call. Engines prefix the reason with the hook.
fn denied(reason: &str) -> String {
    format!("It says: PreToolUse:Bash hook error: {reason}")
}

/// Runs one call under limits. Returns the model's last text and the context.
async fn outcome(hold: impl FnOnce(HookContext) -> HookContext) -> (String, HookContext) {
    let stage = Stage::new(one_call()).await;
    let context = hold(HookContext::new(Session::new(), "tests", "test/prompt"));
    let mut options = context.attach(stage.options().model(crate::stage::MODEL));
    options.permissions.mode = ostler_sdk::PermissionMode::BypassPermissions;
    options.permissions.allow_dangerously_skip_permissions = true;
    let mut messages = query("go", options);
    let mut last = String::new();
    while let Some(message) = within(messages.next()).await {
        if let Some(result) = message.unwrap().as_result() {
            last = result.result.clone().unwrap_or_default();
        }
    }
    (last, context)
}

#[tokio::test]
async fn a_call_runs_within_the_limits() {
    let later = Deadline::after(Duration::from_secs(3600));
    let (text, context) = outcome(|context| {
        context.deadline(later).budget(BudgetTracker::new(Budget::tokens(1_000_000)))
    })
    .await;
    assert_eq!(text, "It says: hello");
    assert_eq!((context.n_tool_calls(), context.n_denied()), (1, 0));
}

#[tokio::test]
async fn pre_tool_use_denies_with_deadline_exceeded_when_the_deadline_has_passed() {
    let (text, context) = outcome(|context| context.deadline(Deadline::at(Instant::now()))).await;
    assert_eq!(text, denied("Deadline exceeded"));
    assert_eq!((context.n_tool_calls(), context.n_denied()), (0, 1));
}

#[tokio::test]
async fn pre_tool_use_denies_with_token_budget_exhausted_when_the_tokens_are_used_up() {
    let (text, context) =
        outcome(|context| context.budget(BudgetTracker::new(Budget::tokens(60)))).await;
    assert_eq!(text, denied("Token budget exhausted"));
    assert_eq!((context.n_tool_calls(), context.n_denied()), (0, 1));
}

/// The exact answer of the hook for `PreToolUse`, which is the second one.
async fn answer(context: HookContext) -> Value {
    let asks = r#"printf '%s\n' '{"type":"control_request","request_id":"q","request":{"subtype":"hook_callback","callback_id":"hook_1","tool_use_id":"t","input":{"hook_event_name":"PreToolUse","session_id":"s","transcript_path":"","cwd":"/","tool_name":"Bash","tool_input":{},"tool_use_id":"t"}}}'
read -r answer; printf '%s' "$answer" > answer"#;
    let result = result!(r#""subtype":"success","is_error":false,"result":"ok""#);
    let fake = Fake::new(&[INTRODUCES, asks, result]);
    let mut messages = query("go", context.attach(fake.options()));
    while let Some(message) = within(messages.next()).await {
        message.unwrap();
    }
    let answer = std::fs::read_to_string(fake.folder.path().join("answer")).unwrap();
    let answer: Value = serde_json::from_str(&answer).unwrap();
    answer["response"]["response"].clone()
}

#[tokio::test]
async fn the_answers_of_pre_tool_use_equal_those_of_the_original() {
    let context = || HookContext::new(Session::new(), "tests", "test/prompt");
    let denial = |reason: &str| {
        json!({"hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": "deny",
            "permissionDecisionReason": reason,
        }})
    };
    let late = context().deadline(Deadline::at(Instant::now()));
    assert_eq!(answer(late).await, denial("Deadline exceeded"));
    let poor = context().budget(BudgetTracker::new(Budget::tokens(0)));
    assert_eq!(answer(poor).await, denial("Token budget exhausted"));
    assert_eq!(answer(context()).await, json!({}));
}

#[tokio::test]
async fn the_deadline_is_reported_before_the_budget() {
    let (text, _) = outcome(|context| {
        let tracker = BudgetTracker::new(Budget::tokens(0));
        context.deadline(Deadline::at(Instant::now())).budget(tracker)
    })
    .await;
    assert_eq!(text, denied("Deadline exceeded"));
}

#[tokio::test]
async fn pre_tool_use_denies_when_the_dollars_are_used_up() {
    let tracker = BudgetTracker::new(Budget::usd(5.0));
    tracker.record_usd(5.0);
    let (text, _) = outcome(|context| context.budget(tracker)).await;
    assert_eq!(text, denied("USD budget exhausted"));
}

#[tokio::test]
async fn stop_records_the_reason_which_is_end_turn_by_default() {
    let (_, context) = outcome(|context| context).await;
    assert_eq!(context.stop_reason().as_deref(), Some("end_turn"));
}

#[tokio::test]
async fn the_context_has_everything_the_original_had() {
    let session = Session::new();
    let deadline = Deadline::after(Duration::from_secs(9));
    let tracker = BudgetTracker::new(Budget::tokens(9));
    let context = HookContext::new(session.clone(), "claude_agent_sdk", "review/code")
        .deadline(deadline)
        .budget(tracker.clone());
    assert_eq!(context.session().id(), session.id());
    assert_eq!(context.adapter_name(), "claude_agent_sdk");
    assert_eq!(context.prompt_name(), "review/code");
    assert_eq!(context.current_deadline(), Some(deadline));
    tracker.record(ostler_prompt::Usage { input_tokens: 4, ..Default::default() });
    assert_eq!(context.budget_tracker().unwrap().consumed(), 4);
    assert_eq!(context.stop_reason(), None);
}

/// Hooks of the caller that record when they are called.
fn noting(order: &Arc<Mutex<Vec<&'static str>>>) -> Vec<Hook> {
    let note = |name| {
        let order = Arc::clone(order);
        move || order.lock().unwrap().push(name)
    };
    let (prompt, pre, post, stop) =
        (note("UserPromptSubmit"), note("PreToolUse"), note("PostToolUse"), note("Stop"));
    vec![
        Hook::new(move |_: UserPromptSubmitInput, _| {
            prompt();
            async { HookOutput::none() }
        }),
        Hook::new(move |_: PreToolUseInput, _| {
            pre();
            async { HookOutput::none() }
        }),
        Hook::new(move |_: PostToolUseInput, _| {
            post();
            async { HookOutput::none() }
        }),
        Hook::new(move |_: StopInput, _| {
            stop();
            async { HookOutput::none() }
        }),
    ]
}

#[tokio::test]
async fn hooks_run_in_the_order_of_the_flow_and_those_of_the_caller_too() {
    let order = Arc::new(Mutex::new(Vec::new()));
    let tool = tool_with_context("note", "Notes that it runs", {
        let order = Arc::clone(&order);
        move |(): (), _| {
            order.lock().unwrap().push("tool");
            async { Ok::<_, String>("noted") }
        }
    });
    let script = Script::new()
        .rule(when().turn(0), reply().tool_use("mcp__ostler__note", json!({})))
        .rule(when(), reply().text("Done."));
    let stage = Stage::new(script).await;
    let mut options = stage.options();
    options.hooks = noting(&order);
    let adapter = ostler_prompt::Adapter::new(options)
        .with_model(ostler_prompt::ModelConfig::new(crate::stage::MODEL));
    let prompt = ostler_prompt::Prompt::<()>::builder("test", "prompt")
        .section(ostler_prompt::Markdown::new("Task", "task", "go"))
        .section(Tools::new("tools", [tool]))
        .build()
        .unwrap();
    let session = Session::new();
    let mut evaluation = adapter.evaluate(&prompt, &session).stream();
    while within(evaluation.next()).await.is_some() {}
    assert_eq!(evaluation.context().n_prompts(), 1, "UserPromptSubmit is a real hook");
    let order = order.lock().unwrap().clone();
    assert_eq!(order, ["UserPromptSubmit", "PreToolUse", "tool", "PostToolUse", "Stop"]);
}

#[tokio::test]
async fn post_tool_use_publishes_everything_that_the_original_did() {
    let stage = Stage::new(one_call()).await;
    let (session, prompt) = (Session::new(), prompt::<()>("go"));
    let mut published = PublishedEvents::of(&session);
    within(stage.adapter().evaluate(&prompt, &session)).await.unwrap();
    let events = published.events();
    let Event::ToolInvoked(call) = &events[1] else { panic!("{events:?}") };
    assert_eq!(call.prompt_name, "test/prompt");
    assert_eq!(call.adapter, "claude_agent_sdk");
    assert_eq!(call.name, "Bash");
    assert_eq!(call.params, json!({"command": "echo hello"}));
    // The engine's own result format: these four fields for a shell.
    for (name, value) in [
        ("stdout", json!("hello")),
        ("stderr", json!("")),
        ("interrupted", json!(false)),
        ("isImage", json!(false)),
    ] {
        assert_eq!(call.result[name], value, "{name}");
    }
    let requests = stage.requests();
    let messages = requests[1].body["messages"].to_string();
    assert!(messages.contains(&format!("\"{}\"", call.call_id)), "the id is the model's");
}

#[tokio::test]
async fn a_failed_call_is_published_once_and_a_denied_one_is_not() {
    let script = Script::new()
        .rule(when().turn(0), reply().tool_use("Read", json!({"file_path": "/no/such/file"})))
        .rule(when(), reply().text("Done."));
    let stage = Stage::new(script).await;
    let (session, prompt) = (Session::new(), prompt::<()>("go"));
    let mut published = PublishedEvents::of(&session);
    within(stage.adapter().evaluate(&prompt, &session)).await.unwrap();
    let events = published.events();
    let calls: Vec<_> = events
        .iter()
        .filter_map(|event| match event {
            Event::ToolInvoked(call) => Some(call),
            _ => None,
        })
        .collect();
    assert_eq!((calls.len(), calls[0].success), (1, false));
    assert!(calls[0].result.as_str().unwrap().contains("/no/such/file"), "{}", calls[0].result);

    let late =
        HookContext::new(session.clone(), "tests", "p").deadline(Deadline::at(Instant::now()));
    let (text, _) = outcome(|_| late).await;
    assert_eq!((text, published.events().len()), (denied("Deadline exceeded"), 0));
}

#[tokio::test]
async fn a_panicking_hook_of_the_caller_denies_the_call_and_not_the_run() {
    let stage = Stage::new(one_call()).await;
    let options = stage.options().hook(Hook::new(|_: PreToolUseInput, _| async { panic!("oh") }));
    let adapter = ostler_prompt::Adapter::new(options)
        .with_model(ostler_prompt::ModelConfig::new(crate::stage::MODEL));
    let response = within(adapter.evaluate(&prompt::<()>("go"), &Session::new())).await.unwrap();
    assert_eq!(response.tool_calls, 0, "enforcing hooks fail closed");
    assert!(response.text.unwrap().starts_with("It says: "));
}

/// A model that keeps calling tools, whatever the results.
fn for_ever() -> Script {
    Script::new().rule(
        when(),
        reply().tool_use("Bash", json!({"command": "true"})).usage(Usage::tokens(10, 10)),
    )
}

#[tokio::test]
async fn a_model_that_keeps_calling_tools_ends_with_the_budget() {
    let stage = Stage::new(for_ever()).await;
    let (session, prompt) = (Session::new(), prompt::<()>("go"));
    let run = stage.adapter().evaluate(&prompt, &session).budget(Budget::tokens(100));
    let error = within(run).await.unwrap_err();
    assert!(matches!(error, Error::Budget { exhausted: Exhausted::Tokens, .. }), "{error:?}");
    assert_eq!(error.to_string(), "test/prompt: Token budget exhausted");
    assert!(stage.requests().len() < 40, "{}", stage.requests().len());
}

#[tokio::test]
async fn an_answer_is_accepted_even_when_the_budget_is_used_up() {
    let script = Script::new()
        .rule(
            when().turn(0),
            reply().tool_use("Bash", json!({"command": "true"})).usage(Usage::tokens(60, 40)),
        )
        .rule(
            when().tool_result_contains("Token budget exhausted"),
            reply().tool_use("StructuredOutput", json!({"value": "all I know"})),
        );
    let stage = Stage::new(script).await;
    let (session, prompt) = (Session::new(), prompt::<String>("go"));
    let run = stage.adapter().evaluate(&prompt, &session).budget(Budget::tokens(60));
    let response = within(run).await.unwrap();
    assert_eq!((response.output.as_str(), response.denied_calls), ("all I know", 1));
}

#[tokio::test]
async fn a_run_beyond_its_deadline_or_budget_is_not_started() {
    let stage = Stage::new(Script::new()).await;
    let (session, prompt) = (Session::new(), prompt::<()>("go"));
    let mut published = PublishedEvents::of(&session);
    let late = stage.adapter().evaluate(&prompt, &session).deadline(Deadline::at(Instant::now()));
    let error = within(late).await.unwrap_err();
    assert!(matches!(error, Error::DeadlineExceeded { .. }), "{error:?}");
    let poor = stage.adapter().evaluate(&prompt, &session).budget(Budget::tokens(0));
    let error = within(poor).await.unwrap_err();
    assert!(matches!(error, Error::Budget { .. }), "{error:?}");
    assert!(stage.requests().is_empty());
    assert_eq!(published.lines().len(), 4, "both publish their start and their end");
}

#[tokio::test]
async fn a_deadline_ends_the_wait_for_a_model_that_never_answers() {
    let stage = Stage::new(Script::new().rule(when(), reply().text("never").hold("gate"))).await;
    let (session, prompt) = (Session::new(), prompt::<()>("go"));
    let deadline = Deadline::after(Duration::from_millis(500));
    let error = within(stage.adapter().evaluate(&prompt, &session).deadline(deadline)).await;
    let error = error.unwrap_err();
    assert!(matches!(error, Error::DeadlineExceeded { .. }), "{error:?}");
    assert!(error.to_string().starts_with("test/prompt: Deadline exceeded"), "{error}");
    assert!(!error.is_retryable());
}

#[tokio::test]
async fn a_deadline_ends_a_stalled_response_and_a_running_tool() {
    let long_call = reply().tool_use("Bash", json!({"command": "sleep 600"}));
    for reply in [reply().text("half of it").stall(3), long_call] {
        let stage = Stage::new(Script::new().rule(when(), reply)).await;
        let (session, prompt) = (Session::new(), prompt::<()>("go"));
        let deadline = Deadline::after(Duration::from_millis(500));
        let error = within(stage.adapter().evaluate(&prompt, &session).deadline(deadline)).await;
        assert!(matches!(error, Err(Error::DeadlineExceeded { .. })), "{error:?}");
    }
}

#[tokio::test]
async fn within_the_grace_the_model_can_report_what_it_has_found() {
    let script = Script::new()
        .rule(
            when().turn(0),
            reply().tool_use("Bash", json!({"command": "echo hello"})).hold("gate"),
        )
        .rule(when(), reply().text("It says: {{tool_result}}"));
    let stage = Stage::new(script).await;
    let (session, prompt) = (Session::new(), prompt::<()>("go"));
    let deadline = Deadline::after(Duration::from_millis(100)).with_grace(Duration::from_secs(80));
    let gate = stage.api.gate("gate");
    let adapter = stage.adapter();
    let run = within(adapter.evaluate(&prompt, &session).deadline(deadline));
    let release = async {
        gate.reached().await;
        tokio::time::sleep_until(tokio::time::Instant::from_std(deadline.instant())).await;
        gate.release();
    };
    let (response, ()) = tokio::join!(run, release);
    assert_eq!(response.unwrap().text, Some(denied("Deadline exceeded")));
}

#[tokio::test]
async fn several_runs_share_a_budget_and_all_tokens_are_counted() {
    // Eight concurrent runs of two responses each: 120 tokens a run.
    let script = Script::new()
        .rule(
            when().turn(0),
            reply().tool_use("Bash", json!({"command": "true"})).usage(Usage::tokens(60, 40)),
        )
        .rule(when(), reply().text("Done.").usage(Usage::tokens(15, 5)));
    let stage = Stage::new(script).await;
    let (session, prompt, adapter) = (Session::new(), prompt::<()>("go"), stage.adapter());
    let tracker = BudgetTracker::new(Budget::tokens(1_000_000));
    let runs =
        (0..8).map(|_| adapter.evaluate(&prompt, &session).budget_tracker(&tracker).into_future());
    let responses = within(futures::future::join_all(runs)).await;
    let sum: u64 = responses.iter().map(|response| response.as_ref().unwrap().usage.total()).sum();
    assert_eq!((sum, tracker.consumed()), (960, 960));
    let usd: f64 = responses.iter().map(|response| response.as_ref().unwrap().cost_usd).sum();
    assert!(usd > 0.0 && (tracker.spent().usd - usd).abs() < 1e-9, "{usd} {:?}", tracker.spent());

    // A run that starts when the others have spent everything is refused.
    let tracker = BudgetTracker::new(Budget::tokens(120));
    within(adapter.evaluate(&prompt, &session).budget_tracker(&tracker)).await.unwrap();
    let error = within(adapter.evaluate(&prompt, &session).budget_tracker(&tracker)).await;
    assert!(matches!(error, Err(Error::Budget { .. })), "{error:?}");
}

#[tokio::test]
async fn dollars_spent_by_one_run_stop_the_tools_of_another() {
    let script = Script::new()
        .rule(
            when().prompt_contains("spend").turn(0),
            reply().text("Spent.").usage(Usage::tokens(1_000_000, 0)),
        )
        .rule(
            when().turn(0),
            reply().tool_use("Bash", json!({"command": "echo hello"})).hold("gate"),
        )
        .rule(when(), reply().text("It says: {{tool_result}}"));
    let stage = Stage::new(script).await;
    let (session, adapter) = (Session::new(), stage.adapter());
    let tracker = BudgetTracker::new(Budget::usd(1.0));
    let (waits, spends) = (prompt::<()>("wait"), prompt::<()>("spend"));
    let gate = stage.api.gate("gate");
    let waiting = within(adapter.evaluate(&waits, &session).budget_tracker(&tracker));
    let spending = async {
        gate.reached().await;
        // This run may succeed, or its own engine may end it because of the budget: both are fine here.
        let _ = within(adapter.evaluate(&spends, &session).budget_tracker(&tracker)).await;
        gate.release();
    };
    let (waited, ()) = tokio::join!(waiting, spending);
    assert!(tracker.spent().usd >= 1.0, "{:?}", tracker.spent());
    assert_eq!(waited.unwrap().text, Some(denied("USD budget exhausted")));
}

#[tokio::test]
async fn the_engine_is_asked_for_the_cost_before_every_call() {
    let tool = tool_with_context(
        "spent",
        "Says what was spent",
        |(): (), context: ostler_prompt::ToolContext| async move {
            let spent = context.budget().ok_or("no budget")?.spent();
            Ok::<_, String>(if spent.usd > 0.0 { "some" } else { "none" })
        },
    );
    let call = || reply().tool_use("mcp__ostler__spent", json!({})).usage(Usage::tokens(1000, 10));
    let script = Script::new()
        .rule(when().turn(0), call())
        .rule(when().turn(1), call())
        .rule(when(), reply().text("{{tool_result}}"));
    let stage = Stage::new(script).await;
    let prompt = ostler_prompt::Prompt::<()>::builder("test", "prompt")
        .section(ostler_prompt::Markdown::new("Task", "task", "go").tool(tool))
        .build()
        .unwrap();
    let run = stage.adapter().evaluate(&prompt, &Session::new()).budget(Budget::usd(100.0));
    // The result, which also reports the cost, arrives only after the second call.
    assert_eq!(within(run).await.unwrap().text.as_deref(), Some("some"));
}

#[tokio::test]
async fn without_an_adapter_everything_is_counted_too() {
    let (_, context) =
        outcome(|context| context.budget(BudgetTracker::new(Budget::tokens(1000)))).await;
    let spent = context.budget_tracker().unwrap().spent();
    assert_eq!((context.usage().total(), spent.usage.total()), (115, 115));
    assert!(context.cost_usd() > 0.0 && spent.usd == context.cost_usd());
}

#[tokio::test]
async fn a_slow_reader_does_not_miss_a_deadline_that_the_agent_met() {
    let stage = Stage::new(one_call()).await;
    let (session, prompt) = (Session::new(), prompt::<()>("go"));
    let deadline = Deadline::after(Duration::from_secs(10));
    let mut evaluation = stage.adapter().evaluate(&prompt, &session).deadline(deadline).stream();
    within(evaluation.next()).await.unwrap();
    // Nothing reads the messages until the deadline has passed.
    let context = evaluation.context().clone();
    let done = async {
        while context.stop_reason().is_none() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        tokio::time::sleep_until(tokio::time::Instant::from_std(deadline.instant())).await;
    };
    within(done).await;
    let response = within(evaluation.response()).await.unwrap();
    assert_eq!(response.text.as_deref(), Some("It says: hello"));
}

#[tokio::test]
async fn with_an_answer_the_run_does_not_wait_for_background_work() {
    let script = Script::new()
        .rule(
            when().turn(0),
            reply().tool_use("Bash", json!({"command": "sleep 600", "run_in_background": true})),
        )
        .rule(when(), reply().text("Done."));
    let stage = Stage::new(script).await;
    let (session, prompt) = (Session::new(), prompt::<()>("go"));
    let run = stage.adapter().evaluate(&prompt, &session);
    let run = run.deadline(Deadline::after(Duration::from_secs(8)));
    let response = within(run).await.unwrap();
    assert_eq!(response.text.as_deref(), Some("Done."));
}

#[test]
fn values_are_shared_between_threads() {
    fn check<T: Send + Sync>() {}
    check::<HookContext>();
    check::<BudgetTracker>();
    check::<Session>();
    check::<ostler_prompt::Adapter>();
    check::<ostler_prompt::Prompt<Value>>();
    check::<ostler_prompt::Workspace>();
}
