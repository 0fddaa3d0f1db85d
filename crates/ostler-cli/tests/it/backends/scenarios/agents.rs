//! Subagents, commands and skills.

use std::fs;

use futures::FutureExt as _;
use ostler::options::SettingSource;
use ostler::proto::agent::AgentDefinition;
use ostler::{Decision, Message, Options, query};
use ostler_testkit::{Script, reply, when};
use serde_json::{Value, json};

use super::super::stage::Stage;
use super::super::{Scenario, scenario};
use super::deciding;

/// The main conversation delegates work to a subagent, which runs a command.
fn delegating(in_background: bool) -> Script {
    let task = json!({
        "description": "Do sub work", "prompt": "SUBWORK please", "subagent_type": "worker",
        "run_in_background": in_background,
    });
    let touch = json!({"command": "touch made.txt", "description": "Make it"});
    Script::new()
        .rule(
            when().system_contains("You are the worker").has_tool_result(false),
            reply().text("Working.").tool_use("Bash", touch),
        )
        .rule(when().system_contains("You are the worker"), reply().text("Report."))
        // Both of the vendor's programs know this name.
        .rule(when().turn(0), reply().tool_use("Task", task))
        .rule(when(), reply().text("Main done."))
}

fn with_worker(stage: &Stage) -> Options {
    let worker = AgentDefinition {
        description: "works".to_owned(),
        prompt: "You are the worker.".to_owned(),
        tools: Some(vec!["Bash".to_owned()]),
        ..AgentDefinition::default()
    };
    deciding(stage, Decision::allow()).agent("worker", worker)
}

fn put(stage: &Stage, name: &str, text: &str) {
    let path = stage.file(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn in_project(stage: &Stage) -> Options {
    let mut options = stage.options();
    options.context.setting_sources = vec![SettingSource::Project];
    options
}

/// The last text of the last prompt.
fn last_text(stage: &Stage) -> String {
    let requests = stage.requests();
    let last = requests.last().unwrap().messages().last().unwrap().clone();
    match &last["content"] {
        Value::Array(blocks) => blocks.last().unwrap()["text"].as_str().unwrap_or("").to_owned(),
        other => other.as_str().unwrap_or("").to_owned(),
    }
}

/// Sends prompts one after the other, and notes whether the model or the engine answered.
async fn answered(stage: &Stage, prompts: &[&str]) {
    let mut client = stage.client(stage.options()).await;
    let mut first = None;
    for prompt in prompts {
        let before = stage.requests().len();
        client.send(*prompt).await.unwrap();
        let result = loop {
            let message = stage.within("a message", client.next()).await.unwrap().unwrap();
            if let Message::Result(result) = message {
                break result;
            }
        };
        let who = if stage.requests().len() > before { "the model" } else { "the engine" };
        let first = first.get_or_insert_with(|| result.session_id.clone());
        let session = if *first == result.session_id { "same" } else { "new" };
        stage.note(format!("{prompt}: {who}, {session} session"));
    }
    stage.close(client).await;
}

pub(super) fn all() -> Vec<Scenario> {
    vec![
        scenario(
            "agent",
            delegating(false),
            |stage| {
                async {
                    let mut client = stage.client(with_worker(stage)).await;
                    client.send("Delegate").await.unwrap();
                    stage.turn(&mut client).await;
                    stage.close(client).await;
                    stage.note_file("made.txt");
                }
                .boxed()
            },
            r#"init
               call Task {"description":"Do sub work","prompt":"SUBWORK please","subagent_type":"worker","run_in_background":false}
               task started
               note
               call Bash {"command":"touch made.txt","description":"Make it"}
               tool ok
               task completed
               tool ok
               text Main done.
               result success "Main done."
               made.txt is there
               * may Bash?"#,
        ),
        // The question may come after the first result, and is still answered.
        scenario(
            "agentbg",
            delegating(true),
            |stage| {
                async {
                    let mut messages = query("Delegate", with_worker(stage));
                    let mut n_results = 0;
                    while let Some(message) = stage.within("a message", messages.next()).await {
                        n_results += usize::from(matches!(message.unwrap(), Message::Result(_)));
                    }
                    stage.note(format!("{n_results} results"));
                    stage.note_file("made.txt");
                }
                .boxed()
            },
            "2 results
             made.txt is there
             * may Bash?",
        ),
        scenario(
            "slash",
            Script::new().rule(when(), reply().text("Reply.")),
            |stage| {
                answered(stage, &["Hello", "/context", "/nosuch hello", "/clear", "After"]).boxed()
            },
            "Hello: the model, same session
             /context: the engine, same session
             /nosuch hello: the model, same session
             /clear: the engine, new session
             After: the model, new session",
        ),
        scenario(
            "command-file",
            Script::new().rule(when(), reply().text("Reply.")),
            |stage| {
                async {
                    let text = "---\ndescription: Reviews\nallowed-tools: Bash(echo:*)\n---\n\
                                All $ARGUMENTS, first $0, out !`echo hi-$1`";
                    put(stage, ".claude/commands/git/review.md", text);
                    stage.query("/git:review a.txt b.txt", in_project(stage)).await;
                    stage.note(last_text(stage));
                }
                .boxed()
            },
            r#"init
               text Reply.
               result success "Reply."
               All a.txt b.txt, first a.txt, out hi-b.txt"#,
        ),
        scenario(
            "skill",
            Script::new()
                .rule(when().has_tool_result(false), {
                    reply().tool_use("Skill", json!({"skill": "greet", "args": "Bob"}))
                })
                .rule(when(), reply().text("Reply.")),
            |stage| {
                async {
                    let text =
                        "---\nname: greet\ndescription: Greets people\n---\nHello $ARGUMENTS.";
                    put(stage, ".claude/skills/greet/SKILL.md", text);
                    stage.query("Greet him", in_project(stage).allow(["Skill"])).await;
                    let requests = stage.requests();
                    let read = requests.last().unwrap().body.to_string().contains("Hello Bob.");
                    stage.note(format!("the model has read it: {read}"));
                }
                .boxed()
            },
            r#"init
               call Skill {"skill":"greet","args":"Bob"}
               tool ok
               note
               text Reply.
               result success "Reply."
               the model has read it: true"#,
        ),
    ]
}
