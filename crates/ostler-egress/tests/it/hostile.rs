//! Clients that try to exhaust the proxy.

use std::process::Command;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;

use crate::support::{Sandbox, limits, read_all, usual_rules};

/// A proxy that waits only a moment for requests.
async fn impatient() -> Sandbox {
    let limits = limits(|it| it.request = Duration::from_millis(100));
    Sandbox::start_with(usual_rules(), |it| it.limits(limits)).await
}

/// Sends byte after byte until the proxy hangs up.
async fn trickle(mut stream: UnixStream, bytes: &[u8]) {
    let (mut reader, mut writer) = stream.split();
    let endless = async {
        for byte in bytes.iter().chain(std::iter::repeat(&b'x')) {
            if writer.write_all(&[*byte]).await.is_err() {
                break;
            }
            tokio::task::yield_now().await;
        }
    };
    let mut answer = Vec::new();
    tokio::select! {
        () = endless => {}
        _ = reader.read_to_end(&mut answer) => {}
    }
}

// Mutant: no `header_read_timeout`; no timeout around `handshake`; none around `first_byte`.
#[tokio::test]
async fn a_client_that_does_not_finish_its_request_in_time_is_disconnected() {
    let sandbox = impatient().await;
    // The bytes are enough for every beginning, but never a whole request.
    for beginning in
        [&b"GET http://allowed.test/"[..], b"CONNECT allowed.test:80 HTTP/1.1\r\nX-Long: "]
    {
        trickle(sandbox.connect().await, beginning).await;
    }
    for silent_after in
        [&b""[..], b"G", b"\x05", b"\x05\x01", b"\x05\x01\x00", b"\x05\x01\x00\x05\x01\x00\x03\xff"]
    {
        let mut stream = sandbox.connect().await;
        stream.write_all(silent_after).await.unwrap();
        read_all(&mut stream).await;
    }
    assert_eq!(sandbox.network.dialled(), [""; 0]);
    assert!(sandbox.get("allowed.test", "/").await.contains("fetched"), "others are served");
}

// Mutant: no `max_buf_size`.
#[tokio::test]
async fn a_head_that_is_too_large_is_refused_before_it_is_read_to_its_end() {
    let sandbox = Sandbox::start(usual_rules()).await;
    let megabyte = "x".repeat(1_000_000);
    for head in [
        format!(
            "GET http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\nX-Long: {megabyte}\r\n\r\n"
        ),
        format!("GET http://allowed.test/{megabyte} HTTP/1.1\r\nHost: allowed.test\r\n\r\n"),
        format!("CONNECT {megabyte}.test:80 HTTP/1.1\r\n\r\n"),
        format!(
            "GET http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\n{}\r\n",
            "X: y\r\n".repeat(10_000)
        ),
    ] {
        let answer = sandbox.send(head).await;
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 4"), "{answer}");
    }
    assert_eq!(sandbox.network.dialled(), [""; 0]);
    assert!(sandbox.get("allowed.test", "/").await.contains("fetched"), "others are served");
}

// Mutant: `max_buf_size` without `LEAST_HEAD`, which panics.
#[tokio::test]
async fn the_smallest_limits_still_serve_a_small_request() {
    let limits = limits(|it| (it.head_bytes, it.connections) = (0, 1));
    let sandbox = Sandbox::start_with(usual_rules(), |it| it.limits(limits)).await;
    for _ in 0..2 {
        assert!(sandbox.get("allowed.test", "/").await.contains("fetched"));
    }
}

#[tokio::test]
async fn bytes_of_another_protocol_are_answered_and_end_the_connection() {
    let sandbox = Sandbox::start(usual_rules()).await;
    // A TLS hello, SOCKS4, SSH in lower case, HTTP/2, and nothing in particular.
    for bytes in [
        &b"\x16\x03\x01\x02\x00\x01"[..],
        b"\x04\x01\x00\x50\x00\x00\x00\x01x\x00",
        b"ssh-2.0\r\n",
        b"\0\0\0\0",
        b"\xff\xfe",
    ] {
        let answer = sandbox.send(bytes).await;
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 400 "), "{bytes:?}: {answer}");
    }
    let answer = sandbox.send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await;
    assert!(!answer.contains(" 200 "), "{answer}");
    assert_eq!(sandbox.network.dialled(), [""; 0]);
    assert!(sandbox.get("allowed.test", "/").await.contains("fetched"));
}

const CHILD: &str = "OSTLER_EGRESS_HOSTILE_CHILD";
/// Peak memory of the attacked process, in kilobytes: the proxy, its clients and the test harness.
const MOST_MEMORY: u64 = 70_000;

// Mutant: `connections` of `Limits` is not looked at, and the head may have 4 MB.
#[test]
fn a_thousand_connections_with_half_a_head_cost_little_memory_and_no_other_sandbox() {
    if std::env::var_os(CHILD).is_some() {
        return tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap()
            .block_on(attack());
    }
    // A process of its own, so that its memory is this attack's alone.
    let name =
        "hostile::a_thousand_connections_with_half_a_head_cost_little_memory_and_no_other_sandbox";
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(CHILD, "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&child.stdout);
    assert!(child.status.success(), "{text}{}", String::from_utf8_lossy(&child.stderr));
    let peak =
        text.lines().find_map(|line| line.strip_prefix("peak ")).expect("a line with the peak");
    let peak: u64 = peak.parse().unwrap();
    assert!(peak < MOST_MEMORY, "{peak} kB");
}

async fn attack() {
    let (attacked, other) =
        (Sandbox::start(usual_rules()).await, Sandbox::start(usual_rules()).await);
    let mut clients = Vec::new();
    for index in 0..1_000 {
        let client = attacked.connect().await;
        _ = client.try_write(b"GET http://allowed.test/ HTTP/1.1\r\nX-Long: ");
        // One half stays just below the limit of a head, the other half goes far beyond it.
        clients.push((client, if index % 2 == 0 { 60_000 } else { 300_000 }));
    }
    let bytes = [b'x'; 10_000];
    // Until the proxy takes no more of any client.
    let mut idle = 0;
    while idle < 100 {
        idle += 1;
        for (client, left) in &mut clients {
            if let Ok(count) = client.try_write(&bytes[..bytes.len().min(*left)]) {
                *left -= count;
                idle = if count == 0 { idle } else { 0 };
            }
        }
        tokio::task::yield_now().await;
    }
    assert!(
        other.get("allowed.test", "/").await.contains("fetched"),
        "another sandbox is not affected"
    );
    drop(clients);
    assert!(
        attacked.get("allowed.test", "/").await.contains("fetched"),
        "the attacked one recovers"
    );
    assert_eq!(attacked.network.dialled().len(), 1);
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("0 kB");
    println!("\npeak {}", peak.trim().trim_end_matches(" kB"));
}
