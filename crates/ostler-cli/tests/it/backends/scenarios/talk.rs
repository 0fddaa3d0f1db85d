//! Prompts and answers.

use futures::FutureExt as _;
use futures::StreamExt as _;
use ostler::proto::message::User;
use ostler_testkit::{Script, Usage, reply, when};
use serde_json::json;

use super::super::{Scenario, scenario, story};
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
        // One prompt by a query and by a client: the same messages, from the first to the result.
        scenario(
            "query-and-client",
            Script::new()
                .rule(
                    when().turn(0),
                    reply().text("I look.").tool_use("Bash", json!({"command": "echo hello"})),
                )
                .rule(when(), reply().thinking("Hm.", "c2lnbmVk").text("Done.")),
            |stage| {
                async {
                    let options = || stage.options().allow(["Bash"]).partial_messages();
                    let mut messages = ostler::query("Look", options());
                    let (mut by_query, mut by_client) = (Vec::new(), Vec::new());
                    while let Some(message) = stage.within("a message", messages.next()).await {
                        by_query.extend(story::lines(&message.unwrap()));
                    }
                    let mut client = stage.client(options()).await;
                    client.send("Look").await.unwrap();
                    let mut turn = client.turn();
                    while let Some(message) = stage.within("a message", turn.next()).await {
                        by_client.extend(story::lines(&message.unwrap()));
                    }
                    stage.close(client).await;
                    // A tool runs while its response still streams, so its result may come before the last deltas.
                    let parts = |lines: Vec<String>| -> (Vec<_>, Vec<_>) {
                        lines.into_iter().partition(|line| line.starts_with("delta"))
                    };
                    let (by_query, by_client) = (parts(by_query), parts(by_client));
                    assert_eq!(by_query, by_client);
                    by_client.1.into_iter().for_each(|line| stage.note(line));
                }
                .boxed()
            },
            r#"init
               text I look.
               call Bash {"command":"echo hello"}
               tool ok
               thinking
               text Done.
               result success "Done.""#,
        ),
        // Prompts sent while the agent is busy wait, and are then answered together.
        scenario(
            "multi-burst",
            Script::new()
                .rule(when().turn(0), reply().text("One.").gate(1, "busy"))
                .rule(when(), reply().text("The others.")),
            |stage| {
                async {
                    let mut client = stage.client(stage.options()).await;
                    client.send("one").await.unwrap();
                    stage.within("the response", stage.api.gate("busy").reached()).await;
                    for prompt in ["two", "three"] {
                        client.send(prompt).await.unwrap();
                    }
                    // The answer shows that everything before it was read.
                    let handle = client.handle();
                    stage.within("a sign of life", handle.mcp_server_status()).await.unwrap();
                    stage.api.gate("busy").release();
                    stage.turn(&mut client).await;
                    stage.turn(&mut client).await;
                    let second = stage.requests()[1].body["messages"].to_string();
                    if !second.contains("three") {
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
               text The others.
               result success "The others.""#,
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
