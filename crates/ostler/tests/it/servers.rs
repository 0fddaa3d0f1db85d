//! MCP servers made of functions of this program, and a server that is another program.

use ostler::mcp::{Server, tool};
use ostler::{Message, Options, query};
use ostler_testkit::{Script, ScriptedApi, reply, when};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

#[derive(Deserialize, JsonSchema)]
struct Add {
    /// The first number.
    a: i64,
    b: i64,
}

fn calc() -> Server {
    let add = tool("add", "Adds two numbers", |it: Add| async move {
        match it.a.checked_add(it.b) {
            Some(sum) => Ok(sum),
            None => Err("too large"),
        }
    });
    Server::new("calc", "1.0.0").tool(add)
}

fn script(input: serde_json::Value) -> Script {
    Script::new()
        .rule(when().turn(0), reply().tool_use("mcp__calc__add", input))
        .rule(when(), reply().text("It is {{tool_result}}."))
}

fn options(api: &ScriptedApi, home: &std::path::Path) -> Options {
    ostler::options()
        .cwd(home)
        .env("HOME", home.display().to_string())
        .env("ANTHROPIC_BASE_URL", api.base_url())
        .env("ANTHROPIC_API_KEY", "test")
}

async fn answer(api: &ScriptedApi, options: Options) -> Vec<Message> {
    let mut messages = Vec::new();
    let mut query = query("add", options);
    while let Some(message) = query.next().await {
        messages.push(message.unwrap());
    }
    assert!(api.failures().is_empty(), "{:?}", api.failures());
    messages
}

fn last(messages: &[Message]) -> String {
    messages.iter().rev().find_map(Message::as_result).unwrap().result.clone().unwrap()
}

#[tokio::test]
async fn a_function_of_this_program_is_a_tool() {
    let home = tempfile::tempdir().unwrap();
    let api = ScriptedApi::start(script(json!({"a": 2, "b": 3}))).await;
    let options = options(&api, home.path()).server(calc()).allow(["mcp__calc__add"]);
    let messages = answer(&api, options).await;
    assert_eq!(last(&messages), "It is 5.");
    let request = &api.requests()[0];
    assert!(request.tool_names().contains(&"mcp__calc__add"), "{:?}", request.tool_names());
    let tool =
        request.body["tools"].as_array().unwrap().iter().find(|it| it["name"] == "mcp__calc__add");
    assert_eq!(
        tool.unwrap()["input_schema"]["properties"]["a"]["description"],
        "The first number."
    );
    let Some(Message::System(ostler::proto::message::System::Init(init))) =
        messages.iter().find(|message| matches!(message, Message::System(_)))
    else {
        panic!("no init")
    };
    assert_eq!(
        (init.mcp_servers[0].name.as_str(), init.mcp_servers[0].status.as_str()),
        ("calc", "connected")
    );
}

#[tokio::test]
async fn a_tool_of_a_server_requires_approval_and_its_errors_are_reported() {
    let home = tempfile::tempdir().unwrap();
    let api = ScriptedApi::start(script(json!({"a": 2, "b": 3}))).await;
    let asked = options(&api, home.path()).server(calc()).on_permission(|call| async move {
        assert_eq!(call.tool_name, "mcp__calc__add");
        ostler::Decision::deny("not today")
    });
    assert_eq!(last(&answer(&api, asked).await), "It is not today.");

    for (input, expected) in [
        (json!({"a": i64::MAX, "b": 1}), "too large"),
        (json!({"a": "two", "b": 1}), "`a`: invalid type"),
    ] {
        let api = ScriptedApi::start(script(input)).await;
        let options = options(&api, home.path()).server(calc()).allow(["mcp__calc__add"]);
        let text = last(&answer(&api, options).await);
        assert!(text.contains(expected), "{text}");
    }
}

#[tokio::test]
async fn a_server_that_does_not_start_is_reported_and_the_session_works_without_it() {
    let home = tempfile::tempdir().unwrap();
    let api = ScriptedApi::start(Script::new().rule(when(), reply().text("Fine."))).await;
    let broken = json!({"command": "/no/such/server", "args": []});
    let options =
        options(&api, home.path()).mcp_server("broken", serde_json::from_value(broken).unwrap());
    let mut client = ostler::Client::connect(options).await.unwrap();
    assert_eq!(client.prompt("hello").await.unwrap().result.as_deref(), Some("Fine."));
    let status = client.handle().mcp_server_status().await.unwrap();
    let server = serde_json::to_value(&status.mcp_servers[0]).unwrap();
    assert_eq!(server["status"], "failed");
    assert!(server["error"].as_str().unwrap().contains("/no/such/server"), "{server}");
    client.close().await.unwrap();
}
