//! The client that the official conformance suite examines: `cargo xtask mcp`.
//!
//! The suite starts a server, then this program with the server's address as its last argument. This program uses
//! everything that the server offers, and signs in without a user: it follows the authorization server's redirect. The
//! suite judges by what its server received.

use std::collections::BTreeMap;
use std::error::Error as StdError;
use std::time::Duration;

use ostler_mcp::{
    CallOptions, Client, ClientOptions, Endpoint, Error, OAuthOptions, Remote, ToolInfo,
};
use ostler_proto::control::ElicitationReply;
use serde_json::{Map, Value, json};

/// The browser is led here. No program listens.
const REDIRECT: &str = "http://localhost:9/callback";
/// The address that the suite expects as the id of a client with a metadata document.
const METADATA: &str = "https://conformance-test.local/client-metadata.json";
/// How often it signs in at most.
const MOST_SIGN_INS: usize = 3;

type Outcome<T> = Result<T, Box<dyn StdError>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Outcome<()> {
    let url = std::env::args().next_back().ok_or("the last argument is the server's address")?;
    let context = std::env::var("MCP_CONFORMANCE_CONTEXT").unwrap_or_else(|_| "{}".to_owned());
    let context: Value = serde_json::from_str(&context)?;
    let remote = Remote { url, ..Remote::default() };
    let client = Client::new("conformance", Endpoint::Http(remote), options(&context));
    let mut sign_ins = 0;
    loop {
        let used = use_everything(&client, &context).await;
        match used {
            Err(Error::NeedsAuth { .. }) if sign_ins < MOST_SIGN_INS => {
                sign_ins += 1;
                sign_in(&client).await?;
            }
            used => {
                client.close().await;
                return Ok(used?);
            }
        }
    }
}

fn options(context: &Value) -> ClientOptions {
    let text = |key: &str| context[key].as_str().map(str::to_owned);
    let oauth = match text("client_id") {
        Some(id) => OAuthOptions::default().client(id, text("client_secret")),
        None => OAuthOptions::default().client_metadata_url(METADATA),
    };
    // The suite runs dozens of servers in one process, which may be slow.
    let patient = Duration::from_secs(55);
    let options = ClientOptions::default().startup_timeout(patient).request_timeout(patient);
    options.oauth(oauth).on_elicitation(|_| async {
        let content = Some(json!({}));
        ElicitationReply { action: "accept".to_owned(), content, ..Default::default() }
    })
}

async fn use_everything(client: &Client, context: &Value) -> Result<(), Error> {
    if client.details().is_none() {
        client.reconnect().await?;
    }
    let tools = client.list_tools().await?;
    for (name, arguments) in calls(&tools, context) {
        match client.call_tool(&name, arguments, CallOptions::default()).await {
            // The server may refuse made-up arguments.
            Ok(_) | Err(Error::Refused { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    for resource in client.list_resources().await? {
        client.read_resource(&resource.uri).await?;
    }
    for prompt in client.list_prompts().await? {
        client.get_prompt(&prompt.name, BTreeMap::new()).await?;
    }
    Ok(())
}

/// The calls that the suite asks for, or one of every tool.
fn calls(tools: &[ToolInfo], context: &Value) -> Vec<(String, Value)> {
    if let Some(wanted) = context["toolCalls"].as_array() {
        let name = |call: &Value| call["name"].as_str().unwrap_or_default().to_owned();
        return wanted.iter().map(|call| (name(call), call["arguments"].clone())).collect();
    }
    // A tool that asks for a schema wants that of the first tool back.
    let first = tools.first().map(|tool| Value::Object(tool.input_schema.clone()));
    tools.iter().map(|tool| (tool.name.clone(), arguments(tool, first.as_ref()))).collect()
}

fn arguments(tool: &ToolInfo, schema: Option<&Value>) -> Value {
    let no_properties = Map::new();
    let properties = tool.input_schema.get("properties").and_then(Value::as_object);
    let value = |(name, property): (&String, &Value)| {
        let value = match property["type"].as_str() {
            Some("number" | "integer") => json!(5),
            Some("boolean") => json!(true),
            Some("object") if name == "schema" => schema.cloned().unwrap_or_default(),
            Some("object") => json!({}),
            Some("array") => json!([]),
            _ => json!("text"),
        };
        (name.clone(), value)
    };
    properties.unwrap_or(&no_properties).iter().map(value).collect::<Map<_, _>>().into()
}

/// Signs in as a browser would whose user agrees to everything.
async fn sign_in(client: &Client) -> Outcome<()> {
    let address = client.begin_sign_in(REDIRECT).await?;
    let browser = ostler_http::client(ostler_http::Certificates::None)?
        .redirect(reqwest::redirect::Policy::none())
        .build()?;
    let answer = browser.get(address).send().await?;
    let callback = answer.headers().get("location").ok_or("the browser was not led back")?;
    client.finish_sign_in(callback.to_str()?).await?;
    Ok(())
}
