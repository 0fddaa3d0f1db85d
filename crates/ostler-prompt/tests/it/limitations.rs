//! Seed 002, "Limitations": none of them applies here.

use ostler_prompt::{Markdown, Prompt, Session, tool_with_context};
use ostler_testkit::{Script, reply, when};
use serde_json::json;

use crate::fake::prompt;
use crate::stage::{PublishedEvents, Stage, within};

#[tokio::test]
async fn cli_dependency_no_other_program_is_needed() {
    let stage = Stage::new(Script::new().rule(when(), reply().text("Done."))).await;
    // The engine's environment has no programs on its path.
    let options = stage.options().env("PATH", "/nowhere");
    let adapter = ostler_prompt::Adapter::new(options);
    let response = within(adapter.evaluate(&prompt::<()>("go"), &Session::new())).await.unwrap();
    assert_eq!(response.text.as_deref(), Some("Done."));
}

#[tokio::test]
async fn async_overhead_every_evaluation_is_on_the_callers_runtime() {
    let here = tokio::runtime::Handle::current().id();
    let tool = tool_with_context("where", "Says where it runs", move |(): (), _| async move {
        let same = tokio::runtime::Handle::current().id() == here;
        Ok::<_, String>(if same { "here" } else { "elsewhere" })
    });
    let prompt = Prompt::<()>::builder("test", "prompt")
        .section(Markdown::new("Task", "task", "go").tool(tool))
        .build()
        .unwrap();
    let script = Script::new()
        .rule(when().turn(0), reply().tool_use("mcp__ostler__where", json!({})))
        .rule(when(), reply().text("{{tool_result}}"));
    let stage = Stage::new(script).await;
    let (adapter, session) = (stage.adapter(), Session::new());
    // Concurrently too, on the one thread of this test.
    let runs = (0..20).map(|_| adapter.evaluate(&prompt, &session).into_future());
    for response in within(futures::future::join_all(runs)).await {
        assert_eq!(response.unwrap().text.as_deref(), Some("here"));
    }
}

#[tokio::test]
async fn hook_latency_is_measured_and_reported() {
    let call = || reply().tool_use("Bash", json!({"command": "true"}));
    let script = Script::new()
        .rule(when().turn(0), call())
        .rule(when().turn(1), call())
        .rule(when(), reply().text("Done."));
    let stage = Stage::new(script).await;
    let (session, prompt) = (Session::new(), prompt::<()>("go"));
    let mut published = PublishedEvents::of(&session);
    let response = within(stage.adapter().evaluate(&prompt, &session)).await.unwrap();
    let cost = response.hooks;
    assert_eq!(cost.calls, 6, "one for the prompt, two for each call, one for the end");
    assert!(cost.longest <= cost.total && cost.total < response.duration, "{cost:?}");
    let Some(ostler_prompt::Event::PromptExecuted(end)) = published.events().pop() else {
        panic!()
    };
    assert_eq!(end.hooks, cost);
}

#[tokio::test]
async fn no_streaming_messages_arrive_during_the_run() {
    let script = Script::new()
        .rule(
            when().turn(0),
            reply().text("Looking.").tool_use("Bash", json!({"command": "echo hello"})),
        )
        .rule(when(), reply().text("Done.").hold("gate"));
    let stage = Stage::new(script).await;
    let (session, prompt) = (Session::new(), prompt::<()>("go"));
    let mut evaluation = stage.adapter().evaluate(&prompt, &session).stream();
    let mut texts = Vec::new();
    let gate = stage.api.gate("gate");
    while let Some(message) = within(evaluation.next()).await {
        texts.extend(message.text().map(str::to_owned));
        if texts == ["Looking."] {
            gate.release();
        }
    }
    assert_eq!(texts, ["Looking.", "Done."]);
    // The same call gives the whole response.
    let response = evaluation.response().await.unwrap();
    assert_eq!((response.text.as_deref(), response.tool_calls), (Some("Done."), 1));
}

#[tokio::test]
async fn no_streaming_text_arrives_in_deltas_on_request() {
    let stage = Stage::new(Script::new().rule(when(), reply().text("one two three"))).await;
    let (session, prompt) = (Session::new(), prompt::<()>("go"));
    let count = async |adapter: ostler_prompt::Adapter| {
        let mut evaluation = adapter.evaluate(&prompt, &session).stream();
        let mut deltas = Vec::new();
        while let Some(message) = within(evaluation.next()).await {
            deltas.extend(message.text_delta().map(str::to_owned));
        }
        deltas
    };
    assert!(count(stage.adapter()).await.is_empty());
    let deltas = count(ostler_prompt::Adapter::new(stage.options().partial_messages())).await;
    assert!(deltas.len() > 1 && deltas.concat() == "one two three", "{deltas:?}");
}
