//! The process is killed repeatedly while it writes.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use ostler_store::{Event, Expected, Lease, NewEvent, Put, Sqlite, Store, StreamId};
use serde_json::{Value, json};

/// The folder in which [`a_writer_that_is_killed`] writes, and the number of the run.
const FOLDER: &str = "OSTLER_STORE_CRASH";
const LIFE: &str = "OSTLER_STORE_LIFE";

const LIVES: usize = 100;
const STREAMS: usize = 4;
const APPENDERS: usize = 2;

fn stream(number: usize) -> StreamId {
    StreamId::new(format!("s{number}")).unwrap()
}

/// Does nothing unless the test below starts this program again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_writer_that_is_killed() {
    let Ok(folder) = std::env::var(FOLDER) else { return };
    let life = std::env::var(LIFE).unwrap();
    let store = Arc::new(Sqlite::open(&folder).await.unwrap());
    let mut appenders = Vec::new();
    for number in 0..STREAMS {
        let lease = store.claim(&stream(number), &life, Duration::from_secs(10)).await.unwrap();
        repeat_the_last(&store, &lease).await;
        for appender in 0..APPENDERS {
            let (store, lease) = (store.clone(), lease.clone());
            let name = format!("{number}/{appender}");
            appenders.push(tokio::spawn(append_for_ever(store, lease, life.clone(), name)));
        }
    }
    for appender in appenders {
        appender.await.unwrap();
    }
}

/// Like a client that was killed before the answer arrived: the same append again, with the same key.
async fn repeat_the_last(store: &Sqlite, lease: &Lease) {
    let head = store.head(&lease.stream).await.unwrap();
    for event in store.read_from(&lease.stream, head.saturating_sub(5), 10).await.unwrap() {
        if let Some(key) = key(&event) {
            let again = NewEvent::new(event.kind.as_str(), event.body.clone()).key(key);
            let put = Put::new("twice", event.seq.to_string(), json!(1));
            assert_eq!(store.append(lease, vec![again], vec![put]).await.unwrap(), [event]);
        }
    }
}

async fn append_for_ever(store: Arc<Sqlite>, lease: Lease, life: String, name: String) {
    for number in 0.. {
        let delta = NewEvent::new("delta", json!({ "of": name })).fleeting();
        store.append(&lease, vec![delta], vec![]).await.unwrap();
        let key = format!("{life}/{name}/{number}");
        let event = NewEvent::new("said", json!({ "key": key, "by": name })).key(&key);
        let put = Put::new("last", &name, json!({ "key": key })).expected(Expected::Any);
        let added = store.append(&lease, vec![event], vec![put]).await.unwrap();
        // A short write to a pipe is never torn.
        let line = format!("ack {} {} {key}\n", lease.stream, added[0].seq);
        std::io::stdout().lock().write_all(line.as_bytes()).unwrap();
    }
}

fn key(event: &Event) -> Option<String> {
    let body: Value = event.body.to().unwrap();
    body["key"].as_str().map(str::to_owned)
}

/// What was acknowledged to the writers, and how far each stream was read.
#[derive(Default)]
struct Known {
    acknowledged: HashMap<(String, u64), String>,
    looked: [u64; STREAMS],
    keys: HashMap<String, u64>,
    last: HashMap<String, String>,
}

// Seen to fail when answers come before the commit, without the lookup of keys, and when events and records are
// committed apart. A kill leaves what the kernel has in memory, so it says nothing about `synchronous`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_kills_lose_nothing_that_was_acknowledged() {
    let folder = tempfile::tempdir().unwrap();
    let seed = RandomState::new().hash_one(0);
    let mut known = Known::default();
    for life in 0..LIVES {
        let patience = RandomState::new().hash_one((seed, life)) % 60;
        let acknowledged = live(folder.path(), life, patience);
        known.acknowledged.extend(acknowledged);
        look(folder.path(), &mut known).await;
    }
    let store = Sqlite::open(folder.path()).await.unwrap();
    for number in 0..STREAMS {
        store.verify(&stream(number)).await.unwrap();
    }
    let n_acknowledged = known.acknowledged.len();
    assert!(n_acknowledged > LIVES, "hardly anything was written: {n_acknowledged}");
}

/// One run of the writer, killed after `patience` answers. Returns what was acknowledged in it.
fn live(folder: &Path, life: usize, patience: u64) -> Vec<((String, u64), String)> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["crash::a_writer_that_is_killed", "--exact", "--nocapture"])
        .env(FOLDER, folder)
        .env(LIFE, life.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut acknowledged = Vec::new();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut killed = false;
    if patience == 0 {
        child.kill().unwrap();
        killed = true;
    }
    // What was written before the kill is in the pipe, and counts.
    for line in lines.map_while(Result::ok) {
        let mut words = line.split(' ');
        if words.next() != Some("ack") {
            continue;
        }
        let [stream, seq, key] = [(); 3].map(|()| words.next().unwrap().to_owned());
        acknowledged.push(((stream, seq.parse().unwrap()), key));
        if !killed && acknowledged.len() as u64 >= patience {
            child.kill().unwrap();
            killed = true;
        }
    }
    let ended = child.wait_with_output().unwrap();
    let story = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), None, "life {life} must be killed, but it ended: {story}");
    acknowledged
}

/// Checks the events since the last time.
async fn look(folder: &Path, known: &mut Known) {
    let store = Sqlite::open(folder).await.unwrap();
    for number in 0..STREAMS {
        let stream = stream(number);
        loop {
            let looked = &mut known.looked[number];
            let events = store.read_from(&stream, *looked, 10_000).await.unwrap();
            if events.is_empty() {
                break;
            }
            for event in events {
                *looked += 1;
                assert_eq!(event.seq, *looked, "there is a gap in {stream}");
                let place = (stream.to_string(), event.seq);
                let key = key(&event);
                if let Some(stored) = known.acknowledged.remove(&place) {
                    assert_eq!(Some(&stored), key.as_ref(), "{place:?} has changed");
                    known.acknowledged.insert(place, stored);
                }
                let Some(key) = key else { continue };
                let body: Value = event.body.to().unwrap();
                known.last.insert(body["by"].as_str().unwrap().to_owned(), key.clone());
                let twin = known.keys.insert(key.clone(), event.seq);
                assert_eq!(twin, None, "{key} is stored twice");
            }
        }
    }
    for ((stream, seq), key) in &known.acknowledged {
        assert_eq!(known.keys.get(key), Some(seq), "{key} was acknowledged in {stream} as {seq}");
    }
    for (name, key) in &known.last {
        let record = store.get("last", name).await.unwrap();
        let record = record.unwrap_or_else(|| panic!("{key} exists, but not its record"));
        assert_eq!(&record.body["key"], key, "the event exists, but not its record");
    }
    let repeated = store.list("twice", &Default::default(), &Default::default()).await.unwrap();
    assert_eq!(repeated, [], "a repetition changed a record");
}

// Seen to fail when events and records are committed apart.
#[tokio::test]
async fn a_torn_write_ahead_log_loses_only_the_latest_events() {
    const EVENTS: u64 = 60;
    let folder = tempfile::tempdir().unwrap();
    let store = Sqlite::open(folder.path()).await.unwrap();
    let stream = stream(0);
    let lease = store.claim(&stream, "me", Duration::from_secs(10)).await.unwrap();
    for number in 0..EVENTS {
        let event = NewEvent::new("said", json!({ "number": number, "text": "x".repeat(500) }));
        let put = Put::new("last", "x", json!(number)).expected(Expected::Any);
        store.append(&lease, vec![event], vec![put]).await.unwrap();
    }
    // As a crash leaves them: the log is not checkpointed.
    let [database, log] =
        ["ostler.db", "ostler.db-wal"].map(|name| std::fs::read(folder.path().join(name)).unwrap());
    let mut shortened = 0;
    for round in 0..60 {
        let torn = tear(&log, round);
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("ostler.db"), &database).unwrap();
        std::fs::write(folder.path().join("ostler.db-wal"), torn).unwrap();
        let store = Sqlite::open(folder.path()).await.unwrap();
        store.verify(&stream).await.unwrap();
        let head = store.head(&stream).await.unwrap();
        let read = store.read_from(&stream, 0, 1000).await.unwrap();
        assert!(read.iter().map(|event| event.seq).eq(1..=head));
        let record = store.get("last", "x").await.unwrap();
        assert_eq!(record.map(|record| record.body), head.checked_sub(1).map(|last| json!(last)));
        shortened += u32::from(head < EVENTS);
        let lease = store.claim(&stream, "me", Duration::from_secs(10)).await.unwrap();
        let next =
            store.append(&lease, vec![NewEvent::new("said", json!(1))], vec![]).await.unwrap();
        assert_eq!(next[0].seq, head + 1);
    }
    assert!(shortened > 20, "only {shortened} of 60 logs were torn where it matters");
}

/// Truncates the log, or changes some of its bytes.
fn tear(log: &[u8], round: usize) -> Vec<u8> {
    let random =
        |what: &str, below: usize| RandomState::new().hash_one((what, round)) as usize % below;
    let at = random("where", log.len());
    let end = (at + 1 + random("how much", 600)).min(log.len());
    let mut torn = log.to_vec();
    match round % 4 {
        0 => torn.truncate(at),
        1 => torn[at] ^= 1 << random("bit", 8),
        2 => torn[at..end].fill(0),
        _ => torn[at..end].iter_mut().for_each(|byte| *byte = byte.wrapping_add(0x55)),
    }
    torn
}
