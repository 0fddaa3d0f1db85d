//! Usage: by day and model, and by run of a session.

use std::time::Duration;

use ostler_store::{Expected, Filter, Page, Put, Store as _};
use ostler_testkit::{Script, reply, when};
use reqwest::Method;
use serde_json::{Value, json};

use crate::desk::Desk;
use crate::socket::Socket;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

// Seen to fail when results of calls are not counted.
#[tokio::test]
async fn a_session_shows_the_usage_of_each_run_and_the_time_of_its_tools() {
    let call = |command: &str| json!({"command": command, "description": "Do"});
    let script = Script::new()
        .rule(
            when().turn(0),
            reply().tool_use("Bash", call("echo one")).tool_use("Bash", call("touch two")),
        )
        .rule(when(), reply().text("Done."));
    let desk = Desk::open(script).await;
    let client = desk.client();
    let session = client.session().await;
    let path = format!("/api/sessions/{session}/usage");
    let none = client.get(&path).await;
    assert_eq!((&none["runs"], &none["total"]["runs"]), (&json!([]), &json!(0)));

    let run = client.prompt(&session, "Do two\nthings").await;
    let asked = client.pending().await;
    client.until(&run, "waiting").await;
    let answer = format!("/api/approvals/{}/decision", asked["id"].as_str().unwrap());
    client.post(&answer, json!({"approved": true})).await;
    let done = client.until(&run, "completed").await;
    let usage = client.get(&path).await;
    let one = &usage["runs"][0];
    assert_eq!((&one["run"], &one["prompt"]), (&json!(run), &json!("Do two things")));
    assert_eq!(one["costUsd"], done["outcome"]["costUsd"]);
    assert_eq!(one["models"][0]["model"], "claude-sonnet-4-5");
    assert_eq!(one["models"][0]["tokens"], one["tokens"]);
    assert_eq!(usage["total"]["tokens"], one["tokens"]);
    let tools = one["tools"].as_array().unwrap();
    assert_eq!(
        (tools.len(), &tools[0]["name"], &tools[0]["count"]),
        (1, &json!("Bash"), &json!(2))
    );
    assert!(tools[0]["totalMs"].as_u64().unwrap() >= tools[0]["longestMs"].as_u64().unwrap());
    assert_eq!(usage["tools"], one["tools"]);
    let context = &one["context"];
    assert!(context["used"].as_u64().unwrap() > 0, "{context}");
    assert_eq!(context["size"], 200_000);
    let ann = desk.client_of("ann").await;
    assert_eq!(ann.ask(Method::GET, &path, None).await.0, 404);
    desk.api.finish();
}

// Seen to fail when the answer has all days that were ever recorded.
#[tokio::test]
async fn usage_is_reported_by_day_and_model_to_the_users_it_belongs_to() {
    let desk = Desk::open(Script::new().rule(when(), reply().text("Fine."))).await;
    let (client, ann) = (desk.client(), desk.client_of("ann").await);
    for (who, pause) in [(&client, 0), (&ann, 40), (&client, 0), (&client, 1)] {
        desk.clock.advance(DAY * pause);
        let session = who.session().await;
        let run = who.prompt(&session, "go").await;
        who.until(&run, "completed").await;
    }
    let count = async |who: &crate::desk::Client, query: &str| {
        let usage = who.get(&format!("/api/usage{query}")).await;
        let days: Vec<Value> = usage["days"]
            .as_array()
            .unwrap()
            .iter()
            .map(|day| day["models"][0]["runs"].clone())
            .collect();
        (days, usage["total"]["runs"].as_u64().unwrap())
    };
    assert_eq!(count(&client, "").await, (vec![json!(2), json!(1)], 3), "without old days");
    assert_eq!(count(&client, "?days=1").await, (vec![json!(1)], 1));
    assert_eq!(count(&client, "?days=100").await.1, 4);
    assert_eq!(count(&client, "?mine=true").await, (vec![json!(1), json!(1)], 2));
    assert_eq!(count(&ann, "?days=100").await, (vec![json!(1)], 1));
    for wrong in ["days=0", "days=367", "days=x", "dayz=1"] {
        let (status, _) = client.ask(Method::GET, &format!("/api/usage?{wrong}"), None).await;
        assert!(status.is_client_error(), "{wrong}: {status}");
    }
    desk.api.finish();
}

/// The usage record of an owner's run, as written at its end. `day` counts back from today.
fn uncounted(desk: &Desk, number: u64) -> Put {
    let ended = desk.clock.now() - number % 5 * 24 * 60 * 60 * 1_000;
    let spent = json!({"model": "m", "costUsd": 0.5, "tokens": {"input": 2, "output": 1}});
    let body =
        json!({"id": format!("u{number}"), "owner": "owner", "ended": ended, "models": [spent]});
    Put::new("uncountedUsage", format!("u{number}"), body).owner("owner")
}

// Mutants: `count_usage` that removes nothing: every question reads and adds all runs again; `usage_since` that reads the usage of
// all runs.
#[tokio::test]
async fn the_cost_of_usage_does_not_grow_with_the_number_of_runs() {
    let desk = Desk::open(Script::new()).await;
    let client = desk.client();
    let numbers: Vec<u64> = (0..3_000).collect();
    for some in numbers.chunks(500) {
        let puts = some.iter().map(|number| uncounted(&desk, *number));
        let runs = some.iter().map(|number| of_session(&desk, "session_old", *number)[0].clone());
        desk.store().put(puts.chain(runs).collect()).await.unwrap();
    }
    let first = client.get("/api/usage?days=366").await;
    assert_eq!(first["total"]["runs"], 3_000);
    assert_eq!(first["total"]["tokens"]["input"], 6_000);
    for query in ["days=366", "days=366&mine=true"] {
        let before = desk.store().records_read();
        let again = client.get(&format!("/api/usage?{query}")).await;
        let read = desk.store().records_read() - before;
        assert!(read <= 10, "{read} records for five days");
        assert_eq!(again["days"].as_array().unwrap().len(), 5);
        assert_eq!(again["days"][0]["models"][0]["runs"], 600);
        assert_eq!(again["total"], first["total"], "{query}");
    }
}

// Mutant: `count_earlier_usage` that does nothing.
#[tokio::test]
async fn runs_of_earlier_versions_are_counted_once() {
    let mut desk = Desk::open(Script::new().rule(when(), reply().text("Fine."))).await;
    let client = desk.client();
    let run = client.prompt(&client.session().await, "go").await;
    client.until(&run, "completed").await;
    let now = client.get("/api/usage").await["total"].clone();
    assert_eq!(now["runs"], 1);
    // As an earlier version left it: without totals.
    let sums = desk.store().list("dayUsage", &Filter::default(), &Page::default()).await.unwrap();
    assert_eq!(sums.len(), 3, "of the user, of all, and the mark: {sums:?}");
    for sum in sums {
        desk.store().remove("dayUsage", &sum.id, Expected::Any).await.unwrap();
    }
    for _ in 0..2 {
        desk.stop().await;
        desk.start().await;
        assert_eq!(desk.client().get("/api/usage").await["total"], now);
    }
    desk.api.finish();
}

/// The usage and changes of a session's run, as an earlier version stored them: with a place in the list, without
/// totals.
fn of_session(desk: &Desk, session: &str, number: u64) -> [Put; 2] {
    let (at, run) = (desk.clock.now() + number, format!("run_{number:05}"));
    let place = format!("{at:015}-{run}");
    let spent = json!({"model": "m", "costUsd": 0.5, "tokens": {"input": 2, "output": 1}});
    let tool = json!({"name": "Bash", "count": 1, "totalMs": 3, "longestMs": number});
    let usage = json!({"id": format!("day:{run}"), "owner": "owner", "session": session, "run": run,
        "prompt": "go", "ended": at, "durationMs": 1, "models": [spent], "tools": [tool], "place": place});
    let file =
        json!({"path": "a", "kind": "edited", "added": 2, "removed": 1, "diff": "", "cut": false});
    let changes = json!({"id": run, "owner": "owner", "session": session, "prompt": "go", "at": at,
        "files": [file], "place": place});
    [
        Put::new("usage", format!("day:{run}"), usage).owner("owner"),
        Put::new("changes", run, changes).owner("owner"),
    ]
}

// Mutants: `of_session` that reads all records of the session; `end_puts` without the sums.
#[tokio::test]
async fn the_cost_of_a_sessions_usage_and_changes_does_not_grow_with_its_runs() {
    let desk = Desk::open(Script::new().rule(when(), reply().text("Fine."))).await;
    let client = desk.client();
    let session = client.session().await;
    let numbers: Vec<u64> = (0..3_000).collect();
    for some in numbers.chunks(500) {
        let puts = some.iter().flat_map(|number| of_session(&desk, &session, *number)).collect();
        desk.store().put(puts).await.unwrap();
    }
    let (used, changed) =
        (format!("/api/sessions/{session}/usage"), format!("/api/sessions/{session}/changes"));
    // The totals of an earlier version are computed once.
    let first = client.get(&used).await;
    assert_eq!(first["total"]["runs"], 3_000);
    assert_eq!(first["total"]["tokens"]["input"], 6_000);
    let tool = json!({"name": "Bash", "count": 3_000, "totalMs": 9_000, "longestMs": 2_999});
    assert_eq!(first["tools"], json!([tool]));
    let runs = first["runs"].as_array().unwrap();
    let ends = (&runs[0]["run"], &runs[499]["run"], runs.len());
    assert_eq!(ends, (&json!("run_02500"), &json!("run_02999"), 500), "the newest, oldest first");
    for (path, most) in [(&used, 510), (&changed, 210)] {
        let before = desk.store().records_read();
        let answer = client.get(path).await;
        let read = desk.store().records_read() - before;
        assert!(read <= most, "{path}: {read} records");
        assert_eq!(answer["runs"].as_array().unwrap().len() as u64, most - 10);
    }
    let changes = client.get(&changed).await;
    assert_eq!((&changes["added"], &changes["removed"]), (&json!(6_000), &json!(3_000)));
    assert_eq!(changes["runs"][199]["run"], "run_02999");
    // One more run: its end adds it to the totals.
    desk.clock.advance(DAY);
    let mut socket = Socket::open(&client).await;
    let before = desk.store().records_read();
    let run = client.prompt(&session, "go").await;
    // Polling would read the run each time.
    while socket.hear("run").await["run"]["state"] != "completed" {}
    let usage = client.get(&used).await;
    let read = desk.store().records_read() - before;
    assert!(read <= 800, "{read} records for a run and a page");
    assert_eq!((&usage["total"]["runs"], &usage["runs"][499]["run"]), (&json!(3_001), &json!(run)));
    desk.api.finish();
}
