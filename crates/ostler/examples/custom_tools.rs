//! Functions of this program as tools: typed arguments, readable errors, and an MCP server inside this process.

use ostler::mcp::{Resource, Server, tool};
use schemars::JsonSchema;
use serde::Deserialize;

/// The model sees the schema of this type, descriptions included. Arguments that do not match it are answered with an
/// error, so that the model can correct them; the function is not called.
#[derive(Deserialize, JsonSchema)]
struct Convert {
    /// Degrees Celsius.
    celsius: f64,
}

fn weather() -> Server {
    let convert = tool("to_fahrenheit", "Converts a temperature", |it: Convert| {
        if it.celsius < -273.15 {
            return Err("nothing is that cold");
        }
        Ok(format!("{:.1} °F", it.celsius * 1.8 + 32.0))
    });
    Server::new("weather", "1.0.0")
        .instructions("Knows temperatures.")
        .tool(convert.read_only())
        .resource(Resource::text("weather://records/lowest", "lowest", "-89.2 °C"))
}

#[tokio::main]
async fn main() -> Result<(), ostler::Error> {
    // The tool's name in the engine is `mcp__weather__to_fahrenheit`. The rule allows it without approval.
    let options = ostler::Options::new().server(weather()).allow(["mcp__weather__to_fahrenheit"]);
    let mut client = ostler::Client::connect(options).await?;
    for prompt in [
        "use the tool to_fahrenheit with celsius=21.5",
        "use the tool to_fahrenheit with celsius=-300",
        "use the tool to_fahrenheit with celsius=mild",
    ] {
        println!("> {prompt}");
        println!("{}", client.prompt(prompt).await?.result.unwrap_or_default());
    }
    client.close().await
}
