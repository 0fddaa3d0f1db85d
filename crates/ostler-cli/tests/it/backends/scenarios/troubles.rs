//! Errors of the model and the API, and limits.

use futures::FutureExt as _;
use ostler::Decision;
use ostler_testkit::{Action, Reply, Script, Status, reply, when};
use serde_json::json;

use super::super::{Act, Scenario, scenario};
use super::{deciding, replies, touch, touch_script};

fn failing(code: u16, kind: &str) -> Script {
    let status = Status::new(code).error_type(kind).message("no").retry_after(0);
    Script::new().rule(when(), reply().status(status))
}

/// A failure, then an answer.
fn failing_once(code: u16) -> Script {
    let status = Status::new(code).retry_after(0);
    replies(vec![reply().status(status), reply().text("Hello.")])
}

const HELLO: &str = r#"init
    text Hello.
    result success "Hello.""#;

const SAY_HELLO: Act = |stage| async { stage.query("Say hello", stage.options()).await }.boxed();
const RUN_IT: Act =
    |stage| async { stage.query("Run it", deciding(stage, Decision::allow())).await }.boxed();

fn then_done(call: Reply) -> Script {
    replies(vec![call, reply().text("Done.")])
}

pub(super) fn all() -> Vec<Scenario> {
    vec![
        scenario(
            "maxturns",
            replies(vec![touch("a.txt"), touch("b.txt")]),
            |stage| {
                async {
                    let options = deciding(stage, Decision::allow()).max_turns(1);
                    stage.query("Run it", options).await;
                }
                .boxed()
            },
            r#"init
               call Bash {"command":"touch a.txt","description":"Make it"}
               tool ok
               result error_max_turns error
               * may Bash?"#,
        ),
        scenario(
            "err-e400",
            failing(400, "invalid_request_error"),
            SAY_HELLO,
            "init
             trouble unknown
             result success error 400",
        ),
        scenario(
            "err-e401",
            failing(401, "authentication_error"),
            SAY_HELLO,
            "init
             trouble authentication_failed
             result success error 401",
        ),
        scenario("err-e429", failing_once(429), SAY_HELLO, HELLO),
        scenario("err-e529", failing_once(529), SAY_HELLO, HELLO),
        scenario(
            "refusal",
            replies(vec![reply().text("I would rather not.").stop_reason("refusal")]),
            SAY_HELLO,
            "init
             text I would rather not.
             note
             text I would rather not.
             trouble invalid_request
             result success error",
        ),
        scenario(
            "unknown_tool",
            then_done(reply().tool_use("Nope", json!({"a": 1}))),
            RUN_IT,
            r#"init
               call Nope {"a":1}
               tool failed
               text Done.
               result success "Done.""#,
        ),
        scenario(
            "bad_input",
            then_done(reply().tool_use("Bash", json!({"commando": "ls"}))),
            RUN_IT,
            r#"init
               call Bash {"commando":"ls"}
               tool failed
               text Done.
               result success "Done.""#,
        ),
        scenario(
            "midfail",
            replies(vec![
                reply().text_pieces(["Hel", "lo."]).interrupt(3, Action::overloaded()),
                reply().text("Hello."),
            ]),
            SAY_HELLO,
            HELLO,
        ),
        scenario(
            "tool-gone",
            touch_script(),
            |stage| {
                async {
                    let options = deciding(stage, Decision::allow()).deny(["Bash"]);
                    stage.query("Run it", options).await;
                    let request = stage.requests().remove(0);
                    let mut tools = request.body["tools"].as_array().unwrap().iter();
                    let offered = tools.any(|tool| tool["name"] == "Bash");
                    stage.note(format!("Bash is offered: {offered}"));
                    stage.note_file("made.txt");
                }
                .boxed()
            },
            r#"init
               call Bash {"command":"touch made.txt","description":"Make it"}
               tool failed
               text Done.
               result success "Done."
               Bash is offered: false
               made.txt is not there"#,
        ),
    ]
}
