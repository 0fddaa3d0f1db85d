//! A signed-in browser, and a program on another port that got its cookie.

use reqwest::Method;
use serde_json::{Value, json};

use crate::desk::{Client, Desk};
use crate::socket::Socket;
use ostler_testkit::{Script, reply, when};

/// A signed-in browser.
pub(crate) struct Browser {
    pub(crate) base: String,
    pub(crate) cookie: String,
    pub(crate) page_key: String,
}

type Headers = Vec<(&'static str, String)>;

impl Browser {
    pub(crate) async fn sign_in(client: &Client) -> Self {
        let code = client.post("/api/auth/code", json!({})).await["code"].clone();
        let request = reqwest::Client::builder().no_proxy().tls_certs_only([]).build().unwrap();
        let request = request.post(format!("{}/api/auth/session", client.base));
        let request = request.header("origin", &client.base).json(&json!({"code": code}));
        let answer = request.send().await.unwrap();
        let line = answer.headers()["set-cookie"].to_str().unwrap().to_owned();
        let body: Value = answer.json().await.unwrap();
        Self {
            base: client.base.clone(),
            cookie: line.split(';').next().unwrap().to_owned(),
            page_key: body["pageKey"].as_str().unwrap().to_owned(),
        }
    }

    /// The headers of a program on another port: those that the browser sent it, and those that it invents.
    fn stolen(&self) -> Headers {
        vec![
            ("cookie", self.cookie.clone()),
            ("origin", self.base.clone()),
            ("sec-fetch-site", "same-origin".to_owned()),
        ]
    }

    fn headers(&self) -> Headers {
        let key = ("x-ostler-page-key", self.page_key.clone());
        self.stolen().into_iter().chain([key]).collect()
    }

    pub(crate) fn socket_headers(&self) -> Headers {
        let key = format!("ostler, ostler.page-key.{}", self.page_key);
        self.stolen().into_iter().chain([("sec-websocket-protocol", key)]).collect()
    }
}

async fn status(base: &str, method: Method, path: &str, headers: &Headers) -> u16 {
    let client = reqwest::Client::builder().no_proxy().tls_certs_only([]).build().unwrap();
    let mut request = client.request(method.clone(), format!("{base}{path}"));
    for (name, value) in headers {
        request = request.header(*name, value);
    }
    if method != Method::GET {
        request = request.json(&json!({"threadId": "t", "runId": "r", "messages": []}));
    }
    request.send().await.unwrap().status().as_u16()
}

/// Seen to fail with `Cookies::grant` that does not compare the page key and `Guard::caller` that continues without
/// one.
#[tokio::test]
async fn the_cookie_alone_does_not_authenticate_a_program_on_another_port() {
    let desk = Desk::open(Script::new().rule(when(), reply().text("hello"))).await;
    let browser = Browser::sign_in(&desk.client()).await;
    let other = Browser::sign_in(&desk.client()).await;
    let mut wrong_key = browser.stolen();
    wrong_key.push(("x-ostler-page-key", other.page_key.clone()));
    for stolen in [browser.stolen(), wrong_key] {
        for (method, path) in [
            (Method::GET, "/api/auth/me"),
            (Method::GET, "/api/sessions"),
            (Method::GET, "/api/auth/browsers"),
            (Method::GET, "/openapi.json"),
            (Method::GET, "/metrics"),
            (Method::POST, "/api/auth/code"),
            (Method::POST, "/api/auth/token/rotate"),
            (Method::POST, "/api/sessions"),
            (Method::POST, "/api/users"),
            (Method::DELETE, "/api/auth/session"),
            (Method::POST, "/agui"),
            (Method::POST, "/agui/connect"),
            (Method::POST, "/agui/stop"),
            (Method::GET, "/agui/capabilities"),
        ] {
            let answered = status(&browser.base, method.clone(), path, &stolen).await;
            assert!(matches!(answered, 401 | 429), "{method} {path}: {answered}");
        }
    }
    let refused = Socket::with(&browser.base, &browser.stolen()).await.err();
    assert_eq!(refused, Some(401), "WebSocket");
    let fetched = status(&browser.base, Method::GET, "/api/auth/me", &browser.headers()).await;
    assert_eq!(fetched, 200, "the page itself works");
    let mut socket = Socket::with(&browser.base, &browser.socket_headers()).await.unwrap();
    assert_eq!(socket.hear("hello").await["user"], "owner");
}

/// Mutant: `Cookies::remove` that does not report it.
#[tokio::test]
async fn signing_out_ends_the_open_connections_of_that_browser_and_no_others() {
    let desk = Desk::open(Script::new()).await;
    let (one, two) =
        (Browser::sign_in(&desk.client()).await, Browser::sign_in(&desk.client()).await);
    let mut leaves = Socket::with(&one.base, &one.socket_headers()).await.unwrap();
    let mut stays = Socket::with(&two.base, &two.socket_headers()).await.unwrap();
    leaves.hear("hello").await;
    stays.hear("hello").await;
    assert_eq!(status(&one.base, Method::DELETE, "/api/auth/session", &one.headers()).await, 204);
    assert_eq!(leaves.closed().await, 4401);
    stays.say(json!({"type": "ping"})).await;
    stays.hear("pong").await;
    // The owner signs the other browser out remotely.
    let listed = desk.client().get("/api/auth/browsers").await;
    let path = format!("/api/auth/browsers/{}", listed["items"][0]["id"].as_str().unwrap());
    assert_eq!(desk.client().ask(Method::DELETE, &path, None).await.0, 204);
    assert_eq!(stays.closed().await, 4401);
}
