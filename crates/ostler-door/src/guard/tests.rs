//! The guard over a real connection: every row is a request as bytes and its expected status.

use std::net::SocketAddr;

use axum::Router;
use axum::extract::ws::WebSocketUpgrade;
use axum::response::sse::{Event, Sse};
use axum::routing::{delete, get, post};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use super::*;
use crate::enter::check;
use crate::public_url::PublicUrl;
use crate::rate::Rate;
use crate::token::TokenFile;
use crate::users::{Role, UserFile};

struct House {
    address: SocketAddr,
    guard: Arc<Guard>,
    token: String,
    cookie: String,
    page_key: String,
    _place: tempfile::TempDir,
}

impl House {
    async fn open() -> Self {
        let place = tempfile::tempdir().unwrap();
        let owner = TokenFile::open(place.path().join("token")).unwrap();
        let store = Box::new(UserFile(place.path().join("users.json")));
        let users = Arc::new(Users::load(owner, store).unwrap().trusting_members(true));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let site = Site::new(address, &["agent.example".to_owned()])
            .public(Method::GET, "/healthz")
            .public(Method::POST, "/auth/session")
            .share("/agui", &["http://app.example".to_owned()])
            .behind_proxy(Some(PublicUrl::parse("https://tls.example").unwrap()), false);
        let guard = Arc::new(Guard {
            site,
            users,
            browsers: Browsers::default(),
            requests: Buckets::new(Rate { burst: 1000.0, per_second: 1000.0 }),
            failures: Buckets::new(Rate { burst: 50.0, per_second: 0.001 }),
            strangers: Buckets::new(Rate { burst: 60.0, per_second: 0.001 }),
        });
        let token = guard.users.owner().token().unwrap();
        let code = guard.browsers.code(token.digest(), Instant::now());
        let (sign_in, _) = guard.browsers.redeem(code.expose(), "", Instant::now()).unwrap();
        let cookie = format!("{}={}", guard.site.cookie, sign_in.cookie.expose());
        let page_key = sign_in.page_key.expose().to_owned();
        let app = routes().layer(axum::middleware::from_fn_with_state(Arc::clone(&guard), check));
        let service = app.into_make_service_with_connect_info::<SocketAddr>();
        tokio::spawn(async move { axum::serve(listener, service).await });
        Self { address, guard, token: token.expose().to_owned(), cookie, page_key, _place: place }
    }

    /// A request with these headers in addition to the host; `{}` is the server's own host, and `{token}` and
    /// `{cookie}` stand for the values.
    async fn status(&self, target: &str, headers: &[&str]) -> u16 {
        let host = "Host: {}";
        let with_host: Vec<&str> = std::iter::once(host).chain(headers.iter().copied()).collect();
        status(&self.raw(target, &with_host, "").await)
    }

    async fn raw(&self, target: &str, headers: &[&str], body: &str) -> String {
        let mut text = format!("{target} HTTP/1.1\r\n");
        for header in headers {
            text.push_str(header);
            text.push_str("\r\n");
        }
        let host = self.address.to_string();
        let text = text.replace("{}", &host).replace("{token}", &self.token);
        let text = text.replace("{cookie}", &self.cookie).replace("{key}", &self.page_key);
        self.send(&format!("{text}\r\n{body}")).await
    }

    /// The head of the response.
    async fn send(&self, bytes: &str) -> String {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(bytes.as_bytes()).await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            match stream.read_u8().await {
                Ok(byte) => head.push(byte),
                Err(_) => break,
            }
        }
        String::from_utf8(head).unwrap()
    }
}

fn status(head: &str) -> u16 {
    head.split(' ').nth(1).unwrap_or_else(|| panic!("no answer: {head}")).parse().unwrap()
}

fn routes() -> Router {
    let events = || async {
        Sse::new(futures::stream::iter([Ok::<_, std::convert::Infallible>(
            Event::default().data("x"),
        )]))
    };
    Router::new()
        .route("/healthz", get(|| async { "ok" }))
        .route("/auth/session", post(|| async { "in" }))
        .route("/who", get(|caller: Caller| async move { caller.user }))
        .route("/tasks", post(|caller: Caller| async move { caller.user }))
        .route("/tasks/1", delete(|_: Caller| async { "gone" }))
        .route("/agui", post(|_: Caller| async { "{}" }))
        .route("/events", get(events))
        .route("/slow", get(std::future::pending::<&'static str>))
        .route("/endless", get(|| async {
            Body::from_stream(futures::stream::pending::<Result<bytes::Bytes, std::io::Error>>())
        }))
        .route("/ws", get(|upgrade: WebSocketUpgrade| async { upgrade.on_upgrade(|_| async {}) }))
}

const TOKEN: &str = "Authorization: Bearer {token}";
const COOKIE: &str = "Cookie: {cookie}";
const KEY: &str = "X-Ostler-Page-Key: {key}";
const SOCKET_KEYS: &str = "Sec-WebSocket-Protocol: ostler, ostler.page-key.{key}";
const OWN: &str = "Origin: http://{}";
const EVIL: &str = "Origin: https://evil.example";
const JSON: &str = "Content-Type: application/json";
const EMPTY: &str = "Content-Length: 0";
const UPGRADE: [&str; 4] = [
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
];

/// Each line: what it is, the request, its headers, the status.
///
/// Seen to fail, here or in the table of hosts below, with these mutants of `guard.rs` and `site.rs`, each of which
/// changes at least the named row: `host` without its list (rebinding); `host` that ignores the target (smuggled
/// target); `check_single` removed (two hosts, two tokens); `source` that accepts any origin (foreign origins, WS);
/// that accepts an origin by its beginning (longer port); that accepts `same-site` (other port); `cookie` without
/// `source` (cookie without a page); without `is_silent` (WS without an origin); `caller` that falls back to the cookie
/// (wrong token with a cookie); `check_json` removed (form, text). Mutants for the page key: `Cookies::grant` that does
/// not compare it (a wrong key); `caller` that continues without one (a listener on another port). Seen to fail with
/// `is_older` that counts next to `Sec-Fetch-Site`. Without its check for the header nothing changes: `caller` refuses
/// a request without a page key anyway.
#[tokio::test]
async fn every_row_of_the_table_gets_its_status() {
    let house = House::open().await;
    let rows: &[(&str, &str, &[&str], u16)] = &[
        ("a program", "GET /who", &[TOKEN], 200),
        ("no token", "GET /who", &[], 401),
        ("a wrong token", "GET /who", &["Authorization: Bearer ostler_forged"], 401),
        ("half a token", "GET /who", &["Authorization: Bearer ostler_"], 401),
        ("an empty token", "GET /who", &["Authorization: Bearer "], 401),
        ("another scheme", "GET /who", &["Authorization: Basic {token}"], 401),
        ("a token in the address", "GET /who?token={token}&access_token={token}", &[], 401),
        ("a token as a cookie", "GET /who", &[OWN, "Cookie: token={token}"], 401),
        ("the health of the server", "GET /healthz", &[], 200),
        ("an unknown path without a token", "GET /nothing", &[], 401),
        ("an unknown path", "GET /nothing", &[TOKEN], 404),
        // Origins.
        ("own page", "GET /who", &[COOKIE, KEY, OWN], 200),
        ("own page, reading", "GET /who", &[COOKIE, KEY, "Sec-Fetch-Site: same-origin"], 200),
        ("own page in an older browser", "GET /who", &[COOKIE, KEY], 200),
        ("the same, writing", "POST /tasks", &[COOKIE, KEY, JSON, EMPTY], 401),
        // A cookie goes to every port of the host. A program that listens there can write these headers, but has no
        // key.
        ("a listener on another port", "GET /who", &[COOKIE, OWN], 401),
        ("the same, reading", "GET /who", &[COOKIE, "Sec-Fetch-Site: same-origin"], 401),
        ("the same, writing", "POST /tasks", &[COOKIE, OWN, JSON, EMPTY], 401),
        ("the same on AG-UI", "POST /agui", &[COOKIE, OWN, JSON, EMPTY], 401),
        ("the same, events", "GET /events", &[COOKIE, "Sec-Fetch-Site: same-origin"], 401),
        ("a wrong key", "GET /who", &[COOKIE, OWN, "X-Ostler-Page-Key: ostler_guess"], 401),
        ("an empty key", "GET /who", &[COOKIE, OWN, "X-Ostler-Page-Key:"], 401),
        ("the cookie as key", "GET /who", &[COOKIE, OWN, "X-Ostler-Page-Key: {cookie}"], 401),
        ("a key without a cookie", "GET /who", &[KEY, OWN], 401),
        ("a key as a token", "GET /who", &["Authorization: Bearer {key}"], 401),
        ("two keys", "GET /who", &[COOKIE, OWN, KEY, KEY], 400),
        ("a key among protocols", "GET /who", &[COOKIE, OWN, SOCKET_KEYS], 401),
        ("a key in the address", "GET /who?key={key}", &[COOKIE, OWN], 401),
        ("a cookie without a page", "GET /who", &[COOKIE], 401),
        ("an address typed in", "GET /who", &[COOKIE, KEY, "Sec-Fetch-Site: none"], 401),
        ("a foreign page", "GET /who", &[COOKIE, KEY, EVIL], 403),
        ("a foreign page with a token", "GET /who", &[TOKEN, EVIL], 403),
        ("a page without an origin", "GET /who", &[COOKIE, KEY, "Origin: null"], 403),
        ("another port", "GET /who", &[COOKIE, KEY, "Origin: http://127.0.0.1:1"], 403),
        ("a longer port", "GET /who", &[COOKIE, KEY, "Origin: http://{}0"], 403),
        ("another scheme", "GET /who", &[COOKIE, KEY, "Origin: https://{}"], 403),
        (
            "the public origin at another host",
            "GET /who",
            &[COOKIE, KEY, "Origin: https://tls.example"],
            403,
        ),
        (
            "own name inside a foreign one",
            "GET /who",
            &[COOKIE, "Origin: http://{}.evil.example"],
            403,
        ),
        ("another name of this server", "GET /who", &[COOKIE, "Origin: http://agent.example"], 403),
        ("an empty origin", "GET /who", &[COOKIE, "Origin:"], 403),
        ("another site", "GET /who", &[COOKIE, "Sec-Fetch-Site: cross-site"], 403),
        ("another port of this machine", "GET /who", &[COOKIE, "Sec-Fetch-Site: same-site"], 403),
        ("an unknown value", "GET /who", &[COOKIE, "Sec-Fetch-Site: own"], 403),
        ("contradicting headers", "GET /who", &[COOKIE, OWN, "Sec-Fetch-Site: cross-site"], 403),
        (
            "a link to what is not public",
            "GET /who",
            &[
                COOKIE,
                "Sec-Fetch-Site: cross-site",
                "Sec-Fetch-Mode: navigate",
                "Sec-Fetch-Dest: document",
            ],
            403,
        ),
        (
            "a link to what is public",
            "GET /healthz",
            &["Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"],
            200,
        ),
        (
            "a frame around what is public",
            "GET /healthz",
            &["Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: iframe"],
            403,
        ),
        // Duplicates.
        (
            "a wrong token with a cookie",
            "GET /who",
            &["Authorization: Bearer no", COOKIE, KEY, OWN],
            401,
        ),
        ("two tokens", "GET /who", &[TOKEN, "Authorization: Bearer no"], 400),
        ("two origins", "GET /who", &[COOKIE, OWN, EVIL], 400),
        ("two cookies in one line", "GET /who", &["Cookie: {cookie}; {cookie}", KEY, OWN], 400),
        ("two cookies in two lines", "GET /who", &[COOKIE, COOKIE, KEY, OWN], 400),
        ("cookies of others", "GET /who", &["Cookie: a=1; {cookie}; b=2", KEY, OWN], 200),
        // Requests that change something.
        ("JSON", "POST /tasks", &[TOKEN, JSON, EMPTY], 200),
        (
            "JSON in another spelling",
            "POST /tasks",
            &[TOKEN, "Content-Type: Application/JSON; charset=utf-8", EMPTY],
            200,
        ),
        ("JSON from the own page", "POST /tasks", &[COOKIE, KEY, OWN, JSON, EMPTY], 200),
        ("JSON from another page", "POST /tasks", &[COOKIE, KEY, EVIL, JSON, EMPTY], 403),
        (
            "a form",
            "POST /tasks",
            &[TOKEN, "Content-Type: application/x-www-form-urlencoded", EMPTY],
            415,
        ),
        (
            "a form from another page",
            "POST /tasks",
            &[COOKIE, EVIL, "Content-Type: text/plain", EMPTY],
            403,
        ),
        ("a text", "POST /tasks", &[COOKIE, KEY, OWN, "Content-Type: text/plain", EMPTY], 415),
        (
            "a text that names JSON",
            "POST /tasks",
            &[TOKEN, "Content-Type: text/plain; application/json", EMPTY],
            415,
        ),
        ("no content type", "POST /tasks", &[TOKEN, EMPTY], 200),
        ("no content type from a page", "POST /tasks", &[COOKIE, KEY, OWN, EMPTY], 415),
        ("a body without a content type", "POST /tasks", &[TOKEN, "Content-Length: 1"], 415),
        (
            "chunks without a content type",
            "POST /tasks",
            &[TOKEN, "Transfer-Encoding: chunked"],
            415,
        ),
        ("an unknown method", "QUERY /tasks", &[TOKEN], 405),
        (
            "two content types",
            "POST /tasks",
            &[TOKEN, JSON, "Content-Type: text/plain", EMPTY],
            400,
        ),
        (
            "a code that is not JSON",
            "POST /auth/session",
            &["Content-Type: text/plain", EMPTY],
            415,
        ),
        ("a code from another page", "POST /auth/session", &[EVIL, JSON, EMPTY], 403),
        ("a code from the own page", "POST /auth/session", &[OWN, JSON, EMPTY], 200),
        ("removing", "DELETE /tasks/1", &[TOKEN], 200),
        (
            "removing with a text",
            "DELETE /tasks/1",
            &[TOKEN, "Content-Length: 1", "Content-Type: text/plain"],
            415,
        ),
        (
            "another method in a header",
            "GET /tasks/1",
            &[TOKEN, "X-HTTP-Method-Override: DELETE"],
            405,
        ),
        (
            "a preflight request",
            "OPTIONS /tasks",
            &[EVIL, "Access-Control-Request-Method: POST"],
            403,
        ),
        // Streams.
        ("events for a program", "GET /events", &[TOKEN], 200),
        (
            "events for the own page",
            "GET /events",
            &[COOKIE, KEY, "Sec-Fetch-Site: same-origin"],
            200,
        ),
        (
            "events for another site",
            "GET /events",
            &[COOKIE, KEY, "Sec-Fetch-Site: cross-site"],
            403,
        ),
        ("events for a foreign page", "GET /events", &[COOKIE, KEY, EVIL], 403),
        ("events without a token", "GET /events", &[], 401),
    ];
    for (name, target, headers, expected) in rows {
        assert_eq!(house.status(target, headers).await, *expected, "{name}: {target} {headers:?}");
    }
    let sockets: &[(&str, &[&str], u16)] = &[
        ("a program", &[TOKEN], 101),
        ("own page", &[COOKIE, SOCKET_KEYS, OWN], 101),
        ("a listener on another port", &[COOKIE, OWN], 401),
        ("a wrong key", &[COOKIE, OWN, "Sec-WebSocket-Protocol: ostler.page-key.ostler_x"], 401),
        ("a key in a header, which no page can send here", &[COOKIE, OWN, KEY], 401),
        ("a foreign page", &[COOKIE, SOCKET_KEYS, EVIL], 403),
        ("a foreign page with a token", &[TOKEN, EVIL], 403),
        ("no page", &[COOKIE, SOCKET_KEYS, "Origin: null"], 403),
        ("a cookie without an origin", &[COOKIE, SOCKET_KEYS, KEY], 401),
        (
            "no origin, with `Sec-Fetch-Site`",
            &[COOKIE, SOCKET_KEYS, KEY, "Sec-Fetch-Site: same-origin"],
            401,
        ),
        (
            "a link",
            &[
                COOKIE,
                "Sec-Fetch-Site: cross-site",
                "Sec-Fetch-Mode: navigate",
                "Sec-Fetch-Dest: document",
            ],
            403,
        ),
        ("no token", &[OWN], 401),
    ];
    for (name, headers, expected) in sockets {
        let headers: Vec<&str> = UPGRADE.iter().chain(*headers).copied().collect();
        assert_eq!(house.status("GET /ws", &headers).await, *expected, "WebSocket, {name}");
    }
}

// Seen to fail when a host need only begin like the server's own.
/// The same with hosts, which are always correct in the other table.
#[tokio::test]
async fn a_foreign_name_that_resolves_to_the_server_is_refused() {
    let house = House::open().await;
    let port = house.address.port();
    let local = format!("Host: localhost:{port}");
    let six = format!("Host: [::1]:{port}");
    let upper = format!("Host: LOCALHOST:{port}");
    let any = format!("Host: 0.0.0.0:{port}");
    let rebound = format!("Host: evil.example:{port}");
    let longer = format!("Host: localhost:{port}.evil.example");
    let below = format!("Host: localhost.evil.example:{port}");
    let dot = format!("Host: localhost.:{port}");
    let with_name = format!("Host: evil@localhost:{port}");
    let padded = format!("Host: localhost:0{port}");
    let rows: &[(&str, &[&str], u16)] = &[
        ("GET /who", &["Host: {}"], 200),
        ("GET /who", &[&local], 200),
        ("GET /who", &[&upper], 200),
        ("GET /who", &[&six], 200),
        ("GET /who", &["Host: agent.example"], 200),
        ("GET /who", &["Host: agent.example:80"], 421),
        ("GET /who", &[&any], 421),
        ("GET /who", &[&rebound], 421),
        ("GET /who", &[&longer], 421),
        ("GET /who", &[&below], 421),
        ("GET /who", &[&dot], 421),
        ("GET /who", &[&with_name], 421),
        ("GET /who", &[&padded], 421),
        ("GET /who", &["Host: localhost"], 421),
        ("GET /who", &["Host: 127.0.0.1:1"], 421),
        ("GET /who", &["Host:"], 421),
        ("GET /healthz", &[&rebound], 421),
        ("GET /who", &[], 400),
        ("GET /who", &["Host: {}", &rebound], 400),
        ("GET /who", &[&rebound, "Host: {}"], 400),
        ("GET /who", &["Host: {}", "X-Forwarded-Host: evil.example"], 200),
        ("GET /who", &[&rebound, "X-Forwarded-Host: {}", "Forwarded: host={}"], 421),
        // The target contains a host.
        ("GET http://{}/who", &["Host: {}"], 200),
        ("GET http://evil.example/who", &["Host: {}"], 421),
        ("GET http://{}/who", &[&rebound], 421),
    ];
    for (target, hosts, expected) in rows {
        let headers: Vec<&str> = hosts.iter().copied().chain([TOKEN]).collect();
        let head = house.raw(target, &headers, "").await;
        assert_eq!(status(&head), *expected, "{target} {hosts:?}");
    }
    // A page at a rebound name sends a matching origin and none of the server's cookies; with one the result is the
    // same.
    let origin = format!("Origin: http://evil.example:{port}");
    let head = house.raw("GET /who", &[&rebound, &origin, COOKIE], "").await;
    assert_eq!(status(&head), 421);
}

#[tokio::test]
async fn a_listed_page_may_use_only_its_path_and_only_with_a_token() {
    let house = House::open().await;
    let page = "Origin: http://app.example";
    let asked = "Access-Control-Request-Method: POST";
    let head = house.raw("OPTIONS /agui", &["Host: {}", page, asked], "").await.to_lowercase();
    assert_eq!(status(&head), 204);
    assert!(head.contains("access-control-allow-origin: http://app.example\r\n"), "{head}");
    assert!(!head.contains("allow-credentials"), "{head}");
    let head = house.raw("POST /agui", &["Host: {}", page, TOKEN, JSON, EMPTY], "").await;
    assert_eq!(status(&head), 200);
    assert!(head.contains("access-control-allow-origin: http://app.example"), "{head}");
    let with_cookie = ["Host: {}", page, COOKIE, KEY, JSON, EMPTY];
    let refused = house.raw("POST /agui", &with_cookie, "").await;
    assert_eq!(status(&refused), 401, "cookies are for the server's own page");
    assert!(refused.contains("access-control-allow-origin"), "the page may read the reason");
    assert_eq!(house.status("POST /tasks", &[page, TOKEN, JSON, EMPTY]).await, 403);
    assert_eq!(house.status("POST /agui", &[EVIL, TOKEN, JSON, EMPTY]).await, 403);
    let own = house.raw("GET /who", &["Host: {}", OWN, COOKIE, KEY], "").await;
    assert!(!own.contains("access-control"), "other pages get no such header: {own}");
}

// Seen to fail when revoking leaves the token in place.
#[tokio::test]
async fn revoked_tokens_and_their_cookies_are_refused() {
    let house = House::open().await;
    let users = &house.guard.users;
    let owner = users.caller(&users.owner().token().unwrap().digest()).unwrap();
    users.add(&owner, "ada", Role::Member).unwrap();
    let (id, token) = users.issue(&owner, "ada", "").unwrap();
    let code = house.guard.browsers.code(token.digest(), Instant::now());
    let (sign_in, _) = house.guard.browsers.redeem(code.expose(), "", Instant::now()).unwrap();
    let bearer = format!("Authorization: Bearer {}", token.expose());
    let cookie = format!("Cookie: {}={}", house.guard.site.cookie, sign_in.cookie.expose());
    let key = format!("X-Ostler-Page-Key: {}", sign_in.page_key.expose());
    assert_eq!(house.status("GET /who", &[&bearer]).await, 200);
    assert_eq!(house.status("GET /who", &[&cookie, &key, OWN]).await, 200);
    users.revoke(&owner, "ada", &id).unwrap();
    assert_eq!(house.status("GET /who", &[&bearer]).await, 401);
    assert_eq!(house.status("GET /who", &[&cookie, &key, OWN]).await, 401);
    // The owner's token, renewed.
    assert_eq!(house.status("GET /who", &[COOKIE, KEY, OWN]).await, 200);
    users.owner().rotate().unwrap();
    assert_eq!(house.status("GET /who", &[TOKEN]).await, 401);
    assert_eq!(house.status("GET /who", &[COOKIE, KEY, OWN]).await, 401);
}

// Mutants: `answer` that does not wait for `ended` (the slow one); that hands out the body as it is (the endless one).
#[tokio::test]
async fn a_long_request_ends_when_its_caller_is_signed_out() {
    let house = House::open().await;
    let users = &house.guard.users;
    let owner = users.caller(&users.owner().token().unwrap().digest()).unwrap();
    users.add(&owner, "ada", Role::Member).unwrap();
    let (_, token) = users.issue(&owner, "ada", "").unwrap();
    let bearer = format!("Authorization: Bearer {}", token.expose());
    let slow = async { house.status("GET /slow", &[&bearer]).await };
    let endless = async {
        let mut stream = TcpStream::connect(house.address).await.unwrap();
        let request =
            format!("GET /endless HTTP/1.1\r\nHost: {}\r\n{bearer}\r\n\r\n", house.address);
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut all = Vec::new();
        stream.read_to_end(&mut all).await.map(|_| String::from_utf8(all).unwrap())
    };
    let remove = async {
        // By then both have begun, and neither is answered.
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        users.remove(&owner, "ada").unwrap();
    };
    let all = async { tokio::join!(slow, endless, remove) };
    let (status, endless, ()) =
        tokio::time::timeout(std::time::Duration::from_secs(10), all).await.unwrap();
    assert_eq!(status, 401);
    let endless = endless.unwrap_or_default();
    assert!(!endless.ends_with("0\r\n\r\n"), "it is cut, and does not look complete: {endless}");
}

// Seen to fail when failures are not counted.
#[tokio::test]
async fn guessing_tokens_is_slowed_down_and_other_callers_are_not() {
    let house = House::open().await;
    let mut n_tried = 0;
    while house.status("GET /who", &["Authorization: Bearer guess"]).await == 401 {
        n_tried += 1;
        assert!(n_tried < 60, "the guessing is not limited");
    }
    assert_eq!(n_tried, 50);
    let head = house.raw("GET /who", &["Host: {}", "Authorization: Bearer guess"], "").await;
    assert_eq!(status(&head), 429);
    assert!(head.contains("retry-after: "), "{head}");
    assert_eq!(house.status("GET /who", &[TOKEN]).await, 200);
    assert_eq!(
        house.status("GET /who", &[]).await,
        401,
        "a missing token does not count as a guess"
    );
}

/// A proxy with TLS passes requests on: the host is the public one, the origin begins with `https`.
// Mutant: `Site::scheme` that always says `http`, as it was.
#[tokio::test]
async fn behind_a_proxy_with_tls_the_page_works_and_cookies_are_secure() {
    let house = House::open().await;
    let (host, origin) = ("Host: tls.example", "Origin: https://tls.example");
    let head = house.raw("POST /tasks", &[host, origin, COOKIE, KEY, JSON, EMPTY], "").await;
    assert_eq!(status(&head), 200);
    assert!(head.contains("strict-transport-security: max-age=31536000"), "{head}");
    let plain = house.raw("GET /who", &["Host: {}", TOKEN], "").await;
    assert!(!plain.contains("strict-transport-security"), "{plain}");
    for (headers, expected) in [
        ([host, "Origin: http://tls.example"], 403),
        ([host, "Origin: https://tls.example:8443"], 403),
        ([host, "Origin: https://evil.example"], 403),
        (["Host: tls.example:443", origin], 421),
        (["Host: {}", origin], 403),
    ] {
        let headers: Vec<&str> = headers.into_iter().chain([COOKIE, KEY]).collect();
        assert_eq!(status(&house.raw("GET /who", &headers, "").await), expected, "{headers:?}");
    }
    let headers = |host: &str| HeaderMap::from_iter([(header::HOST, host.parse().unwrap())]);
    assert!(house.guard.site.is_secure(&headers("TLS.example")));
    assert!(!house.guard.site.is_secure(&headers(&house.address.to_string())));
}

// Seen to fail with `peer` that always believes the header. Mutant: `judge` that does not ask `check_stranger`.
#[tokio::test]
async fn an_address_with_too_many_requests_to_open_paths_is_slowed_down_first() {
    let house = House::open().await;
    let mut n_answered = 0;
    loop {
        // Without a trusted proxy this header does not change the sender's address.
        let claimed = format!("X-Forwarded-For: 192.0.2.{n_answered}");
        match house.status("GET /healthz", &[&claimed]).await {
            200 => n_answered += 1,
            429 => break,
            other => panic!("{other}"),
        }
        assert!(n_answered < 100, "the requests are not limited");
    }
    assert_eq!(n_answered, 60);
    assert_eq!(house.status("POST /auth/session", &[JSON, EMPTY]).await, 429, "one bucket for all");
    assert_eq!(
        house.status("GET /who", &[TOKEN]).await,
        200,
        "a caller with a token is not slowed down"
    );
}

#[test]
fn a_trusted_proxy_names_the_address_of_its_client() {
    let place = tempfile::tempdir().unwrap();
    let rate = Rate { burst: 1.0, per_second: 1.0 };
    let guard = |trusts| Guard {
        site: Site::new("127.0.0.1:1".parse().unwrap(), &[]).behind_proxy(None, trusts),
        users: Arc::new(
            Users::load(
                TokenFile::open(place.path().join("token")).unwrap(),
                Box::new(UserFile(place.path().join("users.json"))),
            )
            .unwrap(),
        ),
        browsers: Browsers::default(),
        requests: Buckets::new(rate),
        failures: Buckets::new(rate),
        strangers: Buckets::new(rate),
    };
    let peer = |guard: &Guard, said: &[&str]| {
        let mut request = axum::http::Request::get("/");
        for line in said {
            request = request.header("x-forwarded-for", *line);
        }
        let (mut parts, ()) = request.body(()).unwrap().into_parts();
        let direct: SocketAddr = "127.0.0.1:9".parse().unwrap();
        parts.extensions.insert(ConnectInfo(direct));
        guard.peer(&parts).unwrap().to_string()
    };
    assert_eq!(peer(&guard(false), &["192.0.2.1"]), "127.0.0.1");
    assert_eq!(peer(&guard(true), &["192.0.2.1"]), "192.0.2.1");
    assert_eq!(
        peer(&guard(true), &["10.0.0.1, 192.0.2.1"]),
        "192.0.2.1",
        "the proxy added the last one"
    );
    assert_eq!(peer(&guard(true), &["10.0.0.1", "192.0.2.2"]), "192.0.2.2");
    assert_eq!(peer(&guard(true), &["nonsense"]), "127.0.0.1");
    assert_eq!(peer(&guard(true), &[]), "127.0.0.1");
}

#[test]
fn all_addresses_of_an_ipv6_network_count_as_one() {
    let same = |a: &str, b: &str| network(a.parse().unwrap()) == network(b.parse().unwrap());
    assert!(same("2001:db8::1", "2001:db8::ffff:1"));
    assert!(!same("2001:db8::1", "2001:db8:0:1::1"));
    assert!(same("::ffff:192.0.2.1", "192.0.2.1"));
    assert!(!same("192.0.2.1", "192.0.2.2"));
}
