//! A request reads only as many records as its answer needs, however many are stored.

use ostler_store::{Filter, Put, Store as _};
use ostler_testkit::{Script, reply, when};
use reqwest::Method;
use serde_json::{Value, json};

use crate::desk::{Client, Desk};
use crate::socket::Socket;

fn script() -> Script {
    let asks = reply().tool_use("Bash", json!({"command": "touch x"}));
    Script::new()
        .rule(when().has_tool_result(true), reply().text("done"))
        .rule(when().prompt_contains("ask"), asks)
        .rule(when(), reply().text("done"))
}

/// Stores copies of a record under other ids; `change` gets each copy's number.
async fn copy(desk: &Desk, kind: &str, id: &str, count: usize, change: impl Fn(&mut Value, usize)) {
    let found = desk.store().get(kind, id).await.unwrap().unwrap();
    let numbers: Vec<usize> = (0..count).collect();
    for some in numbers.chunks(500) {
        let puts = some.iter().map(|number| {
            let (id, mut body) = (format!("{id}-{number:05}"), found.body.clone());
            body["id"] = json!(id);
            change(&mut body, *number);
            Put { owner: found.owner.clone(), ..Put::new(kind, id, body) }
        });
        desk.store().put(puts.collect()).await.unwrap();
    }
}

/// Checks that a request reads at most this many records; returns its answer.
async fn check(desk: &Desk, most: u64, request: impl Future<Output = Value>) -> Value {
    let before = desk.store().records_read();
    let answer = request.await;
    let read = desk.store().records_read() - before;
    assert!(read <= most, "{read} records, not {most}");
    answer
}

async fn delete(client: &Client, path: &str) -> Value {
    let (status, _) = client.ask(Method::DELETE, path, None).await;
    assert_eq!(status, 204);
    Value::Null
}

/// Waits for the end of a run without polling records.
async fn completed(socket: &mut Socket) -> Value {
    loop {
        let changed = socket.hear("run").await;
        if changed["run"]["state"] == "completed" {
            return changed;
        }
    }
}

fn ids(list: &Value) -> Vec<String> {
    let items = list["items"].as_array().unwrap().iter();
    items.map(|item| item["id"].as_str().unwrap().to_owned()).collect()
}

// Mutant: `Spaces::in_order` and `Spaces::list` that read 500 at once, whatever the page is.
#[tokio::test]
async fn a_page_of_spaces_or_of_their_sessions_reads_that_page() {
    let desk = Desk::open(script()).await;
    let (client, ann) = (desk.client(), desk.client_of("ann").await);
    client.post("/api/spaces", json!({"id": "a"})).await;
    client.ask(Method::PUT, "/api/spaces/a/members/ann", Some(json!({"role": "member"}))).await;
    let session = client.post("/api/sessions", json!({"space": "a"})).await;
    let session = session["id"].as_str().unwrap();
    let hers = ann.post("/api/sessions", json!({"space": "a"})).await;
    let outside = client.session().await;
    let later = |body: &mut Value, number: usize| {
        let created = body["created"].as_u64().unwrap() + 1 + number as u64;
        body["begun"] = json!(format!("{created:015}-{}", body["id"].as_str().unwrap()));
        body["created"] = json!(created);
    };
    copy(&desk, "session", session, 1_000, later).await;
    copy(&desk, "session", &outside, 1_000, later).await;
    copy(&desk, "space", "a", 900, |body, _| body["members"] = json!({})).await;
    let path = "/api/spaces/a/sessions";
    let page = check(&desk, 15, client.get(&format!("{path}?limit=3"))).await;
    let after = ids(&page)[2].clone();
    let next = check(&desk, 15, client.get(&format!("{path}?limit=3&after={after}"))).await;
    let found = [ids(&page), ids(&next)].concat();
    let created = |list: &Value| {
        let items = list["items"].as_array().unwrap().iter();
        items.map(|item| item["created"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    let order = [created(&page), created(&next)].concat();
    assert!(order.is_sorted(), "{found:?}: {order:?}");
    assert_eq!(found.iter().collect::<std::collections::HashSet<_>>().len(), 6);
    let own = check(&desk, 15, ann.get(path)).await;
    assert_eq!(ids(&own), [hers["id"].as_str().unwrap()], "members see their own spaces");
    let spaces = check(&desk, 15, client.get("/api/spaces?limit=2")).await;
    assert_eq!(ids(&spaces), ["a", "a-00000"]);
}

// Mutants: `session_deleted` that reads all schedules; `unsaid` that reads all runs.
#[tokio::test]
async fn deleting_and_forking_a_session_reads_neither_all_schedules_nor_all_runs() {
    let desk = Desk::open(script()).await;
    let client = desk.client();
    let session = client.session().await;
    let run = client.prompt(&session, "go").await;
    client.until(&run, "completed").await;
    copy(&desk, "run", &run, 1_000, |_, _| {}).await;
    let path = format!("/api/sessions/{session}");
    let fork = check(&desk, 100, client.post(&format!("{path}/fork"), json!({}))).await;
    assert_eq!(fork["forkedFrom"]["session"], json!(session));
    let other = client.session().await;
    let plan = |session: &str| {
        let start = json!({"prompt": "x", "session": session});
        json!({"name": "p", "start": start, "when": {"every": "1h"}})
    };
    let scheduled = client.post("/api/schedules", plan(&other)).await;
    let scheduled = scheduled["id"].as_str().unwrap();
    let others = client.post("/api/schedules", plan(&session)).await;
    let others = others["id"].as_str().unwrap();
    copy(&desk, "schedule", others, 1_000, |body, _| body["state"] = json!("paused")).await;
    check(&desk, 100, delete(&client, &format!("/api/sessions/{other}"))).await;
    let state = async |id: &str| client.get(&format!("/api/schedules/{id}")).await["state"].clone();
    assert_eq!((state(scheduled).await, state(others).await), (json!("ended"), json!("active")));
}

// Mutant: `granted_for` that reads all rules of the user.
#[tokio::test]
async fn a_question_reads_the_rules_for_its_session_and_its_folder() {
    let desk = Desk::open(script()).await;
    let client = desk.client();
    let session = client.session().await;
    let run = client.prompt(&session, "ask").await;
    let asked = client.pending().await;
    let answer = format!("/api/approvals/{}/decision", asked["id"].as_str().unwrap());
    client.post(&answer, json!({"approved": true, "scope": "always"})).await;
    client.until(&run, "completed").await;
    let rules = client.get("/api/rules").await;
    copy(&desk, "rule", &ids(&rules)[0], 3_000, |body, number| {
        body["folder"] = json!(format!("/elsewhere/{number}"));
    })
    .await;
    let (again, mut socket) = (client.session().await, Socket::open(&client).await);
    check(&desk, 300, async {
        client.prompt(&again, "ask").await;
        // The rule that was granted here answers.
        completed(&mut socket).await
    })
    .await;
}

// Mutant: `prune` that reads all firings.
#[tokio::test]
async fn pruning_the_log_of_a_schedule_reads_only_the_pruned_entries() {
    let desk = Desk::open(script()).await;
    let client = desk.client();
    let plan = json!({"name": "p", "start": {"prompt": "x"}, "when": {"every": "1h"}});
    let id = client.post("/api/schedules", plan).await["id"].as_str().unwrap().to_owned();
    let hour = std::time::Duration::from_secs(60 * 60);
    let mut socket = Socket::open(&client).await;
    desk.clock.advance(hour);
    completed(&mut socket).await;
    let log = client.get(&format!("/api/schedules/{id}/log")).await;
    // Their ids sort after the copied entry and before the next one.
    copy(&desk, "firing", &ids(&log)[0], 600, |body, _| body["state"] = json!("completed")).await;
    desk.clock.advance(hour);
    completed(&mut socket).await;
    let log = client.get(&format!("/api/schedules/{id}/log?limit=500")).await;
    assert_eq!(ids(&log).len(), 500);
    check(&desk, 300, async {
        desk.clock.advance(hour);
        completed(&mut socket).await
    })
    .await;
    let prefix = format!("firing_{}_", id.trim_start_matches("schedule_"));
    let filter = Filter { prefix: Some(prefix), ..Filter::default() };
    assert_eq!(desk.store().count("firing", &filter, 1_000).await.unwrap(), 500);
}
