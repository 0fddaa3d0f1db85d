//! Every list is bounded: by pages, or by a fixed limit.

use std::collections::BTreeSet;

use ostler_testkit::{Script, reply, when};
use reqwest::Method;
use serde_json::{Value, json};

use crate::desk::{Client, Desk};

/// Lists without pages, and what limits them.
const BOUNDED: [(&str, &str); 18] = [
    ("/api/approvals/{id}", "one request"),
    ("/api/auth/browsers", "sign-ins of one user, each by a code or a token, which are limited"),
    ("/api/auth/me", "the caller's user and role"),
    ("/api/doctor", "a fixed number of checks"),
    ("/api/mounts", "the operator's file"),
    ("/api/schedules/{id}", "one schedule"),
    ("/api/secrets", "the operator's file"),
    ("/api/sessions/{id}/changes", "the last 200 runs"),
    ("/api/sessions/{id}/mcp-servers", "20 of the session, and 20 of its space"),
    ("/api/sessions/{id}/messages", "pages of the size that `/agui/connect` has"),
    ("/api/sessions/{id}/setup", "the setup of one engine"),
    ("/api/sessions/{id}/usage", "the last 500 runs"),
    ("/api/skills", "1,000 in the folder, 50 pages of the CMS"),
    ("/api/skills/{name}", "one skill"),
    ("/api/spaces/{id}", "one space"),
    ("/api/spaces/{id}/mcp-servers", "20 servers of a space"),
    ("/api/usage", "366 days, each a record"),
    ("/api/users", "10,000 users"),
];

/// The fields of an answer that are lists.
fn lists(document: &Value, schema: &Value) -> Vec<String> {
    let schema = match schema["$ref"].as_str() {
        Some(reference) => document.pointer(reference.trim_start_matches('#')).unwrap(),
        None => schema,
    };
    let fields = schema["properties"].as_object().into_iter().flatten();
    let is_list = |schema: &Value| schema["type"] == "array" || schema["type"][0] == "array";
    fields.filter(|(_, schema)| is_list(schema)).map(|(name, _)| name.clone()).collect()
}

/// Routes that answer with a list, with the field, and whether they have a `limit` parameter with a maximum.
fn list_routes(document: &Value) -> Vec<(String, String, bool)> {
    let mut found = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        let get = &methods["get"];
        let schema = &get["responses"]["200"]["content"]["application/json"]["schema"];
        let parameters = get["parameters"].as_array().into_iter().flatten();
        let limits = parameters.filter(|it| it["name"] == "limit");
        let is_limited = limits
            .map(|it| it["schema"]["maximum"].as_u64())
            .any(|most| most.is_some_and(|most| most <= 500));
        // A list inside a single item is not a list of items.
        for field in lists(document, schema).into_iter().take(1) {
            found.push((path.clone(), field, is_limited));
        }
    }
    found
}

/// Creates two of everything that can be listed; returns the ids for the paths.
async fn fill(desk: &Desk, client: &Client) -> (String, String) {
    let session = client.session().await;
    let prompts = ["one", "two"];
    for prompt in prompts {
        let run = client.prompt(&session, prompt).await;
        client.until(&run, "completed").await;
    }
    for name in ["a", "b"] {
        client.post("/api/spaces", json!({"id": name})).await;
        client.post("/api/sessions", json!({"space": "a"})).await;
        client
            .post("/api/tasks", json!({"name": name, "taskType": "agent", "userPrompt": "x"}))
            .await;
        client.post("/api/hooks", json!({"name": name, "start": {"prompt": "x"}})).await;
        let plan = json!({"name": name, "start": {"prompt": "x"}, "when": {"every": "1h"}});
        client.post("/api/schedules", plan).await;
    }
    let schedules = client.get("/api/schedules").await;
    let schedule = schedules["items"][0]["id"].as_str().unwrap().to_owned();
    for file in ["a.txt", "ab.txt"] {
        std::fs::write(desk.workspace().join(file), "").unwrap();
    }
    for number in 0..2 {
        let asking = client.session().await;
        let run = client.prompt(&asking, &format!("ask {number}")).await;
        client.until(&run, "waiting").await;
        if number == 0 {
            let asked = client.pending().await;
            let path = format!("/api/approvals/{}/decision", asked["id"].as_str().unwrap());
            client.post(&path, json!({"approved": true, "scope": "session"})).await;
            client.until(&run, "completed").await;
        }
    }
    (session, schedule)
}

// Mutant: `Spaces::list` without the limit of the page.
#[tokio::test]
async fn every_list_has_a_bound() {
    let asks = reply().tool_use("Bash", json!({"command": "touch x"}));
    let script = Script::new()
        .rule(when().has_tool_result(true), reply().text("done"))
        .rule(when().prompt_contains("ask"), asks)
        .rule(when(), reply().text("done"));
    let desk = Desk::open(script).await;
    let client = desk.client();
    let (session, schedule) = fill(&desk, &client).await;
    let document = client.get("/openapi.json").await;
    let routes = list_routes(&document);
    assert!(routes.len() >= 15, "{routes:?}");
    let without: BTreeSet<&str> =
        routes.iter().filter(|(.., limited)| !limited).map(|(path, ..)| path.as_str()).collect();
    let known: BTreeSet<&str> = BOUNDED.iter().map(|(path, _)| *path).collect();
    assert_eq!(without.difference(&known).collect::<Vec<_>>(), Vec::<&&str>::new(), "no bound");
    let mut full = Vec::new();
    for (path, field, _) in routes.iter().filter(|(.., limited)| *limited) {
        let id = match path.as_str() {
            it if it.starts_with("/api/spaces") => "a",
            it if it.starts_with("/api/schedules") => &schedule,
            _ => &session,
        };
        let path = path.replace("{id}", id);
        let one = client.get(&format!("{path}?limit=1")).await;
        let count = one[field].as_array().unwrap().len();
        assert!(count <= 1, "{path} lists {count} items with a limit of 1");
        if count == 1 {
            full.push(path.clone());
        }
        for wrong in ["501", "0"] {
            let (status, answer) =
                client.ask(Method::GET, &format!("{path}?limit={wrong}"), None).await;
            assert!(status.is_client_error(), "{path}?limit={wrong}: {status} {answer}");
        }
    }
    println!(
        "{} lists with a page, {} of them with something in it; others: {BOUNDED:?}",
        routes.len() - without.len(),
        full.len()
    );
    for path in ["/api/approvals", "/api/rules", "/api/spaces", "/api/spaces/a/sessions"] {
        assert!(
            full.iter().any(|it| it == path),
            "{path} was only tested with an empty list: {full:?}"
        );
    }
    let first = client.get("/api/spaces?limit=1").await["items"][0]["id"].clone();
    let next = client.get(&format!("/api/spaces?limit=1&after={}", first.as_str().unwrap())).await;
    assert_ne!(next["items"][0]["id"], first, "the next page");
}
