//! A member who knows every id of the owner and holds an approval of each kind gets nothing of the owner's over any
//! interface.
//!
//! The table has an entry for every route of the OpenAPI document, so a new route without one fails the test. Every id
//! in a path belongs to the owner. A refusal looks as if the thing did not exist: it is exactly the answer to an id
//! that does not exist.

use std::collections::{BTreeMap, BTreeSet};

use ostler_testkit::{Script, reply, when};
use reqwest::Method;
use serde_json::{Value, json};

use crate::browser::Browser;
use crate::desk::{Client, Desk, within};
use crate::socket::Socket;

/// Part of everything that belongs to the owner.
const MARK: &str = "MARK-OF-THE-OWNER";

/// How a route answers a member who names things of the owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    /// 404 as if it did not exist, or 403 because the role is too low; the same answer as for an id that does not
    /// exist.
    Refused,
    /// The member's own data, or public data; nothing of the owner's.
    Own,
    /// The member may create something, but not from the owner's things: the body names them, and is refused in the
    /// same way.
    RefusedByBody,
    /// Only the name is needed, and it is already used: 409.
    NameTaken,
    /// For callers who are not signed in, who need a code or a signature.
    Public,
}
use Reach::{NameTaken, Own, Public, Refused, RefusedByBody};

const ROUTES: &[(&str, Reach)] = &[
    ("DELETE /api/auth/browsers/{id}", Refused),
    ("DELETE /api/auth/session", Own),
    ("DELETE /api/hooks/{id}", Refused),
    ("DELETE /api/rules/{id}", Refused),
    ("DELETE /api/schedules/{id}", Refused),
    ("DELETE /api/sessions/{id}", Refused),
    ("DELETE /api/sessions/{id}/mcp-servers/{name}", Refused),
    ("DELETE /api/sessions/{id}/mcp-servers/{name}/sign-in", Refused),
    ("DELETE /api/spaces/{id}", Refused),
    ("DELETE /api/spaces/{id}/mcp-servers/{name}", Refused),
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
    ("GET /api/sessions/{id}/mcp-servers", Refused),
    ("GET /api/sessions/{id}/messages", Refused),
    ("GET /api/sessions/{id}/messages/{message}/run", Refused),
    ("GET /api/sessions/{id}/runs", Refused),
    ("GET /api/sessions/{id}/setup", Refused),
    ("GET /api/sessions/{id}/usage", Refused),
    ("GET /api/skills", Own),
    ("GET /api/skills/{name}", Own),
    ("GET /api/spaces", Own),
    ("GET /api/spaces/{id}", Refused),
    ("GET /api/spaces/{id}/mcp-servers", Refused),
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
    ("POST /api/backup", Refused),
    ("POST /api/auth/code", Own),
    ("POST /api/auth/session", Public),
    ("POST /api/auth/token/rotate", Refused),
    ("POST /api/hooks", RefusedByBody),
    ("POST /api/hooks/{id}", Public),
    ("POST /api/mcp/sign-in", Refused),
    ("POST /api/questions/{id}/answers", Refused),
    ("POST /api/runs/{id}/cancel", Refused),
    ("POST /api/runs/{id}/resume", Refused),
    ("POST /api/schedules", RefusedByBody),
    ("POST /api/schedules/{id}/pause", Refused),
    ("POST /api/schedules/{id}/resume", Refused),
    ("POST /api/schedules/{id}/run", Refused),
    ("POST /api/sessions", RefusedByBody),
    ("POST /api/sessions/{id}/fork", Refused),
    ("POST /api/sessions/{id}/mcp-servers/{name}/sign-in", Refused),
    ("POST /api/sessions/{id}/rewind", Refused),
    ("POST /api/sessions/{id}/runs", Refused),
    ("POST /api/spaces", NameTaken),
    ("POST /api/spaces/{id}/mounts", Refused),
    ("POST /api/tasks", RefusedByBody),
    ("POST /api/tasks/{id}/cancel", Refused),
    ("POST /api/tasks/{id}/execute", Refused),
    ("POST /api/users", Refused),
    ("POST /api/users/{name}/tokens", Refused),
    ("PUT /api/memory", Refused),
    ("PUT /api/sessions/{id}/mcp-servers/{name}", Refused),
    ("PUT /api/sessions/{id}/mcp-servers/{name}/use", Refused),
    ("PUT /api/spaces/{id}/mcp-servers/{name}", Refused),
    ("PUT /api/spaces/{id}/members/{user}", Refused),
    ("PUT /api/spaces/{id}/memory", Refused),
];

/// The owner's things, by the path segment before `{id}`.
struct Owners {
    ids: BTreeMap<&'static str, String>,
    digest: Value,
}

impl Owners {
    async fn make(desk: &Desk, client: &Client) -> Self {
        let session = id(&client.post("/api/sessions", json!({"title": MARK})).await);
        let run = client.prompt(&session, &format!("{MARK} one")).await;
        // The first message in its log.
        let message = format!("prompt-{run}-1");
        let first = id(&client.pending().await);
        let always = json!({"approved": true, "scope": "session"});
        client.post(&format!("/api/approvals/{first}/decision"), always).await;
        client.until(&run, "completed").await;
        let rules = client.get("/api/rules").await;
        let run = client.prompt(&session, &format!("{MARK} two")).await;
        let asked = client.pending().await;
        let other = id(&client.post("/api/sessions", json!({"title": MARK})).await);
        client.prompt(&other, &format!("{MARK} three")).await;
        let is_question = |list: &Value| question(list).is_some();
        let list = client.watch("/api/approvals", "the question", is_question).await;
        let start = json!({"prompt": MARK});
        let every = json!({"name": MARK, "start": start, "when": {"every": "1h"}});
        let hook = json!({"name": MARK, "start": start});
        let task = json!({"name": MARK, "taskType": "agent", "userPrompt": MARK});
        Self::make_space(desk, client).await;
        Browser::sign_in(client).await;
        let browsers = client.get("/api/auth/browsers").await;
        let token = client.post("/api/users/mia/tokens", json!({"label": MARK})).await;
        let ids = BTreeMap::from([
            ("sessions", session),
            ("runs", run),
            ("messages", message),
            ("approvals", id(&asked)),
            ("questions", id(question(&list).unwrap())),
            ("rules", id(&rules["items"][0])),
            ("schedules", id(&client.post("/api/schedules", every).await)),
            ("hooks", id(&client.post("/api/hooks", hook).await)),
            ("tasks", id(&client.post("/api/tasks", task).await)),
            ("spaces", "owners-space".to_owned()),
            ("browsers", id(&browsers["items"][0])),
            ("members", "mia".to_owned()),
            ("users", "mia".to_owned()),
            ("tokens", id(&token)),
            ("skills", "keeper".to_owned()),
            ("mounts", "docs".to_owned()),
            ("mcp-servers", "owners-server".to_owned()),
        ]);
        Self { ids, digest: asked["digest"].clone() }
    }

    /// A space with a member, a memory and a mount.
    async fn make_space(desk: &Desk, client: &Client) {
        let docs = desk.data().join("docs");
        std::fs::create_dir(&docs).unwrap();
        let file = desk.data().join("data/mounts.json");
        std::fs::write(&file, json!({"roots": [{"path": docs}]}).to_string()).unwrap();
        let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(&file, private).unwrap();
        client.post("/api/spaces", json!({"id": "owners-space", "title": MARK})).await;
        let space = "/api/spaces/owners-space";
        client.post(&format!("{space}/mounts"), json!({"name": "docs", "path": docs})).await;
        let server = json!({"type": "stdio", "command": MARK});
        for (path, body) in [
            (format!("{space}/mcp-servers/owners-server"), server),
            (format!("{space}/members/mia"), json!({"role": "member"})),
            (format!("{space}/memory"), json!({"text": MARK})),
        ] {
            let request = client.request(Method::PUT, &path).header("if-match", "*").json(&body);
            let status = within(request.send()).await.unwrap().status();
            assert!(status.is_success(), "{path}: {status}");
        }
    }

    /// A path with the owner's ids.
    fn path(&self, pattern: &str) -> String {
        self.fill(pattern, str::to_owned)
    }

    /// The same path with ids of the same form that do not exist.
    fn made_up(&self, pattern: &str) -> String {
        self.fill(pattern, made_up)
    }

    fn fill(&self, pattern: &str, id: impl Fn(&str) -> String) -> String {
        let mut parts: Vec<String> = Vec::new();
        for part in pattern.split('/') {
            let is_id = part.starts_with('{');
            let filled = is_id.then(|| id(&self.ids[parts.last().unwrap().as_str()]));
            parts.push(filled.unwrap_or_else(|| part.to_owned()));
        }
        parts.join("/")
    }

    /// A text without ids, so that answers to real and to invented ids can be compared.
    fn without_ids(&self, text: &str) -> String {
        // The longest first: invented names differ only in length.
        let mut ids: Vec<&String> = self.ids.values().collect();
        ids.sort_by_key(|id| std::cmp::Reverse(id.len()));
        ids.iter().fold(text.to_owned(), |text, id| {
            text.replace(id.as_str(), "ID").replace(&made_up(id), "ID")
        })
    }

    /// A body that would have an effect, for each route with a body.
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
            "PUT /api/spaces/{id}/mcp-servers/{name}"
            | "PUT /api/sessions/{id}/mcp-servers/{name}" => {
                json!({"type": "stdio", "command": "taken"})
            }
            "PUT /api/sessions/{id}/mcp-servers/{name}/use" => json!({"on": false}),
            "POST /api/mcp/sign-in" => json!({"url": "http://localhost/?state=x"}),
            _ => json!({}),
        }
    }

    /// The same body with ids that do not exist.
    fn made_up_body(&self, body: &Value) -> Value {
        let ids = ["sessions", "spaces"].map(|kind| &self.ids[kind]);
        let text =
            ids.iter().fold(body.to_string(), |text, id| text.replace(id.as_str(), &made_up(id)));
        serde_json::from_str(&text).unwrap()
    }

    /// The first thing in a text that an answer must not contain.
    fn is_in(&self, text: &str) -> Option<String> {
        let own = [
            "sessions",
            "runs",
            "approvals",
            "questions",
            "rules",
            "schedules",
            "hooks",
            "tasks",
            "spaces",
            "browsers",
            "tokens",
        ];
        let found = own.iter().map(|kind| &self.ids[kind]).find(|id| text.contains(id.as_str()));
        found.cloned().or_else(|| text.contains(MARK).then(|| MARK.to_owned()))
    }
}

fn id(value: &Value) -> String {
    value["id"].as_str().unwrap_or_else(|| panic!("it has an id: {value}")).to_owned()
}

/// The first question in a list of approvals.
fn question(list: &Value) -> Option<&Value> {
    list["items"].as_array().unwrap().iter().find(|it| it["kind"] == "question")
}

/// An id of the same form and length that does not exist.
fn made_up(id: &str) -> String {
    let (kind, name) = id.split_once('_').unwrap_or(("", id));
    let name: String = name.chars().map(|c| if c == '-' { c } else { 'z' }).collect();
    if kind.is_empty() { name } else { format!("{kind}_{name}") }
}

async fn answer(client: &Client, route: &str, path: &str, body: &Value) -> (u16, String) {
    let method: Method = route.split(' ').next().unwrap().parse().unwrap();
    let mut request = client.request(method.clone(), path).header("if-match", "*");
    if method != Method::GET {
        request = request.json(body);
    }
    let answer = within(request.send()).await.unwrap();
    let status = answer.status().as_u16();
    // An accepted stream does not end; a refused one does.
    let text = if status == 200 && path.ends_with("/events") {
        "a stream".to_owned()
    } else {
        within(answer.text()).await.unwrap()
    };
    (status, text)
}

fn script() -> Script {
    let question = json!({"questions": [{"question": MARK, "header": "H", "multiSelect": false,
        "options": [{"label": "a", "description": "x"}, {"label": "b", "description": "y"}]}]});
    Script::new()
        .rule(when().has_tool_result(true).prompt_contains("one"), reply().text("done"))
        .rule(when().prompt_contains("two"), reply().tool_use("Bash", json!({"command": "rm two"})))
        .rule(when().prompt_contains("three"), reply().tool_use("AskUserQuestion", question))
        .rule(when(), reply().tool_use("Bash", json!({"command": "touch made"})))
}

async fn desk() -> Desk {
    Desk::with(script(), |config| {
        config.limits.requests_per_second = 10_000;
        let skills = config.data.parent().unwrap().join("skills");
        std::fs::create_dir_all(skills.join("keeper")).unwrap();
        let skill = "---\nname: keeper\ndescription: Keeps.\n---\nKeep.\n";
        std::fs::write(skills.join("keeper/SKILL.md"), skill).unwrap();
        config.skills.push(skills);
    })
    .await
}

fn described(document: &Value) -> BTreeSet<String> {
    let paths = document["paths"].as_object().unwrap().iter();
    let routes = paths.flat_map(|(path, methods)| {
        let methods = methods.as_object().unwrap().keys();
        methods.map(move |method| format!("{} {path}", method.to_uppercase()))
    });
    routes.collect()
}

/// Seen to fail with `Caller::may_see` that returns true for every user, `Space::require` that refuses no user,
/// `seen_by` without an owner, and `Users::remove` that looks for the name before the role.
#[tokio::test]
async fn a_member_reaches_nothing_of_the_owners_by_any_route() {
    let desk = desk().await;
    let owner = desk.client();
    let (ada, _mia) = (desk.client_of("ada").await, desk.client_of("mia").await);
    let owners = Owners::make(&desk, &owner).await;
    let listed: BTreeSet<String> = ROUTES.iter().map(|(route, _)| (*route).to_owned()).collect();
    let described = described(&owner.get("/openapi.json").await);
    assert_eq!(described, listed, "every route has an entry in the table");
    for (route, reach) in ROUTES {
        let (pattern, body) = (route.split(' ').nth(1).unwrap(), owners.body(route));
        let (status, text) = answer(&ada, route, &owners.path(pattern), &body).await;
        let fits = match reach {
            Refused | RefusedByBody => matches!(status, 403 | 404),
            NameTaken => status == 409,
            Own => (200..300).contains(&status),
            Public => status == 401,
        };
        assert!(fits, "{route} is {reach:?}, and answers {status}: {text}");
        match reach {
            Own => assert_eq!(owners.is_in(&text), None, "{route} shows the owner's: {text}"),
            _ => assert!(!text.contains(MARK), "{route} shows the owner's: {text}"),
        }
        let same = match reach {
            Refused if pattern.contains('{') => Some((owners.made_up(pattern), body)),
            RefusedByBody => Some((pattern.to_owned(), owners.made_up_body(&body))),
            _ => None,
        };
        if let Some((path, body)) = same {
            let (other, made_up) = answer(&ada, route, &path, &body).await;
            let alike =
                (status, owners.without_ids(&text)) == (other, owners.without_ids(&made_up));
            assert!(
                alike,
                "{route} reveals that it exists: {status} {text}, but for an invented id {other} {made_up}"
            );
        }
    }
    by_socket(&ada, &owners).await;
    by_agui(&ada, &owners).await;
    unchanged(&owner, &owners).await;
}

/// The owner's things have not changed.
async fn unchanged(owner: &Client, owners: &Owners) {
    for kind in ["approvals", "questions"] {
        let asked = owner.get(&format!("/api/approvals/{}", owners.ids[kind])).await;
        assert_eq!(asked["state"], "pending", "{asked}");
    }
    for kind in ["sessions", "runs", "schedules", "hooks", "tasks", "spaces"] {
        let found = owner.get(&owners.path(&format!("/api/{kind}/{{id}}"))).await;
        assert!(!found.to_string().contains("taken"), "{found}");
    }
    let space = owner.get("/api/spaces/owners-space").await.to_string();
    assert!(space.contains("docs") && space.contains("mia"), "{space}");
    let servers = owner.get("/api/spaces/owners-space/mcp-servers").await.to_string();
    assert!(servers.contains(MARK) && !servers.contains("taken"), "{servers}");
    let memory = owner.get("/api/spaces/owners-space/memory").await.to_string();
    assert!(memory.contains(MARK), "{memory}");
    for (list, kind) in [("/api/rules", "rules"), ("/api/auth/browsers", "browsers")] {
        assert!(owner.get(list).await.to_string().contains(&owners.ids[kind]), "{list}");
    }
    assert_eq!(owner.get("/api/auth/me").await["role"], "owner", "the token has not changed");
}

async fn by_socket(ada: &Client, owners: &Owners) {
    let mut socket = Socket::open(ada).await;
    assert_eq!(
        socket.hear("hello").await["pending"],
        0,
        "no approval of the owner is pending for a member"
    );
    let (session, run, asked) =
        (&owners.ids["sessions"], &owners.ids["runs"], &owners.ids["approvals"]);
    let question = &owners.ids["questions"];
    for message in [
        json!({"type": "subscribe", "sessionId": session}),
        json!({"type": "prompt", "sessionId": session, "text": "hello"}),
        json!({"type": "prompt", "sessionId": session, "text": "hello", "push": true}),
        json!({"type": "cancel", "runId": run}),
        json!({"type": "permission_response", "permissionId": asked, "approved": true, "digest": owners.digest}),
        json!({"type": "question_response", "questionId": question, "answers": {"a": "b"}}),
    ] {
        let ids = [session, run, asked, question];
        let made_up = ids
            .iter()
            .fold(message.to_string(), |text, id| text.replace(id.as_str(), &made_up(id)));
        let made_up: Value = serde_json::from_str(&made_up).unwrap();
        let mut answers = Vec::new();
        for said in [&message, &made_up] {
            socket.say(said.clone()).await;
            let refused = socket.hear("error").await;
            assert_eq!(refused["error"]["code"], "not_found", "{said}: {refused}");
            answers.push(owners.without_ids(&refused.to_string()));
        }
        assert_eq!(answers[0], answers[1], "{message}");
    }
    socket.say(json!({"type": "ping"})).await;
    socket.hear("pong").await;
    assert!(socket.kept.iter().all(|it| it["type"] != "permission_request"), "{:?}", socket.kept);
    let kept = json!(socket.kept).to_string();
    assert_eq!(owners.is_in(&kept), None, "the socket sent something of the owner's: {kept}");
}

async fn by_agui(ada: &Client, owners: &Owners) {
    let (session, asked) = (&owners.ids["sessions"], &owners.ids["approvals"]);
    let yes = json!([{"interruptId": asked, "status": "resolved", "payload": {"approved": true}}]);
    let input = json!({"threadId": session, "runId": "r", "messages": [], "tools": [], "context": [], "resume": yes});
    let mut answers = Vec::new();
    for thread in [session.clone(), made_up(session)] {
        let mut input = input.clone();
        input["threadId"] = thread.into();
        let (status, body) = ada.ask(Method::POST, "/agui/connect", Some(input)).await;
        assert_eq!(status, 404, "connect: {body}");
        answers.push(owners.without_ids(&body.to_string()));
    }
    assert_eq!(answers[0], answers[1]);
    // A thread with that id belongs to the member, and is empty.
    let request = ada.request(Method::POST, "/agui").json(&input);
    let received = within(within(request.send()).await.unwrap().text()).await.unwrap();
    assert!(!received.contains(MARK) && !received.contains(asked.as_str()), "{received}");
    let (_, stopped) =
        ada.ask(Method::POST, "/agui/stop", Some(json!({"threadId": session}))).await;
    assert_eq!(stopped["stopped"], false);
}
