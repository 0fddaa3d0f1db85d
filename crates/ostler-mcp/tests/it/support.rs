//! A server with one of everything, and helpers to call it.

use std::convert::Infallible;
use std::time::Duration;

use ostler_mcp::{
    Connection, Content, Output, Prompt, PromptMessage, Resource, ResourceContents, Server, tool,
    tool_with_context,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

/// Generous, for busy machines; no test depends on it.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

pub(crate) async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(LIMIT, future).await.unwrap_or_else(|_| panic!("{what} does not finish"))
}

#[derive(Deserialize, JsonSchema)]
pub(crate) struct Add {
    /// The first number.
    a: i64,
    b: i64,
}

pub(crate) fn calc() -> Server {
    Server::new("calc", "1.2.3")
        .title("A calculator")
        .instructions("Adds, and that is it.")
        .tool(
            tool("add", "Add two numbers", |args: Add| async move {
                args.a.checked_add(args.b).ok_or("the sum is too large")
            })
            .read_only(),
        )
        .tool(tool("boom", "Fails", |(): ()| async move { Err::<(), _>("no luck today") }))
        .tool(tool("panic", "Breaks down", |(): ()| async move {
            if true {
                panic!("the tool has a bug");
            }
            Ok::<_, Infallible>(())
        }))
        .tool(tool("draw", "Shows a picture", |(): ()| async move {
            let resource = ResourceContents::text("note://a", "a note");
            let output = Output::text("a dot").image("aGk=", "image/png").resource(resource);
            Ok::<_, Infallible>(output)
        }))
        .tool(tool_with_context("progress", "Reports twice", |(): (), context| async move {
            context.progress(1.0, Some(2.0), "half");
            context.progress(2.0, Some(2.0), "");
            Ok::<_, Infallible>(json!({"id": context.tool_use_id()}))
        }))
        .tool(tool("hang", "Never ends", |(): ()| async move {
            std::future::pending::<Result<(), Infallible>>().await
        }))
        .resource(Resource::text("note://today", "today", "buy milk").mime_type("text/plain"))
        .resource(Resource::template(
            "note://{day}/{+rest}",
            "notes",
            |uri, variables| async move {
                match variables["day"].as_str() {
                    "never" => Err("there is no such day"),
                    day => Ok(ResourceContents::text(uri, format!("{day}: {}", variables["rest"]))),
                }
            },
        ))
        .prompt(
            Prompt::new("greet", "Greets a person", |arguments| async move {
                let text = format!("Say hello to {}.", arguments["name"]);
                Ok::<_, Infallible>(vec![PromptMessage::user(text)])
            })
            .required("name", "Whom to greet")
            .optional("tone", "How"),
        )
}

pub(crate) fn request(id: impl Into<Value>, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id.into(), "method": method, "params": params})
}

pub(crate) fn call(id: impl Into<Value>, tool: &str, arguments: Value) -> Value {
    request(id, "tools/call", json!({"name": tool, "arguments": arguments}))
}

/// The result of a request that must succeed.
pub(crate) async fn result(connection: &Connection, method: &str, params: Value) -> Value {
    let answer = within(method, connection.handle(request(1, method, params))).await.unwrap();
    assert_eq!(answer["id"], 1);
    assert!(answer.get("error").is_none(), "{answer}");
    answer["result"].clone()
}

/// The error of a request that must fail: its code and its text.
pub(crate) async fn error(connection: &Connection, method: &str, params: Value) -> (i64, String) {
    let answer = within(method, connection.handle(request(1, method, params))).await.unwrap();
    let error = &answer["error"];
    (error["code"].as_i64().unwrap(), error["message"].as_str().unwrap().to_owned())
}

/// A tool's text, and whether it is an error.
pub(crate) async fn output(
    connection: &Connection,
    tool: &str,
    arguments: Value,
) -> (String, bool) {
    let params = json!({"name": tool, "arguments": arguments});
    let output = Output::from_value(result(connection, "tools/call", params).await).unwrap();
    let text = output.content.first().and_then(Content::as_text).unwrap_or_default();
    (text.to_owned(), output.is_error)
}
