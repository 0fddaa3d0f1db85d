//! What a member reaches of the owner's, who knows every id and holds an approval of each kind: nothing, by any door.
//!
//! The table has an entry for every route of the OpenAPI document, so a new route without one fails the test.

use std::collections::{BTreeMap, BTreeSet};

use ostler_testkit::{Script, reply, when};
use reqwest::Method;
use serde_json::{Value, json};

use crate::browser::Browser;
use crate::desk::{Client, Desk, within};
use crate::socket::Socket;

/// In everything that is the owner's.
const MARK: &str = "MARK-OF-THE-OWNER";

/// What a route answers a member who names what is the owner's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    /// As if it were not there, or that the role is too low.
    Refused,
    /// The member's own, or what is for everybody; nothing of the owner's is in it.
    Own,
    /// The member may make something, but not out of what is the owner's: the body names it, and is refused.
    RefusedByBody,
    /// It is for strangers, who need a code or a signature.
    Public,
}
use Reach::{Own, Public, Refused, RefusedByBody};

const ROUTES: &[(&str, Reach)] = &[
    ("DELETE /api/auth/browsers/{id}", Refused),
    ("DELETE /api/auth/session", Own),
    ("DELETE /api/hooks/{id}", Refused),
    ("DELETE /api/rules/{id}", Refused),
    ("DELETE /api/schedules/{id}", Refused),
    ("DELETE /api/sessions/{id}", Refused),
    ("DELETE /api/spaces/{id}", Refused),
    ("DELETE /api/spaces/{id}/members/{user}", Refused),
    ("DELETE /api/spaces/{id}/mounts/{name}", Refused),
    ("DELETE /api/tasks/{id}", Refused),
    ("DELETE /api/users/{name}", Refused),
    ("DELETE /api/users/{name}/tokens/{id}", Refused),
    ("GET /api/approvals", Own),
    ("GET /api/approvals/{id}", Refused),
    ("GET /api/audit", Own),
    ("GET /api/auth/browsers", Own),
    ("GET /api/auth/me", Own),
    ("GET /api/doctor", Refused),
    ("GET /api/hooks", Own),
    ("GET /api/hooks/{id}", Refused),
    ("GET /api/memory", Own),
    ("GET /api/model", Refused),
    ("GET /api/mounts", Refused),
    ("GET /api/rules", Own),
    ("GET /api/runs/{id}", Refused),
    ("GET /api/schedules", Own),
    ("GET /api/schedules/{id}", Refused),
    ("GET /api/schedules/{id}/log", Refused),
    ("GET /api/secrets", Refused),
    ("GET /api/sessions", Own),
    ("GET /api/sessions/{id}", Refused),
    ("GET /api/sessions/{id}/changes", Refused),
    ("GET /api/sessions/{id}/events", Refused),
    ("GET /api/sessions/{id}/files", Refused),
    ("GET /api/sessions/{id}/log", Refused),
    ("GET /api/sessions/{id}/runs", Refused),
    ("GET /api/sessions/{id}/setup", Refused),
    ("GET /api/sessions/{id}/usage", Refused),
    ("GET /api/skills", Own),
    ("GET /api/skills/{name}", Refused),
    ("GET /api/spaces", Own),
    ("GET /api/spaces/{id}", Refused),
    ("GET /api/spaces/{id}/memory", Refused),
    ("GET /api/spaces/{id}/sessions", Refused),
    ("GET /api/tasks", Own),
    ("GET /api/tasks/{id}", Refused),
    ("GET /api/tasks/{id}/events", Refused),
    ("GET /api/usage", Own),
    ("GET /api/users", Own),
    ("GET /healthz", Own),
    ("GET /metrics", Refused),
    ("GET /openapi.json", Own),
    ("PATCH /api/schedules/{id}", Refused),
    ("PATCH /api/sessions/{id}", Refused),
    ("PATCH /api/spaces/{id}", Refused),
    ("PATCH /api/users/{name}", Refused),
    ("POST /api/approvals/{id}/decision", Refused),
    ("POST /api/auth/code", Own),
    ("POST /api/auth/session", Public),
    ("POST /api/auth/token/rotate", Refused),
    ("POST /api/hooks", RefusedByBody),
    ("POST /api/hooks/{id}", Public),
    ("POST /api/questions/{id}/answers", Refused),
    ("POST /api/runs/{id}/cancel", Refused),
    ("POST /api/runs/{id}/resume", Refused),
    ("POST /api/schedules", RefusedByBody),
    ("POST /api/schedules/{id}/pause", Refused),
    ("POST /api/schedules/{id}/resume", Refused),
    ("POST /api/schedules/{id}/run", Refused),
    ("POST /api/sessions", RefusedByBody),
    ("POST /api/sessions/{id}/fork", Refused),
    ("POST /api/sessions/{id}/rewind", Refused),
    ("POST /api/sessions/{id}/runs", Refused),
    ("POST /api/spaces", RefusedByBody),
    ("POST /api/spaces/{id}/mounts", Refused),
    ("POST /api/tasks", RefusedByBody),
    ("POST /api/tasks/{id}/cancel", Refused),
    ("POST /api/tasks/{id}/execute", Refused),
    ("POST /api/users", Refused),
    ("POST /api/users/{name}/tokens", Refused),
    ("PUT /api/memory", Refused),
    ("PUT /api/spaces/{id}/members/{user}", Refused),
    ("PUT /api/spaces/{id}/memory", Refused),
];

/// What the owner has, by the word before `{id}` in paths.
struct Owners {
    ids: BTreeMap<&'static str, String>,
    digest: Value,
}

impl Owners {
    async fn make(client: &Client) -> Self {
        let text =
            |value: &Value| value["id"].as_str().unwrap_or_else(|| panic!("{value}")).to_owned();
        let start = json!({"prompt": MARK});
        let session = text(&client.post("/api/sessions", json!({"title": MARK})).await);
        let run = client.prompt(&session, &format!("{MARK} one")).await;
        let first = text(&client.pending().await);
        let always = json!({"approved": true, "scope": "session"});
        client.post(&format!("/api/approvals/{first}/decision"), always).await;
        client.until(&run, "completed").await;
        let rules = client.get("/api/rules").await;
        let run = client.prompt(&session, &format!("{MARK} two")).await;
        let asked = client.pending().await;
        let every = json!({"name": MARK, "start": start, "when": {"every": "1h"}});
        let task = json!({"name": MARK, "taskType": "agent", "userPrompt": MARK});
        client.post("/api/spaces", json!({"id": "owners-space", "title": MARK})).await;
        Browser::sign_in(client).await;
        let browsers = client.get("/api/auth/browsers").await;
        let ids = BTreeMap::from([
            ("sessions", session),
            ("runs", run),
            ("approvals", text(&asked)),
            ("questions", text(&asked)),
            ("rules", rules["items"][0]["id"].as_str().unwrap_or("rule_none").to_owned()),
            ("schedules", text(&client.post("/api/schedules", every).await)),
            (
                "hooks",
                text(&client.post("/api/hooks", json!({"name": MARK, "start": start})).await),
            ),
            ("tasks", text(&client.post("/api/tasks", task).await)),
            ("spaces", "owners-space".to_owned()),
            ("browsers", text(&browsers["items"][0])),
            ("members", "mia".to_owned()),
            ("users", "owner".to_owned()),
            ("tokens", "none".to_owned()),
            ("skills", "none".to_owned()),
            ("mounts", "none".to_owned()),
        ]);
        Self { ids, digest: asked["digest"].clone() }
    }

    /// A path with the owner's ids in it.
    fn path(&self, pattern: &str) -> String {
        let mut parts: Vec<&str> = Vec::new();
        for part in pattern.split('/') {
            let id = part.starts_with('{').then(|| self.ids[parts.last().unwrap()].as_str());
            parts.push(id.unwrap_or(part));
        }
        parts.join("/")
    }

    /// A body that would do something, for each route that takes one.
    fn body(&self, route: &str) -> Value {
        let (session, space) = (&self.ids["sessions"], &self.ids["spaces"]);
        match route {
            "POST /api/approvals/{id}/decision" => json!({"approved": true, "digest": self.digest}),
            "POST /api/questions/{id}/answers" => {
                json!({"answers": {"a": "b"}, "digest": self.digest})
            }
            "POST /api/sessions/{id}/runs" => json!({"prompt": "hello"}),
            "POST /api/sessions/{id}/rewind" => {
                json!({"before": self.ids["runs"], "dryRun": false})
            }
            "POST /api/auth/session" => json!({"code": "ostler_guess"}),
            "POST /api/sessions" => json!({"space": space}),
            "POST /api/hooks" => json!({"name": "h", "start": {"prompt": "x", "session": session}}),
            "POST /api/schedules" => {
                json!({"name": "s", "start": {"prompt": "x", "session": session}, "when": {"every": "1h"}})
            }
            "POST /api/tasks" => {
                json!({"name": "t", "taskType": "agent", "userPrompt": "x", "space": space})
            }
            "POST /api/spaces" => json!({"id": space}),
            "POST /api/spaces/{id}/mounts" => json!({"name": "m", "path": "/srv"}),
            "POST /api/users" => json!({"name": "eve", "role": "member"}),
            "PATCH /api/users/{name}" => json!({"role": "admin"}),
            "PATCH /api/sessions/{id}" | "PATCH /api/spaces/{id}" => json!({"title": "taken"}),
            "PATCH /api/schedules/{id}" => json!({"name": "taken"}),
            "PUT /api/spaces/{id}/members/{user}" => json!({"role": "admin"}),
            "PUT /api/spaces/{id}/memory" | "PUT /api/memory" => json!({"text": "taken"}),
            "POST /api/users/{name}/tokens" => json!({"label": ""}),
            _ => json!({}),
        }
    }

    /// What must not be in an answer.
    fn is_in(&self, text: &str) -> Option<String> {
        let own =
            ["sessions", "runs", "approvals", "schedules", "hooks", "tasks", "spaces", "browsers"];
        let found = own.iter().map(|kind| &self.ids[kind]).find(|id| text.contains(id.as_str()));
        found.cloned().or_else(|| text.contains(MARK).then(|| MARK.to_owned()))
    }
}

async fn answer(client: &Client, route: &str, path: &str, body: &Value) -> (u16, String) {
    let method: Method = route.split(' ').next().unwrap().parse().unwrap();
    let mut request = client.request(method.clone(), path).header("if-match", "*");
    if method != Method::GET {
        request = request.json(body);
    }
    let answer = within(request.send()).await.unwrap();
    let status = answer.status().as_u16();
    // A stream would not end; one that is refused does.
    let text = if status == 200 && path.ends_with("/events") {
        "a stream".to_owned()
    } else {
        within(answer.text()).await.unwrap()
    };
    (status, text)
}

/// Mutants: `Caller::may_see` that says yes to everybody; `Space::require` that refuses nobody; `seen_by` without an owner.
#[tokio::test]
async fn a_member_reaches_nothing_of_the_owners_by_any_route() {
    let script = Script::new()
        .rule(when().has_tool_result(true).prompt_contains("one"), reply().text("done"))
        .rule(when().prompt_contains("two"), reply().tool_use("Bash", json!({"command": "rm two"})))
        .rule(when(), reply().tool_use("Bash", json!({"command": "touch made"})));
    let desk = Desk::with(script, |config| config.limits.requests_per_second = 10_000).await;
    let owner = desk.client();
    let (ada, _mia) = (desk.client_of("ada").await, desk.client_of("mia").await);
    let owners = Owners::make(&owner).await;
    let document = owner.get("/openapi.json").await;
    let described: BTreeSet<String> = document["paths"]
        .as_object()
        .unwrap()
        .iter()
        .flat_map(|(path, methods)| {
            let methods = methods.as_object().unwrap().keys();
            methods.map(move |method| format!("{} {path}", method.to_uppercase()))
        })
        .collect();
    let listed: BTreeSet<String> = ROUTES.iter().map(|(route, _)| (*route).to_owned()).collect();
    assert_eq!(described, listed, "every route has an entry that says what a member reaches there");
    for (route, reach) in ROUTES {
        let path = owners.path(route.split(' ').nth(1).unwrap());
        let (status, text) = answer(&ada, route, &path, &owners.body(route)).await;
        let fits = match reach {
            Refused => matches!(status, 403 | 404),
            RefusedByBody => matches!(status, 403 | 404 | 409 | 422),
            Own => (200..300).contains(&status),
            Public => status == 401,
        };
        assert!(fits, "{route} is {reach:?}, and answers {status}: {text}");
        if *reach == Own {
            assert_eq!(owners.is_in(&text), None, "{route} shows what is the owner's: {text}");
        }
    }
    by_socket(&ada, &owners).await;
    by_agui(&ada, &owners).await;
    // What the owner has is as it was.
    let asked = owner.get(&owners.path("/api/approvals/{id}")).await;
    assert_eq!(asked["state"], "pending", "{asked}");
    for kind in ["sessions", "runs", "schedules", "hooks", "tasks", "spaces"] {
        let found = owner.get(&owners.path(&format!("/api/{kind}/{{id}}"))).await;
        assert!(!found.to_string().contains("taken"), "{found}");
    }
    assert_eq!(owner.get("/api/auth/me").await["role"], "owner", "the token is as it was");
}

async fn by_socket(ada: &Client, owners: &Owners) {
    let mut socket = Socket::open(ada).await;
    assert_eq!(
        socket.hear("hello").await["pending"],
        0,
        "nothing of the owner's waits for a member"
    );
    let (session, run, asked) =
        (&owners.ids["sessions"], &owners.ids["runs"], &owners.ids["approvals"]);
    for message in [
        json!({"type": "subscribe", "sessionId": session}),
        json!({"type": "prompt", "sessionId": session, "text": "hello"}),
        json!({"type": "prompt", "sessionId": session, "text": "hello", "push": true}),
        json!({"type": "cancel", "runId": run}),
        json!({"type": "permission_response", "permissionId": asked, "approved": true, "digest": owners.digest}),
        json!({"type": "question_response", "questionId": asked, "answers": {"a": "b"}}),
    ] {
        socket.say(message.clone()).await;
        let refused = socket.hear("error").await;
        assert_eq!(refused["error"]["code"], "not_found", "{message}: {refused}");
    }
    socket.say(json!({"type": "ping"})).await;
    socket.hear("pong").await;
    let kept = json!(socket.kept).to_string();
    assert_eq!(owners.is_in(&kept), None, "the socket told of what is the owner's: {kept}");
}

async fn by_agui(ada: &Client, owners: &Owners) {
    let (session, asked) = (&owners.ids["sessions"], &owners.ids["approvals"]);
    let yes = json!([{"interruptId": asked, "status": "resolved", "payload": {"approved": true}}]);
    let input = json!({"threadId": session, "runId": "r", "messages": [], "tools": [], "context": [], "resume": yes});
    let refused = ada.ask(Method::POST, "/agui/connect", Some(input.clone())).await.0;
    assert_eq!(refused, 404, "connect");
    // A thread of that name is one of the member's own, and knows nothing.
    let request = ada.request(Method::POST, "/agui").json(&input);
    let told = within(within(request.send()).await.unwrap().text()).await.unwrap();
    assert!(!told.contains(MARK) && !told.contains(asked.as_str()), "{told}");
    let (_, stopped) =
        ada.ask(Method::POST, "/agui/stop", Some(json!({"threadId": session}))).await;
    assert_eq!(stopped["stopped"], false);
}
