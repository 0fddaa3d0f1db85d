//! HTTP: tunnels and plain requests.

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::support::{DEAD, Sandbox, accept, ok, read_all, read_head, usual_rules};

async fn sandbox() -> Sandbox {
    Sandbox::start(usual_rules()).await
}

#[tokio::test]
async fn a_tunnel_carries_bytes_both_ways_and_each_end_by_itself() {
    let sandbox = sandbox().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    sandbox.network.lead_to(listener.local_addr().unwrap());
    let mut client = sandbox.connect().await;
    // What follows the request at once belongs to the tunnel.
    client.write_all(b"CONNECT allowed.test:443 HTTP/1.1\r\n\r\nearly ").await.unwrap();
    let mut server = accept(&listener).await;
    let head = read_head(&mut client).await.unwrap();
    assert!(head.starts_with("HTTP/1.1 200 ") && !head.to_lowercase().contains("content-length"));
    client.write_all(b"and late").await.unwrap();
    client.shutdown().await.unwrap();
    assert_eq!(read_all(&mut server).await, "early and late");
    // The client has sent everything, and still receives.
    server.write_all(b"an answer").await.unwrap();
    drop(server);
    assert_eq!(read_all(&mut client).await, "an answer");
    assert_eq!(sandbox.network.dialled(), ["93.184.216.34:443"]);
}

// Mutant: `copy` in `tunnel` without `shutdown`.
#[tokio::test]
async fn a_client_may_send_after_the_server_has_ended() {
    let sandbox = sandbox().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    sandbox.network.lead_to(listener.local_addr().unwrap());
    let mut client = sandbox.connect().await;
    client.write_all(b"CONNECT allowed.test:443 HTTP/1.1\r\n\r\n").await.unwrap();
    let mut server = accept(&listener).await;
    assert!(read_head(&mut client).await.unwrap().starts_with("HTTP/1.1 200 "));
    server.write_all(b"goodbye").await.unwrap();
    server.shutdown().await.unwrap();
    assert_eq!(read_all(&mut client).await, "goodbye");
    client.write_all(b"still here").await.unwrap();
    drop(client);
    assert_eq!(read_all(&mut server).await, "still here");
}

#[tokio::test]
async fn requests_on_one_connection_may_go_to_different_hosts() {
    let sandbox = sandbox().await;
    sandbox.network.name("a.wild.test", &["93.184.216.35"]);
    let answer = sandbox
        .send(
            "GET http://allowed.test/one HTTP/1.1\r\nHost: allowed.test\r\n\r\n\
             POST http://a.wild.test:8080/two HTTP/1.1\r\nHost: a.wild.test:8080\r\nContent-Length: 5\r\n\r\n body\
             GET http://unlisted.test/three HTTP/1.1\r\nHost: unlisted.test\r\nConnection: close\r\n\r\n",
        )
        .await;
    assert!(answer.contains("fetched /one for allowed.test"), "{answer}");
    assert!(answer.contains("fetched /two for a.wild.test:8080 body"), "{answer}");
    assert!(answer.contains("HTTP/1.1 403 "), "{answer}");
    assert_eq!(sandbox.network.dialled(), ["93.184.216.34:80", "93.184.216.35:8080"]);
}

// Mutant: `host_agrees` always true.
#[tokio::test]
async fn a_host_header_that_names_another_host_is_refused() {
    let sandbox = sandbox().await;
    for headers in [
        "Host: evil.test\r\n",
        "Host: allowed.test:81\r\n",
        "Host: a.wild.test\r\n",
        "Host: allowed.test\r\nHost: allowed.test\r\n",
        "Host: allowed.test\r\nHost: evil.test\r\n",
        "Host: allowed.test, evil.test\r\n",
        "Host: evil.test@allowed.test\r\n",
        "Host:\r\n",
        "",
    ] {
        let answer = sandbox
            .send(format!(
                "GET http://allowed.test/ HTTP/1.1\r\n{headers}Connection: close\r\n\r\n"
            ))
            .await;
        assert!(answer.starts_with("HTTP/1.1 400 "), "{headers:?}: {answer}");
    }
    assert_eq!(sandbox.network.dialled(), [""; 0]);
    for head in [
        "GET http://ALLOWED.test/ HTTP/1.1\r\nHost: allowed.TEST:80\r\nConnection: close\r\n\r\n",
        "GET http://allowed.test:80/ HTTP/1.1\r\nHost: allowed.test\r\nConnection: close\r\n\r\n",
        "GET http://allowed.test/ HTTP/1.0\r\n\r\n",
    ] {
        assert!(sandbox.send(head).await.contains("fetched / for allowed.test"), "{head}");
    }
}

// Mutant: `remove_hop_by_hop` does nothing.
#[tokio::test]
async fn the_server_gets_the_request_without_what_was_meant_for_the_proxy() {
    let sandbox = sandbox().await;
    sandbox.server.page(
        "/x?y=z",
        "HTTP/1.1 200 OK\r\nConnection: x-private\r\nX-Private: 1\r\nX-Public: 2\r\nKeep-Alive: timeout=5\r\n\
         Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    );
    let answer = sandbox
        .send(
            "GET http://Allowed.test/x?y=z HTTP/1.1\r\nHost: ALLOWED.test\r\nX-Kept: 1\r\n\
             Proxy-Authorization: Basic c2VjcmV0\r\nProxy-Connection: keep-alive\r\nConnection: X-Secret, close\r\n\
             X-Secret: 1\r\nUpgrade: websocket\r\nTE: trailers\r\nKeep-Alive: 5\r\n\r\n",
        )
        .await;
    let heads = sandbox.server.heads();
    let [head] = heads.as_slice() else { panic!("{heads:?}") };
    assert!(head.starts_with("GET /x?y=z HTTP/1.1\r\n"), "{head}");
    let head = head.to_lowercase();
    assert!(
        head.contains("\r\nhost: allowed.test\r\n") && head.contains("\r\nx-kept: 1\r\n"),
        "{head}"
    );
    for name in ["proxy-", "x-secret", "upgrade", "\r\nte:", "keep-alive", "connection"] {
        assert!(!head.contains(name), "{name}: {head}");
    }
    let answer = answer.to_lowercase();
    assert!(answer.contains("hello") && answer.contains("x-public: 2"), "{answer}");
    assert!(!answer.contains("x-private: 1") && !answer.contains("keep-alive"), "{answer}");
}

#[tokio::test]
async fn requests_cannot_be_smuggled_to_a_server() {
    let sandbox = sandbox().await;
    let smuggled = "GET /smuggled HTTP/1.1\r\nHost: evil.test\r\n\r\n";
    for framing in [
        format!(
            "Content-Length: {}\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{smuggled}",
            smuggled.len() + 5
        ),
        format!("Content-Length: 0\r\nContent-Length: {}\r\n\r\n{smuggled}", smuggled.len()),
        format!(
            "Transfer-Encoding: x, chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n{smuggled}"
        ),
        format!(
            "Connection: content-length\r\nContent-Length: {}\r\n\r\n{smuggled}",
            smuggled.len()
        ),
    ] {
        sandbox.send(format!("POST http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\n{framing}GET / HTTP/1.1\r\nConnection: close\r\n\r\n")).await;
    }
    let heads = sandbox.server.heads();
    assert!(heads.iter().all(|head| !head.starts_with("GET /smuggled")), "{heads:?}");
}

#[tokio::test]
async fn requests_that_are_not_for_a_proxy_are_explained() {
    let sandbox = sandbox().await;
    for (head, text) in [
        ("GET / HTTP/1.1\r\nHost: allowed.test\r\n", "This is a proxy"),
        ("OPTIONS * HTTP/1.1\r\nHost: allowed.test\r\n", "This is a proxy"),
        ("GET https://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\n", "use CONNECT"),
        ("GET ftp://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\n", "use CONNECT"),
        ("CONNECT allowed.test HTTP/1.1\r\n", "the port is missing"),
        ("CONNECT allowed.test:0 HTTP/1.1\r\n", "the port is missing"),
    ] {
        let answer = sandbox.send(format!("{head}Connection: close\r\n\r\n")).await;
        assert!(answer.starts_with("HTTP/1.1 40") && answer.contains(text), "{head}: {answer}");
    }
    assert_eq!(sandbox.network.dialled(), [""; 0]);
}

#[tokio::test]
async fn a_server_that_cannot_be_reached_or_sends_nonsense_is_reported_as_such() {
    let sandbox = sandbox().await;
    let mut events = sandbox.proxy.events();
    sandbox.network.name("allowed.test", &[DEAD]);
    let answer = sandbox.connect_to("allowed.test:443").await;
    assert!(
        answer.starts_with("HTTP/1.1 502 ") && answer.contains("connection_refused"),
        "{answer}"
    );
    sandbox.network.name("allowed.test", &[]);
    let answer = sandbox.get("allowed.test", "/").await;
    assert!(
        answer.starts_with("HTTP/1.1 502 ") && answer.contains("cannot be resolved"),
        "{answer}"
    );
    // The next address of a name is tried.
    sandbox.network.name("allowed.test", &[DEAD, "93.184.216.34"]);
    assert!(sandbox.get("allowed.test", "/").await.contains("fetched / for"));
    sandbox.server.page("/nonsense", "220 mail.test ESMTP\r\n");
    let answer = sandbox.get("allowed.test", "/nonsense").await;
    assert!(answer.starts_with("HTTP/1.1 502 ") && answer.contains("no valid answer"), "{answer}");
    let (events, _) = events.take();
    let outcomes: Vec<_> = events.iter().map(|it| format!("{:?}", it.outcome)).collect();
    assert_eq!(outcomes, ["Failed", "Failed", "Allowed", "Allowed"]);
}

// Mutant: `accepts` always true.
#[tokio::test]
async fn with_a_token_only_clients_that_give_it_are_served_and_servers_do_not_see_it() {
    let sandbox = Sandbox::start_with(usual_rules(), |it| it.token("s3cret")).await;
    // user:wrong, s3cret (without a user), user:s3cre
    for given in
        ["", "Basic dXNlcjp3cm9uZw==", "Basic czNjcmV0", "Basic dXNlcjpzM2NyZQ==", "Bearer s3cret"]
    {
        for line in ["CONNECT allowed.test:80", "GET http://allowed.test/"] {
            let answer = sandbox.send(format!("{line} HTTP/1.1\r\nHost: allowed.test\r\nProxy-Authorization: {given}\r\nConnection: close\r\n\r\n")).await;
            assert!(
                answer.starts_with("HTTP/1.1 407 ")
                    && answer.to_lowercase().contains("proxy-authenticate: basic"),
                "{given}: {answer}"
            );
        }
    }
    assert_eq!(sandbox.socks_methods(&[0]).await, [5, 0xff]);
    assert_eq!(sandbox.network.dialled(), [""; 0]);
    sandbox.server.page("/", &ok("welcome"));
    let answer = sandbox.send("GET http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\nProxy-Authorization: Basic dXNlcjpzM2NyZXQ=\r\nConnection: close\r\n\r\n").await;
    assert!(answer.contains("welcome"), "{answer}");
    assert!(!sandbox.server.heads()[0].to_lowercase().contains("authorization"));
    // SOCKS5 with user name and password.
    let mut stream = sandbox.connect().await;
    stream.write_all(b"\x05\x02\x00\x02\x01\x01u\x06s3cret").await.unwrap();
    let mut replies = [0; 4];
    stream.read_exact(&mut replies).await.unwrap();
    assert_eq!(replies, [5, 2, 1, 0]);
    stream.write_all(b"\x05\x01\x00\x03\x0callowed.test\x00\x50").await.unwrap();
    let mut reply = [0; 10];
    stream.read_exact(&mut reply).await.unwrap();
    assert_eq!(reply[1], 0);
    let mut stream = sandbox.connect().await;
    stream.write_all(b"\x05\x01\x02\x01\x01u\x05wrong").await.unwrap();
    assert_eq!(read_all(&mut stream).await.as_bytes(), [5, 2, 1, 1]);
}
