//! The check-up of a server.

use ostler_server::config::Config;
use ostler_store::{Put, Store as _};
use ostler_testkit::{Script, reply, when};
use reqwest::Method;
use serde_json::{Value, json};

use crate::desk::Desk;

fn check<'a>(checkup: &'a Value, id: &str) -> &'a Value {
    let checks = checkup["checks"].as_array().unwrap();
    checks.iter().find(|check| check["id"] == id).unwrap_or_else(|| panic!("{id}: {checkup}"))
}

#[tokio::test]
async fn the_check_up_of_a_healthy_server_is_for_administrators_only() {
    let desk = Desk::open(Script::new().rule(when(), reply().text("Fine."))).await;
    let session = desk.client().session().await;
    let run = desk.client().prompt(&session, "go").await;
    desk.client().until(&run, "completed").await;
    let checkup = desk.client().get("/api/doctor").await;
    for id in [
        "data",
        "store",
        "clock",
        "engine",
        "key",
        "model",
        "skills",
        "mcp",
        "exposure",
        "members",
        "permissions",
    ] {
        let found = check(&checkup, id);
        assert_eq!(found["state"], "ok", "{found}");
        assert_eq!(found.get("next"), None, "{found}");
    }
    assert!(check(&checkup, "store")["says"].as_str().unwrap().contains("as it was written"));
    assert!(check(&checkup, "model")["says"].as_str().unwrap().contains("127.0.0.1"));
    assert!(!checkup.to_string().contains("test-key"), "the key is never shown");
    let ann = desk.client_of("ann").await;
    assert_eq!(ann.ask(Method::GET, "/api/doctor", None).await.0, 403);
    let checkup = desk.client().get("/api/doctor").await;
    let members = check(&checkup, "members");
    assert_eq!(members["state"], "warn", "{members}");
    assert!(members["says"].as_str().unwrap().contains("--trust-members"), "{members}");
    desk.api.finish();
}

// Seen to fail when problems of skills are not reported.
#[tokio::test]
async fn each_problem_is_named_with_a_fix() {
    let desk = Desk::with(Script::new(), |config: &mut Config| {
        let skills = config.data.parent().unwrap().join("skills");
        std::fs::create_dir_all(skills.join("bad")).unwrap();
        std::fs::write(skills.join("bad/SKILL.md"), "---\nallowed-tools: 3\n---\n").unwrap();
        config.skills.push(skills);
        config.allow_bypass = true;
        // Nothing listens on port 1.
        config.env.insert("ANTHROPIC_BASE_URL".to_owned(), "http://127.0.0.1:1".to_owned());
        config.engine = ostler_server::config::EngineChoice::Program("/no/such/engine".into());
    })
    .await;
    desk.clock.advance(std::time::Duration::from_secs(60 * 60));
    let checkup = desk.client().get("/api/doctor").await;
    for (id, state, says) in [
        ("skills", "warn", "allowed-tools"),
        ("permissions", "warn", "--allow-bypass"),
        ("model", "fail", "http://127.0.0.1:1 cannot be reached"),
        ("engine", "fail", "/no/such/engine"),
        ("clock", "warn", " s from the time of the event log"),
    ] {
        let found = check(&checkup, id);
        assert_eq!(found["state"], state, "{found}");
        assert!(found["says"].as_str().unwrap().contains(says), "{found}");
        assert!(!found["next"].as_str().unwrap().is_empty(), "{found}");
    }
    desk.api.finish();
}

// Mutants: `unreadable` that leaves the record where it is; `readable` that fails for it.
#[tokio::test]
async fn a_server_starts_with_a_broken_record_of_a_run_and_its_check_up_warns() {
    let mut desk = Desk::open(Script::new().rule(when(), reply().text("Fine."))).await;
    let session = desk.client().session().await;
    let body = json!({"id": "run_broken", "owner": "owner", "session": session, "state": "running", "prompt": 5});
    let broken = Put::new("run", "run_broken", body).owner("owner");
    desk.store().put(vec![broken]).await.unwrap();
    let checkup = desk.client().get("/api/doctor").await;
    assert_eq!(check(&checkup, "records")["state"], "ok", "the record has not been read yet");
    desk.stop().await;
    desk.start().await;
    let client = desk.client();
    let checkup = client.get("/api/doctor").await;
    let found = check(&checkup, "records");
    assert_eq!(found["state"], "warn", "{found}");
    assert!(found.to_string().contains("run:run_broken"), "{found}");
    let run = client.prompt(&session, "go").await;
    client.until(&run, "completed").await;
    desk.api.finish();
}
