//! The answers to each method.

use std::panic::AssertUnwindSafe;

use futures::FutureExt;
use serde_json::{Map, Value, json};

use super::{Catalog, Context, PromptArguments, Server};
use crate::output::Output;
use crate::rpc::Failure;

/// Newest first. A client that requests another version is offered the newest.
pub(crate) const VERSIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/// Answers a request. Any order is accepted: engines with a manifest start with `tools/call`, others make the
/// handshake twice.
pub(super) async fn answer(
    server: &Server,
    method: &str,
    params: Value,
    context: Context,
) -> Result<Value, Failure> {
    match method {
        "initialize" => Ok(server.catalog(|catalog| initialize(catalog, &params))),
        "ping" => Ok(json!({})),
        "tools/list" => Ok(server.catalog(list_tools)),
        "tools/call" => call_tool(server, params, context).await,
        "resources/list" => Ok(list_resources(server, "resources", false)),
        "resources/templates/list" => Ok(list_resources(server, "resourceTemplates", true)),
        "resources/read" => read_resource(server, &params).await,
        "prompts/list" => Ok(server.catalog(|catalog| {
            let prompts: Vec<_> = catalog.prompts.iter().map(super::Prompt::to_value).collect();
            json!({"prompts": prompts})
        })),
        "prompts/get" => make_prompt(server, params).await,
        _ => Err(Failure::unknown_method(method)),
    }
}

pub(super) fn initialize(catalog: &Catalog, params: &Value) -> Value {
    let wanted = params.get("protocolVersion").and_then(Value::as_str).unwrap_or_default();
    let version = VERSIONS.into_iter().find(|known| *known == wanted).unwrap_or(VERSIONS[0]);
    let mut capabilities = Map::from_iter([("tools".to_owned(), json!({"listChanged": true}))]);
    if !catalog.resources.is_empty() {
        capabilities.insert("resources".to_owned(), json!({"listChanged": true}));
    }
    if !catalog.prompts.is_empty() {
        capabilities.insert("prompts".to_owned(), json!({"listChanged": true}));
    }
    let mut result = json!({
        "protocolVersion": version,
        "capabilities": capabilities,
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

async fn call_tool(server: &Server, mut params: Value, context: Context) -> Result<Value, Failure> {
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
    // The call itself may panic too, before it returns a future.
    let call = async { tool.call(arguments, context).await };
    let output = guarded(call).await.unwrap_or_else(|panic| {
        Output::error(format!("the tool `{name}` failed with a panic: {panic}"))
    });
    Ok(output.to_value())
}

fn list_resources(server: &Server, key: &str, templates: bool) -> Value {
    let listed = server.catalog(|catalog| {
        let listed = catalog.resources.iter().filter(|item| item.is_template() == templates);
        listed.map(super::Resource::to_value).collect::<Vec<_>>()
    });
    json!({key: listed})
}

async fn read_resource(server: &Server, params: &Value) -> Result<Value, Failure> {
    let uri = text(params, "uri")?;
    let found = server.catalog(|catalog| {
        // A resource takes precedence over a template.
        let (families, single): (Vec<_>, Vec<_>) =
            catalog.resources.iter().partition(|item| item.is_template());
        let mut all = single.into_iter().chain(families);
        all.find_map(|item| item.matches(&uri).map(|variables| (item.clone(), variables)))
    });
    let (resource, variables) = found.ok_or_else(|| Failure::resource_not_found(&uri))?;
    match guarded(async { resource.read(uri.clone(), variables).await }).await {
        Ok(Ok(contents)) => Ok(json!({"contents": [contents]})),
        Ok(Err(reason)) | Err(reason) => {
            Err(Failure::internal(format!("reading `{uri}`: {reason}")))
        }
    }
}

async fn make_prompt(server: &Server, mut params: Value) -> Result<Value, Failure> {
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
        return Err(Failure::invalid_params(text));
    }
    match guarded(async { prompt.make(arguments).await }).await {
        Ok(Ok(prompt)) => Ok(prompt),
        Ok(Err(reason)) | Err(reason) => {
            Err(Failure::internal(format!("making the prompt `{name}`: {reason}")))
        }
    }
}

fn text(params: &Value, key: &str) -> Result<String, Failure> {
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
