//! Prompts and answers.

use futures::FutureExt as _;
use futures::StreamExt as _;
use ostler::proto::message::User;
use ostler_testkit::{Script, Usage, reply};
use serde_json::json;

use super::super::{Scenario, scenario};
use super::replies;

fn prompts(texts: &'static [&'static str]) -> futures::stream::BoxStream<'static, User> {
    futures::stream::iter(texts.iter().map(|text| User::prompt(*text))).boxed()
}

pub(super) fn all() -> Vec<Scenario> {
    vec![
        scenario(
            "text",
            replies(vec![reply().text("Hello.")]),
            |stage| async { stage.query("Say hello", stage.options()).await }.boxed(),
            r#"init
               text Hello.
               result success "Hello.""#,
        ),
        scenario(
            "text-stream",
            replies(vec![reply().text("Hello.")]),
            |stage| async { stage.query(prompts(&["Say hello"]), stage.options()).await }.boxed(),
            r#"init
               text Hello.
               result success "Hello.""#,
        ),
        scenario(
            "nothing-to-say",
            Script::new(),
            |stage| async { stage.query(prompts(&[]), stage.options()).await }.boxed(),
            "",
        ),
        scenario(
            "multi",
            replies(vec![reply().text("One."), reply().text("Two.")]),
            |stage| {
                async {
                    let mut client = stage.client(stage.options()).await;
                    for prompt in ["first", "second"] {
                        client.send(prompt).await.unwrap();
                        stage.turn(&mut client).await;
                    }
                    stage.close(client).await;
                }
                .boxed()
            },
            r#"init
               text One.
               result success "One."
               init
               text Two.
               result success "Two.""#,
        ),
        scenario(
            "partial",
            replies(vec![reply().text_pieces(["Hel", "lo."])]),
            |stage| {
                async { stage.query("Say hello", stage.options().partial_messages()).await }.boxed()
            },
            r#"init
               delta Hel
               delta lo.
               text Hello.
               delta end
               result success "Hello.""#,
        ),
        scenario(
            "thinking",
            replies(vec![reply().thinking("Hm.", "c2lnbmVk").text("Hello.")]),
            |stage| async { stage.query("Say hello", stage.options()).await }.boxed(),
            r#"init
               thinking
               text Hello.
               result success "Hello.""#,
        ),
        scenario(
            "structured",
            replies(vec![reply().tool_use("StructuredOutput", json!({"answer": "42"}))]),
            |stage| {
                async {
                    let mut options = stage.options();
                    options.output.schema = Some(json!({
                        "type": "object",
                        "properties": {"answer": {"type": "string"}},
                        "required": ["answer"],
                    }));
                    stage.query("Answer", options).await;
                }
                .boxed()
            },
            r#"init
               call StructuredOutput {"answer":"42"}
               tool ok
               result success "{\"answer\":\"42\"}" = {"answer":"42"}"#,
        ),
        scenario(
            "structbad",
            replies(vec![
                reply().tool_use("StructuredOutput", json!({"answer": 42})),
                reply().tool_use("StructuredOutput", json!({"answer": "42"})),
                reply().text("Never."),
            ]),
            |stage| {
                async {
                    let mut options = stage.options();
                    options.output.schema = Some(json!({
                        "type": "object",
                        "properties": {"answer": {"type": "string"}},
                        "required": ["answer"],
                    }));
                    stage.query("Answer", options).await;
                }
                .boxed()
            },
            r#"init
               call StructuredOutput {"answer":42}
               tool failed
               call StructuredOutput {"answer":"42"}
               tool ok
               result success "{\"answer\":\"42\"}" = {"answer":"42"}"#,
        ),
        scenario(
            "budget",
            replies(vec![
                reply().text("Dear.").usage(Usage::tokens(1_000_000, 100_000)),
                reply().text("Never."),
            ]),
            |stage| {
                async {
                    stage.query("Say hello", stage.options().max_budget_usd(0.001)).await;
                }
                .boxed()
            },
            "init
             text Dear.
             result error_max_budget_usd error",
        ),
    ]
}
