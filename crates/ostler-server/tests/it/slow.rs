//! Clients that read slowly or not at all, together with others that do.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use futures::StreamExt as _;
use futures::future::join_all;
use ostler_store::{Error, Store as _, StreamId};
use ostler_testkit::{Script, reply, when};
use reqwest::Method;
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinHandle;

use crate::desk::{Client, Desk, within};

/// A run that stays active, so that prompts can be pushed into it.
async fn busy() -> (Desk, Client, String) {
    let desk = Desk::open(Script::new().rule(when(), reply().hold("held").text("done"))).await;
    let client = desk.client();
    let session = client.session().await;
    client.prompt(&session, "begin").await;
    desk.api.gate("held").reached().await;
    (desk, client, session)
}

/// Pushes this many prompts of this size, each with the time at which it was sent.
async fn say(client: &Client, session: &str, count: usize, bytes: usize) {
    let path = format!("/api/sessions/{session}/runs");
    let rest = "x".repeat(bytes);
    for _ in 0..count {
        let prompt = json!({"prompt": format!("at={} {rest}", now()), "push": true});
        client.post(&path, prompt).await;
    }
}

fn now() -> u64 {
    u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros()).unwrap()
}

/// Asks for a stream of events and does not read it.
async fn silent_reader(desk: &Desk, client: &Client, session: &str, after: u64) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4_096).unwrap();
    let mut stream = socket.connect(desk.address()).await.unwrap();
    let head = format!(
        "GET /api/sessions/{session}/events?after={after} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\n\r\n",
        desk.address(),
        client.token
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    // The head of the answer has arrived, so it is a subscriber now.
    within(stream.readable()).await.unwrap();
    stream
}

// Mutant: `fell_behind` that says no: then everything is sent, however late.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_does_not_read_is_disconnected_and_receives_where_to_resume() {
    let (desk, client, session) = busy().await;
    let mut silent = silent_reader(&desk, &client, &session, 0).await;
    // More than the kernel and the server buffer for it.
    say(&client, &session, 40, 400_000).await;
    // Longer than the time limit for a client that reads nothing.
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    let mut text = Vec::new();
    within(silent.read_to_end(&mut text)).await.unwrap();
    let text = String::from_utf8_lossy(&text);
    let end = text.rfind("event: lagged").expect("the server sends `lagged`");
    let ids = text.lines().filter_map(|line| line.strip_prefix("id: ")?.trim().parse::<u64>().ok());
    let last = ids.max().unwrap();
    let said = text[end..].to_owned();
    assert!(said.contains("Last-Event-ID"), "{said}");
    let head = desk.store().head(&StreamId::new(&*session).unwrap()).await.unwrap();
    assert!(last < head, "{last} of {head}: it was not disconnected");
    // The events it has not seen arrive when it resumes there.
    let path = format!("/api/sessions/{session}/log?after={last}&limit=1");
    assert_eq!(client.get(&path).await["items"][0]["seq"], last + 1);
}

// Mutant: `open` that claims although a lease was left for it.
#[tokio::test]
async fn a_prompt_claims_its_session_once() {
    let (desk, _, session) = busy().await;
    let stream = StreamId::new(&*session).unwrap();
    let held = desk.store().claim(&stream, "another server", Duration::from_secs(1)).await;
    let Err(Error::Held { by, .. }) = held else { panic!("{held:?}") };
    let lease = desk.store().claim(&stream, &by, Duration::from_secs(1)).await.unwrap();
    assert_eq!(lease.epoch, 2, "one claim before this one");
}

/// Reads a stream as fast as it arrives; returns the delay of each event, in microseconds.
fn fast_reader(client: &Client, session: &str, after: u64, count: usize) -> JoinHandle<Vec<u64>> {
    let path = format!("/api/sessions/{session}/events?after={after}");
    let request = client.request(Method::GET, &path);
    tokio::spawn(async move {
        let mut bytes = request.send().await.unwrap().bytes_stream();
        let (mut late, mut rest) = (Vec::new(), Vec::new());
        while late.len() < count {
            rest.extend_from_slice(&within(bytes.next()).await.unwrap().unwrap());
            while let Some(end) = rest.windows(2).position(|pair| pair == b"\n\n") {
                let event: Vec<u8> = rest.drain(..end + 2).take(300).collect();
                let text = String::from_utf8_lossy(&event);
                if let Some((_, after)) = text.split_once("at=") {
                    let at: u64 = after.split(' ').next().unwrap().parse().unwrap();
                    late.push(now().saturating_sub(at));
                }
            }
        }
        late
    })
}

/// The 99th percentile of the delays of 50 readers.
async fn p99(desk: &Desk, client: &Client, session: &str) -> u64 {
    let (count, bytes) = (200, 40_000);
    let head = desk.store().head(&StreamId::new(session).unwrap()).await.unwrap();
    let readers: Vec<_> = (0..50).map(|_| fast_reader(client, session, head, count)).collect();
    tokio::time::sleep(Duration::from_millis(500)).await;
    say(client, session, count, bytes).await;
    let mut late: Vec<u64> = join_all(readers).await.into_iter().flat_map(Result::unwrap).collect();
    late.sort_unstable();
    late[late.len() * 99 / 100]
}

fn resident_megabytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1_024
}

/// The processor time of this process so far, which other programs hardly change.
fn processor_millis() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    // The name of the program, in brackets, may have spaces.
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    let ticks = |field: usize| fields[field].parse::<u64>().unwrap();
    (ticks(11) + ticks(12)) * 10
}

/// [`p99`], and the processor time that it took in milliseconds.
async fn measure(desk: &Desk, client: &Client, session: &str) -> (u64, u64) {
    let before = processor_millis();
    let late = p99(desk, client, session).await;
    (late, processor_millis() - before)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_readers_do_not_slow_others() {
    // A measurement: 200 slow readers together with 50 fast ones take some minutes in a debug build.
    if std::env::var_os("OSTLER_MEASURE").is_none() {
        return;
    }
    let (desk, client, session) = busy().await;
    p99(&desk, &client, &session).await;
    let before = resident_megabytes();
    let head = desk.store().head(&StreamId::new(&*session).unwrap()).await.unwrap();
    for (place, after) in [("at the head", head), ("at 0", 0)] {
        // In turns, because other programs use the machine too; the median of three counts.
        let (mut alone, mut together, mut megabytes) = (Vec::new(), Vec::new(), 0);
        for _ in 0..3 {
            alone.push(measure(&desk, &client, &session).await);
            let joining = (0..200).map(|_| silent_reader(&desk, &client, &session, after));
            let slow = join_all(joining).await;
            together.push(measure(&desk, &client, &session).await);
            megabytes = megabytes.max(resident_megabytes());
            drop(slow);
        }
        println!(
            "p99 of 50 fast readers in µs, and processor time in ms: {alone:?} alone, {together:?} together with 200 that joined {place} and do not read; \
             {before} MB before, {megabytes} MB with them (server, model and clients in one process)"
        );
        alone.sort_unstable();
        together.sort_unstable();
        let ratio = together[1].0 as f64 / alone[1].0 as f64;
        let work = |of: &[(u64, u64)]| of.iter().map(|(_, millis)| *millis).min().unwrap() as f64;
        let work = work(&together) / work(&alone);
        println!("joined {place}: {ratio:.2} times as late, {work:.2} times the processor time");
        assert!(ratio <= 1.5, "{ratio:.2} times");
        assert!(megabytes < 400, "{megabytes} MB");
    }
}
