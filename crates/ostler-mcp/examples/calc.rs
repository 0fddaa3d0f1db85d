//! A stand-alone MCP program: `cargo run --example calc`, or in the configuration of any MCP client. With the argument
//! `http` it listens on a free port of this machine and prints its address.

use std::convert::Infallible;
use std::time::Duration;

use ostler_mcp::{HttpOptions, Prompt, PromptMessage, Resource, Server, tool, tool_with_context};
use tokio_util::sync::CancellationToken;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Add {
    /// The first number.
    a: i64,
    /// The second number.
    b: i64,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::io::Result<()> {
    let add = tool("add", "Adds two numbers", |args: Add| async move {
        args.a.checked_add(args.b).ok_or("the sum is too large")
    });
    let count = tool_with_context("count", "Counts to three", |(): (), context| async move {
        for step in 1..=3 {
            context.progress(step.into(), Some(3.0), format!("step {step}"));
            // Slow on purpose: some clients miss progress that arrives together with the result.
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Ok::<_, Infallible>("counted")
    });
    let hang = tool("hang", "Never ends", |(): ()| async {
        std::future::pending::<Result<(), Infallible>>().await
    });
    let explain = Prompt::new("explain", "Asks for an explanation", |arguments| async move {
        let text = format!("Explain {} to a child.", arguments["what"]);
        Ok::<_, Infallible>(vec![PromptMessage::user(text)])
    });
    let server = Server::new("calc", "1.0.0")
        .instructions("Adds and counts.")
        .tools([add.read_only(), count.read_only(), hang])
        .resource(Resource::text("calc://pi", "pi", "3.14159").mime_type("text/plain"))
        .prompt(explain.required("what", "What to explain"));
    if std::env::args().nth(1).as_deref() != Some("http") {
        return server.serve_stdio().await;
    }
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    #[expect(clippy::print_stdout, reason = "clients must know the address")]
    {
        println!("http://{}/mcp", listener.local_addr()?);
    }
    server.serve_http(listener, HttpOptions::default(), CancellationToken::new()).await
}
