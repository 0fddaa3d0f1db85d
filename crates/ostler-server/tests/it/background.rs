//! Turns that follow the end of a background command are runs.

use ostler_testkit::{Script, reply, when};
use reqwest::Method;
use serde_json::{Value, json};

use crate::desk::{Client, Desk};

/// Starts a command in the background, and answers when it ends.
fn script() -> Script {
    let waits = json!({
        "command": "until [ -e go ]; do sleep 0.02; done",
        "run_in_background": true,
    });
    Script::new()
        .rule(when().has_tool_result(true), reply().text("started"))
        .rule(when().prompt_contains("begin"), reply().tool_use("Bash", waits))
        .rule(when(), reply().hold("woken").text("noted"))
}

/// The running turn after the end of the background command.
async fn woken(desk: &Desk, client: &Client) -> (String, Value) {
    let made = client.post("/api/sessions", json!({"permissionMode": "bypassPermissions"})).await;
    let session = made["id"].as_str().unwrap().to_owned();
    let first = client.prompt(&session, "begin").await;
    client.until(&first, "completed").await;
    std::fs::write(desk.workspace().join("go"), "").unwrap();
    desk.api.gate("woken").reached().await;
    desk.api.gate("woken").release();
    let path = format!("/api/sessions/{session}/runs");
    let is_there = |runs: &Value| runs["items"].as_array().unwrap().len() == 2;
    let runs = client.watch(&path, "a second run", is_there).await;
    (session, runs["items"][1].clone())
}

// Mutant: `heard` that writes messages down without a run.
#[tokio::test]
async fn a_turn_after_background_work_is_a_run_that_is_listed_and_counted() {
    let desk = Desk::with(script(), |config| config.allow_bypass = true).await;
    let client = desk.client();
    let (session, run) = woken(&desk, &client).await;
    assert_eq!(run["background"], true, "{run}");
    let id = run["id"].as_str().unwrap();
    let done = client.until(id, "completed").await;
    assert_eq!(done["outcome"]["result"], "noted");
    let of_run = |event: &Value| event["kind"] == "message" && event["body"]["runId"] == id;
    let log = client.log(&session).await;
    let said = log.iter().filter(|event| of_run(event)).map(Value::to_string).collect::<String>();
    assert!(said.contains("\"noted\"") && said.contains("\"result\""), "{said}");
    let usage = client.get(&format!("/api/sessions/{session}/usage")).await;
    assert_eq!(usage["runs"].as_array().unwrap().len(), 2, "{usage}");
    assert_eq!(client.get(&format!("/api/sessions/{session}")).await["runs"], 2);
    let next = client.prompt(&session, "again").await;
    client.until(&next, "completed").await;
}

#[tokio::test]
async fn a_turn_after_background_work_can_be_cancelled() {
    let script = Script::new()
        .rule(when().has_tool_result(true), reply().text("started"))
        .rule(
            when().prompt_contains("begin"),
            reply().tool_use(
                "Bash",
                json!({"command": "until [ -e go ]; do sleep 0.02; done", "run_in_background": true}),
            ),
        )
        .rule(when().prompt_contains("quick"), reply().text("quick"))
        .rule(when(), reply().text_pieces(["a", "b", "c"]).gate(4, "woken"));
    let desk = Desk::with(script, |config| config.allow_bypass = true).await;
    let client = desk.client();
    let made = client.post("/api/sessions", json!({"permissionMode": "bypassPermissions"})).await;
    let session = made["id"].as_str().unwrap();
    let first = client.prompt(session, "begin").await;
    client.until(&first, "completed").await;
    std::fs::write(desk.workspace().join("go"), "").unwrap();
    desk.api.gate("woken").reached().await;
    let path = format!("/api/sessions/{session}/runs");
    let works = |runs: &Value| runs["items"][1]["state"] == "running";
    let runs = client.watch(&path, "the second run to work", works).await;
    let run = runs["items"][1]["id"].as_str().unwrap();
    client.ask(Method::POST, &format!("/api/runs/{run}/cancel"), None).await;
    client.until(run, "cancelled").await;
    let next = client.prompt(session, "quick").await;
    client.until(&next, "completed").await;
}

// Mutant: `attend` of a background run without the limits of time.
#[tokio::test]
async fn a_turn_after_background_work_has_the_time_limit_of_a_run() {
    let waits = json!({
        "command": "until [ -e go ]; do sleep 0.02; done",
        "run_in_background": true,
    });
    let script = Script::new()
        .rule(when().has_tool_result(true), reply().text("started"))
        .rule(when().prompt_contains("begin"), reply().tool_use("Bash", waits))
        .rule(when(), reply().text_pieces(["a", "b", "c"]).gate(4, "woken"));
    let desk = Desk::with(script, |config| {
        config.allow_bypass = true;
        config.limits.run = Some(std::time::Duration::from_secs(5));
    })
    .await;
    let client = desk.client();
    let made = client.post("/api/sessions", json!({"permissionMode": "bypassPermissions"})).await;
    let session = made["id"].as_str().unwrap();
    let first = client.prompt(session, "begin").await;
    client.until(&first, "completed").await;
    std::fs::write(desk.workspace().join("go"), "").unwrap();
    // Never released: the model does not finish.
    desk.api.gate("woken").reached().await;
    let path = format!("/api/sessions/{session}/runs");
    let is_over = |runs: &Value| runs["items"][1]["state"] == "failed";
    let runs = client.watch(&path, "the second run to be ended", is_over).await;
    let run = &runs["items"][1];
    assert_eq!(
        (&run["background"], &run["outcome"]["error"]["code"]),
        (&json!(true), &json!("run_timeout"))
    );
}

// Mutant: `perform_background` that does not name the run to those who ask.
#[tokio::test]
async fn approvals_of_a_turn_after_background_work_belong_to_its_run() {
    let waits = json!({
        "command": "until [ -e go ]; do sleep 0.02; done",
        "run_in_background": true,
    });
    let touch = reply().tool_use("Bash", json!({"command": "touch made"}));
    let script = Script::new()
        .rule(when().prompt_contains("begin").turn(0), reply().tool_use("Bash", waits))
        .rule(when().prompt_contains("begin"), reply().text("started"))
        .rule(when().has_tool_result(true), reply().text("made"))
        .rule(when(), touch);
    let desk = Desk::open(script).await;
    let client = desk.client();
    let session = client.session().await;
    let first = client.prompt(&session, "begin").await;
    let answer = async |asked: &Value| {
        let path = format!("/api/approvals/{}/decision", asked["id"].as_str().unwrap());
        client.post(&path, json!({"approved": true})).await
    };
    answer(&client.pending().await).await;
    client.until(&first, "completed").await;
    std::fs::write(desk.workspace().join("go"), "").unwrap();
    let asked = client.pending().await;
    let run = asked["run"].as_str().unwrap();
    assert_eq!(client.until(run, "waiting").await["background"], true, "{asked}");
    answer(&asked).await;
    client.until(run, "completed").await;
    assert!(desk.workspace().join("made").exists());
}
