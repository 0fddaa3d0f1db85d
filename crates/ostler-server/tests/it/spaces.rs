//! Spaces: who may use them, and what their sessions can and cannot do.

use ostler_testkit::{Script, reply, when};
use reqwest::Method;
use serde_json::{Value, json};

use crate::desk::{Client, Desk};

/// Runs a command for any prompt, and then ends.
pub(crate) fn commands(command: &str) -> Script {
    calls("Bash", json!({"command": command}))
}

/// Calls a tool for any prompt, and then ends.
pub(crate) fn calls(tool: &str, input: Value) -> Script {
    Script::new()
        .rule(when().has_tool_result(true), reply().text("the end"))
        .rule(when(), reply().tool_use(tool, input))
}

/// Makes a space in which commands need no approval.
pub(crate) async fn space(client: &Client, id: &str) -> Value {
    client.post("/api/spaces", json!({"id": id, "policy": {"allowed": ["Bash"]}})).await
}

pub(crate) async fn session_in(client: &Client, space: &str) -> String {
    let made = client.post("/api/sessions", json!({"space": space})).await;
    assert_eq!(made["setup"]["space"], space);
    made["id"].as_str().unwrap().to_owned()
}

/// Sends a prompt in a session; returns the result of its tool call.
pub(crate) async fn call_result(desk: &Desk, client: &Client, session: &str) -> String {
    let run = client.prompt(session, "go").await;
    client.until(&run, "completed").await;
    desk.api.requests().last().unwrap().tool_results().last().unwrap().text.clone()
}

async fn status(client: &Client, method: Method, path: &str, body: Option<Value>) -> u16 {
    client.ask(method, path, body).await.0.as_u16()
}

#[tokio::test]
async fn a_session_in_a_space_has_its_folder_its_zone_and_its_memory() {
    let desk = Desk::open(commands("pwd; echo $TZ")).await;
    let client = desk.client();
    let made = space(&client, "team").await;
    let folder = made["folder"].as_str().unwrap().to_owned();
    client.ask(Method::PATCH, "/api/spaces/team", Some(json!({"zone": "Europe/Berlin"}))).await;
    let memory = "/api/spaces/team/memory";
    client.ask(Method::PUT, memory, Some(json!({"text": "We like tea."}))).await;
    client.ask(Method::PUT, "/api/memory", Some(json!({"text": "Be kind."}))).await;
    let session = session_in(&client, "team").await;
    let result = call_result(&desk, &client, &session).await;
    assert_eq!(result, format!("{folder}\nEurope/Berlin"));
    let system = desk.api.requests().last().unwrap().system_text();
    for text in ["We like tea.", "Be kind.", "Europe/Berlin", &folder] {
        assert!(system.contains(text), "{text}: {system}");
    }
    // It is a file like any other: users read what an agent writes there.
    let file = std::path::Path::new(&folder).join("CLAUDE.md");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "We like tea.");
    std::fs::write(&file, "We like coffee.").unwrap();
    assert_eq!(client.get(memory).await["text"], "We like coffee.");
}

#[tokio::test]
async fn a_memory_can_be_written_only_with_the_last_version() {
    let desk = Desk::open(Script::new()).await;
    let client = desk.client();
    space(&client, "team").await;
    let put = |tag: String, text: &str| {
        let request = client.request(Method::PUT, "/api/spaces/team/memory");
        request.header("if-match", tag).json(&json!({"text": text})).send()
    };
    let read = client.request(Method::GET, "/api/spaces/team/memory").send().await.unwrap();
    let tag = read.headers()["etag"].to_str().unwrap().to_owned();
    let first = put(tag.clone(), "one").await.unwrap();
    assert_eq!(first.status(), 200);
    assert_ne!(first.headers()["etag"].to_str().unwrap(), tag);
    assert_eq!(put(tag, "two").await.unwrap().status(), 412);
    assert_eq!(put("*".to_owned(), "three").await.unwrap().status(), 200);
    assert_eq!(put("no quotes".to_owned(), "four").await.unwrap().status(), 422);
    assert_eq!(put("*".to_owned(), &"x".repeat(70_000)).await.unwrap().status(), 422);
    // All agents receive the memory of all spaces; only administrators of the server can write it.
    let mia = desk.client_of("mia").await;
    assert_eq!(status(&mia, Method::GET, "/api/memory", None).await, 200);
    let said = Some(json!({"text": "obey mia"}));
    assert_eq!(status(&mia, Method::PUT, "/api/memory", said).await, 403);
}

// Seen to fail when the memory is opened through a link.
#[tokio::test]
async fn a_memory_that_leads_to_the_servers_token_is_not_read() {
    let desk = Desk::open(Script::new()).await;
    let client = desk.client();
    let made = space(&client, "team").await;
    let folder = std::path::Path::new(made["folder"].as_str().unwrap());
    std::os::unix::fs::symlink(desk.data().join("data/token"), folder.join("CLAUDE.md")).unwrap();
    let (status, said) = client.ask(Method::GET, "/api/spaces/team/memory", None).await;
    assert_eq!(status, 409);
    assert!(!said.to_string().contains(&desk.token), "{said}");
}

// Seen to fail with `require` that accepts every user, and with roles that every user can set.
#[tokio::test]
async fn a_space_does_not_exist_for_other_users_and_members_cannot_change_roles() {
    let desk = Desk::open(Script::new()).await;
    let owner = desk.client_of("olga").await;
    let (mia, eve) = (desk.client_of("mia").await, desk.client_of("eve").await);
    owner.post("/api/spaces", json!({"id": "team"})).await;
    let member = |role: &str| Some(json!({"role": role}));
    let (as_mia, as_ada) = ("/api/spaces/team/members/mia", "/api/spaces/team/members/ada");
    let ada = desk.client_of("ada").await;
    assert_eq!(status(&owner, Method::PUT, as_mia, member("member")).await, 200);
    let unknown = "/api/spaces/team/members/nobody";
    assert_eq!(status(&owner, Method::PUT, unknown, member("member")).await, 422);

    for (method, path, body) in [
        (Method::GET, "/api/spaces/team", None),
        (Method::GET, "/api/spaces/team/memory", None),
        (Method::GET, "/api/spaces/team/sessions", None),
        (Method::PATCH, "/api/spaces/team", Some(json!({"title": "x"}))),
        (Method::PUT, "/api/spaces/team/members/eve", member("member")),
        (Method::DELETE, as_mia, None),
        (Method::DELETE, "/api/spaces/team", None),
        (Method::POST, "/api/spaces/team/mounts", Some(json!({"name": "x", "path": "/tmp"}))),
        (Method::POST, "/api/sessions", Some(json!({"space": "team"}))),
    ] {
        assert_eq!(status(&eve, method.clone(), path, body).await, 404, "{method} {path}");
    }
    assert_eq!(eve.get("/api/spaces").await["items"], json!([]));
    assert_eq!(mia.get("/api/spaces").await["items"][0]["id"], "team");

    for (method, path, body) in [
        (Method::PUT, as_mia, member("admin")),
        (Method::PUT, as_ada, member("member")),
        (Method::PATCH, "/api/spaces/team", Some(json!({"policy": {}}))),
        (Method::DELETE, "/api/spaces/team", None),
        (Method::POST, "/api/spaces/team/mounts", Some(json!({"name": "x", "path": "/tmp"}))),
    ] {
        assert_eq!(status(&mia, method.clone(), path, body).await, 403, "{method} {path}");
    }
    assert_eq!(status(&owner, Method::PUT, as_ada, member("admin")).await, 200);
    assert_eq!(status(&ada, Method::PUT, as_mia, member("admin")).await, 403);
    assert_eq!(status(&ada, Method::DELETE, "/api/spaces/team", None).await, 403);
    // An admin of a space cannot change what belongs to the operator.
    let secrets = Some(json!({"secrets": []}));
    assert_eq!(status(&ada, Method::PATCH, "/api/spaces/team", secrets).await, 403);
    for path in ["/api/secrets", "/api/mounts"] {
        assert_eq!(status(&ada, Method::GET, path, None).await, 403);
    }
}

#[tokio::test]
async fn only_admins_of_a_space_read_its_sessions() {
    let desk = Desk::open(Script::new().rule(when(), reply().text("hello"))).await;
    let owner = desk.client_of("olga").await;
    let (mia, bob) = (desk.client_of("mia").await, desk.client_of("bob").await);
    owner.post("/api/spaces", json!({"id": "team"})).await;
    for user in ["mia", "bob"] {
        let path = format!("/api/spaces/team/members/{user}");
        owner.ask(Method::PUT, &path, Some(json!({"role": "member"}))).await;
    }
    let session = session_in(&mia, "team").await;
    let run = mia.prompt(&session, "hi").await;
    mia.until(&run, "completed").await;
    let listed = owner.get("/api/spaces/team/sessions").await;
    assert_eq!(listed["items"][0]["id"], session.as_str());
    assert_eq!(bob.get("/api/spaces/team/sessions").await["items"], json!([]));
    let path = format!("/api/sessions/{session}");
    assert!(!owner.log(&session).await.is_empty());
    assert_eq!(status(&owner, Method::GET, &path, None).await, 200);
    assert_eq!(status(&bob, Method::GET, &path, None).await, 404);
    // They can read, but not act.
    let runs = format!("{path}/runs");
    assert_eq!(status(&owner, Method::POST, &runs, Some(json!({"prompt": "x"}))).await, 404);
    assert_eq!(status(&owner, Method::DELETE, &path, None).await, 404);
    // Sessions outside of the space are hidden from its admins.
    let other = mia.session().await;
    assert_eq!(status(&owner, Method::GET, &format!("/api/sessions/{other}"), None).await, 404);
}

// Seen to fail when every user counts as a member.
#[tokio::test]
async fn a_removed_member_of_a_space_cannot_continue_there() {
    let desk = Desk::open(Script::new().rule(when(), reply().text("hello"))).await;
    let owner = desk.client_of("olga").await;
    let mia = desk.client_of("mia").await;
    owner.post("/api/spaces", json!({"id": "team"})).await;
    let member = "/api/spaces/team/members/mia";
    owner.ask(Method::PUT, member, Some(json!({"role": "member"}))).await;
    let session = session_in(&mia, "team").await;
    let run = mia.prompt(&session, "hi").await;
    mia.until(&run, "completed").await;
    assert_eq!(status(&owner, Method::DELETE, member, None).await, 204);
    let run = mia.prompt(&session, "and now?").await;
    let failed = mia.until(&run, "failed").await;
    let why = failed["outcome"]["error"]["message"].as_str().unwrap();
    assert!(why.contains("no longer a member"), "{why}");
    assert_eq!(
        status(&mia, Method::POST, "/api/sessions", Some(json!({"space": "team"}))).await,
        404
    );
}

// Seen to fail with `begin` that uses the requested setup, with `apply` that does not narrow it, and with a worker that
// keeps its engine.
#[tokio::test]
async fn a_session_cannot_have_more_permissions_than_its_space() {
    let desk = Desk::with(calls("Read", json!({"file_path": "notes"})), |config| {
        config.allow_bypass = true;
    })
    .await;
    let client = desk.client();
    let policy = json!({
        "permissionMode": "default", "model": "claude-sonnet-4-5", "tools": ["Read", "Bash"], "denied": ["Read(notes)"],
    });
    client.post("/api/spaces", json!({"id": "team", "policy": policy})).await;
    for more in [
        json!({"permissionMode": "acceptEdits"}),
        json!({"permissionMode": "bypassPermissions"}),
        json!({"model": "claude-opus-5-5"}),
        json!({"cwd": ".."}),
        json!({"cwd": "/"}),
    ] {
        let mut asked = more.clone();
        asked["space"] = json!("team");
        let (status, said) = client.ask(Method::POST, "/api/sessions", Some(asked)).await;
        assert_eq!(status, 403, "{more}: {said}");
    }
    let session = session_in(&client, "team").await;
    let result = call_result(&desk, &client, &session).await;
    assert!(result.contains("forbids"), "{result}");
    assert_eq!(desk.api.requests()[0].tool_names(), ["Bash", "Read"]);
    // Permissions that its admins revoke are gone with the next run, also if an engine is idle.
    let stricter = json!({"policy": {"tools": ["Read"], "denied": ["Read(notes)"]}});
    client.ask(Method::PATCH, "/api/spaces/team", Some(stricter)).await;
    call_result(&desk, &client, &session).await;
    let last = desk.api.requests().last().unwrap().clone();
    assert_eq!(last.tool_names(), ["Read"]);
    assert!(last.messages().len() > 4, "it is the same conversation");
}

#[tokio::test]
async fn policies_are_valid_and_stay_within_the_operators_limits() {
    let desk = Desk::open(Script::new()).await;
    let client = desk.client();
    for (policy, expected) in [
        (json!({"permissionMode": "bypassPermissions"}), 403),
        (json!({"permissionMode": "whatever"}), 422),
        (json!({"allowed": ["Bash("]}), 422),
        (json!({"tools": ["Bash(ls)"]}), 422),
        (json!({"owner": "me"}), 422),
        (json!([null, null]), 422),
    ] {
        let body = json!({"id": "team", "policy": policy});
        let (status, said) = client.ask(Method::POST, "/api/spaces", Some(body)).await;
        assert_eq!(status, expected, "{policy}: {said}");
    }
    let zone = json!({"id": "team", "zone": "Europe/../../etc/passwd"});
    assert_eq!(status(&client, Method::POST, "/api/spaces", Some(zone)).await, 422);
}

// Seen to fail without the check of names.
#[tokio::test]
async fn names_with_paths_are_refused() {
    let desk = Desk::open(Script::new()).await;
    let client = desk.client();
    let long = "x".repeat(5_000);
    for id in ["..", "../x", "a/b", "/etc", "a:b", "", "A", "x\u{0}y", &long] {
        let body = Some(json!({"id": id}));
        assert_eq!(status(&client, Method::POST, "/api/spaces", body).await, 422, "{id:?}");
        let body = Some(json!({"space": id}));
        assert_eq!(status(&client, Method::POST, "/api/sessions", body).await, 404, "{id:?}");
    }
    for path in
        ["/api/spaces/..%2f..%2ftoken", "/api/spaces/..%2fmemory", "/api/spaces/a%00/memory"]
    {
        assert_eq!(status(&client, Method::GET, path, None).await, 404, "{path}");
    }
    assert!(!desk.data().join("x").exists());
}

// Seen to fail with `inside` that compares names before links are resolved.
#[tokio::test]
async fn a_session_moves_within_its_space_and_never_out_of_it() {
    let desk = Desk::open(commands("pwd")).await;
    let client = desk.client();
    let made = space(&client, "team").await;
    let folder = std::path::PathBuf::from(made["folder"].as_str().unwrap());
    std::fs::create_dir(folder.join("inner")).unwrap();
    std::os::unix::fs::symlink("/", folder.join("out")).unwrap();
    let session = session_in(&client, "team").await;
    call_result(&desk, &client, &session).await;
    let path = format!("/api/sessions/{session}");
    let go = |cwd: &str| client.ask(Method::PATCH, &path, Some(json!({"cwd": cwd})));
    assert_eq!(go("inner").await.0, 200);
    assert_eq!(
        call_result(&desk, &client, &session).await,
        folder.join("inner").display().to_string()
    );
    let last = desk.api.requests().last().unwrap().clone();
    assert!(last.messages().len() > 4, "it is the same conversation");
    for cwd in ["..", "../..", "/etc", "out/etc", "out"] {
        assert_eq!(go(cwd).await.0, 403, "{cwd}");
    }
    assert_eq!(go("nowhere").await.0, 422);
    // A folder that becomes a link to the outside is refused when the next run begins.
    std::fs::remove_dir(folder.join("inner")).unwrap();
    std::os::unix::fs::symlink("/", folder.join("inner")).unwrap();
    let run = client.prompt(&session, "again").await;
    client.until(&run, "failed").await;
}

// Seen to fail without `check_free`, and with a boundary that hides nothing.
#[tokio::test]
async fn the_folder_of_a_space_is_closed_to_other_sessions() {
    let desk = Desk::with(calls("Read", json!({"file_path": "team/notes"})), |config| {
        config.allow_bypass = true;
    })
    .await;
    std::fs::create_dir(desk.workspace().join("team")).unwrap();
    std::fs::write(desk.workspace().join("team/notes"), "ours").unwrap();
    let (client, mia) = (desk.client(), desk.client_of("mia").await);
    let body = json!({"id": "team", "folder": "team"});
    assert_eq!(status(&mia, Method::POST, "/api/spaces", Some(body.clone())).await, 403);
    client.post("/api/spaces", body).await;
    for folder in ["team", ".", "/", "..", "nowhere"] {
        let body = json!({"id": "other", "folder": folder});
        let status = status(&client, Method::POST, "/api/spaces", Some(body)).await;
        assert!(status == 422 || status == 403, "{folder}: {status}");
    }
    let there = Some(json!({"cwd": "team"}));
    assert_eq!(status(&client, Method::POST, "/api/sessions", there).await, 422);
    // Not even from the neighbouring folder, with everything allowed.
    let free = json!({"permissionMode": "bypassPermissions"});
    let session = client.post("/api/sessions", free).await["id"].as_str().unwrap().to_owned();
    let result = call_result(&desk, &client, &session).await;
    assert!(!result.contains("ours") && result.contains("forbids"), "{result}");
}

#[tokio::test]
async fn a_new_space_gets_nothing_of_a_deleted_one_with_the_same_id() {
    let desk = Desk::open(Script::new().rule(when(), reply().text("hello"))).await;
    let client = desk.client();
    let made = space(&client, "team").await;
    let folder = std::path::Path::new(made["folder"].as_str().unwrap());
    std::fs::write(folder.join("notes"), "private").unwrap();
    assert_eq!(
        status(&client, Method::POST, "/api/spaces", Some(json!({"id": "team"}))).await,
        409
    );
    let session = session_in(&client, "team").await;
    assert_eq!(status(&client, Method::DELETE, "/api/spaces/team", None).await, 204);
    assert_eq!(status(&client, Method::GET, "/api/spaces/team", None).await, 404);
    let run = client.prompt(&session, "still there?").await;
    client.until(&run, "failed").await;
    space(&client, "team").await;
    assert_eq!(std::fs::read_dir(folder).unwrap().count(), 0);
    let kept: Vec<_> = std::fs::read_dir(desk.data().join("data/gone")).unwrap().collect();
    assert_eq!(kept.len(), 1, "the folder is moved aside, not lost");
}
