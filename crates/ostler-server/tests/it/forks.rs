//! Forks: the conversation is copied up to a message, and then the two continue independently.

use ostler_testkit::{Script, reply, when};
use reqwest::Method;
use serde_json::{Value, json};

use crate::desk::{Client, Desk};
use crate::spaces;

/// Repeats the prompt in its answer, so that conversations can be distinguished.
fn echoes() -> Script {
    let answer = |word: &str| reply().text(format!("Heard {word}."));
    ["one", "two", "three", "other"]
        .into_iter()
        .fold(Script::new(), |script, word| script.rule(when().prompt_contains(word), answer(word)))
}

async fn say(client: &Client, session: &str, prompt: &str) -> String {
    let run = client.prompt(session, prompt).await;
    client.until(&run, "completed").await;
    run
}

async fn fork(client: &Client, session: &str, body: Value) -> (u16, Value) {
    let path = format!("/api/sessions/{session}/fork");
    let (status, answer) = client.ask(Method::POST, &path, Some(body)).await;
    (status.as_u16(), answer)
}

/// The last request to the model, as text.
fn last_request(desk: &Desk) -> String {
    let requests = desk.api.requests();
    let last = requests.last().unwrap();
    serde_json::to_string(&last.body["messages"]).unwrap()
}

/// The prompts and the agent's messages in a session's log.
async fn log_texts(client: &Client, session: &str) -> Vec<String> {
    let mut texts = Vec::new();
    for event in client.log(session).await {
        let body = &event["body"];
        match event["kind"].as_str().unwrap() {
            "prompt" => texts.push(body["text"].as_str().unwrap().to_owned()),
            "message" if body["message"]["type"] == "assistant" => {
                let text = &body["message"]["message"]["content"][0]["text"];
                texts.push(text.as_str().unwrap().to_owned());
            }
            "notice" => texts.push("notice".to_owned()),
            _ => {}
        }
    }
    texts
}

// Seen to fail when the copy resumes the original conversation instead of a fork of it.
#[tokio::test]
async fn a_fork_has_the_conversation_up_to_its_message_and_does_not_change_the_original() {
    let desk = Desk::open(echoes()).await;
    let client = desk.client();
    let session = client.session().await;
    say(&client, &session, "one").await;
    let second = say(&client, &session, "two").await;
    let (status, forked) = fork(&client, &session, json!({"before": second})).await;
    assert_eq!((status, &forked["title"]), (201, &json!("New session (fork)")));
    assert_eq!(forked["forkedFrom"], json!({"session": session, "run": second}));
    let new = forked["id"].as_str().unwrap();
    assert_eq!(log_texts(&client, new).await, ["one", "Heard one.", "notice"]);

    say(&client, new, "other").await;
    let sent = last_request(&desk);
    assert!(sent.contains("Heard one.") && !sent.contains("Heard two."), "{sent}");
    say(&client, &session, "three").await;
    let sent = last_request(&desk);
    assert!(sent.contains("Heard two.") && !sent.contains("Heard other."), "{sent}");
    // By now the fork has its own conversation, and continues that.
    say(&client, new, "three").await;
    let sent = last_request(&desk);
    assert!(sent.contains("Heard other.") && !sent.contains("Heard two."), "{sent}");
    let ids = ["engineSession"].map(|field| client_field(&client, new, field));
    let [own] = ids;
    let others = client.get(&format!("/api/sessions/{session}")).await;
    assert_ne!(own.await, others["engineSession"]);
    assert_eq!(
        client.get(&format!("/api/sessions/{new}/runs")).await["items"].as_array().unwrap().len(),
        2
    );
    desk.api.finish();
}

async fn client_field(client: &Client, session: &str, field: &str) -> Value {
    client.get(&format!("/api/sessions/{session}")).await[field].clone()
}

#[tokio::test]
async fn a_fork_survives_a_restart_before_its_first_run() {
    let mut desk = Desk::open(echoes()).await;
    let client = desk.client();
    let session = client.session().await;
    say(&client, &session, "one").await;
    let (_, forked) = fork(&client, &session, json!({"title": "Again"})).await;
    let new = forked["id"].as_str().unwrap().to_owned();
    desk.stop().await;
    desk.start().await;
    let client = desk.client();
    say(&client, &new, "two").await;
    assert!(last_request(&desk).contains("Heard one."));
    assert_eq!(client_field(&client, &new, "title").await, "Again");
    desk.api.finish();
}

#[tokio::test]
async fn a_fork_can_end_after_a_message_or_before_the_first_one() {
    let desk = Desk::open(echoes()).await;
    let client = desk.client();
    let session = client.session().await;
    let first = say(&client, &session, "one").await;
    say(&client, &session, "two").await;
    let log = client.log(&session).await;
    let message = log.iter().find(|it| it["body"]["message"]["type"] == "assistant").unwrap();
    let uuid = &message["body"]["message"]["uuid"];
    let (_, forked) = fork(&client, &session, json!({"message": uuid})).await;
    let new = forked["id"].as_str().unwrap();
    assert_eq!(log_texts(&client, new).await, ["one", "Heard one.", "notice"]);
    say(&client, new, "three").await;
    assert!(!last_request(&desk).contains("Heard two."));

    let (_, blank) = fork(&client, &session, json!({"before": first})).await;
    let blank = blank["id"].as_str().unwrap();
    assert_eq!(log_texts(&client, blank).await, ["notice"]);
    say(&client, blank, "other").await;
    assert!(!last_request(&desk).contains("Heard one."));
    // A fork of a fork, made before the first fork has its own conversation.
    let (_, again) = fork(&client, new, json!({})).await;
    let (_, once_more) = fork(&client, again["id"].as_str().unwrap(), json!({})).await;
    say(&client, once_more["id"].as_str().unwrap(), "other").await;
    let sent = last_request(&desk);
    assert!(sent.contains("Heard one.") && sent.contains("Heard three."), "{sent}");
    desk.api.finish();
}

// Seen to fail without the check for an active run.
#[tokio::test]
async fn forking_at_an_unknown_message_or_during_a_run_is_refused() {
    let script = echoes().rule(when().prompt_contains("slow"), reply().text("x").gate(1, "slow"));
    let desk = Desk::open(script).await;
    let (client, ann) = (desk.client(), desk.client_of("ann").await);
    let session = client.session().await;
    say(&client, &session, "one").await;
    for (body, status) in [
        (json!({"before": "run_nothing"}), 422),
        (json!({"message": "nothing"}), 422),
        (json!({"message": "a", "before": "b"}), 422),
        (json!({"title": ""}), 422),
        (json!({"what": 1}), 422),
    ] {
        let (found, answer) = fork(&client, &session, body.clone()).await;
        assert_eq!(found, status, "{body}: {answer}");
    }
    assert_eq!(fork(&ann, &session, json!({})).await.0, 404);
    let slow = client.prompt(&session, "slow").await;
    desk.api.gate("slow").reached().await;
    let (status, answer) = fork(&client, &session, json!({})).await;
    assert_eq!((status, &answer["error"]["code"]), (409, &json!("run_in_progress")));
    let (status, forked) = fork(&client, &session, json!({"before": slow})).await;
    assert_eq!(status, 201, "{forked}");
    desk.api.gate("slow").release();
    client.until(&slow, "completed").await;
    assert_eq!(
        log_texts(&client, forked["id"].as_str().unwrap()).await,
        ["one", "Heard one.", "notice"]
    );
    desk.api.finish();
}

// Seen to fail when the folder of the fork is used without a check.
#[tokio::test]
async fn a_former_member_of_a_space_cannot_fork_into_it() {
    let desk = Desk::open(echoes()).await;
    let (client, ann) = (desk.client(), desk.client_of("ann").await);
    spaces::space(&client, "team").await;
    let member = "/api/spaces/team/members/ann";
    let joined = client.ask(Method::PUT, member, Some(json!({"role": "member"}))).await;
    assert!(joined.0.is_success(), "{}", joined.1);
    let session = spaces::session_in(&ann, "team").await;
    say(&ann, &session, "one").await;
    let (status, forked) = fork(&ann, &session, json!({})).await;
    assert_eq!((status, &forked["setup"]["space"]), (201, &json!("team")));
    say(&ann, forked["id"].as_str().unwrap(), "two").await;
    assert!(last_request(&desk).contains("Heard one."));
    client.ask(Method::DELETE, member, None).await;
    let (status, answer) = fork(&ann, &session, json!({})).await;
    assert!((400..500).contains(&status), "{status}: {answer}");
    desk.api.finish();
}
