//! Thousands of connections that send nothing, or send slowly: other clients are still served.

use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::peak::{SERVER_LIMIT, add_row, current};
use super::requests::{PATIENCE, server};
use crate::serve_options::Served;

/// Each connection is an open file here, and one in the server, which inherits the limit.
fn raise_file_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).unwrap();
    let most = maximum.unwrap_or(u64::MAX);
    assert!(
        most >= 8_000,
        "the hard limit of open files (ulimit -Hn) is {most}; these tests need 8000"
    );
}

/// How long other clients wait for an answer: the longest of some requests.
async fn others_wait(served: &Served) -> Duration {
    let mut longest = Duration::ZERO;
    for _ in 0..10 {
        let begun = Instant::now();
        let asking = served.ask("/sessions", None);
        let sessions = tokio::time::timeout(PATIENCE, asking).await.expect("others are answered");
        assert!(sessions["items"].is_array(), "{sessions}");
        longest = longest.max(begun.elapsed());
    }
    longest
}

/// Opens connections that all send this beginning, and nothing more.
async fn open(served: &Served, count: usize, beginning: &str) -> Vec<TcpStream> {
    let address = served.base.trim_start_matches("http://");
    let mut streams = Vec::new();
    for _ in 0..count {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(beginning.as_bytes()).await.unwrap();
        streams.push(stream);
    }
    streams
}

/// Waits until the server has closed all of them, if the attack is made in full: it takes half a minute. Unit tests of
/// the server show with shorter limits that slow heads and bodies are not waited for.
async fn closed(streams: Vec<TcpStream>) -> &'static str {
    if std::env::var_os("OSTLER_FULL").is_none() {
        return "others are served";
    }
    for mut stream in streams {
        let mut rest = Vec::new();
        let reading = stream.read_to_end(&mut rest);
        // A connection that is reset has been closed, too.
        let _ = tokio::time::timeout(PATIENCE, reading).await.expect("it is closed");
    }
    "others are served, all closed"
}

async fn check(name: &str, count: usize, beginning: impl Fn(&Served) -> String) {
    raise_file_limit();
    let (served, begun) = (server().await, Instant::now());
    let streams = open(&served, count, &beginning(&served)).await;
    let waited = others_wait(&served).await;
    let peak = current(served.id());
    let result = format!("{} within {} ms", closed(streams).await, waited.as_millis());
    add_row(&format!("server: {name}"), &result, begun.elapsed(), peak, SERVER_LIMIT);
}

#[tokio::test(flavor = "multi_thread")]
async fn three_hundred_slow_heads_do_not_delay_other_clients() {
    check("300 slow heads", 300, |_| "GET /api/sessions HTTP/1.1\r\nhost: 127".to_owned()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_slow_bodies_do_not_delay_other_clients() {
    check("100 slow bodies", 100, |served| {
        let host = served.base.trim_start_matches("http://");
        format!(
            "POST /api/sessions HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {}\r\ncontent-type: application/json\r\ncontent-length: 1000000\r\n\r\n{{\"a\":\"",
            served.token
        )
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn five_thousand_idle_connections_do_not_delay_other_clients() {
    check("5,000 idle connections", 5_000, |_| String::new()).await;
}
