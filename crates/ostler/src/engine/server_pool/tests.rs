//! One process for many sessions, its end, its limits, and what each session learns of it.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use futures::future::join_all;
use ostler_mcp::{CallOptions, Channel, Server, tool};
use serde_json::{Value, json};

use super::*;

/// A pool, and the number of programs that were started in it.
struct Stage {
    pool: ServerPool,
    started: AtomicUsize,
}

impl Stage {
    fn new(idle_s: u64, programs_per_user: usize) -> Self {
        let idle = Duration::from_secs(idle_s);
        let pool = ServerPool::new(PoolLimits { idle, programs_per_user });
        Self { pool, started: AtomicUsize::default() }
    }

    /// The endpoint of a program that counts its calls.
    fn endpoint(&self) -> Result<Endpoint, String> {
        self.started.fetch_add(1, Relaxed);
        let calls = Arc::new(AtomicUsize::default());
        let count = tool("count", "Counts", move |(): ()| {
            let call = calls.fetch_add(1, Relaxed) + 1;
            async move { Ok::<_, String>(call) }
        });
        Ok(Server::new("counter", "1").tool(count).into())
    }

    async fn connect(&self, lease: &Lease, user: &str) -> Result<Running, NotConnected> {
        let events = Arc::new(ServerEvents::default());
        let endpoint = || self.endpoint();
        lease.connect("counter", user, ClientOptions::default(), &events, endpoint).await
    }

    fn n_started(&self) -> usize {
        self.started.load(Relaxed)
    }
}

async fn count(running: &Running) -> String {
    let output = running.client.call_tool("count", json!({}), CallOptions::default()).await;
    output.unwrap().joined_text()
}

// Mutant: `connect` that starts the program whenever it is called.
#[tokio::test]
async fn sessions_that_begin_together_start_a_program_once() {
    let stage = Stage::new(60, 10);
    let leases: Vec<Lease> = (0..50).map(|_| stage.pool.lease("ada", "key")).collect();
    let running = join_all(leases.iter().map(|lease| stage.connect(lease, "ada"))).await;
    for running in &running {
        count(running.as_ref().unwrap()).await;
    }
    assert_eq!(count(running[0].as_ref().unwrap()).await, "51");
    assert_eq!((stage.n_started(), stage.pool.programs_of("ada")), (1, 1));
    let other = stage.pool.lease("ada", "other key");
    assert_eq!(count(&stage.connect(&other, "ada").await.unwrap()).await, "1");
}

// Mutant: `connect` that does not look at `failed`.
#[tokio::test]
async fn sessions_that_wait_for_a_start_that_fails_have_failed_and_a_later_one_tries_again() {
    let stage = Stage::new(60, 10);
    let leases: Vec<Lease> = (0..20).map(|_| stage.pool.lease("ada", "key")).collect();
    let events = Arc::new(ServerEvents::default());
    let attempt = async |lease: &Lease| {
        let endpoint = || {
            stage.started.fetch_add(1, Relaxed);
            Ok(Endpoint::custom(|| Channel::pair(1).0))
        };
        let options = ClientOptions::default();
        lease.connect("counter", "ada", options, &events, endpoint).await.err()
    };
    let ended = join_all(leases.iter().map(&attempt)).await;
    assert!(
        ended.iter().all(|error| error.as_ref().unwrap().reason.contains("closed the connection"))
    );
    assert_eq!(stage.n_started(), 1);
    stage.connect(&leases[0], "ada").await.unwrap();
    assert_eq!(stage.n_started(), 2);
}

// Mutants: `released` that waits a part of the idle time; `end_unused_of` that does nothing.
#[tokio::test(start_paused = true)]
async fn a_program_ends_when_no_session_has_used_it_for_the_idle_time() {
    let stage = Stage::new(60, 10);
    let lease = stage.pool.lease("ada", "key");
    count(&stage.connect(&lease, "ada").await.unwrap()).await;
    drop(lease);
    tokio::time::sleep(Duration::from_secs(40)).await;
    let again = stage.pool.lease("ada", "key");
    assert_eq!(count(&stage.connect(&again, "ada").await.unwrap()).await, "2");
    drop(again);
    // The first wait is over, the second one is not.
    tokio::time::sleep(Duration::from_secs(40)).await;
    assert_eq!(stage.pool.programs_of("ada"), 1);
    tokio::time::sleep(Duration::from_secs(40)).await;
    assert_eq!(stage.pool.programs_of("ada"), 0);
    let later = stage.pool.lease("ada", "key");
    assert_eq!(count(&stage.connect(&later, "ada").await.unwrap()).await, "1");
    drop(later);
    stage.pool.end_unused_of("bob");
    tokio::task::yield_now().await;
    assert_eq!(stage.pool.programs_of("ada"), 1, "those of other users stay");
    stage.pool.end_unused_of("ada");
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(stage.pool.programs_of("ada"), 0);
}

// Mutant: `try_count` that compares nothing.
#[tokio::test(start_paused = true)]
async fn programs_are_limited_for_each_user() {
    let stage = Stage::new(60, 2);
    let own = stage.pool.count("ada").await.unwrap();
    let lease = stage.pool.lease("ada", "key");
    let running = stage.connect(&lease, "ada").await.unwrap();
    let more = stage.pool.lease("ada", "other");
    let refused = stage.connect(&more, "ada").await.err().unwrap().reason;
    assert!(refused.contains("2 MCP server programs"), "{refused}");
    let of_bob = stage.pool.lease("bob", "key of bob");
    stage.connect(&of_bob, "bob").await.unwrap();
    // Another session of the same program needs no further one.
    stage.connect(&lease, "ada").await.unwrap();
    // One that is about to end is waited for.
    let ending = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        drop((own, running));
    };
    let (more, ()) = tokio::join!(stage.connect(&more, "ada"), ending);
    more.unwrap();
}

/// A server whose connection the test ends, and that the test lets send anything.
fn frail(ours: &Arc<Mutex<Option<Channel>>>) -> Endpoint {
    let ours = Arc::clone(ours);
    Endpoint::custom(move || {
        let (client, mut server) = Channel::pair(64);
        let (outgoing, mut from_test) = (server.outgoing.clone(), Channel::pair(64));
        *ours.lock() = Some(from_test.0);
        tokio::spawn(async move {
            loop {
                let message = tokio::select! {
                    message = server.incoming.recv() => message,
                    sent = from_test.1.incoming.recv() => match sent {
                        Some(sent) => { _ = outgoing.send(sent).await; continue }
                        None => return,
                    },
                };
                let Some(message) = message else { return };
                let result = match message["method"].as_str() {
                    Some("initialize") => json!({
                        "protocolVersion": "2025-11-25", "capabilities": {"tools": {"listChanged": true}},
                        "serverInfo": {"name": "frail", "version": "1"},
                    }),
                    Some("tools/list") => json!({"tools": []}),
                    _ => continue,
                };
                let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
                _ = outgoing.send(answer).await;
            }
        });
        client
    })
}

// Mutant: `Listeners::note` that passes on everything.
#[tokio::test]
async fn every_session_learns_of_changed_lists_and_of_the_end_and_of_nothing_else() {
    let stage = Stage::new(60, 10);
    let channel = Arc::new(Mutex::new(None));
    let leases = [stage.pool.lease("ada", "key"), stage.pool.lease("ada", "key")];
    let events = [Arc::new(ServerEvents::default()), Arc::new(ServerEvents::default())];
    for (lease, events) in leases.iter().zip(&events) {
        let endpoint = || Ok(frail(&channel));
        let options = ClientOptions::default();
        lease.connect("frail", "ada", options, events, endpoint).await.unwrap();
    }
    assert!(events[0].note_subscription("x://read"));
    let send = channel.lock().as_ref().unwrap().outgoing.clone();
    let note =
        |method: &str, params: Value| json!({"jsonrpc": "2.0", "method": method, "params": params});
    for message in [
        note("notifications/message", json!({"level": "error", "data": "about one call"})),
        note("notifications/resources/updated", json!({"uri": "x://read"})),
        note("notifications/tools/list_changed", json!({})),
    ] {
        send.send(message).await.unwrap();
    }
    drop(send);
    *channel.lock() = None;
    for events in &events {
        tokio::time::timeout(Duration::from_secs(60), events.ended()).await.unwrap();
        assert!(events.is_stale());
        assert!(events.log().is_empty());
    }
    assert_eq!(events[0].take_changed_resources(), ["x://read"]);
    assert!(events[1].take_changed_resources().is_empty(), "the other session did not read it");
}
