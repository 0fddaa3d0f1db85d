//! Explicit options of an adapter apply, and aborted runs report their cost.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ostler_prompt::{
    Adapter, Budget, ClientConfig, Deadline, Error, Event, ModelConfig, PromptExecuted, Session,
};
use ostler_sdk::{Decision, Options, PermissionMode};
use ostler_testkit::{Script, Status, Usage, reply, when};
use serde_json::json;

use crate::fake::prompt;
use crate::stage::{MODEL, PublishedEvents, Stage, within};

/// Runs a command that writes a file. Returns whether it did, and how often the callback was called.
async fn command_runs(change: impl FnOnce(Options) -> Options) -> (bool, usize) {
    let script = Script::new()
        .rule(when().turn(0), reply().tool_use("Bash", json!({"command": "touch ran"})))
        .rule(when(), reply().text("Done."));
    let stage = Stage::new(script).await;
    let n_asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&n_asked);
    let options = stage.options().model(MODEL).on_permission(move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
        async { Decision::deny("no") }
    });
    let (session, prompt) = (Session::new(), prompt::<()>("go"));
    within(Adapter::new(change(options)).evaluate(&prompt, &session)).await.unwrap();
    assert_eq!(stage.requests()[0].model(), MODEL, "the model of the options");
    (stage.home.path().join("ran").exists(), n_asked.load(Ordering::Relaxed))
}

/// Mutants: the adapter sets `bypassPermissions` by itself; the adapter sets its default model.
#[tokio::test]
async fn mode_model_and_callback_of_the_options_apply() {
    assert_eq!(command_runs(|options| options).await, (false, 1));
    let modes = [PermissionMode::Default, PermissionMode::Plan, PermissionMode::DontAsk];
    for mode in modes {
        let (has_run, _) = command_runs(|options| options.permission_mode(mode.clone())).await;
        assert!(!has_run, "{mode:?}");
    }
}

/// Mutant: one of the two is used silently.
#[tokio::test]
async fn options_and_adapter_that_disagree_are_refused() {
    let stage = Stage::new(Script::new()).await;
    let options = stage.options().model("claude-opus-5-5").permission_mode(PermissionMode::Plan);
    let bypass = ClientConfig::default().with_permission_mode(PermissionMode::BypassPermissions);
    for (adapter, parts) in [
        (
            Adapter::new(options.clone()).with_model(ModelConfig::new(MODEL)),
            ["claude-opus-5-5", MODEL],
        ),
        (Adapter::new(options).with_client(bypass), ["plan", "bypassPermissions"]),
    ] {
        let run = adapter.evaluate(&prompt::<()>("go"), &Session::new());
        let error = within(run).await.unwrap_err();
        assert!(matches!(error, Error::Refused { .. }), "{error:?}");
        assert!(parts.iter().all(|part| error.to_string().contains(part)), "{error}");
    }
    assert!(stage.requests().is_empty());
}

fn executed(published: &mut PublishedEvents) -> PromptExecuted {
    let executed = published.events().into_iter().find_map(|event| match event {
        Event::PromptExecuted(executed) => Some((*executed).clone()),
        _ => None,
    });
    executed.unwrap()
}

/// Mutants: `ask_cost` left out; the model's last stop reason reported.
#[tokio::test]
async fn an_aborted_run_reports_its_cost_and_why_it_stopped() {
    let call =
        || reply().tool_use("Bash", json!({"command": "true"})).usage(Usage::tokens(1000, 500));
    let script = Script::new()
        .rule(when().turn(0), call())
        .rule(when().prompt_contains("slow"), reply().text("never").hold("never"))
        .rule(when(), call());
    let stage = Stage::new(script).await;
    for (text, expected) in [("slow", "deadline_exceeded"), ("poor", "budget_exhausted")] {
        let session = Session::new();
        let mut published = PublishedEvents::of(&session);
        let prompt = prompt::<()>(text);
        let run = stage.adapter().evaluate(&prompt, &session);
        let run = match text {
            "slow" => run.deadline(Deadline::after(Duration::from_secs(5))),
            _ => run.budget(Budget::tokens(2000)),
        };
        let error = within(run).await.unwrap_err();
        assert_eq!(error.code(), expected, "{error}");
        let end = executed(&mut published);
        assert_eq!(end.stop_reason, expected);
        assert!(end.cost_usd > 0.0, "{text}: {end:?}");
    }
}

/// Mutant: the old limit of sixteen denials.
#[tokio::test]
async fn the_model_is_not_asked_again_after_the_budget_is_used_up() {
    let two = || {
        let call = || json!({"command": "true"});
        reply().tool_use("Bash", call()).tool_use("Bash", call()).usage(Usage::tokens(1000, 250))
    };
    let stage = Stage::new(Script::new().rule(when(), two())).await;
    let (session, prompt) = (Session::new(), prompt::<()>("go"));
    let run = stage.adapter().evaluate(&prompt, &session).budget(Budget::tokens(2500));
    let error = within(run).await.unwrap_err();
    assert!(matches!(error, Error::Budget { .. }), "{error:?}");
    // Two responses are within the budget, the calls of the second and the third are denied, a fourth request may be in
    // progress.
    let n_requests = stage.requests().len();
    assert!((3..=4).contains(&n_requests), "{n_requests}");
}

/// Mutant: `trouble` not reported.
#[tokio::test]
async fn a_deadline_that_passes_while_the_model_is_overloaded_says_so() {
    let overloaded = Status::new(529).error_type("overloaded_error");
    let stage = Stage::new(Script::new().rule(when(), reply().status(overloaded))).await;
    let (session, prompt) = (Session::new(), prompt::<()>("go"));
    let run = stage.adapter().evaluate(&prompt, &session);
    let error = within(run.deadline(Deadline::after(Duration::from_secs(4)))).await.unwrap_err();
    assert_eq!(error.code(), "deadline_exceeded");
    assert!(error.to_string().contains("overloaded"), "{error}");
    assert!(error.is_retryable());
}
