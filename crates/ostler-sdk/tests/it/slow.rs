//! A reader that does not read delays nobody.

use ostler_sdk::{Client, Decision};

use crate::fake::{ANSWERS, Fake, INTRODUCES, within};

/// A thousand messages, then a question whose answer is written to a file.
const ASKS_AFTER_MANY: &str = r#"
read -r prompt
i=0
while [ $i -lt 1000 ]; do
  printf '%s\n' '{"type":"system","subtype":"status","status":null,"uuid":"u","session_id":"s"}'
  i=$((i+1))
done
printf '%s\n' '{"type":"control_request","request_id":"q","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"ls"},"tool_use_id":"t"}}'
read -r answer
printf '%s' "$answer" > answer.partial; mv answer.partial answer
"#;

#[tokio::test]
async fn questions_are_answered_while_nobody_reads() {
    let fake = Fake::new(&[INTRODUCES, ASKS_AFTER_MANY, ANSWERS, "cat > /dev/null"]);
    let options = fake.options().on_permission(|_| async { Decision::allow() });
    let mut client = within(Client::connect(options)).await.unwrap();
    client.send("hello").await.unwrap();
    let answer = fake.folder.path().join("answer");
    within(async {
        while !answer.exists() {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
    })
    .await;
    let answer = std::fs::read_to_string(answer).unwrap();
    assert!(answer.contains(r#""behavior":"allow""#), "{answer}");
    // Nothing was lost meanwhile.
    let mut count = 0;
    while within(client.next()).await.unwrap().unwrap().as_result().is_none() {
        count += 1;
    }
    assert_eq!(count, 1000);
}

/// Pieces of a response with other messages, a question and something broken between them.
const MIXES: &str = r#"
read -r prompt
piece() { printf '{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"%s"}},"session_id":"s","parent_tool_use_id":null,"uuid":"u"}\n' "$1"; }
status='{"type":"system","subtype":"status","status":null,"uuid":"u","session_id":"s"}'
piece 1; piece 2; echo "$status"; piece 3
printf '%s\n' '{"type":"control_request","request_id":"q","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"ls"},"tool_use_id":"t"}}'
piece 4
printf '%s\n' '{"type":"stream_event","event":{"type":"content_block_delta"},"session_id":"s","uuid":"u"}'
piece 5
read -r answer
piece 6
"#;

#[tokio::test]
async fn messages_come_in_their_order_whatever_they_are() {
    let fake = Fake::new(&[INTRODUCES, MIXES, ANSWERS, "cat > /dev/null"]);
    let options = fake.options().on_permission(|_| async { Decision::allow() });
    let mut messages = ostler_sdk::query("hello", options);
    let mut heard = Vec::new();
    while let Some(message) = within(messages.next()).await {
        heard.push(match message {
            Ok(message) if message.as_result().is_some() => "result".to_owned(),
            Ok(message) => message.text_delta().unwrap_or("status").to_owned(),
            Err(error) => format!("{:?}", error.kind()),
        });
    }
    assert_eq!(heard.join(" "), "1 2 status 3 4 Protocol 5 6 result");
}

#[tokio::test]
async fn a_listener_has_heard_everything_that_came_before_a_question() {
    let fake = Fake::new(&[INTRODUCES, MIXES, ANSWERS, "cat > /dev/null"]);
    let heard = std::sync::Arc::new(std::sync::Mutex::new(String::new()));
    let (hears, asked) = (std::sync::Arc::clone(&heard), std::sync::Arc::clone(&heard));
    let options = fake
        .options()
        .on_message(move |message| {
            let text = message.text_delta().unwrap_or("-");
            hears.lock().unwrap().push_str(text);
            // What goes wrong with a listener concerns nobody else.
            assert!(text != "5");
        })
        .on_permission(move |_| {
            asked.lock().unwrap().push('?');
            async { Decision::allow() }
        });
    let (messages, _) = crate::fake::run(options).await;
    assert!(messages.iter().any(|message| message.as_result().is_some()), "{messages:?}");
    // The question may be asked after pieces that came later, never before those that came earlier.
    let heard = heard.lock().unwrap();
    assert!(heard.starts_with("12-3") && heard.replace('?', "") == "12-3456-", "{heard}");
}
