//! `hooks`: the cost of enforcing limits and publishing events.
//!
//! The same conversation, made of calls of a tool that does nothing, as a typed prompt with a deadline, a budget and
//! a subscriber, and as a bare query without any hook; both on the engine in this process and the scripted API. A
//! tool that does nothing is the worst case: compared with a real tool or model, hooks are negligible.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use ostler::{Options, query};
use ostler_prompt::{
    Adapter, Budget, Deadline, Markdown, ModelConfig, Prompt, Session, ToolInvoked,
    tool_with_context,
};
use ostler_testkit::{Rule, Script, ScriptedApi, reply, when};
use serde_json::json;

use crate::table;

/// Calls in one response.
const AT_ONCE: usize = 50;
/// Responses with calls.
const RESPONSES: usize = 4;
/// Runs of each kind, taking turns; the fastest counts.
const RUNS: usize = 15;
/// The promise: a call with hooks divided by one without.
const LIMIT: f64 = 3.0;

pub(crate) fn run() -> Result<Vec<String>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (with, without) = runtime.block_on(measure())?;
    let per_call = |time: Duration| time.as_secs_f64() * 1e6 / (AT_ONCE * RESPONSES) as f64;
    let (with, without) = (per_call(with), per_call(without));
    let reached = with / without;
    println!("hooks: {} calls of a tool that does nothing, µs per call", AT_ONCE * RESPONSES);
    let heading = ["with hooks", "without", "added", "ratio"].map(str::to_owned);
    let row = [with, without, with - without].map(|time| format!("{time:.1}"));
    let [with, without, added] = row;
    print!("{}", table::render(&[heading, [with, without, added, format!("{reached:.2}")]]));
    if reached > LIMIT {
        return Ok(vec![format!(
            "a call with hooks costs {reached:.2} times one without; the promise is {LIMIT}"
        )]);
    }
    Ok(Vec::new())
}

async fn measure() -> Result<(Duration, Duration)> {
    let call =
        || (0..AT_ONCE).fold(reply(), |it, _| it.tool_use("mcp__ostler__nothing", json!({})));
    let mut script = Script::new();
    for turn in 0..RESPONSES {
        script = script.with(Rule::new(when().turn(turn), call()));
    }
    let api = ScriptedApi::start(script.rule(when(), reply().text("Done."))).await;
    let home = tempfile::tempdir()?;
    let nothing =
        tool_with_context("nothing", "Does nothing", |(): (), _| async { Ok::<_, String>(()) });
    let prompt = Prompt::<()>::builder("bench", "hooks")
        .section(Markdown::new("Task", "task", "go").tool(nothing))
        .build()?;
    let mut options = ostler::options()
        .cwd(home.path())
        .env("HOME", home.path().display().to_string())
        .env("ANTHROPIC_BASE_URL", api.base_url())
        .env("ANTHROPIC_API_KEY", "any")
        .env("IS_SANDBOX", "1");
    options.session.ephemeral = true;
    let (mut with, mut without) = (Duration::MAX, Duration::MAX);
    for _ in 0..RUNS {
        with = with.min(prompted(&prompt, options.clone()).await?);
        without = without.min(bare(&prompt, options.clone()).await?);
    }
    Ok((with, without))
}

async fn prompted(prompt: &Prompt<()>, options: Options) -> Result<Duration> {
    let session = Session::new();
    let _calls = session.bus().subscribe(|_: &ToolInvoked| {});
    let adapter = Adapter::new(options).with_model(ModelConfig::new("claude-sonnet-4-5"));
    let begun = Instant::now();
    let response = adapter
        .evaluate(prompt, &session)
        .deadline(Deadline::after(Duration::from_secs(3600)))
        .budget(Budget::tokens(u64::MAX))
        .await?;
    let took = begun.elapsed();
    ensure!(response.tool_calls == (AT_ONCE * RESPONSES) as u64, "{} calls", response.tool_calls);
    Ok(took)
}

async fn bare(prompt: &Prompt<()>, mut options: Options) -> Result<Duration> {
    options = options.model("claude-sonnet-4-5").partial_messages();
    options = options.allow(["mcp__ostler__nothing"]);
    options
        .tools
        .in_process
        .extend(prompt.tool_server(&Session::new()).map(|server| std::sync::Arc::new(server) as _));
    let begun = Instant::now();
    let mut messages = query(prompt.text(), options);
    let mut results = 0;
    while let Some(message) = messages.next().await {
        results += usize::from(matches!(message?, ostler_sdk::Message::User(_)));
    }
    let took = begun.elapsed();
    ensure!(results == AT_ONCE * RESPONSES, "{results} results");
    Ok(took)
}
