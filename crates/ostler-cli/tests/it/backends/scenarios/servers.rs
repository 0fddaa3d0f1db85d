//! MCP servers in the host that are added, removed and used by subagents.

use futures::FutureExt as _;
use ostler::Options;
use ostler::mcp::{Server, tool};
use ostler_testkit::{Script, reply, when};
use serde_json::json;

use super::super::stage::Stage;
use super::super::{Scenario, scenario};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Add {
    a: i64,
    b: i64,
}

/// A server with one tool that notes its calls.
fn calc(stage: &Stage) -> Server {
    let log = stage.asked.clone();
    let add = tool("add", "Adds two numbers", move |it: Add| {
        log.add(format!("add {} {}", it.a, it.b));
        async move { Ok::<_, String>(it.a + it.b) }
    });
    Server::new("calc", "1.0.0").tool(add)
}

fn served(stage: &Stage) -> Options {
    stage.options().server(calc(stage)).allow(["mcp__calc__add"])
}

fn adds(a: i64, b: i64) -> Script {
    Script::new()
        .rule(when().turn(0), reply().tool_use("mcp__calc__add", json!({"a": a, "b": b})))
        .rule(when(), reply().text("Done."))
}

/// The conversation delegates the sum to a subagent.
fn delegates() -> Script {
    let task = json!({"description": "Add", "prompt": "Please add them", "subagent_type": "general-purpose"});
    Script::new()
        .rule(
            when().prompt_contains("Please add them").turn(0),
            reply().tool_use("mcp__calc__add", json!({"a": 2, "b": 3})),
        )
        .rule(when().tool_result_of("mcp__calc__add"), reply().text("The sum is 5."))
        .rule(
            when().prompt_contains("Delegate").turn(0).offers_tool("Agent"),
            reply().tool_use("Agent", task.clone()),
        )
        .rule(when().prompt_contains("Delegate").turn(0), reply().tool_use("Task", task))
        .rule(when(), reply().text("Done."))
}

pub(super) fn all() -> Vec<Scenario> {
    vec![
        scenario(
            "mcp-strict",
            Script::new().rule(when(), reply().text("Hello.")),
            |stage| {
                async {
                    let configured =
                        json!({"mcpServers": {"other": {"command": "/no/such/server"}}});
                    std::fs::write(stage.file(".mcp.json"), configured.to_string()).unwrap();
                    let mut options = served(stage);
                    options.tools.strict_mcp = true;
                    options.context.setting_sources = vec![ostler::options::SettingSource::Project];
                    let mut client = stage.client(options).await;
                    stage.within("the result", client.prompt("Say hello")).await.unwrap();
                    let handle = client.handle();
                    let status = stage.within("the status", handle.mcp_server_status()).await;
                    let status = status.unwrap();
                    let names = status.mcp_servers.iter().map(|server| server.name.clone());
                    stage.note(names.collect::<Vec<_>>().join(" "));
                }
                .boxed()
            },
            "calc",
        ),
        scenario(
            "mcp-set-servers",
            adds(2, 3),
            |stage| {
                async {
                    let options = stage.options().allow(["mcp__calc__add"]);
                    let mut client = stage.client(options).await;
                    let handle = client.handle();
                    let server = std::sync::Arc::new(calc(stage));
                    let set = handle.set_servers(vec![server], Default::default());
                    let set = stage.within("the servers", set).await.unwrap();
                    stage.note(format!("added {:?}, errors {}", set.added, set.errors.len()));
                    client.send("Add").await.unwrap();
                    stage.turn(&mut client).await;
                    let none = handle.set_servers(Vec::new(), Default::default());
                    let set = stage.within("the servers", none).await.unwrap();
                    stage.note(format!("removed {:?}", set.removed));
                }
                .boxed()
            },
            r#"added ["calc"], errors 0
               init
               call mcp__calc__add {"a":2,"b":3}
               tool ok
               text Done.
               result success "Done."
               removed ["calc"]
               * add 2 3"#,
        ),
        scenario(
            "mcp-toggle",
            Script::new().rule(when(), reply().text("Hello.")),
            |stage| {
                async {
                    let mut client = stage.client(served(stage)).await;
                    let handle = client.handle();
                    for enabled in [false, true] {
                        let toggled = handle.toggle_mcp_server("calc", enabled);
                        if let Err(error) = stage.within("the switch", toggled).await {
                            stage.note(format!("switched {enabled}: {:?}", error.kind()));
                            continue;
                        }
                        // A turn waits for connecting servers.
                        stage.within("the result", client.prompt("Say hello")).await.unwrap();
                        let status = stage.within("the status", handle.mcp_server_status()).await;
                        let status = serde_json::to_value(status.unwrap()).unwrap();
                        let status = status["mcpServers"][0]["status"].as_str().unwrap().to_owned();
                        stage.note(format!("switched {enabled}: {status}"));
                    }
                    for name in ["calc", "nobody"] {
                        let reconnected = handle.reconnect_mcp_server(name);
                        let reconnected = stage.within("the reconnection", reconnected).await;
                        stage.note(match reconnected {
                            Ok(()) => format!("{name} reconnects"),
                            Err(error) => format!("{name}: {:?}", error.kind()),
                        });
                    }
                }
                .boxed()
            },
            "switched false: disabled
             switched true: connected
             calc reconnects
             nobody: Refused",
        ),
        scenario(
            "mcp-subagent",
            delegates(),
            |stage| {
                async {
                    let options = served(stage).allow(["Task", "Agent"]);
                    let result = stage.within("the result", ostler::prompt("Delegate", options));
                    stage.note(result.await.unwrap().result.unwrap());
                }
                .boxed()
            },
            "Done.
             * add 2 3",
        ),
    ]
}
