//! Tasks in the background.

use futures::FutureExt as _;
use ostler::Decision;
use ostler::Message;
use ostler::proto::message::System;
use ostler::proto::message::system::TaskOutcome;
use ostler_testkit::{Script, reply, when};
use serde_json::json;

use super::super::{Scenario, scenario};
use super::deciding;

fn in_background(command: &str) -> Script {
    let call = json!({"command": command, "description": "Wait", "run_in_background": true});
    Script::new()
        .rule(when().turn(0), reply().tool_use("Bash", call))
        .rule(when().turn(1), reply().text("It runs."))
        .rule(
            when().turn(2),
            reply().tool_use("Bash", json!({"command": "touch after.txt", "description": "After"})),
        )
        .rule(when().turn(3), reply().text("It ran."))
}

pub(super) fn all() -> Vec<Scenario> {
    vec![
        // The input stays open, so a question caused by the end of the task is still answered.
        scenario(
            "bgbash",
            in_background("sleep 1; touch made.txt"),
            |stage| {
                async {
                    stage.query("Run it", deciding(stage, Decision::allow())).await;
                    stage.note_file("made.txt");
                    stage.note_file("after.txt");
                }
                .boxed()
            },
            r#"init
               call Bash {"command":"sleep 1; touch made.txt","description":"Wait","run_in_background":true}
               task started
               tool ok
               text It runs.
               result success "It runs."
               task completed
               init
               call Bash {"command":"touch after.txt","description":"After"}
               tool ok
               text It ran.
               result success "It ran."
               made.txt is there
               after.txt is there
               * may Bash?
               * may Bash?"#,
        ),
        scenario(
            "bgstop",
            in_background("sleep 60"),
            |stage| {
                async {
                    let mut client = stage.client(stage.options().allow(["Bash"])).await;
                    client.send("Run it").await.unwrap();
                    let mut task = None;
                    while let Some(message) = stage.within("a message", client.next()).await {
                        match message.unwrap() {
                            Message::System(System::TaskStarted(started)) => {
                                task = Some(started.task_id);
                            }
                            Message::Result(_) => break,
                            _ => {}
                        }
                    }
                    let stopping = client.handle();
                    stage.within("the stop", stopping.stop_task(task.unwrap())).await.unwrap();
                    client.send("Go on").await.unwrap();
                    let mut told = false;
                    while let Some(message) = stage.within("a message", client.next()).await {
                        match message.unwrap() {
                            Message::System(System::TaskNotification(task)) => {
                                told = task.status == TaskOutcome::Stopped;
                            }
                            Message::Result(_) => break,
                            _ => {}
                        }
                    }
                    stage.note(format!("the end of the task is told: {told}"));
                    drop(client);
                }
                .boxed()
            },
            "the end of the task is told: true",
        ),
    ]
}
