//! `load`: many runs and many subscribers on one server; and a few runs, also with the vendor's program as the
//! engine.
//!
//! The server is the program as shipped, in its own process; the scripted model and all clients are in this one, on
//! the same processors. Every subscriber must receive every event, in order, or the benchmark fails. The limit is on
//! the ratio to the vendor's program; compare the other figures with earlier runs.

pub(crate) mod desk;
pub(crate) mod listener;

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use ostler_testkit::{Script, ScriptedApi, reply, when};
use serde_json::json;
use tokio::runtime::Runtime;

use self::desk::Desk;
use self::listener::{Audience, Listener};
use crate::{engine, table};

const RUNS: usize = 500;
const SUBSCRIBERS: usize = 2_000;
/// Deltas of a slow response, and the time between them.
const STEADY_PIECES: usize = 30;
const PACE_MS: u64 = 250;
/// Deltas of a fast response.
const BURST_PIECES: usize = 60;
const ROUND_TRIPS: usize = 200;
/// Concurrent approvals.
const AT_ONCE: usize = 8;
/// Runs in the comparison with the vendor's program.
const FEW: usize = 20;

/// The promise: ours divided by theirs.
const LIMIT: f64 = 1.0 / 10.0;

pub(crate) fn run() -> Result<Vec<String>> {
    raise_file_limit();
    let runtime = Runtime::new().context("starting a runtime")?;
    runtime.block_on(async {
        let many = many().await?;
        println!(
            "load: {RUNS} runs at once, {SUBSCRIBERS} subscribers, one server and all clients on {} processors",
            std::thread::available_parallelism().map_or(0, usize::from)
        );
        print!("{}", table::render(&many.rows()));
        let (ours, theirs) = (few(false).await?, few(true).await?);
        println!("{FEW} runs at once, with engines inside and with the vendor's program");
        print!("{}", table::render(&compared(&ours, &theirs)));
        Ok(broken(&ours, &theirs))
    })
}

/// Each subscriber needs a socket here and one in the server.
pub(crate) fn raise_file_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // If this is not allowed, opening a socket fails later.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}

fn script() -> Script {
    let pieces = |count: usize| (0..count).map(|number| format!("piece {number} of a response, "));
    let steady =
        reply().hold("steady").text_pieces(pieces(STEADY_PIECES)).delay_between_events_ms(PACE_MS);
    Script::new()
        .rule(when().has_tool_result(true), reply().text("done"))
        .rule(when().prompt_contains("steady"), steady)
        .rule(
            when().prompt_contains("burst"),
            reply().hold("burst").text_pieces(pieces(BURST_PIECES)),
        )
        .rule(
            when().prompt_contains("command"),
            reply().tool_use("Bash", json!({"command": "echo x > made", "description": "Write"})),
        )
        .rule(when(), reply().text("Hello."))
}

/// The results with many runs.
struct Many {
    per_run: f64,
    per_subscriber: f64,
    steady_rate: f64,
    delivery: [Duration; 2],
    burst_rate: f64,
    burst_delivered: f64,
    approval: [Duration; 2],
}

impl Many {
    fn rows(&self) -> Vec<[String; 2]> {
        let ms = |time: Duration| format!("{:.1}", time.as_secs_f64() * 1e3);
        vec![
            ["memory of a run, KiB".to_owned(), format!("{:.0}", self.per_run)],
            ["memory of a subscriber, KiB".to_owned(), format!("{:.1}", self.per_subscriber)],
            ["steady: events per second".to_owned(), format!("{:.0}", self.steady_rate)],
            ["steady: append to subscriber, p50, ms".to_owned(), ms(self.delivery[0])],
            ["steady: append to subscriber, p99, ms".to_owned(), ms(self.delivery[1])],
            ["burst: events per second".to_owned(), format!("{:.0}", self.burst_rate)],
            ["burst: deliveries per second".to_owned(), format!("{:.0}", self.burst_delivered)],
            ["asked, answered, run: p50, ms".to_owned(), ms(self.approval[0])],
            ["asked, answered, run: p99, ms".to_owned(), ms(self.approval[1])],
        ]
    }
}

async fn many() -> Result<Many> {
    let api = ScriptedApi::start(script()).await;
    let desk = Arc::new(Desk::open(&api, None, RUNS).await?);
    let warm = desk.session().await?;
    desk.prompt(&warm, "hello").await?;
    desk.until_completed(&warm, 1).await?;
    let sessions: Vec<String> =
        stream::iter(0..RUNS).map(|_| desk.session()).buffered(16).try_collect().await?;
    let before = desk.resident_kib()?;
    let audience = Audience::new();
    let mut listeners: Vec<Listener> = Vec::new();
    for number in 0..SUBSCRIBERS {
        let session = &sessions[number % RUNS];
        // One listener of each session also reports approvals.
        listeners.push(Listener::attach(&desk, session, &audience, number < RUNS).await?);
    }
    let attached = desk.resident_kib()?;
    let per_subscriber = (attached - before) / SUBSCRIBERS as f64;

    let begun = begin_all(&desk, &api, &sessions, "steady").await?;
    let per_run = (desk.resident_kib()? - attached) / RUNS as f64;
    audience.until_completed(SUBSCRIBERS).await?;
    let took = begun.elapsed();
    let steady = desk.heads(&sessions).await?;
    let delivery = delivered(&desk, &sessions, &listeners).await?;

    let begun = begin_all(&desk, &api, &sessions, "burst").await?;
    audience.until_completed(2 * SUBSCRIBERS).await?;
    let burst_took = begun.elapsed();
    let burst = everything_arrived(&desk, &sessions, &audience).await? - steady;

    let approval = round_trips(&desk, &sessions, &audience).await?;
    Ok(Many {
        per_run,
        per_subscriber,
        steady_rate: steady as f64 / took.as_secs_f64(),
        delivery,
        burst_rate: burst as f64 / burst_took.as_secs_f64(),
        burst_delivered: (burst * SUBSCRIBERS / RUNS) as f64 / burst_took.as_secs_f64(),
        approval,
    })
}

/// Waits until every subscriber has every event, and returns how many events there are. The engine reports the end of a
/// prompt (`command_lifecycle`) after its result, so a session gets one more event after the end of its run. Events are
/// therefore counted until none is added meanwhile.
async fn everything_arrived(
    desk: &Desk,
    sessions: &[String],
    audience: &Audience,
) -> Result<usize> {
    let mut appended = 0;
    // Missing events do not come later; listeners refuse gaps and repeated events.
    for _ in 0..10 {
        appended = desk.heads(sessions).await?;
        if audience.heard() == appended * SUBSCRIBERS / RUNS {
            return Ok(appended);
        }
    }
    bail!("{} events were received, {appended} appended", audience.heard())
}

/// Starts a run in every session. When it returns, all of them wait for their model.
async fn begin_all(
    desk: &Desk,
    api: &ScriptedApi,
    sessions: &[String],
    prompt: &str,
) -> Result<Instant> {
    let begun = stream::iter(sessions).map(|session| desk.prompt(session, prompt));
    begun.buffered(16).try_collect::<Vec<_>>().await?;
    let gate = api.gate(prompt);
    let all = async {
        while gate.arrivals() < sessions.len() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let all = tokio::time::timeout(Duration::from_secs(120), all).await;
    ensure!(all.is_ok(), "only {} of {} runs reached their model", gate.arrivals(), sessions.len());
    gate.release();
    Ok(Instant::now())
}

/// From the time that the log gives an event to its arrival; p50 and p99 of some sessions.
async fn delivered(
    desk: &Desk,
    sessions: &[String],
    listeners: &[Listener],
) -> Result<[Duration; 2]> {
    let mut times = Vec::new();
    for (number, session) in sessions.iter().enumerate().step_by(5) {
        let added = desk.times(session).await?;
        for listener in listeners.iter().skip(number).step_by(RUNS) {
            for (seq, came) in listener.arrivals() {
                // Events from before it attached do not count.
                if let Some(added) = added.get(&seq) {
                    times.push(came.saturating_sub(*added));
                }
            }
        }
    }
    ensure!(times.len() > 1_000, "only {} deliveries were timed", times.len());
    Ok(percentiles(times))
}

fn percentiles(mut times: Vec<Duration>) -> [Duration; 2] {
    times.sort();
    [50, 99].map(|share| times[(times.len() * share / 100).min(times.len() - 1)])
}

/// A command requires approval, is allowed as soon as a listener sees it, and runs.
async fn round_trips(
    desk: &Arc<Desk>,
    sessions: &[String],
    audience: &Audience,
) -> Result<[Duration; 2]> {
    let answering = audience.answer_with(Arc::clone(desk));
    let trips = stream::iter(&sessions[..ROUND_TRIPS]).map(|session| async {
        let runs = desk.runs(session).await?;
        desk.prompt(session, "command").await?;
        desk.until_completed(session, runs + 1).await
    });
    trips.buffer_unordered(AT_ONCE).try_collect::<Vec<_>>().await?;
    let times = answering.finish();
    ensure!(times.len() == ROUND_TRIPS, "{} of {ROUND_TRIPS} commands ran", times.len());
    Ok(percentiles(times))
}

/// The cost of a few runs.
struct Few {
    wall: Duration,
    resident_mib: f64,
}

async fn few(with_vendor: bool) -> Result<Few> {
    let vendor = with_vendor.then(engine::vendor).transpose()?;
    let api = ScriptedApi::start(script()).await;
    let desk = Desk::open(&api, vendor.as_deref(), FEW).await?;
    let sessions: Vec<String> =
        stream::iter(0..FEW).map(|_| desk.session()).buffered(4).try_collect().await?;
    let begun = Instant::now();
    let runs = stream::iter(&sessions).map(|session| async {
        desk.prompt(session, "hello").await?;
        desk.until_completed(session, 1).await
    });
    runs.buffer_unordered(FEW).try_collect::<Vec<_>>().await?;
    Ok(Few { wall: begun.elapsed(), resident_mib: desk.tree_mib()? })
}

fn compared(ours: &Few, theirs: &Few) -> Vec<[String; 4]> {
    let row = |name: &str, ours: f64, theirs: f64| {
        let ratio = format!("1/{:.1}", theirs / ours);
        [name.to_owned(), format!("{ours:.1}"), format!("{theirs:.1}"), ratio]
    };
    vec![
        ["", "ostler", "claude", "ratio"].map(str::to_owned),
        row("wall time, ms", ours.wall.as_secs_f64() * 1e3, theirs.wall.as_secs_f64() * 1e3),
        row("memory of all processes, MiB", ours.resident_mib, theirs.resident_mib),
    ]
}

fn broken(ours: &Few, theirs: &Few) -> Vec<String> {
    let judge = |what: &str, reached: f64| {
        (reached > LIMIT).then(|| {
            format!(
                "{what} of {FEW} runs is 1/{:.1} of the vendor's; the promise is 1/{:.0}",
                1.0 / reached,
                1.0 / LIMIT
            )
        })
    };
    let wall = judge("the wall time", ours.wall.as_secs_f64() / theirs.wall.as_secs_f64());
    let memory = judge("the memory", ours.resident_mib / theirs.resident_mib);
    wall.into_iter().chain(memory).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ratios_have_limits() {
        let few = |ms: u64, mib: f64| Few { wall: Duration::from_millis(ms), resident_mib: mib };
        assert_eq!(broken(&few(100, 10.0), &few(1_000, 100.0)), [""; 0]);
        assert_eq!(broken(&few(101, 10.1), &few(1_000, 100.0)).len(), 2);
    }

    #[test]
    fn percentiles_are_of_the_sorted() {
        let times = (0..100).rev().map(Duration::from_millis).collect();
        assert_eq!(percentiles(times), [50, 99].map(Duration::from_millis));
    }
}
