//! Resumed sessions.

use std::sync::Arc;

use futures::FutureExt as _;
use ostler::proto::message::System;
use ostler::{Client, InMemorySessionStore, Message};
use ostler_testkit::{Script, reply, when};

use super::super::stage::Stage;
use super::super::{Scenario, scenario};

/// Every answer shows the length of the conversation.
fn counting() -> Script {
    Script::new()
        .rule(when().turn(0), reply().text("First."))
        .rule(when().turn(1), reply().text("Second."))
        .rule(when().turn(2), reply().text("Third."))
}

/// Runs a first turn; returns the id of its session.
async fn first(stage: &Stage) -> String {
    let mut client: Client = stage.client(stage.options()).await;
    let result = stage.within("the result", client.prompt("One")).await.unwrap();
    stage.close(client).await;
    result.session_id.to_string()
}

/// Runs one more turn; notes its answer, and whether the session has the given id.
async fn next(stage: &Stage, options: ostler::Options, id: &str) {
    let mut messages = ostler::query("Go on", options);
    while let Some(message) = stage.within("a message", messages.next()).await {
        if let Message::Result(result) = message.unwrap() {
            let same = if result.session_id.as_str() == id { "same" } else { "another" };
            stage.note(format!("{} in {same} session", result.result.unwrap_or_default()));
        }
    }
}

pub(super) fn all() -> Vec<Scenario> {
    vec![
        scenario(
            "resume",
            counting(),
            |stage| {
                async {
                    let id = first(stage).await;
                    next(stage, stage.options().resume(&id), &id).await;
                    next(stage, stage.options().continue_newest(), &id).await;
                }
                .boxed()
            },
            "Second. in same session
             Third. in same session",
        ),
        scenario(
            "fork",
            counting(),
            |stage| {
                async {
                    let id = first(stage).await;
                    next(stage, stage.options().resume(&id).fork(), &id).await;
                    next(stage, stage.options().resume(&id), &id).await;
                }
                .boxed()
            },
            "Second. in another session
             Second. in same session",
        ),
        scenario(
            "session-store",
            counting()
                .rule(when().turn(3), reply().text("Fourth."))
                .rule(when().turn(4), reply().text("Fifth.")),
            |stage| {
                async {
                    // Only the store connects the two homes.
                    let store = Arc::new(InMemorySessionStore::new());
                    let homes = [(); 4].map(|()| tempfile::tempdir().unwrap());
                    let options = |n: usize| {
                        let home = homes[n].path().display().to_string();
                        stage.options().env("HOME", home).session_store(Arc::clone(&store))
                    };
                    let connected = stage.within("the start", Client::connect(options(0))).await;
                    let mut client = match connected {
                        Ok(client) => client,
                        Err(error) if error.to_string().contains("--session-mirror") => {
                            return stage.note("--session-mirror is not known".to_owned());
                        }
                        Err(error) => panic!("{error}"),
                    };
                    let result = stage.within("the result", client.prompt("One")).await.unwrap();
                    stage.close(client).await;
                    let id = result.session_id.to_string();
                    next(stage, options(1).resume(&id), &id).await;
                    next(stage, options(2).resume(&id).fork(), &id).await;
                    let fork = store.keys().into_iter().find(|key| key.session_id != id).unwrap();
                    let fork = fork.session_id;
                    next(stage, options(3).continue_newest(), &fork).await;
                    next(stage, options(0).resume(&id), &id).await;
                    next(stage, options(1).resume(&fork), &fork).await;
                }
                .boxed()
            },
            "Second. in same session
             Third. in another session
             Fourth. in same session
             Third. in same session
             Fifth. in same session",
        ),
        scenario(
            "resume-at",
            counting(),
            |stage| {
                async {
                    let mut client = stage.client(stage.options()).await;
                    client.send("One").await.unwrap();
                    let (mut id, mut answer) = (String::new(), None);
                    while let Some(message) = stage.within("a message", client.next()).await {
                        match message.unwrap() {
                            Message::Assistant(said) => answer = Some(said.uuid.to_string()),
                            Message::Result(result) => {
                                id = result.session_id.to_string();
                                break;
                            }
                            _ => {}
                        }
                    }
                    stage.within("the result", client.prompt("Two")).await.unwrap();
                    stage.close(client).await;
                    let mut options = stage.options().resume(&id);
                    options.session.choice.resume_at = answer;
                    next(stage, options, &id).await;
                    // Dropped messages do not come back.
                    next(stage, stage.options().resume(&id), &id).await;
                }
                .boxed()
            },
            "Second. in same session
             Third. in same session",
        ),
        scenario(
            "resume-missing",
            counting(),
            |stage| {
                async {
                    let missing = "11111111-1111-4111-8111-111111111111";
                    stage.query("Go on", stage.options().resume(missing)).await;
                }
                .boxed()
            },
            "error Refused",
        ),
        scenario(
            "compact",
            Script::new()
                .rule(when().prompt_contains("After"), reply().text("After all."))
                .rule(when().prompt_contains("Say hello"), reply().text("Hello."))
                .rule(when(), reply().text("<summary>They said hello.</summary>")),
            |stage| {
                async {
                    let mut client = stage.client(stage.options()).await;
                    for prompt in ["Say hello", "/compact keep it short", "After"] {
                        client.send(prompt).await.unwrap();
                        loop {
                            let message = stage.within("a message", client.next()).await.unwrap();
                            match message.unwrap() {
                                Message::System(System::CompactBoundary(boundary)) => {
                                    let trigger = boundary.compact_metadata.trigger;
                                    stage.note(format!("compacted: {trigger}"));
                                }
                                Message::Result(result) => {
                                    let text = result.result.unwrap_or_default();
                                    stage.note(format!("{} {text:?}", result.subtype));
                                    break;
                                }
                                _ => {}
                            }
                        }
                    }
                    let requests = stage.requests();
                    let last = requests.last().unwrap().body["messages"].to_string();
                    let summed_up = last.contains("They said hello");
                    stage.note(format!("the summary is told: {summed_up}"));
                    stage.close(client).await;
                }
                .boxed()
            },
            r#"success "Hello."
               compacted: manual
               success ""
               success "After all."
               the summary is told: true"#,
        ),
        scenario(
            "session-id",
            counting(),
            |stage| {
                async {
                    let id = "22222222-2222-4222-8222-222222222222";
                    let mut options = stage.options();
                    options.session.choice.id = Some(id.to_owned());
                    next(stage, options, id).await;
                }
                .boxed()
            },
            "First. in same session",
        ),
        scenario(
            "ephemeral",
            counting(),
            |stage| {
                async {
                    let id = "33333333-3333-4333-8333-333333333333";
                    let mut options = stage.options();
                    options.session.choice.id = Some(id.to_owned());
                    options.session.ephemeral = true;
                    next(stage, options, id).await;
                    stage.query("Go on", stage.options().resume(id)).await;
                }
                .boxed()
            },
            "First. in same session
             error Refused",
        ),
    ]
}
