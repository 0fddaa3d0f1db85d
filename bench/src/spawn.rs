//! `spawn`: the cost of a Bash call in a process with much memory, compared with the same process without it.
//!
//! The same conversation of Bash calls on the engine in this process and the scripted API. A fork would copy the page
//! tables of all that memory for every command; starting a program any other way costs the same at every size.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use ostler::{Message, Options, query};
use ostler_testkit::{Rule, Script, ScriptedApi, reply, when};
use serde_json::json;

use crate::{measure, table};

/// Bash calls in one run.
const CALLS: usize = 20;
/// Runs of each kind, taking turns.
const RUNS: usize = 9;
/// The additional memory of the large process.
const MEMORY: usize = 1 << 30;
/// The promise: a call in the large process divided by one in the small process.
const LIMIT: f64 = 1.3;

pub(crate) fn run() -> Result<Vec<String>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (small, large) = runtime.block_on(measure())?;
    let reached = large.as_secs_f64() / small.as_secs_f64();
    println!("spawn: {CALLS} Bash calls, ms per call");
    let heading = ["small", "with 1 GiB", "ratio"].map(str::to_owned);
    let per_call = |time: Duration| format!("{:.2}", time.as_secs_f64() * 1e3 / CALLS as f64);
    let row = [per_call(small), per_call(large), format!("{reached:.2}")];
    print!("{}", table::render(&[heading, row]));
    if reached > LIMIT {
        return Ok(vec![format!(
            "a Bash call in a process of 1 GiB costs {reached:.2} times one in a small process; the promise is {LIMIT}"
        )]);
    }
    Ok(Vec::new())
}

async fn measure() -> Result<(Duration, Duration)> {
    let calls = (0..CALLS).fold(reply(), |it, _| it.tool_use("Bash", json!({"command": "true"})));
    let script = Script::new().with(Rule::new(when().turn(0), calls));
    let api = ScriptedApi::start(script.rule(when(), reply().text("Done."))).await;
    let home = tempfile::tempdir()?;
    let mut options = ostler::options()
        .cwd(home.path())
        .env("HOME", home.path().display().to_string())
        .env("ANTHROPIC_BASE_URL", api.base_url())
        .env("ANTHROPIC_API_KEY", "any")
        .allow(["Bash"]);
    options.session.ephemeral = true;
    let (mut small, mut large) = (Vec::new(), Vec::new());
    for _ in 0..RUNS {
        small.push(converse(options.clone()).await?);
        // Every page is written, otherwise there would be no memory behind it.
        let memory = vec![1_u8; MEMORY];
        large.push(converse(options.clone()).await?);
        ensure!(memory.last().context("there is memory")? == &1, "the memory is in use to the end");
    }
    Ok((measure::median(small), measure::median(large)))
}

async fn converse(options: Options) -> Result<Duration> {
    let begun = Instant::now();
    let mut messages = query("go", options);
    let mut results = 0;
    while let Some(message) = messages.next().await {
        results += usize::from(matches!(message?, Message::User(_)));
    }
    let took = begun.elapsed();
    ensure!(results == CALLS, "{results} results");
    Ok(took)
}
