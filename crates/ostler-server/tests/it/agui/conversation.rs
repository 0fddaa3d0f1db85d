//! Which messages of a resent conversation are new, and the state shared with the client.

use ostler_agui::event::Body;
use ostler_agui::patch::apply;
use ostler_server::agui::Memory;
use ostler_testkit::{Script, reply as model, when};
use serde_json::{Value, json};

use super::stage::*;

fn echo() -> Script {
    Script::new().rule(when(), model().text("You said: {{prompt}}"))
}

/// The texts of a request's messages, with their roles.
fn said(stage: &Stage, number: usize) -> Vec<String> {
    let requests = stage.api.requests();
    let messages = requests[number].messages().to_vec();
    let text = |message: &Value| {
        let content = &message["content"];
        let texts: Vec<_> = match content {
            Value::String(text) => vec![text.clone()],
            _ => content
                .as_array()
                .unwrap()
                .iter()
                .filter_map(|it| it["text"].as_str())
                .map(str::to_owned)
                .collect(),
        };
        format!("{}: {}", message["role"].as_str().unwrap(), texts.join("|"))
    };
    messages.iter().map(text).collect()
}

#[tokio::test]
async fn only_new_messages_of_a_resent_conversation_are_used() {
    let stage = Stage::new(echo()).await;
    let first = stage.run(&input("r1", &[user("u1", "one")])).await;
    let id = first.iter().find_map(|event| match &event.body {
        Body::TextMessageStart { message_id, .. } => Some(message_id.clone()),
        _ => None,
    });
    let history = [user("u1", "one"), reply(&id.unwrap(), "You said: one"), user("u2", "two")];
    let second = stage.run(&input("r2", &history)).await;
    assert_eq!(text_of(&second), "You said: two");
    assert_eq!(said(&stage, 1), ["user: one", "assistant: You said: one", "user: two"]);
    let nothing = [&history[..], &[reply("a2", "You said: two")]].concat();
    let third = stage.run(&input("r3", &nothing)).await;
    assert_eq!(kinds(&third), ["RUN_STARTED", "RUN_FINISHED"]);
    assert_eq!(stage.api.requests().len(), 2);
}

#[tokio::test]
async fn ids_of_messages_are_never_used_twice_in_a_thread() {
    let stage = Stage::new(echo()).await;
    let ids = |events: &[ostler_agui::event::Event]| -> Vec<String> {
        let id = |event: &ostler_agui::event::Event| match &event.body {
            Body::TextMessageStart { message_id, .. } => Some(message_id.clone()),
            _ => None,
        };
        events.iter().filter_map(id).collect()
    };
    let first = ids(&stage.run(&input("r1", &[user("u1", "one")])).await);
    let history = [user("u1", "one"), reply(&first[0], "x"), user("u2", "two")];
    let second = ids(&stage.run(&input("r2", &history)).await);
    assert_ne!(first, second);
}

#[tokio::test]
async fn a_user_who_edits_or_regenerates_gets_another_conversation() {
    let stage = Stage::new(echo()).await;
    stage.run(&input("r1", &[user("u1", "one")])).await;
    let two = [user("u1", "one"), reply("a1", "You said: one"), user("u2", "two")];
    stage.run(&input("r2", &two)).await;
    // Regenerate the answer to the last message.
    let again = stage.run(&input("r3", &two)).await;
    assert_eq!(text_of(&again), "You said: two");
    assert_eq!(said(&stage, 2), ["user: one", "assistant: You said: one", "user: two"]);
    // Replace the last message.
    let other = [user("u1", "one"), reply("a1", "You said: one"), user("u2b", "three")];
    assert_eq!(outcome(&stage.run(&input("r4", &other)).await), "success");
    assert_eq!(said(&stage, 3), ["user: one", "assistant: You said: one", "user: three"]);
    // Continue from there.
    let on = [&other[..], &[reply("a3", "You said: three"), user("u3", "four")]].concat();
    stage.run(&input("r5", &on)).await;
    assert_eq!(said(&stage, 4).len(), 5, "{:?}", said(&stage, 4));
    // Restart from the first message.
    stage.run(&input("r6", &[user("u1", "one")])).await;
    assert_eq!(said(&stage, 5), ["user: one"]);
}

#[tokio::test]
async fn the_history_of_an_unknown_thread_reaches_the_model() {
    let stage = Stage::new(echo()).await;
    let long =
        [user("u1", "my name is Ada"), reply("a1", "Hello Ada"), user("u2", "what is my name?")];
    stage.run(&input("r1", &long)).await;
    let sent = said(&stage, 0);
    assert!(sent[0].contains("User: my name is Ada\nAssistant: Hello Ada\n"), "{sent:?}");
    assert!(sent[0].ends_with("what is my name?"), "{sent:?}");
}

#[tokio::test]
async fn without_memory_every_run_begins_with_the_clients_messages() {
    let stage = Stage::with(echo(), |config| config.agui.memory = Memory::None).await;
    stage.run(&input("r1", &[user("u1", "one")])).await;
    let events = stage.run(&input("r2", &[user("u9", "two")])).await;
    assert_eq!(text_of(&events), "You said: two");
    assert_eq!(said(&stage, 1), ["user: two"]);
    let files = walk(stage.home.path());
    assert!(!files.iter().any(|name| name.ends_with(".jsonl")), "nothing is saved: {files:?}");
}

fn walk(folder: &std::path::Path) -> Vec<String> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            names.extend(walk(&path));
        } else {
            names.push(path.display().to_string());
        }
    }
    names
}

#[tokio::test]
async fn pictures_and_documents_reach_the_model_and_the_rest_is_left_out() {
    let stage = Stage::new(echo()).await;
    let source = |mime: &str| json!({"type": "data", "value": "iVBORw0KGgo=", "mimeType": mime});
    let content = json!([{"type": "text", "text": "look"}, {"type": "image", "source": source("image/png")},
        {"type": "audio", "source": source("audio/wav")}]);
    let events =
        stage.run(&input("r1", &[json!({"id": "u1", "role": "user", "content": content})])).await;
    assert_eq!(outcome(&events), "success");
    let blocks = stage.api.requests()[0].messages()[0]["content"].clone();
    let kinds: Vec<_> = blocks
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["type"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(kinds, ["text", "image"]);
}

#[tokio::test]
async fn system_messages_and_context_are_in_the_system_prompt() {
    let stage = Stage::new(echo()).await;
    let mut body = input(
        "r1",
        &[json!({"id": "s", "role": "system", "content": "Be brief."}), user("u1", "hi")],
    );
    body["context"] = json!([{"description": "page", "value": "/cart"}]);
    body["state"] = json!({"items": 3});
    stage.run(&body).await;
    let system = stage.api.requests()[0].system_text();
    for words in ["Be brief.", "page: /cart", r#"{"items":3}"#] {
        assert!(system.contains(words), "{system}");
    }
    assert_eq!(said(&stage, 0), ["user: hi"]);
}

fn changes(input: Value) -> Script {
    Script::new()
        .rule(when().has_tool_result(true), model().text("ok"))
        .rule(when(), model().tool_use("mcp__shared_state__update", input))
}

#[tokio::test]
async fn the_agent_changes_the_shared_state_and_the_client_follows() {
    let stage = Stage::new(changes(json!({"set": {"steps": [1, 2], "old": null}}))).await;
    let held = json!({"old": 1, "kept": true});
    let events = stage.run(&with(input("r1", &[user("u1", "go")]), "state", held.clone())).await;
    let mut state = held;
    for event in &events {
        match &event.body {
            Body::StateSnapshot { snapshot } => state = snapshot.clone(),
            Body::StateDelta { delta } => state = apply(&state, delta).unwrap(),
            _ => {}
        }
    }
    assert_eq!(state, json!({"kept": true, "steps": [1, 2]}));
    assert_eq!(calls(&events), [], "the call itself is not shown");
    // The next run begins with the client's version of the state.
    let edited = json!({"kept": false});
    let history = [user("u1", "go"), reply("a1", "ok"), user("u2", "again")];
    stage.run(&with(input("r2", &history), "state", edited)).await;
    let requests = stage.api.requests();
    assert!(
        requests[2].system_text().contains(r#"{"kept":false}"#),
        "{}",
        requests[2].system_text()
    );
}

#[tokio::test]
async fn the_servers_keys_of_the_state_cannot_be_overwritten() {
    let script = changes(json!({"set": {"plan": "gold"}}));
    let stage = Stage::with(script, |config| config.agui.server_keys = vec!["plan".into()]).await;
    let events = stage
        .run(&with(input("r1", &[user("u1", "go")]), "state", json!({"plan": "hacked"})))
        .await;
    assert_eq!(kinds(&events)[1], "STATE_SNAPSHOT", "the client receives the valid state");
    let history = [user("u1", "go"), reply("a1", "ok")];
    let next = stage.run(&with(input("r2", &history), "state", json!({"plan": "free"}))).await;
    let Body::StateSnapshot { snapshot } = &next[1].body else { panic!("{next:#?}") };
    assert_eq!(*snapshot, json!({"plan": "gold"}));
}

#[tokio::test]
async fn any_value_can_be_a_state() {
    for state in [json!(null), json!([1, 2]), json!(7)] {
        let stage = Stage::new(echo()).await;
        let events = stage.run(&with(input("r1", &[user("u1", "hi")]), "state", state)).await;
        assert_eq!(outcome(&events), "success");
        assert!(!kinds(&events).contains(&"STATE_SNAPSHOT".to_owned()));
    }
}
