//! `concurrent`: 500 runs at once on one server, next to 50 on another; each run makes five Bash calls, one per turn.
//!
//! Ten times the work takes ten times as long if no cost in the server grows with the number of runs. The scripted
//! model and the clients are in this process, on the same processors, in both cases.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use ostler_testkit::{Script, ScriptedApi, reply, when};
use serde_json::json;
use tokio::runtime::Runtime;

use crate::load::desk::Desk;
use crate::load::listener::{Audience, Listener};
use crate::load::raise_file_limit;
use crate::table;

const FEW: usize = 50;
const MANY: usize = 500;
/// Bash calls of a run.
const TURNS: usize = 5;
/// Fifty runs take some seconds, in which any other program on the machine counts for much.
const ROUNDS: usize = 3;
/// The promise: the wall time of many divided by that of few.
const LIMIT: f64 = 12.0;

pub(crate) fn run() -> Result<Vec<String>> {
    raise_file_limit();
    let runtime = Runtime::new().context("starting a runtime")?;
    let (mut few, mut many) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        few.push(runtime.block_on(measure(FEW))?);
        many.push(runtime.block_on(measure(MANY))?);
    }
    let (few, many) = (median(few), median(many));
    println!(
        "concurrent: runs of {TURNS} Bash calls, all at once, each time on a new server, median of {ROUNDS}"
    );
    let heading = ["", "wall, s", "server's processor time, s", "memory, MiB"].map(str::to_owned);
    let row = |count: usize, taken: &Taken| {
        let (wall, cpu) = (taken.wall.as_secs_f64(), taken.cpu.as_secs_f64());
        [
            format!("{count} runs"),
            format!("{wall:.2}"),
            format!("{cpu:.2}"),
            format!("{:.0}", taken.mib),
        ]
    };
    let ratio = many.wall.as_secs_f64() / few.wall.as_secs_f64();
    let cpu = many.cpu.as_secs_f64() / few.cpu.as_secs_f64();
    let last = ["ratio".to_owned(), format!("{ratio:.1}"), format!("{cpu:.1}"), String::new()];
    print!("{}", table::render(&[heading, row(FEW, &few), row(MANY, &many), last]));
    Ok(broken(ratio).into_iter().collect())
}

fn broken(ratio: f64) -> Option<String> {
    (ratio > LIMIT).then(|| {
        format!("concurrent: {MANY} runs take {ratio:.1} times as long as {FEW}, more than {LIMIT}")
    })
}

/// The cost of concurrent runs.
struct Taken {
    wall: Duration,
    cpu: Duration,
    /// Resident memory of the server at the end.
    mib: f64,
}

async fn measure(count: usize) -> Result<Taken> {
    let call = |turn: usize| reply().tool_use("Bash", json!({"command": format!("echo {turn}")}));
    let script = (0..TURNS).fold(Script::new(), |it, turn| it.rule(when().turn(turn), call(turn)));
    let api = ScriptedApi::start(script.rule(when(), reply().text("Done."))).await;
    let desk = Desk::open(&api, None, count).await?;
    let sessions: Vec<String> =
        stream::iter(0..count).map(|_| desk.session()).buffered(16).try_collect().await?;
    let audience = Audience::new();
    let mut listeners = Vec::new();
    for session in &sessions {
        listeners.push(Listener::attach(&desk, session, &audience, false).await?);
    }
    let (begun, before) = (Instant::now(), desk.processor_time()?);
    let prompts = stream::iter(&sessions).map(|session| desk.prompt(session, "Count."));
    prompts.buffer_unordered(16).try_collect::<Vec<_>>().await?;
    audience.until_completed(count).await?;
    let (wall, cpu) = (begun.elapsed(), desk.processor_time()?.saturating_sub(before));
    Ok(Taken { wall, cpu, mib: desk.resident_kib()? / 1024.0 })
}

/// The one with the median wall time.
fn median(mut rounds: Vec<Taken>) -> Taken {
    rounds.sort_by_key(|taken| taken.wall);
    rounds.swap_remove(rounds.len() / 2)
}

#[cfg(test)]
mod tests {
    #[test]
    fn twelve_times_as_long_is_within_the_limit_and_more_is_not() {
        assert_eq!(super::broken(12.0), None);
        assert!(super::broken(12.1).is_some_and(|promise| promise.contains("12.1 times")));
    }
}
