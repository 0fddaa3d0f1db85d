//! A new user with the name of a removed user.

use ostler_testkit::{Script, reply, when};
use reqwest::Method;
use serde_json::{Value, json};

use crate::desk::{Client, Desk};

/// Seen to fail with `Users::remove` that does not remember the id. Mutant: `Users::add` that takes the name as the id.
#[tokio::test]
async fn a_new_user_with_the_name_of_a_removed_one_gets_nothing_of_theirs() {
    let script = Script::new()
        .rule(when().has_tool_result(true), reply().text("done"))
        .rule(when(), reply().tool_use("Bash", json!({"command": "touch made"})));
    let mut desk = Desk::open(script).await;
    let (owner, old) = (desk.client(), desk.client_of("zoe").await);
    let session = old.post("/api/sessions", json!({"key": "the same key"})).await["id"].clone();
    let session = session.as_str().unwrap().to_owned();
    let run = old.prompt(&session, "make a file").await;
    let asked = old.pending().await["id"].as_str().unwrap().to_owned();
    let answer = json!({"approved": true, "scope": "always"});
    old.post(&format!("/api/approvals/{asked}/decision"), answer).await;
    old.until(&run, "completed").await;
    let start = json!({"prompt": "hello"});
    let hook = old.post("/api/hooks", json!({"name": "h", "start": start})).await["id"].clone();
    let every = json!({"name": "s", "start": start, "when": {"every": "1h"}});
    let made = old.ask(Method::POST, "/api/schedules", Some(every)).await;
    let task = json!({"name": "t", "taskType": "agent", "userPrompt": "hello"});
    let task = old.post("/api/tasks", task).await["id"].clone();
    old.post("/api/spaces", json!({"id": "hers"})).await;
    owner.post("/api/spaces", json!({"id": "team"})).await;
    let member = Some(json!({"role": "admin"}));
    assert!(owner.ask(Method::PUT, "/api/spaces/team/members/zoe", member).await.0.is_success());
    assert_eq!(owner.ask(Method::DELETE, "/api/users/zoe", None).await.0, 204);
    desk.stop().await;
    desk.start().await;
    let (owner, new) = (desk.client(), desk.client_of("zoe").await);
    assert_eq!(new.get("/api/auth/me").await["user"], "zoe", "the name is shown");
    for list in [
        "/api/sessions",
        "/api/approvals",
        "/api/rules",
        "/api/hooks",
        "/api/schedules",
        "/api/tasks",
        "/api/spaces",
        "/api/audit",
        "/api/auth/browsers",
    ] {
        let found = new.get(list).await;
        assert_eq!(found["items"], json!([]), "{list} shows items of the removed user");
    }
    let text = |id: &Value| id.as_str().unwrap_or("none").to_owned();
    for path in [
        format!("/api/sessions/{session}"),
        format!("/api/sessions/{session}/log"),
        format!("/api/runs/{run}"),
        format!("/api/hooks/{}", text(&hook)),
        format!("/api/tasks/{}", text(&task)),
        format!("/api/schedules/{}", text(&made.1["id"])),
        "/api/spaces/hers".to_owned(),
        "/api/spaces/team".to_owned(),
    ] {
        assert_eq!(new.ask(Method::GET, &path, None).await.0, 404, "{path}");
    }
    let keyed = new.post("/api/sessions", json!({"key": "the same key"})).await;
    assert_ne!(keyed["id"], json!(session), "the same key is another session");
    // The new user can become a member by name.
    let member = Some(json!({"role": "member"}));
    assert!(owner.ask(Method::PUT, "/api/spaces/team/members/zoe", member).await.0.is_success());
    assert_eq!(new.ask(Method::GET, "/api/spaces/team", None).await.0, 200);
    let users = owner.get("/api/users").await;
    assert_eq!(users["users"][0]["name"], "zoe");
    assert_ne!(users["users"][0]["id"], "zoe");
}

/// Mutants: `Server::start_with` without `check_members`; `Users::add` that does not ask.
#[tokio::test]
async fn a_second_user_can_be_added_only_if_the_operator_trusts_members() {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
    let trusts = Arc::new(AtomicBool::new(false));
    let said = Arc::clone(&trusts);
    let mut desk =
        Desk::with(Script::new(), move |config| config.trust_members = said.load(Relaxed)).await;
    let add = json!({"name": "ada", "role": "member"});
    let (status, refused) = desk.client().ask(Method::POST, "/api/users", Some(add.clone())).await;
    assert_eq!((status.as_u16(), &refused["error"]["code"]), (403, &json!("members_not_trusted")));
    assert!(refused["error"]["hint"].as_str().unwrap().contains("--trust-members"), "{refused}");
    desk.stop().await;
    trusts.store(true, Relaxed);
    desk.start().await;
    desk.client().post("/api/users", add).await;
    desk.stop().await;
    trusts.store(false, Relaxed);
    let error = desk.fails_to_start().await;
    assert!(error.contains("--trust-members") && error.contains("users.json"), "{error}");
}

/// Earlier versions stored a list of users, without those that were removed.
// Seen to fail with `remember_earlier` that does nothing. Mutant: one that does not look at the members of spaces.
#[tokio::test]
async fn a_new_user_gets_nothing_of_one_removed_by_an_earlier_version() {
    let mut desk = Desk::open(Script::new()).await;
    let (owner, zoe, mia) =
        (desk.client(), desk.client_of("zoe").await, desk.client_of("mia").await);
    zoe.session().await;
    let session = mia.session().await;
    owner.post("/api/spaces", json!({"id": "team"})).await;
    desk.client_of("ida").await;
    for name in ["mia", "ida"] {
        let path = format!("/api/spaces/team/members/{name}");
        let member = Some(json!({"role": "admin"}));
        assert!(owner.ask(Method::PUT, &path, member).await.0.is_success());
    }
    desk.stop().await;
    let file = desk.data().join("data/users.json");
    let kept: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    let mut users = kept["users"].as_array().unwrap().clone();
    users.retain(|user| user["name"] == "mia");
    users[0].as_object_mut().unwrap().remove("id");
    std::fs::write(&file, json!(users).to_string()).unwrap();
    desk.start().await;
    let mia = Client { base: desk.client().base, ..mia };
    assert_eq!(
        mia.get("/api/sessions").await["items"][0]["id"],
        json!(session),
        "Mia is the same user"
    );
    assert_eq!(mia.ask(Method::GET, "/api/spaces/team", None).await.0, 200);
    for name in ["zoe", "ida"] {
        let new = desk.client_of(name).await;
        assert_eq!(new.get("/api/sessions").await["items"], json!([]), "{name}");
        assert_eq!(new.ask(Method::GET, "/api/spaces/team", None).await.0, 404, "{name}");
    }
}

/// Creates one of everything that has an owner, as a user who is then removed. Returns the session.
async fn make_all_and_leave(desk: &Desk, owner: &Client, number: usize) -> String {
    let zoe = desk.client_of("zoe").await;
    let session = zoe.session().await;
    let run = zoe.prompt(&session, "go").await;
    let asked = owner.pending().await;
    assert_eq!(asked["owner"], "zoe", "{asked}");
    let answer = json!({"approved": true, "scope": "session"});
    let path = format!("/api/approvals/{}/decision", asked["id"].as_str().unwrap());
    let answered = zoe.post(&path, answer).await;
    assert_eq!((&answered["owner"], &answered["answer"]["by"]), (&json!("zoe"), &json!("zoe")));
    let done = zoe.until(&run, "completed").await;
    assert_eq!(done["owner"], "zoe", "{done}");
    let start = json!({"prompt": "x"});
    zoe.post("/api/hooks", json!({"name": "h", "start": start})).await;
    let plan = json!({"name": "s", "start": start, "when": {"every": "1h"}});
    let plan = zoe.post("/api/schedules", plan).await["id"].as_str().unwrap().to_owned();
    let fired = zoe.post(&format!("/api/schedules/{plan}/run"), json!({})).await;
    assert_eq!(fired["owner"], "zoe", "{fired}");
    let task = json!({"name": "t", "taskType": "agent", "userPrompt": "x"});
    zoe.post("/api/tasks", task).await;
    zoe.post("/api/spaces", json!({"id": format!("hers-{number}")})).await;
    let role = ["admin", "member"][number];
    let (member, path) = (json!({"role": role}), "/api/spaces/team/members/zoe");
    let (status, team) = owner.ask(Method::PUT, path, Some(member)).await;
    assert!(status.is_success(), "{team}");
    assert_eq!(team["members"], json!({"zoe": role}), "the removed user has no access");
    assert_eq!(owner.ask(Method::DELETE, "/api/users/zoe", None).await.0, 204);
    session
}

// Mutant: `named` that returns the value as it is.
#[tokio::test]
async fn every_list_shows_removed_users_by_the_name_they_had() {
    let script = Script::new()
        .rule(when().has_tool_result(true), reply().text("done"))
        .rule(when().prompt_contains("x"), reply().text("done"))
        .rule(when(), reply().tool_use("Bash", json!({"command": "touch made"})));
    let desk = Desk::open(script).await;
    let owner = desk.client();
    owner.post("/api/spaces", json!({"id": "team"})).await;
    let mut session = String::new();
    for number in 0..2 {
        session = make_all_and_leave(&desk, &owner, number).await;
    }
    let runs = format!("/api/sessions/{session}/runs");
    for (list, fields, least) in [
        ("/api/sessions", &["owner"][..], 2),
        ("/api/rules", &["owner", "by"], 2),
        ("/api/audit", &["owner", "by"], 2),
        ("/api/hooks", &["owner"], 2),
        ("/api/schedules", &["owner"], 2),
        ("/api/tasks", &["owner"], 2),
        ("/api/spaces", &["owner"], 3),
        (&runs, &["owner"], 1),
    ] {
        let mut found = owner.get(list).await["items"].as_array().unwrap().clone();
        assert!(found.len() >= least, "{list}: {found:?}");
        found.retain(|item| item["id"] != "team");
        for item in found {
            assert!(fields.iter().all(|field| item[*field] == "zoe"), "{list}: {item}");
        }
    }
    // Both are still members, and each is removed by the name that is shown.
    for left in [json!({"zoe": "member"}), json!({})] {
        let path = "/api/spaces/team/members/zoe";
        assert_eq!(owner.ask(Method::DELETE, path, None).await.0, 204);
        assert_eq!(owner.get("/api/spaces/team").await["members"], left);
    }
}
