//! Behind a proxy with TLS, as its requests arrive: the host is the public one, and origins begin with `https`.

use ostler_testkit::Script;
use reqwest::Method;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::desk::Desk;
use crate::socket::Socket;

const PUBLIC: &str = "https://agents.example.org";

/// Passes bytes on, as a proxy does after it has removed TLS.
async fn proxy(to: std::net::SocketAddr) -> std::net::SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            tokio::spawn(async move {
                let server = TcpStream::connect(to).await.unwrap();
                let ((mut from, mut back), (mut read, mut write)) =
                    (client.into_split(), server.into_split());
                tokio::spawn(async move { tokio::io::copy(&mut read, &mut back).await });
                let mut bytes = [0; 4096];
                while let Ok(n @ 1..) = from.read(&mut bytes).await {
                    if write.write_all(&bytes[..n]).await.is_err() {
                        return;
                    }
                }
            });
        }
    });
    address
}

/// Mutants: `Site::scheme` that always says `http`; `site` without the public URL.
#[tokio::test]
async fn a_user_can_sign_in_and_work_through_a_proxy_with_tls() {
    let desk =
        Desk::with(Script::new(), |config| config.public_url = Some(PUBLIC.to_owned())).await;
    let base = format!("http://{}", proxy(desk.address()).await);
    let client = reqwest::Client::builder().no_proxy().tls_certs_only([]).build().unwrap();
    let send = async |method: Method, path: &str, more: &[(&str, &str)], body: Value| {
        let mut request = client.request(method, format!("{base}{path}"));
        request = request.header("host", "agents.example.org").header("origin", PUBLIC);
        for (name, value) in more {
            request = request.header(*name, *value);
        }
        request.json(&body).send().await.unwrap()
    };
    let code = desk.client().post("/api/auth/code", json!({})).await;
    let entered = send(Method::POST, "/api/auth/session", &[], json!({"code": code["code"]})).await;
    assert_eq!(entered.status(), 200);
    assert_eq!(entered.headers()["strict-transport-security"], "max-age=31536000");
    let line = entered.headers()["set-cookie"].to_str().unwrap().to_owned();
    assert!(line.ends_with("; Secure"), "{line}");
    let entered: Value = entered.json().await.unwrap();
    let (cookie, key) = (line.split(';').next().unwrap(), entered["pageKey"].as_str().unwrap());
    let page = [("cookie", cookie), ("x-ostler-page-key", key)];
    assert_eq!(send(Method::POST, "/api/sessions", &page, json!({})).await.status(), 201);
    let socket = [
        ("host", "agents.example.org".to_owned()),
        ("origin", PUBLIC.to_owned()),
        ("cookie", cookie.to_owned()),
        ("sec-websocket-protocol", format!("ostler, ostler.page-key.{key}")),
    ];
    Socket::with(&base, &socket).await.unwrap().hear("hello").await;
    let mut elsewhere = socket.clone();
    elsewhere[1].1 = "http://agents.example.org".to_owned();
    assert_eq!(Socket::with(&base, &elsewhere).await.err(), Some(403), "without TLS");
    assert_eq!(send(Method::DELETE, "/api/auth/session", &page, json!({})).await.status(), 204);
    // At its own address it works as before, and without `Secure`.
    let local = crate::browser::Browser::sign_in(&desk.client()).await;
    Socket::with(&local.base, &local.socket_headers()).await.unwrap().hear("hello").await;
}
