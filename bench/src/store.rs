//! `store`: the cost of the server's log compared with bare SQLite, and its throughput of events.
//!
//! Disks differ in speed, so the limit compares the store with the same rows written by SQLite alone, in transactions
//! of 32, in the same folder and alternately.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use ostler_store::{Lease, NewEvent, Sqlite, Store, StreamId};
use rusqlite::{Connection, params};
use serde_json::json;
use tokio::runtime::Runtime;

use crate::table;

/// The promise: appends of many per second, divided by rows of bare SQLite per second.
const LIMIT: f64 = 0.5;

const EVENTS: usize = 6_000;
const ROUNDS: usize = 5;
const GROUP: usize = 32;
/// Concurrent appenders, each with its own stream and waiting for each answer.
const APPENDERS: usize = 64;
const PAGE: usize = 100;
/// Concurrent followers of one stream.
const FOLLOWERS: usize = 200;
const BODY_BYTES: usize = 1_000;

pub(crate) fn run() -> Result<Vec<String>> {
    let runtime = Runtime::new().context("starting a runtime")?;
    let folder = tempfile::tempdir().context("making a folder")?;
    let store = Arc::new(runtime.block_on(Sqlite::open(folder.path().join("store")))?);
    let bare = Bare::open(folder.path())?;
    let mut figures: [Vec<Figure>; 7] = Default::default();
    for round in 0..ROUNDS {
        let run = |name: &str, appenders, events, fleeting| {
            let plan = Plan { name: format!("{name}-{round}"), appenders, events, fleeting };
            runtime.block_on(append(&store, plan))
        };
        figures[0].push(bare.write(EVENTS, GROUP)?);
        figures[1].push(run("many", APPENDERS, EVENTS, false)?);
        figures[2].push(run("fleeting", APPENDERS, EVENTS, true)?);
        figures[3].push(bare.write(EVENTS / 20, 1)?);
        figures[4].push(run("one", 1, EVENTS / 20, false)?);
        figures[5].push(runtime.block_on(read(&store, &format!("many-{round}")))?);
        figures[6].push(runtime.block_on(follow(&store, &format!("followed-{round}")))?);
    }
    let names = [
        "SQLite, 32 at a time".to_owned(),
        format!("{APPENDERS} appenders"),
        format!("{APPENDERS} appenders, fleeting"),
        "SQLite, one at a time".to_owned(),
        "one appender".to_owned(),
        format!("read, {PAGE} at a time"),
        format!("delivered to {FOLLOWERS} followers"),
    ];
    let mut rows = vec![["", "per second", "p50, ms", "p99, ms"].map(str::to_owned)];
    let figures = figures.map(middle);
    for (name, figure) in names.into_iter().zip(&figures) {
        let ms = |time: Duration| format!("{:.2}", time.as_secs_f64() * 1e3);
        rows.push([name, format!("{:.0}", figure.rate), ms(figure.p50), ms(figure.p99)]);
    }
    println!("store: events of {BODY_BYTES} bytes, each on disk before the answer unless fleeting");
    print!("{}", table::render(&rows));
    let reached = figures[1].rate / figures[0].rate;
    println!("many appenders reach {reached:.2} of bare SQLite");
    if reached < LIMIT {
        return Ok(vec![format!(
            "the store appends {reached:.2} times as fast as bare SQLite; the promise is {LIMIT}"
        )]);
    }
    Ok(Vec::new())
}

#[derive(Clone, Copy)]
struct Figure {
    rate: f64,
    p50: Duration,
    p99: Duration,
}

impl Figure {
    fn of(count: usize, took: Duration, mut times: Vec<Duration>) -> Self {
        times.sort();
        let at = |share: usize| times.get(times.len() * share / 100).copied().unwrap_or_default();
        Self { rate: count as f64 / took.as_secs_f64(), p50: at(50), p99: at(99) }
    }
}

/// The round of the middle rate.
fn middle(mut figures: Vec<Figure>) -> Figure {
    figures.sort_by(|a, b| a.rate.total_cmp(&b.rate));
    figures[figures.len() / 2]
}

fn text() -> String {
    "x".repeat(BODY_BYTES)
}

struct Plan {
    name: String,
    appenders: usize,
    events: usize,
    fleeting: bool,
}

async fn append(store: &Arc<Sqlite>, plan: Plan) -> Result<Figure> {
    let each = plan.events / plan.appenders;
    let mut leases = Vec::new();
    for appender in 0..plan.appenders {
        let stream = StreamId::new(format!("{}-{appender}", plan.name))?;
        leases.push(store.claim(&stream, "bench", Duration::from_secs(600)).await?);
    }
    let start = Instant::now();
    let appenders: Vec<_> = leases
        .into_iter()
        .map(|lease| tokio::spawn(append_all(store.clone(), lease, each, plan.fleeting)))
        .collect();
    let mut times = Vec::new();
    for appender in appenders {
        times.extend(appender.await??);
    }
    Ok(Figure::of(each * plan.appenders, start.elapsed(), times))
}

async fn append_all(
    store: Arc<Sqlite>,
    lease: Lease,
    count: usize,
    fleeting: bool,
) -> Result<Vec<Duration>> {
    let mut times = Vec::with_capacity(count);
    for number in 0..count {
        let mut event = NewEvent::new("message", json!({ "text": text() }));
        // Waits for the last one, and thus for all before it.
        event.durable = !fleeting || number + 1 == count;
        let start = Instant::now();
        let added = store.append(&lease, vec![event], vec![]).await?;
        times.push(start.elapsed());
        ensure!(added[0].seq == number as u64 + 1, "{} got number {}", lease.stream, added[0].seq);
    }
    Ok(times)
}

/// Reads the events of all appenders.
async fn read(store: &Sqlite, name: &str) -> Result<Figure> {
    let (mut times, mut count) = (Vec::new(), 0);
    let start = Instant::now();
    for appender in 0..APPENDERS {
        let stream = StreamId::new(format!("{name}-{appender}"))?;
        let mut after = 0;
        loop {
            let start = Instant::now();
            let events = store.read_from(&stream, after, PAGE).await?;
            times.push(start.elapsed());
            let Some(last) = events.last() else { break };
            after = last.seq;
            count += events.len();
        }
    }
    let took = start.elapsed();
    ensure!(count == EVENTS / APPENDERS * APPENDERS, "{count} events were read");
    Ok(Figure::of(count, took, times))
}

/// One appends, many read the event at once; measured from before the append.
async fn follow(store: &Arc<Sqlite>, name: &str) -> Result<Figure> {
    const EACH: u64 = 200;
    let stream = StreamId::new(name)?;
    let lease = store.claim(&stream, "bench", Duration::from_secs(600)).await?;
    let begun = Arc::new(Mutex::new(vec![Instant::now()]));
    let followers: Vec<_> = (0..FOLLOWERS)
        .map(|_| {
            let (store, stream, begun) = (store.clone(), stream.clone(), begun.clone());
            let mut head = store.follow(&stream);
            tokio::spawn(async move {
                let (mut seen, mut times) = (0, Vec::new());
                while seen < EACH {
                    head.wait_for(|head| *head > seen).await?;
                    for event in store.read_from(&stream, seen, PAGE).await? {
                        ensure!(event.seq == seen + 1, "{} after {seen}", event.seq);
                        seen = event.seq;
                        let begun =
                            begun.lock().expect("no thread panics with the lock")[seen as usize];
                        times.push(begun.elapsed());
                    }
                }
                anyhow::Ok(times)
            })
        })
        .collect();
    let start = Instant::now();
    for _ in 0..EACH {
        begun.lock().expect("no thread panics with the lock").push(Instant::now());
        let event = NewEvent::new("message", json!({ "text": text() }));
        store.append(&lease, vec![event], vec![]).await?;
    }
    let mut times = Vec::new();
    for follower in followers {
        times.extend(follower.await??);
    }
    Ok(Figure::of(times.len(), start.elapsed(), times))
}

/// The minimal rows, written by SQLite alone.
struct Bare(Connection);

impl Bare {
    fn open(folder: &Path) -> Result<Self> {
        let connection = Connection::open(folder.join("bare.db"))?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.execute_batch(
            "CREATE TABLE event (stream INTEGER, seq INTEGER, kind TEXT, body TEXT);
            CREATE UNIQUE INDEX event_seq ON event (stream, seq);",
        )?;
        Ok(Self(connection))
    }

    fn write(&self, events: usize, group: usize) -> Result<Figure> {
        let before: i64 =
            self.0.query_row("SELECT coalesce(max(seq), 0) FROM event", [], |row| row.get(0))?;
        let mut times = Vec::new();
        let start = Instant::now();
        for first in (0..events).step_by(group) {
            let begun = Instant::now();
            let transaction = self.0.unchecked_transaction()?;
            for number in first..(first + group).min(events) {
                let body = json!({ "text": text() }).to_string();
                // To as many streams as the store has, in turn.
                let (stream, seq) = ((number % APPENDERS) as i64, before + number as i64 + 1);
                transaction
                    .prepare_cached("INSERT INTO event VALUES (?, ?, 'message', ?)")?
                    .execute(params![stream, seq, body])?;
            }
            transaction.commit()?;
            times.push(begun.elapsed());
        }
        Ok(Figure::of(events, start.elapsed(), times))
    }
}
