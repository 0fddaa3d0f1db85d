//! Signing in, and being refused: requests of browsers, programs and attackers to the real server.

use ostler_testkit::{Script, reply, when};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::desk::{Client, Desk};

async fn desk() -> Desk {
    Desk::open(Script::new()).await
}

async fn status(client: &Client, method: Method, path: &str, body: Option<Value>) -> StatusCode {
    client.ask(method, path, body).await.0
}

/// A request without a token, with these headers.
async fn knock(
    desk: &Desk,
    method: Method,
    path: &str,
    headers: &[(&str, String)],
) -> reqwest::Response {
    let client = reqwest::Client::builder().no_proxy().tls_certs_only([]).build().unwrap();
    let mut request = client.request(method, format!("http://{}{path}", desk.address()));
    for (name, value) in headers {
        request = request.header(*name, value);
    }
    request.send().await.unwrap()
}

#[tokio::test]
async fn a_code_signs_in_one_browser_which_can_sign_out_again() {
    let desk = desk().await;
    let own = format!("http://{}", desk.address());
    let code =
        desk.client().post("/api/auth/code", json!({})).await["code"].as_str().unwrap().to_owned();
    let login = async |code: &str| {
        let request = reqwest::Client::builder().no_proxy().tls_certs_only([]).build().unwrap();
        let request = request.post(format!("{own}/api/auth/session")).header("origin", &own);
        request.json(&json!({"code": code})).send().await.unwrap()
    };
    let entered = login(&code).await;
    assert_eq!(entered.status(), 200);
    let line = entered.headers()["set-cookie"].to_str().unwrap().to_owned();
    let entered: Value = entered.json().await.unwrap();
    let key = entered["pageKey"].as_str().unwrap().to_owned();
    assert!(line.contains("; HttpOnly; SameSite=Strict;"), "{line}");
    assert_eq!(login(&code).await.status(), 401, "a code works only once");
    let cookie = line.split(';').next().unwrap().to_owned();
    let page = [("cookie", cookie.clone()), ("x-ostler-page-key", key), ("origin", own.clone())];
    let users = knock(&desk, Method::GET, "/api/users", &page).await;
    assert_eq!(users.status(), 200, "{}", users.text().await.unwrap());
    let alone = knock(&desk, Method::POST, "/api/auth/code", &page[..2]).await;
    assert_eq!(alone.status(), 401, "the cookie works only for our own page");
    let evil = [("cookie", cookie.clone()), ("origin", "https://evil.example".to_owned())];
    assert_eq!(knock(&desk, Method::GET, "/api/users", &evil).await.status(), 403);
    assert_eq!(knock(&desk, Method::DELETE, "/api/auth/session", &page).await.status(), 204);
    assert_eq!(knock(&desk, Method::GET, "/api/users", &page).await.status(), 401);
}

// Seen to fail when wrong codes are not counted.
#[tokio::test]
async fn guessing_of_codes_is_limited() {
    let desk = desk().await;
    let mut stranger = desk.client();
    stranger.token = "none".to_owned();
    let mut n_tried = 0;
    loop {
        let guess = json!({"code": format!("ostler_{n_tried}")});
        match status(&stranger, Method::POST, "/api/auth/session", Some(guess)).await.as_u16() {
            401 => n_tried += 1,
            429 => break,
            other => panic!("{other}"),
        }
        assert!(n_tried < 100, "the number of guesses is not limited");
    }
}

// Seen to fail when every user may add a member.
#[tokio::test]
async fn a_member_cannot_change_roles_and_a_removed_user_is_refused() {
    let desk = desk().await;
    let (owner, ada) = (desk.client(), desk.client_of("ada").await);
    for (method, path, body) in [
        (Method::PATCH, "/api/users/ada", Some(json!({"role": "admin"}))),
        (Method::POST, "/api/auth/token/rotate", Some(json!({}))),
        (Method::POST, "/api/users", Some(json!({"name": "eve", "role": "member"}))),
        (Method::POST, "/api/users", Some(json!({"name": "eve", "role": "admin"}))),
        (Method::DELETE, "/api/users/ada", None),
    ] {
        assert_eq!(status(&ada, method.clone(), path, body).await, 403, "{method} {path}");
    }
    assert_eq!(status(&owner, Method::DELETE, "/api/users/ada", None).await, 204);
    assert_eq!(status(&ada, Method::GET, "/api/sessions", None).await, 401);
    let odd = json!({"name": "../x", "role": "member"});
    let (status, body) = owner.ask(Method::POST, "/api/users", Some(odd)).await;
    assert_eq!((status.as_u16(), &body["error"]["field"]), (422, &json!("name")));
}

// Seen to fail when the guards are not around the routes.
#[tokio::test]
async fn pages_of_other_origins_cannot_use_the_server() {
    let desk = desk().await;
    let bearer = ("authorization", format!("Bearer {}", desk.token));
    let own = format!("http://{}", desk.address());
    let port = desk.address().port();
    for (name, headers, expected) in [
        ("a program", vec![], 200),
        ("its own page", vec![("origin", own.clone())], 200),
        ("a foreign page", vec![("origin", "https://evil.example".to_owned())], 403),
        ("no page", vec![("origin", "null".to_owned())], 403),
        ("another port", vec![("origin", "http://127.0.0.1:1".to_owned())], 403),
        ("another site", vec![("sec-fetch-site", "cross-site".to_owned())], 403),
        ("a rebound name", vec![("host", format!("evil.example:{port}"))], 421),
        ("any address", vec![("host", format!("0.0.0.0:{port}"))], 421),
    ] {
        let headers: Vec<_> = std::iter::once(bearer.clone()).chain(headers).collect();
        for path in ["/api/sessions", "/openapi.json", "/metrics"] {
            let answer = knock(&desk, Method::GET, path, &headers).await;
            assert_eq!(answer.status(), expected, "{name} {path}");
            let policy = answer.headers()["content-security-policy"].to_str().unwrap();
            assert!(policy.contains("frame-ancestors 'none'"), "{policy}");
            assert!(!answer.headers().contains_key("access-control-allow-origin"));
        }
    }
    let form = ("content-type", "application/x-www-form-urlencoded".to_owned());
    let answer = knock(&desk, Method::POST, "/api/sessions", &[bearer, form]).await;
    assert_eq!(answer.status(), 415);
    for path in
        ["/api/sessions", "/api/runs", "/api/approvals", "/metrics", "/openapi.json", "/api/ws"]
    {
        assert_eq!(
            knock(&desk, Method::GET, path, &[]).await.status(),
            401,
            "{path} must not be accessible"
        );
    }
}

// Seen to fail without `keep_out`: the token is in the answers of the tools.
#[tokio::test]
async fn an_agent_cannot_read_the_servers_files() {
    let desk = Desk::with(Script::new(), |config| config.allow_bypass = true).await;
    let file = |name: &str| desk.data().join("data").join(name).display().to_string();
    let ada = desk.client_of("ada").await;
    let tries = reply()
        .tool_use("Read", json!({"file_path": file("token")}))
        .tool_use("Bash", json!({"command": format!("cat {}", file("token"))}))
        .tool_use("Bash", json!({"command": format!("cd {} && cat users.json token", file(""))}))
        .tool_use("Read", json!({"file_path": file("users.json")}))
        .tool_use(
            "Grep",
            json!({"pattern": "ostler_|digest", "path": file(""), "output_mode": "content"}),
        )
        .tool_use("Write", json!({"file_path": file("token"), "content": "x".repeat(40)}));
    desk.api.append(Script::new().rule(when().turn(0), tries).rule(when(), reply().text("done")));
    let new = json!({"permissionMode": "bypassPermissions"});
    let session = ada.post("/api/sessions", new).await["id"].as_str().unwrap().to_owned();
    let run = ada.prompt(&session, "Who owns this server?").await;
    ada.until(&run, "completed").await;
    let said = desk.api.requests().last().unwrap().body.to_string();
    assert!(!said.contains(&desk.token), "the agent has read the owner's token: {said}");
    assert!(!said.contains("\\\"digest\\\""), "the agent has read the users: {said}");
    assert_eq!(
        desk.client().get("/api/auth/me").await["role"],
        "owner",
        "the token has not changed"
    );
    desk.api.finish();
}

// Seen to fail when a signed-out browser stays in the file.
#[tokio::test]
async fn browsers_stay_signed_in_over_a_restart_and_can_be_signed_out() {
    let mut desk = desk().await;
    let enter = async |desk: &Desk, client: &Client, agent: &str| {
        let code = client.post("/api/auth/code", json!({})).await["code"].clone();
        let own = format!("http://{}", desk.address());
        let request = reqwest::Client::builder().no_proxy().tls_certs_only([]).build().unwrap();
        let request = request.post(format!("{own}/api/auth/session")).header("origin", &own);
        let request = request.header("user-agent", agent).json(&json!({"code": code}));
        let entered = request.send().await.unwrap();
        let line = entered.headers()["set-cookie"].to_str().unwrap().to_owned();
        let entered: Value = entered.json().await.unwrap();
        let cookie = line.split([';', '=']).nth(1).unwrap().to_owned();
        (cookie, entered["pageKey"].as_str().unwrap().to_owned())
    };
    // Cookies depend on the port, which changes at each start of this test's server.
    let page = |desk: &Desk, (cookie, key): &(String, String)| {
        let (own, port) = (format!("http://{}", desk.address()), desk.address().port());
        let cookie = format!("ostler_session_{port}={cookie}");
        [("cookie", cookie), ("x-ostler-page-key", key.clone()), ("origin", own)]
    };
    let ann = desk.client_of("ann").await;
    let one = enter(&desk, &desk.client(), "Firefox/1 (X11; Linux)").await;
    let two = enter(&desk, &desk.client(), "curl").await;
    let hers = enter(&desk, &ann, "curl").await;
    desk.stop().await;
    desk.start().await;
    for cookie in [&one, &two, &hers] {
        let answer = knock(&desk, Method::GET, "/api/auth/me", &page(&desk, cookie)).await;
        assert_eq!(answer.status(), 200);
    }
    let list = knock(&desk, Method::GET, "/api/auth/browsers", &page(&desk, &one)).await;
    let list: Value = serde_json::from_str(&list.text().await.unwrap()).unwrap();
    let items = list["items"].as_array().unwrap();
    assert_eq!(items.len(), 3, "the owner sees the browsers of all users");
    let own = items.iter().find(|it| it["current"] == true).unwrap();
    assert_eq!((&own["label"], &own["user"]), (&json!("Firefox on Linux"), &json!("owner")));
    let mut ann = ann;
    ann.base = desk.client().base;
    let seen = ann.get("/api/auth/browsers").await;
    assert_eq!(seen["items"].as_array().unwrap().len(), 1, "Ann sees only her own browser");
    let other = items.iter().find(|it| it["user"] == "owner" && it["current"] == false).unwrap();
    let path = format!("/api/auth/browsers/{}", other["id"].as_str().unwrap());
    assert_eq!(status(&ann, Method::DELETE, &path, None).await, 404, "the browser is not Ann's");
    assert_eq!(status(&desk.client(), Method::DELETE, &path, None).await, 204);
    assert_eq!(status(&desk.client(), Method::DELETE, &path, None).await, 404);
    for _ in 0..2 {
        let answer = knock(&desk, Method::GET, "/api/auth/me", &page(&desk, &two)).await;
        assert_eq!(answer.status(), 401, "it is signed out, and stays signed out");
        let answer = knock(&desk, Method::GET, "/api/auth/me", &page(&desk, &one)).await;
        assert_eq!(answer.status(), 200);
        desk.stop().await;
        desk.start().await;
    }
}
