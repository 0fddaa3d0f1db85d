//! Lists of sessions: sorted by last activity, searched, in pages, with usage.

use std::collections::HashSet;

use ostler_store::{Put, Store as _};
use ostler_testkit::{Script, reply, when};
use serde_json::{Value, json};

use crate::desk::{Client, Desk};

fn titles(list: &Value) -> Vec<&str> {
    list["items"].as_array().unwrap().iter().map(|it| it["title"].as_str().unwrap()).collect()
}

async fn named(client: &Client, title: &str) -> String {
    let made = client.post("/api/sessions", json!({"title": title})).await;
    made["id"].as_str().unwrap().to_owned()
}

async fn say(desk: &Desk, session: &str, prompt: &str) -> Value {
    desk.clock.advance(std::time::Duration::from_secs(1));
    let run = desk.client().prompt(session, prompt).await;
    desk.client().until(&run, "completed").await
}

// Seen to fail when the cursor is the id.
#[tokio::test]
async fn sessions_are_sorted_by_last_activity_and_pages_stay_correct_while_sessions_change() {
    let desk = Desk::open(Script::new().rule(when(), reply().text("Fine."))).await;
    let client = desk.client();
    let mut ids = Vec::new();
    for title in ["one", "two", "three", "four"] {
        desk.clock.advance(std::time::Duration::from_secs(1));
        ids.push(named(&client, title).await);
    }
    say(&desk, &ids[1], "hello").await;
    let all = client.get("/api/sessions").await;
    assert_eq!(titles(&all), ["two", "four", "three", "one"]);
    assert_eq!(all.get("next"), None, "that was all");
    let part = client.get("/api/sessions?limit=2").await;
    assert_eq!(titles(&part), ["two", "four"]);
    // A session is added and the last one moves up, while a client reads the pages.
    desk.clock.advance(std::time::Duration::from_secs(1));
    named(&client, "five").await;
    say(&desk, &ids[0], "hello").await;
    let next = part["next"].as_str().unwrap();
    let rest = client.get(&format!("/api/sessions?limit=2&after={next}")).await;
    assert_eq!(titles(&rest), ["three"], "no session twice, and no unchanged session missing");
    assert_eq!(rest.get("next"), None);
    assert_eq!(titles(&client.get("/api/sessions?limit=2").await), ["one", "five"]);
    desk.api.finish();
}

// Seen to fail when an engine's totals are used as those of the run.
#[tokio::test]
async fn a_session_shows_its_usage_and_its_active_run() {
    let waits = reply().text("Slow.").gate(1, "slow");
    let script = Script::new()
        .rule(when().prompt_contains("slowly"), waits)
        .rule(when(), reply().text("Quick."));
    let desk = Desk::open(script).await;
    let client = desk.client();
    let session = named(&client, "Counting").await;
    let path = format!("/api/sessions/{session}");
    let new = client.get(&path).await;
    assert_eq!(
        (&new["runs"], &new["costUsd"], &new["state"]),
        (&json!(0), &json!(0.0), &json!("idle"))
    );
    assert_eq!(new["lastActivity"], new["created"]);

    let first = say(&desk, &session, "one").await;
    let second = say(&desk, &session, "two").await;
    let cost = |run: &Value| run["outcome"]["costUsd"].as_f64().unwrap();
    assert!(cost(&first) > 0.0);
    let now = client.get(&path).await;
    assert_eq!((&now["runs"], &now["lastActivity"]), (&json!(2), &second["ended"]));
    let sum = cost(&first) + cost(&second);
    assert!((now["costUsd"].as_f64().unwrap() - sum).abs() < 1e-12, "{now}");
    // The second run reads the first one's conversation, and little more; a total would be twice as much.
    assert!(cost(&second) < 1.9 * cost(&first), "{first} {second}");
    let tokens = &now["tokens"];
    assert!(tokens["output"].as_u64().unwrap() > 0, "{tokens}");

    let slow = client.prompt(&session, "slowly").await;
    desk.api.gate("slow").reached().await;
    assert_eq!(client.get(&path).await["state"], "working");
    assert_eq!(client.get("/api/sessions").await["items"][0]["state"], "working");
    desk.api.gate("slow").release();
    client.until(&slow, "completed").await;
    assert_eq!(client.get(&path).await["state"], "idle");
    desk.api.finish();
}

#[tokio::test]
async fn a_session_that_asks_is_waiting() {
    let call = reply().tool_use("Bash", json!({"command": "touch made", "description": "Make"}));
    let script = Script::new().rule(when().turn(0), call).rule(when(), reply().text("Done."));
    let desk = Desk::open(script).await;
    let client = desk.client();
    let session = client.session().await;
    let run = client.prompt(&session, "go").await;
    let asked = client.pending().await;
    client.until(&run, "waiting").await;
    assert_eq!(client.get(&format!("/api/sessions/{session}")).await["state"], "waiting");
    let answer = format!("/api/approvals/{}/decision", asked["id"].as_str().unwrap());
    client.post(&answer, json!({"approved": false})).await;
    client.until(&run, "completed").await;
    desk.api.finish();
}

// Seen to fail when a new title does not change the search text.
#[tokio::test]
async fn the_search_finds_titles_and_prompts_of_the_callers_sessions() {
    let desk = Desk::open(Script::new().rule(when(), reply().text("Fine."))).await;
    let (client, ann) = (desk.client(), desk.client_of("ann").await);
    let (harbour, other) =
        (named(&client, "The HARBOUR Wall").await, named(&client, "Other").await);
    named(&ann, "harbour of ann").await;
    say(&desk, &other, "Paint\n  the Fence, 100% of it").await;
    let found = async |client: &Client, q: &str| {
        let list = client.get(&format!("/api/sessions?q={q}")).await;
        titles(&list).join(", ")
    };
    assert_eq!(found(&ann, "harbour").await, "harbour of ann");
    assert_eq!(found(&client, "harbour%20wall").await, "The HARBOUR Wall");
    assert_eq!(found(&client, "PAINT%20the%20fence").await, "Other");
    assert_eq!(found(&client, "100%25").await, "Other", "the search text is not a pattern");
    assert_eq!(found(&client, "nowhere").await, "");
    let path = format!("/api/sessions/{harbour}");
    let renamed = json!({"title": "The Mole"});
    client.ask(reqwest::Method::PATCH, &path, Some(renamed)).await;
    assert_eq!(found(&client, "harbour%20wall").await, "");
    assert_eq!(found(&client, "the%20mole").await, "The Mole");
    desk.api.finish();
}

#[tokio::test]
async fn ten_thousand_sessions_are_listed_in_pages_and_each_once() {
    let desk = Desk::open(Script::new()).await;
    let client = desk.client();
    let made = desk.store().get("session", &client.session().await).await.unwrap().unwrap();
    let copy = |number: usize| {
        let id = format!("session_{number:032x}");
        let mut body = made.body.clone();
        // All at the same time, as a program may create them.
        body["place"] = json!(format!("000000000000001-{id}"));
        body["id"] = json!(id);
        body["search"] = json!(format!("title {number}\n"));
        Put::new("session", id, body).owner("owner")
    };
    for first in (0..10_000).step_by(500) {
        desk.store().put((first..first + 500).map(copy).collect()).await.unwrap();
    }
    let (mut seen, mut after) = (HashSet::new(), String::new());
    loop {
        let part = client.get(&format!("/api/sessions?limit=500{after}")).await;
        for item in part["items"].as_array().unwrap() {
            assert!(seen.insert(item["id"].as_str().unwrap().to_owned()), "{item} is listed twice");
        }
        let Some(next) = part["next"].as_str() else { break };
        after = format!("&after={next}");
    }
    assert_eq!(seen.len(), 10_001);
    let found = client.get("/api/sessions?q=title%209999").await;
    assert_eq!(found["items"].as_array().unwrap().len(), 1);
}
