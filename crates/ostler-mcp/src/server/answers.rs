//! The answers to each method.

use std::panic::AssertUnwindSafe;

use futures::FutureExt;
use serde_json::{Map, Value, json};

use super::client::Asking;
use super::refusal::{Refusal, supported_versions};
use super::rounds::Round;
use super::{Catalog, Context, PromptArguments, Server, completion};
use crate::output::Output;
use crate::rpc::Failure;

/// Versions with sessions, newest first. A client that requests another version is offered the newest.
pub(crate) const VERSIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/// Answers a request of a session. Any order is accepted: engines with a manifest start with `tools/call`, others make
/// the handshake twice. What belongs to the session itself is answered by `connection.rs`.
pub(super) async fn answer(
    server: &Server,
    method: &str,
    params: Value,
    context: Context,
) -> Result<Value, Refusal> {
    match method {
        "initialize" => Ok(server.catalog(|catalog| initialize(catalog, &params))),
        "ping" => Ok(json!({})),
        "tools/list" => Ok(server.catalog(list_tools)),
        "tools/call" => call_tool(server, params, context).await,
        "resources/list" => Ok(list_resources(server, "resources", false)),
        "resources/templates/list" => Ok(list_resources(server, "resourceTemplates", true)),
        "resources/read" => read_resource(server, &params, &context).await,
        "prompts/list" => Ok(server.catalog(|catalog| {
            let prompts: Vec<_> = catalog.prompts.iter().map(super::Prompt::to_value).collect();
            json!({"prompts": prompts})
        })),
        "prompts/get" => make_prompt(server, params, context).await,
        "completion/complete" => complete(server, &params).await,
        _ => Err(Failure::unknown_method(method).into()),
    }
}

/// Answers a request without a session (MCP 2026-07-28): the same methods, but those of sessions, and with what that
/// revision adds to every result.
pub(super) async fn answer_stateless(
    server: &Server,
    method: &str,
    params: Value,
    context: Context,
) -> Result<Value, Refusal> {
    let is_offered =
        |kind: &str| server.catalog(|catalog| capabilities(catalog).contains_key(kind));
    let mut result = match method {
        "server/discover" => server.catalog(discover),
        "initialize" | "ping" => return Err(Failure::unknown_method(method).into()),
        _ if method.starts_with("prompts/") && !is_offered("prompts") => {
            return Err(Failure::unknown_method(method).into());
        }
        _ if method.starts_with("resources/") && !is_offered("resources") => {
            return Err(Failure::unknown_method(method).into());
        }
        _ => answer(server, method, params, context).await?,
    };
    let Some(fields) = result.as_object_mut() else { return Ok(result) };
    fields.entry("resultType").or_insert_with(|| "complete".into());
    if matches!(
        method,
        "server/discover"
            | "tools/list"
            | "prompts/list"
            | "resources/list"
            | "resources/templates/list"
            | "resources/read"
    ) {
        let (lifetime, is_shared) = server.catalog(|catalog| catalog.cache);
        let lifetime = u64::try_from(lifetime.as_millis()).unwrap_or(u64::MAX);
        fields.insert("ttlMs".to_owned(), lifetime.into());
        let scope = if is_shared { "public" } else { "private" };
        fields.insert("cacheScope".to_owned(), scope.into());
    }
    let info = server.catalog(|catalog| catalog.info.clone());
    let meta = fields.entry("_meta").or_insert_with(|| json!({}));
    if let Some(meta) = meta.as_object_mut() {
        meta.insert("io.modelcontextprotocol/serverInfo".to_owned(), info.into());
    }
    Ok(result)
}

fn discover(catalog: &Catalog) -> Value {
    let mut result = json!({
        "supportedVersions": supported_versions(),
        "capabilities": capabilities(catalog),
    });
    if let Some(instructions) = &catalog.instructions {
        result["instructions"] = instructions.clone().into();
    }
    result
}

/// What the server offers.
fn capabilities(catalog: &Catalog) -> Map<String, Value> {
    let mut capabilities = Map::from_iter([("tools".to_owned(), json!({"listChanged": true}))]);
    if !catalog.resources.is_empty() {
        let offered = json!({"listChanged": true, "subscribe": true});
        capabilities.insert("resources".to_owned(), offered);
    }
    if !catalog.prompts.is_empty() {
        capabilities.insert("prompts".to_owned(), json!({"listChanged": true}));
    }
    let completes = catalog.prompts.iter().any(|prompt| !prompt.completions().is_empty())
        || catalog.resources.iter().any(|resource| !resource.completions().is_empty());
    if completes {
        capabilities.insert("completions".to_owned(), json!({}));
    }
    if catalog.logs {
        capabilities.insert("logging".to_owned(), json!({}));
    }
    capabilities
}

pub(super) fn initialize(catalog: &Catalog, params: &Value) -> Value {
    let wanted = params.get("protocolVersion").and_then(Value::as_str).unwrap_or_default();
    let version = VERSIONS.into_iter().find(|known| *known == wanted).unwrap_or(VERSIONS[0]);
    let mut result = json!({
        "protocolVersion": version,
        "capabilities": capabilities(catalog),
        "serverInfo": catalog.info,
    });
    if let Some(instructions) = &catalog.instructions {
        result["instructions"] = instructions.clone().into();
    }
    result
}

pub(super) fn list_tools(catalog: &Catalog) -> Value {
    json!({"tools": catalog.tools.iter().map(super::Tool::to_value).collect::<Vec<_>>()})
}

async fn call_tool(server: &Server, mut params: Value, context: Context) -> Result<Value, Refusal> {
    let name = text(&params, "name")?;
    let find = |catalog: &Catalog| {
        let found = catalog.tools.iter().find(|tool| tool.name() == name).cloned();
        found.ok_or_else(|| {
            let names: Vec<_> = catalog.tools.iter().map(|tool| tool.name().to_owned()).collect();
            Failure::invalid_params(format!(
                "there is no tool `{name}`; there are: {}",
                names.join(", ")
            ))
        })
    };
    let tool = server.catalog(find)?;
    let arguments = params.get_mut("arguments").map(Value::take).unwrap_or_default();
    let client = context.client.clone();
    // The call itself may panic too, before it returns a future.
    let call = guarded(async { tool.call(arguments, context).await });
    let output = match &client.asking {
        Asking::Requests(_) => call.await,
        Asking::Rounds(rounds) => match rounds.run(server.signer(), call).await {
            Round::Done(output) => output,
            Round::Asks(questions) => return Ok(questions),
            Round::Refused(refusal) => return Err(refusal),
        },
    };
    let output = output.unwrap_or_else(|panic| {
        Output::error(format!("the tool `{name}` failed with a panic: {panic}"))
    });
    match client.missing() {
        Some(refusal) if output.is_error => Err(refusal),
        _ => Ok(output.to_value()),
    }
}

fn list_resources(server: &Server, key: &str, templates: bool) -> Value {
    let listed = server.catalog(|catalog| {
        let listed = catalog.resources.iter().filter(|item| item.is_template() == templates);
        listed.map(super::Resource::to_value).collect::<Vec<_>>()
    });
    json!({key: listed})
}

/// The resource with this address, and the values of its placeholders.
pub(super) fn find_resource(
    server: &Server,
    uri: &str,
) -> Option<(super::Resource, super::Variables)> {
    server.catalog(|catalog| {
        // A resource takes precedence over a template.
        let (families, single): (Vec<_>, Vec<_>) =
            catalog.resources.iter().partition(|item| item.is_template());
        let mut all = single.into_iter().chain(families);
        all.find_map(|item| item.matches(uri).map(|variables| (item.clone(), variables)))
    })
}

async fn read_resource(
    server: &Server,
    params: &Value,
    context: &Context,
) -> Result<Value, Refusal> {
    let uri = text(params, "uri")?;
    let is_stateless = context.client.is_stateless();
    let (resource, variables) = find_resource(server, &uri)
        .ok_or_else(|| Refusal::resource_not_found(&uri, is_stateless))?;
    match guarded(async { resource.read(uri.clone(), variables).await }).await {
        Ok(Ok(contents)) => Ok(json!({"contents": [contents]})),
        Ok(Err(reason)) | Err(reason) => {
            Err(Failure::internal(format!("reading `{uri}`: {reason}")).into())
        }
    }
}

async fn make_prompt(
    server: &Server,
    mut params: Value,
    context: Context,
) -> Result<Value, Refusal> {
    let name = text(&params, "name")?;
    let found = server
        .catalog(|catalog| catalog.prompts.iter().find(|prompt| prompt.name() == name).cloned());
    let prompt =
        found.ok_or_else(|| Failure::invalid_params(format!("there is no prompt `{name}`")))?;
    let arguments = match params.get_mut("arguments").map(Value::take).unwrap_or_default() {
        Value::Null => PromptArguments::new(),
        arguments => serde_path_to_error::deserialize(arguments).map_err(|error| {
            Failure::invalid_params(format!("arguments of the prompt `{name}`: {error}"))
        })?,
    };
    if let Some(missing) = prompt.missing(&arguments) {
        let text = format!("the prompt `{name}` needs the argument `{missing}`");
        return Err(Failure::invalid_params(text).into());
    }
    let client = context.client.clone();
    let made = guarded(async { prompt.make(arguments, context).await });
    let made = match &client.asking {
        Asking::Requests(_) => made.await,
        Asking::Rounds(rounds) => match rounds.run(server.signer(), made).await {
            Round::Done(made) => made,
            Round::Asks(questions) => return Ok(questions),
            Round::Refused(refusal) => return Err(refusal),
        },
    };
    match made {
        Ok(Ok(prompt)) => Ok(prompt),
        Ok(Err(reason)) | Err(reason) => {
            let failure = Failure::internal(format!("making the prompt `{name}`: {reason}"));
            Err(client.missing().unwrap_or_else(|| failure.into()))
        }
    }
}

async fn complete(server: &Server, params: &Value) -> Result<Value, Refusal> {
    let typed = params["argument"]["value"].as_str().unwrap_or_default().to_owned();
    let values = match server.catalog(|catalog| completion::find(catalog, params))? {
        None => Vec::new(),
        Some(complete) => guarded(async move { complete(&typed) })
            .await
            .map_err(|panic| Failure::internal(format!("completing the argument: {panic}")))?,
    };
    Ok(completion::answer(values))
}

pub(super) fn text(params: &Value, key: &str) -> Result<String, Failure> {
    let text = params.get(key).and_then(Value::as_str).map(str::to_owned);
    text.ok_or_else(|| Failure::invalid_params(format!("`params.{key}` must be a string")))
}

/// Runs a user's function; a panic becomes an error message.
async fn guarded<T>(future: impl Future<Output = T>) -> Result<T, String> {
    // Unwind safety of the function's own state is its author's concern; ours is not half changed.
    AssertUnwindSafe(future).catch_unwind().await.map_err(|panic| {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        text.or_else(|| panic.downcast_ref::<String>().cloned())
            .unwrap_or_else(|| "it panicked without a message".to_owned())
    })
}
