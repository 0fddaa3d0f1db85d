//! Unusual calls of a model: equal ids, a thousand calls, arguments that are not JSON. The conversation stays valid
//! (the scripted API refuses anything else) and the turn ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use ostler_engine::tool::{Effect, Tool, ToolCx, ToolError, ToolOutput, erase};
use ostler_testkit::{Block, Reply, Script, ToolUse, reply, when};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::host::TestHost;

/// Far longer than a turn of these tests takes; a turn that takes longer hangs.
const HANGS: Duration = Duration::from_secs(60);
/// The most calls of one response that run at the same time.
const MAX_PARALLEL_CALLS: usize = 64;

fn look(id: &str) -> Block {
    ToolUse::new("Look", json!({"word": "it"})).id(id).into()
}

/// Runs two prompts: the first gets this reply, and both must succeed.
async fn survives(odd: Reply) -> TestHost {
    let script = Script::new()
        .rule(when().has_tool_result(true), reply().text("Looked."))
        .rule(when().prompt_contains("again"), reply().text("Still here."))
        .rule(when(), odd);
    let mut host = TestHost::start(script).await;
    for (prompt, answer) in [("go", "Looked."), ("again", "Still here.")] {
        host.prompt(prompt).await;
        let result = tokio::time::timeout(HANGS, host.result()).await.expect("the turn ends");
        assert_eq!(result.result.as_deref(), Some(answer), "{:#?}", host.story());
    }
    host
}

fn n_results(host: &TestHost) -> usize {
    host.story().iter().filter(|line| line.starts_with("user: =")).count()
}

// Mutant: ids are taken as the model wrote them.
#[tokio::test]
async fn calls_with_the_same_id_each_have_a_result() {
    let host = survives(reply().block(look("same")).block(look("same")).block(look("same"))).await;
    assert_eq!(n_results(&host), 3, "{:#?}", host.story());
    host.api.finish();
}

#[tokio::test]
async fn an_id_that_every_response_uses_again_is_replaced() {
    let script = Script::new()
        .rule(when().turn(0), reply().block(look("call_0")))
        .rule(when().turn(1), reply().block(look("call_0")).block(look("")))
        .rule(when(), reply().text("Looked."));
    let mut host = TestHost::start(script).await;
    host.prompt("go").await;
    let result = tokio::time::timeout(HANGS, host.result()).await.expect("the turn ends");
    assert_eq!(result.result.as_deref(), Some("Looked."));
    assert_eq!(n_results(&host), 3, "{:#?}", host.story());
    host.api.finish();
}

#[tokio::test]
async fn a_thousand_calls_and_arguments_of_any_kind_end_in_a_valid_conversation() {
    let many = (0..1_000).fold(reply(), |many, n| many.block(look(&format!("call_{n}"))));
    let host = survives(many).await;
    assert_eq!(n_results(&host), 1_000);
    host.api.finish();
    let deep = format!("{{\"word\":{}{}}}", "[".repeat(200_000), "]".repeat(200_000));
    for input in [deep.as_str(), "[1, 2]", "\"text\"", "{\"word\":", "{\"word\": 1e999}", "null"] {
        let call = ToolUse::new("Look", json!({})).raw_input(input);
        let unknown = json!({"type": "never_seen", "payload": {"a": [1, 2]}});
        let host = survives(reply().block(Block::Raw { block: unknown }).block(call.into())).await;
        let failure = host.story().into_iter().find(|line| line.starts_with("user: failed"));
        let failure = failure.unwrap_or_else(|| panic!("{input:.40}: {:#?}", host.story()));
        assert!(
            failure.len() < 4_000,
            "{} bytes of malformed arguments are repeated",
            failure.len()
        );
        host.api.finish();
    }
}

/// Counts how many of its calls run at the same time.
struct Crowd(Arc<(AtomicUsize, AtomicUsize)>);

#[derive(Deserialize, JsonSchema)]
struct NoArgs {}

impl Tool for Crowd {
    const NAME: &'static str = "Crowd";
    const DESCRIPTION: &'static str = "For tests.";
    type Args = NoArgs;

    fn effect(&self, _: &ToolCx, _: &NoArgs) -> Effect {
        Effect::Nothing
    }

    async fn run(&self, _: &ToolCx, _: NoArgs) -> Result<ToolOutput, ToolError> {
        let (now, most) = &*self.0;
        most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        // Long enough that the last one starts before the first one ends.
        for _ in 0..1_000 {
            tokio::task::yield_now().await;
        }
        now.fetch_sub(1, Ordering::SeqCst);
        Ok(ToolOutput::new("ok", json!(null)))
    }
}

// Mutant: calls that only look all start at once.
#[tokio::test]
async fn calls_that_only_read_run_in_parallel_up_to_a_limit() {
    let counts = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0)));
    let many = (0..100).fold(reply(), |many, _| many.tool_use("Crowd", json!({})));
    let script =
        Script::new().rule(when().has_tool_result(true), reply().text("Done.")).rule(when(), many);
    let crowd = Crowd(Arc::clone(&counts));
    let mut host = TestHost::with(script, |options| options.tools.push(erase(crowd))).await;
    host.prompt("go").await;
    tokio::time::timeout(HANGS, host.result()).await.expect("the turn ends");
    let most = counts.1.load(Ordering::SeqCst);
    assert_eq!(most, MAX_PARALLEL_CALLS, "calls that ran at the same time");
    host.api.finish();
}
