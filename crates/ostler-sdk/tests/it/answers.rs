//! Which result answers a prompt, and what happens to a prompt that can no longer be answered.

use futures::StreamExt as _;
use ostler_sdk::proto::message::User;
use ostler_sdk::{Client, Error, ErrorKind, Message, query};

use crate::fake::{ANSWERS, Fake, INTRODUCES, within};

/// Reads a prompt and stores its uuid in `$uuid`.
const READS: &str = r#"
read -r line
uuid=$(printf '%s' "$line" | sed 's/.*"uuid":"\([^"]*\)".*/\1/')
"#;

/// Writes a result with a text and further fields.
const RESULT: &str = r#"
result() {
  printf '{"type":"result","subtype":"success","is_error":false,"duration_ms":1,"duration_api_ms":1,"num_turns":1,"result":"%s","total_cost_usd":0,"usage":{},"modelUsage":{},"permission_denials":[],%s"uuid":"u","session_id":"s"}\n' "$1" "$2"
}
"#;

/// The result of a turn that the engine began by itself.
const BACKGROUND: &str =
    r#"result background '"origin":{"kind":"task-notification","producer":"session-task"},'"#;
/// The result for the prompt that was read.
const OWN: &str =
    r#"result own "\"user_message_uuid\":\"$uuid\",\"user_message_uuids\":[\"$uuid\"],""#;
/// The result for another prompt.
const OTHERS: &str = r#"result others '"user_message_uuids":["another"],'"#;
/// The result for two prompts together.
const BOTH: &str = r#"result both "\"user_message_uuids\":[\"another\",\"$uuid\"],""#;

async fn client(parts: &[&str]) -> (Fake, Client) {
    let fake = Fake::new(&[&[INTRODUCES, RESULT], parts, &["cat > /dev/null"]].concat());
    let client = within(Client::connect(fake.options())).await.unwrap();
    (fake, client)
}

async fn answer(parts: &[&str]) -> String {
    let (_fake, mut client) = client(parts).await;
    within(client.prompt("hello")).await.unwrap().result.unwrap()
}

// Mutant: `pending::answers` returns true for every result, as `Client::prompt` took the next one.
#[tokio::test]
async fn a_prompt_gets_its_own_result_and_not_that_of_background_work_or_of_another_prompt() {
    assert_eq!(answer(&[READS, BACKGROUND, OWN]).await, "own");
    assert_eq!(answer(&[READS, OTHERS, BACKGROUND, OTHERS, OWN]).await, "own");
    assert_eq!(answer(&[READS, OTHERS, BOTH]).await, "both");
    // The origin is a person, so the engine did not begin this turn by itself.
    let human = r#"result human '"origin":{"kind":"human"},'"#;
    assert_eq!(answer(&[READS, BACKGROUND, human]).await, "human");
}

#[tokio::test]
async fn the_next_result_of_an_engine_that_names_no_prompts_is_the_answer() {
    assert_eq!(answer(&[READS, ANSWERS, OTHERS]).await, "ok");
}

#[tokio::test]
async fn a_prompt_keeps_the_uuid_that_the_host_gave_it() {
    let (_fake, mut client) =
        client(&[READS, r#"result "$uuid" "\"user_message_uuids\":[\"$uuid\"],""#]).await;
    let prompt = User { uuid: Some("mine".into()), ..User::prompt("hello") };
    assert_eq!(within(client.prompt(prompt)).await.unwrap().result.as_deref(), Some("mine"));
}

// Mutant: `Turn` ends with the next result.
#[tokio::test]
async fn a_turn_ends_with_the_result_of_the_prompt_that_was_sent() {
    let (_fake, mut client) =
        client(&[READS, BACKGROUND, OTHERS, OWN, READS, BACKGROUND, OWN]).await;
    for expected in [&["background", "others", "own"][..], &["background", "own"]] {
        client.send("hello").await.unwrap();
        let turn = within(client.turn().collect::<Vec<_>>()).await;
        let texts: Vec<String> = turn
            .into_iter()
            .filter_map(|message| message.unwrap().as_result()?.result.clone())
            .collect();
        assert_eq!(texts, expected);
    }
}

// Mutant: as above; the answer to the first prompt was returned for the second.
#[tokio::test]
async fn a_prompt_after_one_that_was_given_up_gets_its_own_result() {
    let (_fake, mut client) = client(&[
        READS,
        "first=$uuid",
        READS,
        r#"result late "\"user_message_uuids\":[\"$first\"],""#,
        OWN,
    ])
    .await;
    // The caller gives up as soon as the prompt is sent; the engine sends nothing before the second prompt.
    let given_up = tokio::time::timeout(std::time::Duration::ZERO, client.prompt("first"));
    assert!(given_up.await.is_err());
    assert_eq!(within(client.prompt("second")).await.unwrap().result.as_deref(), Some("own"));
}

#[tokio::test]
async fn a_prompt_that_is_withdrawn_ends_with_an_error() {
    let withdrawn = r#"printf '{"type":"command_lifecycle","command_uuid":"%s","state":"cancelled","session_id":"s","uuid":"u"}\n' "$uuid""#;
    let (_fake, mut client) = client(&[READS, BACKGROUND, withdrawn]).await;
    let error = within(client.prompt("hello")).await.unwrap_err();
    assert!(matches!(error, Error::Withdrawn) && error.kind() == ErrorKind::Cancelled, "{error}");
}

// Mutant: `takes_prompts` returns true; `send` was Ok and the prompt was lost.
#[tokio::test]
async fn a_prompt_after_the_input_was_closed_is_an_error() {
    // It sends another result after its input is closed, and ends when a file exists.
    let waits = "while ! test -e gone; do sleep 0.01; done";
    let fake = Fake::new(&[INTRODUCES, "read -r line", ANSWERS, "cat > /dev/null", ANSWERS, waits]);
    let mut messages = query("hello", fake.options());
    for _ in 0..2 {
        let result = within(messages.next()).await.unwrap().unwrap();
        assert!(matches!(result, Message::Result(_)), "{result:?}");
    }
    let handle = messages.handle().unwrap();
    let error = within(handle.send("too late")).await.unwrap_err();
    assert!(error.to_string().contains("the prompt was not sent"), "{error}");
    assert_eq!(error.kind(), ErrorKind::Connection);
    std::fs::write(fake.folder.path().join("gone"), "").unwrap();
    while within(messages.next()).await.is_some() {}
}

// Mutant: `end_input` does nothing; the later prompt was accepted.
#[tokio::test]
async fn messages_after_the_end_of_the_input_are_read_to_their_end() {
    let fake = Fake::new(&[INTRODUCES, "read -r line", ANSWERS, "cat > /dev/null", ANSWERS]);
    let mut client = within(Client::connect(fake.options())).await.unwrap();
    client.send("hello").await.unwrap();
    assert!(matches!(within(client.next()).await, Some(Ok(Message::Result(_)))));
    client.end_input().await.unwrap();
    assert!(client.send("too late").await.is_err());
    assert!(matches!(within(client.next()).await, Some(Ok(Message::Result(_)))));
    assert!(within(client.next()).await.is_none());
}

#[tokio::test]
async fn prompts_for_an_engine_that_has_ended_are_an_error() {
    let fake = Fake::new(&[INTRODUCES, "exit 0"]);
    let mut client = within(Client::connect(fake.options())).await.unwrap();
    while within(client.next()).await.is_some() {}
    assert!(client.send("hello").await.is_err());
    let prompts = futures::stream::iter([User::prompt("a")]);
    assert!(client.feed(prompts).await.is_err());
    assert!(client.prompt("hello").await.is_err());
}
