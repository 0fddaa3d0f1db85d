//! Skills as tasks, from the request to the last event.

use futures::StreamExt as _;
use ostler_server::config::Config;
use ostler_testkit::{Script, reply, when};
use reqwest::Method;
use serde_json::{Value, json};

use crate::desk::{Client, Desk, within};

const SKILL: &str = "---\nname: greet\ndescription: Greets a person.\nallowed-tools:\n  - Read\ninputs:\n  - name: who\n    type: string\n    required: true\n---\n# Greeter\n\nGreet {{ who }} politely.\n";
const OTHER: &str = "---\nname: secret-skill\ndescription: Not for this task.\n---\nSay XYZZY.\n";

fn says() -> Script {
    Script::new().rule(when(), reply().text("Good day, Ann."))
}

/// A server with a folder of skills next to its workspace.
async fn desk(script: Script) -> Desk {
    Desk::with(script, |config: &mut Config| {
        let skills = config.data.parent().unwrap().join("skills");
        for (name, text) in [("greet", SKILL), ("secret-skill", OTHER)] {
            std::fs::create_dir_all(skills.join(name)).unwrap();
            std::fs::write(skills.join(name).join("SKILL.md"), text).unwrap();
        }
        config.skills.push(skills);
    })
    .await
}

fn task() -> Value {
    json!({
        "name": "Say hello", "agentId": "greet", "taskType": "skill", "userPrompt": "say hello",
        "permissionMode": "default", "inputValues": {"who": "Ann"},
    })
}

async fn stream(client: &Client, id: &str) -> Vec<Value> {
    let path = format!("/api/tasks/{id}/events");
    let answer = within(client.request(Method::GET, &path).send()).await.unwrap();
    assert_eq!(answer.status(), 200);
    let mut bytes = answer.bytes_stream();
    let mut text = String::new();
    while let Some(piece) = within(bytes.next()).await {
        text.push_str(std::str::from_utf8(&piece.unwrap()).unwrap());
    }
    let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
    data.map(|data| serde_json::from_str(data).unwrap()).collect()
}

#[tokio::test]
async fn a_skill_is_executed_with_its_parameters_and_nothing_else() {
    let desk = desk(says()).await;
    let client = desk.client();
    let names: Vec<Value> = client.get("/api/skills").await["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["name"].clone())
        .collect();
    assert_eq!(names, ["greet", "secret-skill"]);
    let made = client.post("/api/tasks", task()).await;
    assert_eq!(made["status"], "pending");
    let id = made["id"].as_str().unwrap();
    let executed = client.post(&format!("/api/tasks/{id}/execute"), json!({})).await;
    assert_eq!(
        executed["execution"]["metadata"],
        json!({"selectedSkillId": "greet", "selectedSkillName": "greet", "source": "filesystem", "isolationLevel": "full",
               "systemPromptSource": "skill.content", "otherSkillsAccessible": false})
    );
    let events = stream(&client, id).await;
    let types: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert_eq!(types[0], "status");
    assert_eq!(events.last().unwrap(), &json!({"type": "done"}));
    assert!(events.contains(&json!({"type": "status", "status": "starting"})), "{types:?}");
    assert!(events.iter().any(|event| event["messageType"] == "assistant"), "{types:?}");
    // Deltas of complete messages are deleted, except those still in memory.
    let whole = |events: Vec<Value>| -> Vec<Value> {
        events.into_iter().filter(|event| event["messageType"] != "stream_event").collect()
    };
    assert_eq!(whole(stream(&client, id).await), whole(events), "it can be read again");
    let done = client.get(&format!("/api/tasks/{id}")).await;
    assert_eq!((&done["status"], &done["result"]), (&json!("completed"), &json!("Good day, Ann.")));
    assert!(done["duration"].is_number());
    let request = &desk.api.requests()[0];
    let system = request.system_text();
    assert!(system.contains("You are executing ONLY the \"greet\" skill."), "{system}");
    assert!(
        system.contains("# Skill Parameters\n- who: Ann\n\n# Greeter\n\nGreet Ann politely."),
        "{system}"
    );
    assert!(!format!("{request:?}").contains("secret-skill"));
    assert_eq!(request.tool_names(), ["Read"]);
    assert_eq!(request.last_user_text(), "say hello");
}

#[tokio::test]
async fn an_invalid_task_is_refused_before_it_is_stored() {
    let desk = desk(says()).await;
    let client = desk.client();
    let with = |field: &str, value: Value| {
        let mut task = task();
        task[field] = value;
        task
    };
    for (body, status, field) in [
        (with("inputValues", json!({})), 422, "inputValues.who"),
        (with("inputValues", json!({"who": 7})), 422, "inputValues.who"),
        (with("permissionMode", json!("yolo")), 422, "permissionMode"),
        (with("permissionMode", json!("bypass")), 403, "permissionMode"),
        (with("userPrompt", json!(" ")), 422, "userPrompt"),
        (with("agentId", json!("nobody")), 404, ""),
        (with("agentId", json!("../greet")), 404, ""),
        (with("project", json!("/")), 422, "cwd"),
        (with("taskType", json!("magic")), 422, ""),
    ] {
        let (found, answer) = client.ask(Method::POST, "/api/tasks", Some(body.clone())).await;
        assert_eq!(found, status, "{body}: {answer}");
        if !field.is_empty() {
            assert_eq!(answer["error"]["field"], field, "{body}: {answer}");
        }
    }
    assert_eq!(client.get("/api/tasks").await["items"], json!([]));
}

#[tokio::test]
async fn an_edited_skill_counts_from_the_next_execution_on() {
    let desk = desk(says()).await;
    let client = desk.client();
    let id = client.post("/api/tasks", task()).await["id"].as_str().unwrap().to_owned();
    let execute = format!("/api/tasks/{id}/execute");
    client.post(&execute, json!({})).await;
    stream(&client, &id).await;
    let file = desk.data().join("skills/greet/SKILL.md");
    std::fs::write(&file, SKILL.replace("politely", "warmly")).unwrap();
    client.post(&execute, json!({})).await;
    stream(&client, &id).await;
    let systems: Vec<bool> =
        desk.api.requests().iter().map(|it| it.system_text().contains("warmly")).collect();
    assert_eq!(systems, [false, true]);
}

#[tokio::test]
async fn the_stream_of_a_cancelled_task_reports_the_cancellation() {
    let desk = desk(Script::new().rule(when(), reply().hold("never").text("never"))).await;
    let client = desk.client();
    let id = client.post("/api/tasks", task()).await["id"].as_str().unwrap().to_owned();
    let path = format!("/api/tasks/{id}/cancel");
    assert_eq!(client.ask(Method::POST, &path, None).await.1["error"]["code"], "not_executed");
    client.post(&format!("/api/tasks/{id}/execute"), json!({})).await;
    desk.api.gate("never").reached().await;
    client.post(&path, json!({})).await;
    let events = stream(&client, &id).await;
    let end: Vec<&Value> = events.iter().rev().take(3).collect();
    assert_eq!(end[0], &json!({"type": "done"}));
    assert_eq!(end[1], &json!({"type": "status", "status": "cancelled"}));
    assert_eq!((&end[2]["type"], &end[2]["code"]), (&json!("error"), &json!("cancelled")));
}

// Seen to fail when `Caller::may_see` returns true for every user.
#[tokio::test]
async fn tasks_of_other_users_do_not_exist() {
    let desk = desk(says()).await;
    let (ann, bob) = (desk.client_of("ann").await, desk.client_of("bob").await);
    let id = ann.post("/api/tasks", task()).await["id"].as_str().unwrap().to_owned();
    for (method, path) in [
        (Method::GET, format!("/api/tasks/{id}")),
        (Method::DELETE, format!("/api/tasks/{id}")),
        (Method::GET, format!("/api/tasks/{id}/events")),
        (Method::POST, format!("/api/tasks/{id}/execute")),
        (Method::POST, format!("/api/tasks/{id}/cancel")),
    ] {
        assert_eq!(bob.ask(method.clone(), &path, None).await.0, 404, "{method} {path}");
    }
    assert_eq!(ann.ask(Method::DELETE, &format!("/api/tasks/{id}"), None).await.0, 204);
}

// Seen to fail when the policy of a space is applied before the skill.
#[tokio::test]
async fn a_task_in_a_space_works_there_and_its_skill_cannot_widen_the_policy() {
    let desk = desk(says()).await;
    let client = desk.client();
    let policy = json!({"tools": ["Grep"]});
    let space = client.post("/api/spaces", json!({"id": "team", "policy": policy})).await;
    let folder = space["folder"].as_str().unwrap();
    let mut body = task();
    body["space"] = json!("team");
    let mia = desk.client_of("mia").await;
    assert_eq!(mia.ask(Method::POST, "/api/tasks", Some(body.clone())).await.0, 404);
    let made = client.post("/api/tasks", body.clone()).await;
    assert_eq!(made["project"], folder);
    let id = made["id"].as_str().unwrap();
    let executed = client.post(&format!("/api/tasks/{id}/execute"), json!({})).await;
    client.until(executed["execution"]["run"].as_str().unwrap(), "completed").await;
    let request = desk.api.requests().last().unwrap().clone();
    assert!(!request.tool_names().contains(&"Read"), "{:?}", request.tool_names());
    assert!(request.system_text().contains(folder));
    body["project"] = json!("..");
    assert_eq!(client.ask(Method::POST, "/api/tasks", Some(body)).await.0, 403);
}

// Seen to fail when the head of the file is parsed and not stored.
#[tokio::test]
async fn a_skill_can_be_read_before_it_is_run() {
    let desk = desk(Script::new()).await;
    let client = desk.client();
    let skill = client.get("/api/skills/greet").await;
    assert_eq!(skill["body"], "# Greeter\n\nGreet {{ who }} politely.\n");
    assert_eq!(skill["frontMatter"]["allowed-tools"], json!(["Read"]));
    assert_eq!((&skill["id"], &skill["inputs"][0]["name"]), (&json!("greet"), &json!("who")));
    for name in ["nothing", "..%2Fskills%2Fgreet", "%2e%2e"] {
        let (status, _) = client.ask(Method::GET, &format!("/api/skills/{name}"), None).await;
        assert_eq!(status, 404, "{name}");
    }
    let bad = desk.data().join("skills/bad");
    std::fs::create_dir_all(&bad).unwrap();
    std::fs::write(bad.join("SKILL.md"), "---\nallowed-tools: 3\n---\n").unwrap();
    let (status, refused) = client.ask(Method::GET, "/api/skills/bad", None).await;
    assert_eq!((status.as_u16(), &refused["error"]["code"]), (422, &json!("skill_broken")));
    desk.api.finish();
}
