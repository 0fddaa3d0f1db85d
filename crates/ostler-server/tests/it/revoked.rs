//! Users who are removed, get another role or lose their token, while they have open connections and active runs.

use futures::StreamExt as _;
use ostler_testkit::{Script, reply, when};
use reqwest::Method;
use serde_json::{Value, json};

use crate::desk::{Client, Desk, within};
use crate::socket::Socket;

fn script() -> Script {
    Script::new()
        .rule(when().has_tool_result(true), reply().text("done"))
        .rule(when().prompt_contains("slow"), reply().text("x").gate(1, "slow"))
        .rule(when(), reply().tool_use("Bash", json!({"command": "touch made"})))
}

/// One open connection of every kind.
struct Open {
    socket: Socket,
    streams: Vec<(&'static str, reqwest::Response)>,
}

async fn stream(
    client: &Client,
    method: Method,
    path: &str,
    body: Option<Value>,
) -> reqwest::Response {
    let mut request = client.request(method, path).header("accept", "text/event-stream");
    if let Some(body) = body {
        request = request.json(&body);
    }
    let response = within(request.send()).await.unwrap();
    assert!(response.status().is_success(), "{path}: {}", response.status());
    assert_eq!(response.headers()["content-type"], "text/event-stream", "{path}");
    response
}

impl Open {
    async fn all(desk: &Desk, client: &Client) -> Self {
        let session = client.session().await;
        let run = client.prompt(&session, "slow").await;
        client.until(&run, "running").await;
        desk.api.gate("slow").reached().await;
        let task = json!({"name": "t", "taskType": "agent", "userPrompt": "slow"});
        let task = client.post("/api/tasks", task).await["id"].as_str().unwrap().to_owned();
        let input = |thread: &str| {
            let said = json!([{"id": "u1", "role": "user", "content": "slow"}]);
            Some(
                json!({"threadId": thread, "runId": "r1", "messages": said, "tools": [], "context": []}),
            )
        };
        let paths = [
            format!("/api/sessions/{session}/events"),
            format!("/api/tasks/{task}/execute"),
            format!("/api/tasks/{task}/events"),
        ];
        let streams = vec![
            ("session events", stream(client, Method::GET, &paths[0], None).await),
            ("task execution", stream(client, Method::POST, &paths[1], Some(json!({}))).await),
            ("task events", stream(client, Method::GET, &paths[2], None).await),
            ("AG-UI run", stream(client, Method::POST, "/agui", input("thread")).await),
            ("AG-UI connect", stream(client, Method::POST, "/agui/connect", input(&session)).await),
        ];
        let mut socket = Socket::open(client).await;
        socket.hear("hello").await;
        Self { socket, streams }
    }

    /// All connections end, with the reason. Tests of `revocation`, with a paused clock, check that this takes at most
    /// a second.
    async fn end(mut self, why: &str) {
        assert_eq!(self.socket.closed().await, 4401, "{why}");
        for (name, response) in self.streams {
            let pieces = within(response.bytes_stream().collect::<Vec<_>>()).await;
            let text: Vec<u8> = pieces.into_iter().flat_map(|it| it.unwrap().to_vec()).collect();
            let text = String::from_utf8(text).unwrap();
            let last = text.trim_end().rsplit("\n\n").next().unwrap();
            assert!(last.contains("\"signed_out\""), "{why}: {name} ends with {last}");
        }
    }
}

/// Seen to fail with `Credential::check` that does not compare the role, and with `guard::answer` that hands the body out as it
/// is. Mutant for the socket: `ws::serve` without the branch of `signed_out`.
#[tokio::test]
async fn a_user_who_is_removed_or_gets_another_role_or_loses_the_token_loses_every_open_connection()
{
    let desk = Desk::open(script()).await;
    let owner = desk.client();
    for (why, method, path, body) in [
        ("another role", Method::PATCH, "/api/users/ada", Some(json!({"role": "admin"}))),
        ("token revoked", Method::DELETE, "/api/users/ada/tokens/{token}", None),
        ("removed", Method::DELETE, "/api/users/ada", None),
    ] {
        owner.ask(Method::POST, "/api/users", Some(json!({"name": "ada", "role": "member"}))).await;
        let issued = owner.post("/api/users/ada/tokens", json!({})).await;
        let ada = Client { token: issued["token"].as_str().unwrap().to_owned(), ..desk.client() };
        let open = Open::all(&desk, &ada).await;
        let path = path.replace("{token}", issued["id"].as_str().unwrap());
        assert_eq!(owner.ask(method, &path, body).await.0, 204, "{why}");
        open.end(why).await;
    }
    // The owner's own token, over the API and by hand.
    let open = Open::all(&desk, &owner).await;
    let token = owner.post("/api/auth/token/rotate", json!({})).await["token"].clone();
    open.end("renewed").await;
    let owner = Client { token: token.as_str().unwrap().to_owned(), ..owner };
    let open = Open::all(&desk, &owner).await;
    let file = desk.data().join("data/token");
    std::fs::write(&file, format!("ostler_{}\n", "y".repeat(43))).unwrap();
    open.end("replaced by hand").await;
    desk.api.gate("slow").release();
}

/// An exploit: a prompt and an approval over a socket that was open when its user was removed.
// Mutants: `Connection::follow` without `credential.check()` together with `ws::serve` without the branch of `signed_out`.
#[tokio::test]
async fn a_removed_user_cannot_do_anything_over_an_open_socket() {
    let desk = Desk::open(script()).await;
    let (owner, ada) = (desk.client(), desk.client_of("ada").await);
    let mut socket = Socket::open(&ada).await;
    socket.say(json!({"type": "prompt", "text": "make a file"})).await;
    let asked = socket.hear("permission_request").await;
    let sessions = owner.get("/api/sessions").await["items"].as_array().unwrap().len();
    assert_eq!(owner.ask(Method::DELETE, "/api/users/ada", None).await.0, 204);
    // Sending fails if the server was faster, which is fine.
    for message in [
        json!({"type": "permission_response", "permissionId": asked["permissionId"], "approved": true}),
        json!({"type": "prompt", "text": "slow"}),
    ] {
        let message = tokio_tungstenite::tungstenite::Message::text(message.to_string());
        let _ = futures::SinkExt::send(&mut socket.stream, message).await;
    }
    assert_eq!(socket.closed().await, 4401);
    owner.until(asked["runId"].as_str().unwrap(), "cancelled").await;
    assert!(!desk.workspace().join("made").exists(), "the approval had an effect");
    let after = owner.get("/api/sessions").await["items"].as_array().unwrap().len();
    assert_eq!(after, sessions, "the prompt began a session");
}

/// Mutants: `removed_users::end_their_work` that does nothing (the running and the waiting one); `NoEngineForRemoved` that
/// refuses nothing (the one that is resumed).
#[tokio::test]
async fn the_runs_of_a_removed_user_are_cancelled_and_nothing_starts_again() {
    let mut desk = Desk::with(script(), |config| config.limits.concurrent_runs = 1).await;
    let (owner, ada) = (desk.client(), desk.client_of("ada").await);
    let (asks, works) = (ada.session().await, ada.session().await);
    let waiting = ada.prompt(&asks, "make a file").await;
    ada.until(&waiting, "waiting").await;
    let running = ada.prompt(&works, "slow").await;
    desk.api.gate("slow").reached().await;
    let queued = ada.prompt(&ada.session().await, "slow").await;
    assert_eq!(owner.ask(Method::DELETE, "/api/users/ada", None).await.0, 204);
    for run in [&waiting, &running] {
        owner.until(run, "cancelled").await;
    }
    // When a slot becomes free, it may fail to start before it is cancelled.
    let path = format!("/api/runs/{queued}");
    let is_over = |run: &Value| run["state"] == "cancelled" || run["state"] == "failed";
    owner.watch(&path, "the queued run to be over", is_over).await;
    assert!(!desk.workspace().join("made").exists());
    let nothing_waits = |list: &Value| list["items"] == json!([]);
    owner.watch("/api/approvals", "the request to be withdrawn", nothing_waits).await;
    desk.api.gate("slow").release();
    // Not even when an administrator resumes it, and not after a restart.
    for _ in 0..2 {
        let owner = desk.client();
        let more = owner.prompt(&works, "more").await;
        let failed = owner.until(&more, "failed").await;
        let why = failed["outcome"]["error"]["message"].as_str().unwrap();
        assert!(why.contains("the user ada was removed"), "{failed}");
        desk.stop().await;
        desk.start().await;
    }
}

/// Mutant: `ws::serve` that does not take from the bucket: nine requests are left then.
#[tokio::test]
async fn messages_of_a_socket_count_as_requests() {
    let desk = Desk::with(Script::new(), |config| config.limits.requests_per_second = 1).await;
    let client = desk.client();
    let mut socket = Socket::open(&client).await;
    socket.hear("hello").await;
    for _ in 0..60 {
        socket.say(json!({"type": "ping"})).await;
    }
    for _ in 0..9 {
        socket.hear("pong").await;
    }
    // The bucket of ten is empty, and its refill goes to the messages that still wait.
    let asked = (0..8).map(|_| client.ask(Method::GET, "/api/auth/me", None));
    let answers = futures::future::join_all(asked).await;
    let refused = answers.iter().find(|(status, _)| *status == 429);
    let (_, body) = refused.expect("a request is refused");
    assert_eq!(body["error"]["code"], "too_many_requests");
}
