//! MCP servers: inside the host and as programs.

use futures::FutureExt as _;
use ostler::mcp::{Server, tool};
use ostler::proto::mcp::McpServerConfig;
use ostler::{Client, Decision, Options};
use ostler_testkit::{Script, reply, when};
use serde_json::{Value, json};

use super::super::stage::Stage;
use super::super::{Scenario, scenario};
use super::{deciding, replies};
use crate::mcp::SERVER;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Add {
    a: i64,
    b: i64,
}

fn calc() -> Server {
    let add = tool("add", "Adds two numbers", |it: Add| async move {
        if it.a < 0 { Err("no negative numbers") } else { Ok(it.a + it.b) }
    });
    Server::new("calc", "1.0.0").tool(add)
}

/// One tool call, then an answer.
fn calling(tool: &str, input: Value) -> Script {
    replies(vec![reply().tool_use(tool, input), reply().text("Done.")])
}

/// Notes whether the model received a text. Some backends add their own text to results.
fn note_heard(stage: &Stage, words: &str) {
    let heard = stage.requests().pop().unwrap().body["messages"].to_string().contains(words);
    stage.note(format!("the model heard {words}: {heard}"));
}

fn program() -> McpServerConfig {
    let env = json!({"GREETED": "you"});
    serde_json::from_value(json!({"command": "/bin/sh", "args": ["-c", SERVER], "env": env}))
        .unwrap()
}

/// Notes the status of the servers.
async fn note_status(stage: &Stage, client: &Client) {
    let handle = client.handle();
    let status = stage.within("the status", handle.mcp_server_status()).await.unwrap();
    let mut lines: Vec<String> = status
        .mcp_servers
        .iter()
        .map(|server| {
            let server = serde_json::to_value(server).unwrap();
            let tools = server["tools"].as_array().map_or(0, Vec::len);
            let text = |name: &str| server[name].as_str().unwrap_or("-").to_owned();
            format!("{} {} {} tools={tools}", text("name"), text("status"), text("scope"))
        })
        .collect();
    lines.sort();
    lines.into_iter().for_each(|line| stage.note(line));
}

pub(super) fn all() -> Vec<Scenario> {
    vec![
        scenario(
            "mcp",
            calling("mcp__calc__add", json!({"a": 2, "b": 3})),
            |stage| {
                async {
                    let options = stage.options().server(calc()).allow(["mcp__calc__add"]);
                    stage.query("Add them", options).await;
                    note_heard(stage, "5");
                }
                .boxed()
            },
            r#"init
               call mcp__calc__add {"a":2,"b":3}
               tool ok
               text Done.
               result success "Done."
               the model heard 5: true"#,
        ),
        scenario(
            "mcp-ask",
            calling("mcp__calc__add", json!({"a": 2, "b": 3})),
            |stage| {
                async {
                    let options = deciding(stage, Decision::allow()).server(calc());
                    stage.query("Add them", options).await;
                }
                .boxed()
            },
            r#"init
               call mcp__calc__add {"a":2,"b":3}
               tool ok
               text Done.
               result success "Done."
               * may mcp__calc__add?"#,
        ),
        scenario(
            "mcp-error",
            calling("mcp__calc__add", json!({"a": -2, "b": 3})),
            |stage| {
                async {
                    let options = stage.options().server(calc()).allow(["mcp__calc__add"]);
                    stage.query("Add them", options).await;
                    note_heard(stage, "no negative numbers");
                }
                .boxed()
            },
            r#"init
               call mcp__calc__add {"a":-2,"b":3}
               tool failed
               text Done.
               result success "Done."
               the model heard no negative numbers: true"#,
        ),
        scenario(
            "mcp-many",
            {
                let calls = (0..10).fold(reply(), |calls, n| {
                    calls.tool_use("mcp__calc__add", json!({"a": n, "b": 1}))
                });
                Script::new().rule(when().turn(0), calls).rule(when(), reply().text("All."))
            },
            |stage| {
                async {
                    let options = stage.options().server(calc()).allow(["mcp__calc__add"]);
                    let mut client = stage.client(options).await;
                    let result = stage.within("the result", client.prompt("Add")).await.unwrap();
                    stage.note(format!("{:?}", result.result.unwrap_or_default()));
                    let last = stage.requests().pop().unwrap().body["messages"].to_string();
                    let n_answered = last.matches("\"tool_result\"").count();
                    stage.note(format!("{n_answered} results"));
                    stage.close(client).await;
                }
                .boxed()
            },
            r#""All."
               10 results"#,
        ),
        scenario(
            "mcp-program",
            calling("mcp__shell__greet", json!({})),
            |stage| {
                async {
                    let options = stage.options();
                    let options =
                        options.mcp_server("shell", program()).allow(["mcp__shell__greet"]);
                    stage.query("Greet", options).await;
                    note_heard(stage, "hello you");
                }
                .boxed()
            },
            r#"init
               call mcp__shell__greet {}
               tool ok
               text Done.
               result success "Done."
               the model heard hello you: true"#,
        ),
        scenario(
            "opt-env-program",
            calling("mcp__shell__greet", json!({})),
            |stage| {
                async {
                    let mut server = program();
                    if let McpServerConfig::Stdio(server) = &mut server {
                        server.env = None;
                    }
                    let options = stage.options().env("GREETED", "everybody");
                    let options = options.mcp_server("shell", server).allow(["mcp__shell__greet"]);
                    stage.query("Greet", options).await;
                    note_heard(stage, "hello everybody");
                }
                .boxed()
            },
            r#"init
               call mcp__shell__greet {}
               tool ok
               text Done.
               result success "Done."
               the model heard hello everybody: true"#,
        ),
        scenario(
            "mcp-control",
            replies(vec![reply().text("Hello.")]),
            |stage| {
                async {
                    let broken = serde_json::from_value(json!({"command": "/no/such"})).unwrap();
                    let options = stage.options().mcp_server("shell", program());
                    let options: Options = options.mcp_server("broken", broken);
                    let mut client = stage.client(options).await;
                    stage.within("the result", client.prompt("Hello")).await.unwrap();
                    note_status(stage, &client).await;
                    let handle = client.handle();
                    let off = handle.toggle_mcp_server("shell", false);
                    stage.within("the switch", off).await.unwrap();
                    note_status(stage, &client).await;
                    let on = handle.toggle_mcp_server("shell", true);
                    stage.within("the switch", on).await.unwrap();
                    let again = handle.reconnect_mcp_server("shell");
                    stage.within("the connection", again).await.unwrap();
                    note_status(stage, &client).await;
                    let nobody = stage.within("the answer", handle.reconnect_mcp_server("nobody"));
                    stage.note(format!("nobody reconnects: {}", nobody.await.is_ok()));
                    stage.close(client).await;
                }
                .boxed()
            },
            "broken failed dynamic tools=0
             shell connected dynamic tools=4
             broken failed dynamic tools=0
             shell disabled dynamic tools=0
             broken failed dynamic tools=0
             shell connected dynamic tools=4
             nobody reconnects: false",
        ),
        scenario(
            "elicit",
            calling("mcp__shell__wonder", json!({})),
            |stage| {
                async {
                    let log = stage.asked.clone();
                    let options = stage
                        .options()
                        .mcp_server("shell", program())
                        .allow(["mcp__shell__wonder"])
                        .on_elicitation(move |question| {
                            log.add(format!(
                                "{} asks: {}",
                                question.mcp_server_name, question.message
                            ));
                            let content: Value = json!({"name": "bob"});
                            async move { ostler::Elicited::accept().with_content(content) }
                        });
                    stage.query("Wonder", options).await;
                    note_heard(stage, "you are bob");
                }
                .boxed()
            },
            r#"init
               call mcp__shell__wonder {}
               tool ok
               text Done.
               result success "Done."
               the model heard you are bob: true
               * shell asks: Your name?"#,
        ),
    ]
}
