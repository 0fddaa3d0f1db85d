//! The same kind of server as in `custom_tools`, as a separate program for any MCP client. The protocol uses standard
//! input and output, so the program must not print anything else.

use std::convert::Infallible;

use ostler::mcp::{Prompt, PromptMessage, Resource, Server, tool};
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Deserialize, JsonSchema)]
struct Add {
    /// The first number.
    a: i64,
    /// The second number.
    b: i64,
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let add = tool("add", "Adds two numbers", |it: Add| async move {
        it.a.checked_add(it.b).ok_or("the sum is too large")
    });
    let explain = Prompt::new("explain", "Asks for an explanation", |arguments| async move {
        let text = format!("Explain {} to a child.", arguments["what"]);
        Ok::<_, Infallible>(vec![PromptMessage::user(text)])
    });
    Server::new("calc", "1.0.0")
        .tool(add.read_only())
        .resource(Resource::text("calc://pi", "pi", "3.14159"))
        .prompt(explain.required("what", "What to explain"))
        .serve_stdio()
        .await
}
