//! Users cancel and answer at the moment at which a session's lease is lost.

use std::time::Duration;

use futures::future::join_all;
use ostler_server::config::Config;
use ostler_store::{Error, Store as _, StreamId};
use ostler_testkit::{Rule, Script, reply, when};
use reqwest::Method;
use serde_json::{Value, json};

use crate::desk::{Client, Desk, within};

/// Renewed every second, so the loss is noticed at about the time of the requests.
const LEASE: Duration = Duration::from_secs(3);
/// Each session acts a little later than the one before.
const SESSIONS: u64 = 30;
const STEP: Duration = Duration::from_millis(35);

fn setup(config: &mut Config) {
    config.limits.lease = LEASE;
    config.limits.cancel_grace = Duration::from_millis(100);
    // Many tests poll.
    config.limits.requests_per_second = 100_000;
}

/// Takes a session's lease from its worker, as another server does when the lease has expired.
async fn take_lease(desk: &Desk, session: &str) {
    let stream = StreamId::new(session).unwrap();
    match desk.store().claim(&stream, "another server", LEASE).await {
        Err(Error::Held { by, .. }) => drop(desk.store().claim(&stream, &by, LEASE).await.unwrap()),
        free => desk.store().release(&free.unwrap()).await.unwrap(),
    }
}

async fn is_over(client: &Client, run: &str) -> Value {
    let states = ["completed", "failed", "cancelled", "interrupted"];
    let is_over = |run: &Value| states.contains(&run["state"].as_str().unwrap());
    client.watch(&format!("/api/runs/{run}"), "the end of a run", is_over).await
}

// Mutants: `unless_cancelled` that does not look for requests; `keep_later` that makes the ends known after the worker is gone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_is_cancelled_while_its_lease_is_lost_is_cancelled() {
    let script = Script::new().rule(when(), reply().hold("held").text("done"));
    let desk = Desk::with(script, setup).await;
    let client = desk.client();
    let cancelling = (0..SESSIONS).map(async |number| {
        let session = client.session().await;
        let run = client.prompt(&session, "begin").await;
        client
            .watch(&format!("/api/runs/{run}"), "the run to begin", |run| run["state"] != "queued")
            .await;
        take_lease(&desk, &session).await;
        // Waits for no event: the cancel must work at any time.
        tokio::time::sleep(STEP * u32::try_from(number).unwrap()).await;
        let path = format!("/api/runs/{run}/cancel");
        let (status, answer) = client.ask(Method::POST, &path, None).await;
        assert_eq!(status.as_u16(), 202, "{answer}");
        // An interruption may be written first.
        let cancelled = |run: &Value| run["state"] == "cancelled";
        client.watch(&format!("/api/runs/{run}"), "the run to be cancelled", cancelled).await;
    });
    join_all(cancelling).await;
    desk.api.gate("held").release();
}

/// Approves the calls that a session asks about again.
async fn allow_what_is_asked(client: &Client, session: &str) {
    let list = client.get("/api/approvals").await;
    let asked = list["items"].as_array().unwrap().iter().filter(|it| it["session"] == session);
    for asked in asked {
        let path = format!("/api/approvals/{}/decision", asked["id"].as_str().unwrap());
        // It may have been withdrawn meanwhile.
        client.ask(Method::POST, &path, Some(json!({"approved": true}))).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_is_answered_while_its_lease_is_lost_is_finished_or_can_be_resumed() {
    let call =
        |number: u64| reply().tool_use("Bash", json!({"command": format!("touch yes-{number}")}));
    let of = |number: u64| when().any_text_contains(format!("case {number}."));
    let mut script = Script::new();
    for number in 0..SESSIONS {
        // A resumed run repeats the interrupted step.
        let again = of(number).prompt_contains("interrupted");
        script = script.with(Rule::new(again, call(number)).times(1));
    }
    script = script.rule(when().has_tool_result(true), reply().text("done"));
    for number in 0..SESSIONS {
        script = script.rule(of(number), call(number));
    }
    let desk = Desk::with(script, setup).await;
    let client = desk.client();
    let answering = (0..SESSIONS).map(async |number| {
        let session = client.session().await;
        let run = client.prompt(&session, &format!("case {number}.")).await;
        // On a busy machine the lease may be lost before the run has asked.
        let has_asked = |run: &Value| run["state"] == "waiting" || run["state"] == "interrupted";
        client.watch(&format!("/api/runs/{run}"), "the run to ask", has_asked).await;
        let list = client.get("/api/approvals").await;
        let is_of_run = |approval: &&Value| approval["run"] == json!(run);
        let Some(asked) = list["items"].as_array().unwrap().iter().find(is_of_run) else {
            return 0;
        };
        take_lease(&desk, &session).await;
        // Waits for no event: the answer must work at any time.
        tokio::time::sleep(STEP * u32::try_from(number).unwrap()).await;
        let path = format!("/api/approvals/{}/decision", asked["id"].as_str().unwrap());
        let (status, answer) =
            client.ask(Method::POST, &path, Some(json!({"approved": true}))).await;
        assert!(status.is_success(), "{status} {answer}");
        let over = is_over(&client, &run).await;
        if over["state"] == "interrupted" {
            // The engine may have received the approval before its run was interrupted. Then nothing resumes the run by
            // itself.
            let (status, answer) =
                client.ask(Method::POST, &format!("/api/runs/{run}/resume"), None).await;
            let is_resumed = status.is_success() || answer["error"]["code"] == "already_resumed";
            assert!(is_resumed, "{status} {answer}");
        }
        let yes = desk.workspace().join(format!("yes-{number}"));
        within(async {
            while !yes.exists() {
                allow_what_is_asked(&client, &session).await;
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        })
        .await;
        1
    });
    let answered: usize = join_all(answering).await.into_iter().sum();
    assert!(answered > 0, "every lease was lost before an answer was possible");
}
