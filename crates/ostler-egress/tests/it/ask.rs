//! Questions about hosts on neither list.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use ostler_egress::{HostAnswer, HostRequest, HostRules, ProxyBuilder};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::{mpsc, oneshot};

use crate::support::{PATIENCE, Sandbox, read_all, read_head};

/// A question that waits for its answer; dropping it drops the answer.
type Question = (HostRequest, oneshot::Sender<HostAnswer>);

/// An asker whose questions a test answers.
async fn asking(rules: HostRules) -> (Sandbox, mpsc::UnboundedReceiver<Question>) {
    let (sender, questions) = mpsc::unbounded_channel();
    let ask = move |builder: ProxyBuilder| {
        builder.asker(move |request| {
            let (answer, answered) = oneshot::channel();
            _ = sender.send((request, answer));
            answered
        })
    };
    (Sandbox::start_with(rules, ask).await, questions)
}

async fn next(questions: &mut mpsc::UnboundedReceiver<Question>) -> Question {
    tokio::time::timeout(PATIENCE, questions.recv()).await.unwrap().unwrap()
}

/// Sends a CONNECT and answers its question.
async fn answered(
    sandbox: &Sandbox,
    questions: &mut mpsc::UnboundedReceiver<Question>,
    target: &str,
    answer: HostAnswer,
) -> bool {
    let mut client = sandbox.connect().await;
    client.write_all(format!("CONNECT {target} HTTP/1.1\r\n\r\n").as_bytes()).await.unwrap();
    let (request, reply) = next(questions).await;
    assert_eq!(format!("{}:{}", request.host, request.port), target.to_lowercase());
    reply.send(answer).unwrap();
    read_head(&mut client).await.unwrap().starts_with("HTTP/1.1 200 ")
}

// Mutant: `AllowOnce` is remembered; `AllowSession` is not.
#[tokio::test]
async fn an_answer_counts_once_or_for_the_session_for_one_host_and_port() {
    let (sandbox, mut questions) = asking(HostRules::new()).await;
    assert!(!answered(&sandbox, &mut questions, "new.test:443", HostAnswer::Deny).await);
    assert!(answered(&sandbox, &mut questions, "New.test:443", HostAnswer::AllowOnce).await);
    assert!(answered(&sandbox, &mut questions, "new.test:443", HostAnswer::AllowSession).await);
    // No question.
    assert_eq!(sandbox.socks(b"new.test", 443).await, 0);
    assert!(answered(&sandbox, &mut questions, "new.test:80", HostAnswer::AllowOnce).await);
    sandbox.proxy.forget_answers();
    assert!(!answered(&sandbox, &mut questions, "new.test:443", HostAnswer::Deny).await);
    assert!(questions.try_recv().is_err());
    assert_eq!(sandbox.network.dialled().len(), 4);
}

// Mutant: `join_or_open` always opens.
#[tokio::test]
async fn the_same_question_at_the_same_time_is_asked_once() {
    let (sandbox, mut questions) = asking(HostRules::new()).await;
    let (mut first, mut second) = (sandbox.connect().await, sandbox.connect().await);
    for client in [&mut first, &mut second] {
        client.write_all(b"CONNECT new.test:443 HTTP/1.1\r\n\r\n").await.unwrap();
    }
    let (_, reply) = next(&mut questions).await;
    // A question about another host is behind the second client's, and is the next one to arrive.
    let mut other = sandbox.connect().await;
    other.write_all(b"CONNECT other.test:443 HTTP/1.1\r\n\r\n").await.unwrap();
    let (request, _) = next(&mut questions).await;
    assert_eq!(request.host, "other.test");
    assert!(
        read_head(&mut other).await.unwrap().starts_with("HTTP/1.1 403 "),
        "a dropped answer is a no"
    );
    reply.send(HostAnswer::AllowOnce).unwrap();
    for client in [&mut first, &mut second] {
        assert!(read_head(client).await.unwrap().starts_with("HTTP/1.1 200 "));
    }
    assert!(questions.try_recv().is_err());
}

// Mutant: a panic is a yes; errors are a yes; without an asker, Ask is Allow.
#[tokio::test]
async fn errors_panics_and_a_missing_asker_are_a_no() {
    let failing = |builder: ProxyBuilder| {
        builder.asker(|_| async { Err::<HostAnswer, _>(std::io::Error::other("offline")) })
    };
    let panicking = |builder: ProxyBuilder| {
        builder.asker(|request: HostRequest| async move {
            assert_eq!(request.host, "another.test");
            HostAnswer::AllowOnce
        })
    };
    let at_once = |builder: ProxyBuilder| {
        builder.asker(|request: HostRequest| {
            assert_eq!(request.host, "another.test");
            std::future::ready(HostAnswer::AllowOnce)
        })
    };
    let sandboxes = [
        Sandbox::start(HostRules::new()).await,
        Sandbox::start_with(HostRules::new(), failing).await,
        Sandbox::start_with(HostRules::new(), panicking).await,
        Sandbox::start_with(HostRules::new(), at_once).await,
    ];
    for sandbox in sandboxes {
        for _ in 0..2 {
            assert!(sandbox.connect_to("new.test:443").await.starts_with("HTTP/1.1 403 "));
            assert_eq!(sandbox.socks(b"new.test", 443).await, 2);
        }
        assert_eq!(sandbox.network.dialled(), [""; 0]);
    }
}

/// Counts how many of it are alive.
struct Alive(Arc<AtomicUsize>);

impl Drop for Alive {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

// Mutant: `closed` never ends, so that a SOCKS5 client's question stays.
#[tokio::test]
async fn a_question_is_withdrawn_when_its_clients_are_gone() {
    let alive = Arc::new(AtomicUsize::new(0));
    let (asked, mut asks) = mpsc::unbounded_channel();
    let (gone, mut withdrawn) = mpsc::unbounded_channel();
    let counted = Arc::clone(&alive);
    let ask = move |_| {
        counted.fetch_add(1, Ordering::SeqCst);
        let (alive, gone) = (Alive(Arc::clone(&counted)), gone.clone());
        _ = asked.send(());
        async move {
            // Dropped in this order, so that the message comes after the count.
            let _closes = Closes(gone);
            let _alive = alive;
            std::future::pending::<HostAnswer>().await
        }
    };
    let sandbox = Sandbox::start_with(HostRules::new(), |it| it.asker(ask)).await;
    for bytes in [
        &b"CONNECT new.test:443 HTTP/1.1\r\n\r\n"[..],
        b"\x05\x01\x00\x05\x01\x00\x03\x08new.test\x01\xbb",
    ] {
        let mut client = sandbox.connect().await;
        client.write_all(bytes).await.unwrap();
        asks.recv().await.unwrap();
        if bytes[0] == 5 {
            // A client that leaves something unread would end with an error instead.
            client.read_exact(&mut [0; 2]).await.unwrap();
        }
        drop(client);
        tokio::time::timeout(PATIENCE, withdrawn.recv()).await.expect("it is withdrawn");
        assert_eq!(alive.load(Ordering::SeqCst), 0);
    }
}

struct Closes(mpsc::UnboundedSender<()>);

impl Drop for Closes {
    fn drop(&mut self) {
        _ = self.0.send(());
    }
}

// Mutant: no limit in `join_or_open`.
#[tokio::test]
async fn a_program_that_makes_up_names_does_not_flood_the_user() {
    let (sandbox, mut questions) = asking(HostRules::new()).await;
    let mut clients = Vec::new();
    for index in 0..16 {
        let mut client = sandbox.connect().await;
        client
            .write_all(format!("CONNECT n{index}.test:443 HTTP/1.1\r\n\r\n").as_bytes())
            .await
            .unwrap();
        clients.push((client, next(&mut questions).await));
    }
    let answer = sandbox.connect_to("one-more.test:443").await;
    assert!(
        answer.starts_with("HTTP/1.1 403 ") && answer.contains("too many questions"),
        "{answer}"
    );
    assert!(questions.try_recv().is_err());
    // An answer makes room.
    let (mut client, (_, reply)) = clients.pop().unwrap();
    reply.send(HostAnswer::Deny).unwrap();
    assert!(read_head(&mut client).await.unwrap().starts_with("HTTP/1.1 403 "));
    assert!(answered(&sandbox, &mut questions, "one-more.test:443", HostAnswer::AllowOnce).await);
}

// Mutant: `permit` does not judge again; an answer allows local addresses.
#[tokio::test]
async fn an_answer_allows_neither_what_was_denied_meanwhile_nor_local_addresses() {
    let (sandbox, mut questions) = asking(HostRules::new()).await;
    let mut client = sandbox.connect().await;
    client.write_all(b"CONNECT new.test:443 HTTP/1.1\r\nConnection: close\r\n\r\n").await.unwrap();
    let (_, reply) = next(&mut questions).await;
    sandbox.proxy.set_rules(HostRules::new().deny("new.test").unwrap());
    reply.send(HostAnswer::AllowSession).unwrap();
    assert!(read_all(&mut client).await.contains("deniedDomains contains new.test"));
    sandbox.network.name("inside.test", &["127.0.0.1"]);
    assert!(!answered(&sandbox, &mut questions, "inside.test:443", HostAnswer::AllowSession).await);
    assert_eq!(sandbox.network.dialled(), [""; 0]);
}

#[tokio::test]
async fn strict_lists_denied_hosts_and_addresses_are_not_asked_about() {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&asked);
    let ask = move |request: HostRequest| {
        kept.lock().unwrap().push(request);
        std::future::ready(HostAnswer::AllowOnce)
    };
    let rules = HostRules::from_lists([""; 0], ["evil.test"]).unwrap();
    let sandbox = Sandbox::start_with(rules, |it| it.asker(ask)).await;
    for target in ["evil.test:443", "8.8.8.8:443", "127.0.0.1:443", "2130706433:443"] {
        assert!(sandbox.connect_to(target).await.starts_with("HTTP/1.1 403 "), "{target}");
    }
    sandbox.proxy.set_rules(HostRules::new().strict_allowlist(true));
    assert!(sandbox.connect_to("new.test:443").await.starts_with("HTTP/1.1 403 "));
    assert_eq!(*asked.lock().unwrap(), []);
}
