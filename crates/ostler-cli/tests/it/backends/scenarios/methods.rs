//! Methods on a running session: models, thinking, more prompts, the end.

use futures::FutureExt as _;
use futures::StreamExt as _;
use ostler::proto::message::User;
use ostler_testkit::{Script, reply, when};

use super::super::stage::{MODEL, Stage};
use super::super::{Scenario, scenario};

/// A field of the conversation's last request.
fn last(stage: &Stage, field: &str) -> String {
    stage.requests().last().unwrap().body[field].to_string()
}

fn hello() -> Script {
    Script::new().rule(when(), reply().text("Hello."))
}

pub(super) fn all() -> Vec<Scenario> {
    vec![
        scenario(
            "method-set-model",
            hello(),
            |stage| {
                async {
                    // The default model of the newest program needs a newer API than the scripted one.
                    let usual = ("ANTHROPIC_DEFAULT_OPUS_MODEL", MODEL);
                    let mut client = stage.client(stage.options().env(usual.0, usual.1)).await;
                    let handle = client.handle();
                    let models = handle.supported_models();
                    stage.note(format!("models are named: {}", !models.is_empty()));
                    let chosen = Some("claude-opus-4-5".to_owned());
                    stage.within("the model", handle.set_model(chosen)).await.unwrap();
                    stage.within("the result", client.prompt("Hello")).await.unwrap();
                    stage.note(last(stage, "model"));
                    // Resets the choice.
                    stage.within("the model", handle.set_model(None)).await.unwrap();
                    stage.within("the result", client.prompt("Hello")).await.unwrap();
                    let other = last(stage, "model") != "\"claude-opus-4-5\"";
                    stage.note(format!("back to another: {other}"));
                }
                .boxed()
            },
            r#"models are named: true
               "claude-opus-4-5"
               back to another: true"#,
        ),
        scenario(
            "method-set-max-thinking-tokens",
            hello(),
            |stage| {
                async {
                    let mut client = stage.client(stage.options()).await;
                    let handle = client.handle();
                    for tokens in [Some(2048), Some(0)] {
                        let set = handle.set_max_thinking_tokens(tokens);
                        stage.within("the answer", set).await.unwrap();
                        stage.within("the result", client.prompt("Hello")).await.unwrap();
                        let thinking = last(stage, "thinking");
                        let thinks = thinking.contains("enabled") || thinking.contains("adaptive");
                        let budget = thinking.contains("2048");
                        stage.note(format!(
                            "{tokens:?}: thinks {thinks}, with that budget {budget}"
                        ));
                    }
                }
                .boxed()
            },
            "Some(2048): thinks true, with that budget true
             Some(0): thinks false, with that budget false",
        ),
        scenario(
            "method-feed-and-close",
            hello(),
            |stage| {
                async {
                    let mut client = stage.client(stage.options()).await;
                    for words in ["one", "two"] {
                        let prompts = futures::stream::iter([User::prompt(words)]).boxed();
                        client.feed(prompts).await.unwrap();
                        stage.turn(&mut client).await;
                        let said = last(stage, "messages").contains(words);
                        stage.note(format!("the model heard {words}: {said}"));
                    }
                    let handle = client.handle();
                    stage.close(client).await;
                    let late = stage.within("the answer", handle.interrupt()).await;
                    stage.note(format!("late: {:?}", late.unwrap_err().kind()));
                }
                .boxed()
            },
            r#"init
               text Hello.
               result success "Hello."
               the model heard one: true
               init
               text Hello.
               result success "Hello."
               the model heard two: true
               late: Connection"#,
        ),
    ]
}
