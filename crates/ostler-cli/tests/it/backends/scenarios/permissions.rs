//! Permissions.

use futures::FutureExt as _;
use ostler::proto::permission::PermissionMode;
use ostler::{Answers, Decision};
use ostler_testkit::reply;
use serde_json::json;

use super::super::stage::Backend;
use super::super::{Scenario, scenario};
use super::{deciding, replies, touch, touch_script};

const RUNS: &str = r#"init
    call Bash {"command":"touch made.txt","description":"Make it"}
    tool ok
    text Done.
    result success "Done."
    made.txt is there
    * may Bash?"#;

fn question() -> serde_json::Value {
    json!({"questions": [{
        "question": "Which color?",
        "header": "Color",
        "multiSelect": false,
        "options": [
            {"label": "Red", "description": "warm"},
            {"label": "Blue", "description": "cool"},
        ],
    }]})
}

pub(super) fn all() -> Vec<Scenario> {
    vec![
        scenario(
            "allow",
            touch_script(),
            |stage| {
                async {
                    stage.query("Run it", deciding(stage, Decision::allow())).await;
                    stage.note_file("made.txt");
                }
                .boxed()
            },
            RUNS,
        ),
        scenario(
            "allow-updated",
            touch_script(),
            |stage| {
                async {
                    let other = json!({"command": "touch other.txt"});
                    let decision = Decision::allow().with_input(other);
                    stage.query("Run it", deciding(stage, decision)).await;
                    stage.note_file("made.txt");
                    stage.note_file("other.txt");
                }
                .boxed()
            },
            r#"init
               call Bash {"command":"touch made.txt","description":"Make it"}
               tool ok
               text Done.
               result success "Done."
               made.txt is not there
               other.txt is there
               * may Bash?"#,
        ),
        scenario(
            "allow-perms",
            replies(vec![touch("made.txt"), touch("made.txt"), reply().text("Done.")]),
            |stage| {
                async {
                    let log = stage.asked.clone();
                    let options = stage.options().on_permission(move |request| {
                        log.add(format!("may {}?", request.tool_name));
                        let rules = request.suggestions();
                        async move { Decision::allow().with_rules(rules) }
                    });
                    stage.query("Run it twice", options).await;
                }
                .boxed()
            },
            r#"init
               call Bash {"command":"touch made.txt","description":"Make it"}
               tool ok
               call Bash {"command":"touch made.txt","description":"Make it"}
               tool ok
               text Done.
               result success "Done."
               * may Bash?"#,
        ),
        scenario(
            "deny",
            touch_script(),
            |stage| {
                async {
                    stage.query("Run it", deciding(stage, Decision::deny("Not today."))).await;
                    stage.note_file("made.txt");
                }
                .boxed()
            },
            r#"init
               call Bash {"command":"touch made.txt","description":"Make it"}
               tool failed
               text Done.
               result success "Done." denied=1
               made.txt is not there
               * may Bash?"#,
        ),
        scenario(
            "deny-interrupt",
            touch_script(),
            |stage| {
                async {
                    let decision = Decision::deny("Not today.").and_stop();
                    stage.query("Run it", deciding(stage, decision)).await;
                    stage.note_file("made.txt");
                }
                .boxed()
            },
            r#"init
               call Bash {"command":"touch made.txt","description":"Make it"}
               tool failed
               interrupted
               result error_during_execution error denied=1
               made.txt is not there
               * may Bash?"#,
        ),
        scenario(
            "perm-throw",
            touch_script(),
            |stage| {
                async {
                    let log = stage.asked.clone();
                    let options = stage.options().on_permission(move |request| {
                        log.add(format!("may {}?", request.tool_name));
                        let panics = request.tool_name == "Bash";
                        assert!(!panics, "this callback panics on purpose");
                        async { Decision::allow() }
                    });
                    stage.query("Run it", options).await;
                    stage.note_file("made.txt");
                }
                .boxed()
            },
            r#"init
               call Bash {"command":"touch made.txt","description":"Make it"}
               tool failed
               text Done.
               result success "Done." denied=1
               made.txt is not there
               * may Bash?"#,
        ),
        scenario(
            "noperm",
            touch_script(),
            |stage| {
                async {
                    stage.query("Run it", stage.options()).await;
                    stage.note_file("made.txt");
                }
                .boxed()
            },
            r#"init
               call Bash {"command":"touch made.txt","description":"Make it"}
               tool failed
               text Done.
               result success "Done." denied=1
               made.txt is not there"#,
        ),
        scenario(
            "parallel",
            replies(vec![
                reply()
                    .tool_use("Bash", json!({"command": "touch a.txt", "description": "Make a"}))
                    .tool_use("Bash", json!({"command": "touch b.txt", "description": "Make b"})),
                reply().text("Done."),
            ]),
            |stage| {
                async {
                    stage.query("Run both", deciding(stage, Decision::allow())).await;
                    stage.note_file("a.txt");
                    stage.note_file("b.txt");
                }
                .boxed()
            },
            r#"init
               call Bash {"command":"touch a.txt","description":"Make a"}
               call Bash {"command":"touch b.txt","description":"Make b"}
               tool ok
               tool ok
               text Done.
               result success "Done."
               a.txt is there
               b.txt is there
               * may Bash?
               * may Bash?"#,
        ),
        // A call runs as soon as it is complete, while the response still streams.
        scenario(
            "slowtools",
            replies(vec![
                touch("one.txt")
                    .tool_use("Bash", json!({"command": "touch two.txt", "description": "Two"}))
                    // Held in the middle of the second call.
                    .gate(8, "between"),
                reply().text("Done."),
            ]),
            |stage| {
                async {
                    let mut client = stage.client(deciding(stage, Decision::allow())).await;
                    client.send("Run both").await.unwrap();
                    stage.within("the response", stage.api.gate("between").reached()).await;
                    let one = stage.file("one.txt");
                    let running = async {
                        while !one.exists() {
                            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
                        }
                    };
                    // The older program waits for the end of the response, so this must not wait for the call.
                    let is_early = stage.backend != Backend::Vendor50;
                    if is_early {
                        stage.within("the first call", running).await;
                    }
                    stage.note(format!("runs early: {is_early}"));
                    if is_early {
                        stage.tell_until(&mut client, "tool ok").await;
                    }
                    stage.api.gate("between").release();
                    stage.turn(&mut client).await;
                    stage.note_file("two.txt");
                }
                .boxed()
            },
            r#"runs early: true
               init
               call Bash {"command":"touch one.txt","description":"Make it"}
               tool ok
               call Bash {"command":"touch two.txt","description":"Two"}
               tool ok
               text Done.
               result success "Done."
               two.txt is there
               * may Bash?
               * may Bash?"#,
        ),
        scenario(
            "ask",
            replies(vec![
                reply().tool_use("AskUserQuestion", question()),
                reply().text("{{tool_result}}"),
            ]),
            |stage| {
                async {
                    let log = stage.asked.clone();
                    let options = deciding(stage, Decision::allow()).on_question(move |request| {
                        let text = request.questions[0].question.clone();
                        log.add(text.clone());
                        async move { Answers::new().answer(text, ["Blue"]) }
                    });
                    let mut client = stage.client(options).await;
                    let result = stage.within("the result", client.prompt("Ask me")).await.unwrap();
                    let heard = result.result.unwrap_or_default().contains("Blue");
                    stage.note(format!("the model heard the answer: {heard}"));
                    drop(client);
                }
                .boxed()
            },
            "the model heard the answer: true
             * Which color?",
        ),
        scenario(
            "ask-deny",
            replies(vec![reply().tool_use("AskUserQuestion", question()), reply().text("Thanks.")]),
            |stage| {
                async {
                    stage.query("Ask me", deciding(stage, Decision::allow())).await;
                }
                .boxed()
            },
            r#"init
               call AskUserQuestion {"questions":[{"question":"Which color?","header":"Color","multiSelect":false,"options":[{"label":"Red","description":"warm"},{"label":"Blue","description":"cool"}]}]}
               tool failed
               text Thanks.
               result success "Thanks." denied=1"#,
        ),
        scenario(
            "plan",
            replies(vec![
                reply().tool_use("ExitPlanMode", json!({"plan": "1. do it"})),
                reply().text("Planned."),
            ]),
            |stage| {
                async {
                    let options =
                        deciding(stage, Decision::allow()).permission_mode(PermissionMode::Plan);
                    stage.query("Plan it", options).await;
                }
                .boxed()
            },
            r#"init
               call ExitPlanMode {"plan":"1. do it"}
               tool ok
               text Planned.
               result success "Planned."
               * may ExitPlanMode?"#,
        ),
        scenario(
            "allowed-tools",
            touch_script(),
            |stage| {
                async {
                    let options = deciding(stage, Decision::deny("no")).allow(["Bash(touch:*)"]);
                    stage.query("Run it", options).await;
                    stage.note_file("made.txt");
                }
                .boxed()
            },
            r#"init
               call Bash {"command":"touch made.txt","description":"Make it"}
               tool ok
               text Done.
               result success "Done."
               made.txt is there"#,
        ),
        scenario(
            "disallowed-rule",
            touch_script(),
            |stage| {
                async {
                    let options = deciding(stage, Decision::allow()).deny(["Bash(touch:*)"]);
                    stage.query("Run it", options).await;
                    stage.note_file("made.txt");
                }
                .boxed()
            },
            r#"init
               call Bash {"command":"touch made.txt","description":"Make it"}
               tool failed
               text Done.
               result success "Done." denied=1
               made.txt is not there"#,
        ),
        scenario(
            "bypass",
            touch_script(),
            |stage| {
                async {
                    let mut options = deciding(stage, Decision::deny("no"))
                        .permission_mode(PermissionMode::BypassPermissions);
                    options.permissions.allow_dangerously_skip_permissions = true;
                    stage.query("Run it", options).await;
                    stage.note_file("made.txt");
                }
                .boxed()
            },
            r#"init
               call Bash {"command":"touch made.txt","description":"Make it"}
               tool ok
               text Done.
               result success "Done."
               made.txt is there"#,
        ),
    ]
}
