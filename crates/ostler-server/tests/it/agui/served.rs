//! AG-UI as a part of the whole server: its threads are sessions, and its questions appear in every client.

use ostler_agui::event::{Body, Event};
use ostler_testkit::{Rule, Script, reply as model, when};
use reqwest::Method;
use serde_json::{Value, json};

use super::stage::*;
use crate::desk::{Client, Desk, within};

/// Begins a run as the user of the client's token.
pub(crate) async fn begin(client: &Client, body: &Value) -> Events {
    let response = within(client.request(Method::POST, "/agui").json(body).send()).await.unwrap();
    assert!(response.status().is_success(), "{}", response.status());
    Events::new(response)
}

pub(crate) async fn run(client: &Client, body: &Value) -> Vec<Event> {
    begin(client, body).await.rest().await
}

fn writes() -> Script {
    Script::new()
        .rule(when().prompt_contains("hi"), model().text("Hello"))
        .with(
            Rule::new(
                when().prompt_contains("You were interrupted"),
                model().tool_use("Write", json!({"file_path": "a.txt", "content": "x"})),
            )
            .times(1),
        )
        .rule(when().has_tool_result(true), model().text("It said: {{tool_result}}"))
        .rule(
            when().prompt_contains("write"),
            model().tool_use("Write", json!({"file_path": "a.txt", "content": "x"})),
        )
        .rule(when(), model().text("Hello"))
}

/// Approves the interrupts of a run.
fn yes(run: &str, events: &[Event], more: Value) -> Value {
    let mut payload = json!({"approved": true});
    payload.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let entry = json!({"interruptId": interrupts(events)[0]["id"], "status": "resolved", "payload": payload});
    with(input(run, &[user("u1", "write")]), "resume", json!([entry]))
}

async fn session(client: &Client) -> Value {
    client.get("/api/sessions").await["items"][0].clone()
}

async fn last_run(client: &Client) -> Value {
    let id = session(client).await["id"].as_str().unwrap().to_owned();
    let runs = client.get(&format!("/api/sessions/{id}/runs")).await;
    runs["items"].as_array().unwrap().last().unwrap().clone()
}

#[tokio::test]
async fn the_server_serves_agui_only_with_a_valid_token() {
    let desk = Desk::open(writes()).await;
    let url = format!("http://{}/agui", desk.address());
    let body = input("r1", &[user("u1", "hi")]);
    let refused = reqwest::Client::new().post(&url).json(&body).send().await.unwrap();
    assert_eq!(refused.status(), 401);
    assert_eq!(text_of(&run(&desk.client(), &body).await), "Hello");
}

#[tokio::test]
async fn a_thread_is_a_session_with_its_runs_and_its_log() {
    let desk = Desk::open(writes()).await;
    let client = desk.client();
    run(&client, &input("r1", &[user("u1", "hi")])).await;
    let session = session(&client).await;
    assert_eq!((&session["title"], &session["key"]), (&json!("hi"), &json!("t")));
    let made = last_run(&client).await;
    assert_eq!((&made["prompt"], &made["state"]), (&json!("hi"), &json!("completed")));
    let log = client.log(session["id"].as_str().unwrap()).await;
    let prompt = log.iter().find(|event| event["kind"] == "prompt").unwrap();
    assert_eq!(prompt["body"]["messages"], json!([user("u1", "hi")]));
    // Another user's thread with the same id is another session.
    let other = desk.client_of("bob").await;
    run(&other, &input("r1", &[user("u1", "hi")])).await;
    assert_eq!(other.get("/api/sessions").await["items"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_session_of_another_client_continues_as_a_thread_with_its_id() {
    let desk = Desk::open(writes()).await;
    let client = desk.client();
    let id = client.session().await;
    let first = client.prompt(&id, "hi").await;
    client.until(&first, "completed").await;
    let body = with(input("r1", &[user("u1", "and again")]), "threadId", json!(id));
    assert_eq!(text_of(&run(&client, &body).await), "Hello");
    assert_eq!(desk.api.requests()[1].messages().len(), 3, "the conversation continues");
    // Other users cannot open it by its id.
    let other = desk.client_of("bob").await;
    run(&other, &body).await;
    assert_eq!(desk.api.requests()[2].messages().len(), 1);
}

#[tokio::test]
async fn a_question_over_agui_can_be_answered_elsewhere() {
    let desk = Desk::open(writes()).await;
    let client = desk.client();
    let first = run(&client, &input("r1", &[user("u1", "write")])).await;
    let asked = client.pending().await;
    assert_eq!(interrupts(&first)[0]["id"], asked["id"]);
    let path = format!("/api/approvals/{}/decision", asked["id"].as_str().unwrap());
    client.post(&path, json!({"approved": true})).await;
    // The client's own answer comes too late, and the run continues anyway.
    let second = run(&client, &yes("r2", &first, json!({}))).await;
    assert_eq!(outcome(&second), "success");
    assert_eq!(results(&second).len(), 1);
    let audit = client.get("/api/audit").await;
    assert_eq!(audit["items"].as_array().unwrap().len(), 1, "{audit}");
    assert_eq!(audit["items"][0]["via"], "rest");
}

#[tokio::test]
async fn an_answer_over_agui_is_stored_like_any_other_and_may_grant_a_rule() {
    let script = Script::new()
        .rule(when().has_tool_result(true), model().text("It said"))
        .rule(when(), model().tool_use("Bash", json!({"command": "touch made"})));
    let desk = Desk::open(script).await;
    let client = desk.client();
    let first = run(&client, &input("r1", &[user("u1", "write")])).await;
    let second = run(&client, &yes("r2", &first, json!({"scope": "session"}))).await;
    assert_eq!(outcome(&second), "success");
    let audit = client.get("/api/audit").await;
    assert_eq!(
        (&audit["items"][0]["via"], &audit["items"][0]["scope"]),
        (&json!("agui"), &json!("session"))
    );
    let messages = [user("u1", "write"), reply("a1", "It said"), user("u2", "write again")];
    let third = run(&client, &input("r3", &messages)).await;
    assert_eq!(outcome(&third), "success", "the rule answers");
    // The rule belongs to the session, and this is another session.
    let other = with(input("r4", &[user("u1", "write")]), "threadId", json!("other"));
    assert_eq!(outcome(&run(&client, &other).await), "interrupt");
}

#[tokio::test]
async fn a_thread_continues_after_a_restart_of_the_server() {
    let mut desk = Desk::open(writes()).await;
    run(&desk.client(), &input("r1", &[user("u1", "hi")])).await;
    desk.stop().await;
    desk.start().await;
    let messages = [user("u1", "hi"), reply("a1", "Hello"), user("u2", "still there?")];
    assert_eq!(text_of(&run(&desk.client(), &input("r2", &messages)).await), "Hello");
    assert_eq!(desk.api.requests()[1].messages().len(), 3, "only the new prompt is sent");
    // A message is used only once, however often it is sent.
    let again = run(&desk.client(), &input("r3", &messages[..2])).await;
    assert_eq!(kinds(&again), ["RUN_STARTED", "RUN_FINISHED"]);
}

#[tokio::test]
async fn a_question_survives_a_restart_and_its_answer_resumes_the_run() {
    let mut desk = Desk::open(writes()).await;
    let first = run(&desk.client(), &input("r1", &[user("u1", "write")])).await;
    assert_eq!(outcome(&first), "interrupt");
    desk.stop().await;
    desk.start().await;
    let again = run(&desk.client(), &input("r2", &[user("u1", "write")])).await;
    assert_eq!(interrupts(&again)[0]["id"], interrupts(&first)[0]["id"], "it is asked again");
    assert!(!desk.workspace().join("a.txt").exists());
    let second = run(&desk.client(), &yes("r3", &first, json!({}))).await;
    assert_eq!(outcome(&second), "success", "{second:#?}");
    assert_eq!(std::fs::read_to_string(desk.workspace().join("a.txt")).unwrap(), "x");
}

#[tokio::test]
async fn an_interrupted_run_is_resumed_when_its_client_asks_again() {
    let script = Script::new()
        .rule(when().prompt_contains("You were interrupted"), model().text("Here I am"))
        .rule(when(), model().text_pieces(["be", "gun"]).gate(3, "never"));
    let mut desk = Desk::open(script).await;
    let body = input("r1", &[user("u1", "slow")]);
    let client = desk.client();
    let mut events = begin(&client, &body).await;
    events.until(|event| matches!(event.body, Body::TextMessageContent { .. })).await;
    desk.stop().await;
    assert!(outcome(&events.rest().await).starts_with("error shutdown"));
    desk.start().await;
    let again = run(&desk.client(), &input("r2", &[user("u1", "slow")])).await;
    assert_eq!((text_of(&again).as_str(), outcome(&again).as_str()), ("Here I am", "success"));
}

#[tokio::test]
async fn a_run_waits_while_a_page_runs_a_tool_and_accepts_a_late_result() {
    let script = Script::new()
        .rule(when().prompt_contains("crimson"), model().text("Crimson it is"))
        .rule(when(), model().tool_use("mcp__ag_ui__paint", json!({})));
    let mut desk = Desk::open(script).await;
    let offering = |body: Value| with(body, "tools", json!([tool("paint")]));
    let first = run(&desk.client(), &offering(input("r1", &[user("u1", "paint")]))).await;
    let call = calls(&first)[0].0.clone();
    assert_eq!(last_run(&desk.client()).await["state"], "waiting", "the time limit is paused");
    desk.stop().await;
    desk.start().await;
    let messages = [user("u1", "paint"), answer("t1", &call, json!("crimson"))];
    let second = run(&desk.client(), &offering(input("r2", &messages))).await;
    assert_eq!(text_of(&second), "Crimson it is");
}

// Seen to fail when every additional request is reported as a change.
#[tokio::test]
async fn a_run_that_waits_for_two_calls_reports_it_once() {
    let both = model()
        .tool_use("mcp__ag_ui__paint", json!({"n": 1}))
        .tool_use("mcp__ag_ui__paint", json!({"n": 2}));
    let script =
        Script::new().rule(when().has_tool_result(true), model().text("done")).rule(when(), both);
    let desk = Desk::open(script).await;
    let client = desk.client();
    let offering = |body: Value| with(body, "tools", json!([tool("paint")]));
    let first = run(&client, &offering(input("r1", &[user("u1", "paint")]))).await;
    let answered =
        calls(&first).into_iter().map(|(id, ..)| answer(&format!("t-{id}"), &id, json!("red")));
    let messages: Vec<Value> = [user("u1", "paint")].into_iter().chain(answered).collect();
    assert_eq!(text_of(&run(&client, &offering(input("r2", &messages))).await), "done");
    let log = client.log(session(&client).await["id"].as_str().unwrap()).await;
    let states: Vec<_> =
        log.iter().filter_map(|event| event["body"]["run"]["state"].as_str()).collect();
    assert_eq!(states, ["queued", "running", "waiting", "running", "completed"]);
}

#[tokio::test]
async fn a_run_cancelled_by_another_client_is_cancelled_for_its_own_client() {
    let script = Script::new().rule(when(), model().text_pieces(["be", "gun"]).gate(3, "never"));
    let desk = Desk::open(script).await;
    let client = desk.client();
    let mut events = begin(&client, &input("r1", &[user("u1", "slow")])).await;
    events.until(|event| matches!(event.body, Body::TextMessageContent { .. })).await;
    let id = last_run(&client).await["id"].as_str().unwrap().to_owned();
    client.post(&format!("/api/runs/{id}/cancel"), json!({})).await;
    assert_eq!(outcome(&events.rest().await), "cancelled");
}

#[tokio::test]
async fn a_turn_that_waits_can_be_stopped() {
    let desk = Desk::open(writes()).await;
    let client = desk.client();
    run(&client, &input("r1", &[user("u1", "write")])).await;
    let stopped = client.post("/agui/stop", json!({"threadId": "t"})).await;
    assert_eq!(stopped, json!({"stopped": true}));
    client.watch("/api/approvals", "nothing to wait", |list| list["items"] == json!([])).await;
    let messages = [user("u1", "write"), user("u2", "hi")];
    assert_eq!(text_of(&run(&client, &input("r2", &messages)).await), "Hello");
    assert!(!desk.workspace().join("a.txt").exists());
}
