//! Reads one entry: fills in variables, and says what is wrong with it.

use ostler_engine::interpolate::{self, Syntax};
use ostler_engine::mcp::KnownServer;
use ostler_engine::settings::Problem;
use ostler_proto::mcp::McpServerConfig;
use serde_json::{Value, json};

use super::{Approval, ConfiguredServer, Scope, StartContext, kind, rules};

/// The server of an entry. One that is malformed, or names variables without a value, has failed with the reason.
pub(super) fn known(server: &ConfiguredServer, context: &StartContext) -> KnownServer {
    let is_disabled = server.approval == Approval::Disabled;
    let scope = server.scope.word();
    match read(server, context) {
        Ok((config, missing)) => {
            let problem = (!missing.is_empty()).then(|| {
                let names = missing.join(", ");
                let place = place(server);
                format!("{place} names variables that are not set: {names}")
            });
            KnownServer { config, scope, problem, is_disabled }
        }
        Err(reason) => {
            let problem = Some(format!("{}: {reason}", place(server)));
            KnownServer { config: unusable(), scope, problem, is_disabled }
        }
    }
}

/// The configuration of an entry, which may name variables without a value.
pub(super) fn config(
    server: &ConfiguredServer,
    context: &StartContext,
) -> Result<McpServerConfig, String> {
    let read = read(server, context).map(|(config, _)| config);
    read.map_err(|reason| format!("the MCP server {}: {reason}", server.name))
}

fn place(server: &ConfiguredServer) -> String {
    format!("the entry {} in {}", server.name, server.file.display())
}

/// Stands for a configuration that is malformed.
fn unusable() -> McpServerConfig {
    serde_json::from_value(json!({"type": "malformed"})).unwrap_or_else(|_| {
        // Unknown types decode, so this does not happen; a program without a name cannot start.
        McpServerConfig::Stdio(ostler_proto::mcp::StdioServer::default())
    })
}

fn read(
    server: &ConfiguredServer,
    context: &StartContext,
) -> Result<(McpServerConfig, Vec<String>), String> {
    let is_strangers = server.scope == Scope::Project && !rules::trusts_project(context);
    let mut entry = server.entry.clone();
    let Value::Object(fields) = &mut entry else {
        return Err(format!("expected an object, found {}", kind(&entry)));
    };
    if !fields.contains_key("type") && fields.contains_key("url") {
        return Err("it has a `url` and no `type`: add \"type\": \"http\" (or \"sse\", or \"ws\")"
            .to_owned());
    }
    if is_strangers && fields.contains_key("headersHelper") {
        return Err("`headersHelper` runs a command of a project that is not trusted: pass --trust-project if you trust \
             what is in this folder, or configure the server yourself: ostler mcp add-json"
            .to_owned());
    }
    let entry = if is_strangers { without_grants(entry) } else { entry };
    let mut missing = Vec::new();
    let var = |name: &str| match name {
        "CLAUDE_PROJECT_DIR" => Some(rules::folders(context).project.display().to_string()),
        name => context.var(name),
    };
    let filled = interpolate::map_texts(entry, &mut |text| fill(text, var, &mut missing));
    let config: McpServerConfig =
        serde_json::from_value(filled).map_err(|error| error.to_string())?;
    refuse_unknown(&config)?;
    // Only a host has servers inside itself, and it names them on the command line.
    if matches!(config, McpServerConfig::Sdk(_)) && server.scope != Scope::Dynamic {
        return Err("its `type` is \"sdk\", which is not possible in a file".to_owned());
    }
    Ok((config, missing))
}

/// The keys of `oauth` that are used; see `sign_in.rs`.
const OAUTH: [&str; 4] = ["clientId", "clientSecret", "callbackPort", "scopes"];

/// A warning about keys of `oauth` that this version does not use.
pub(super) fn unused(server: &ConfiguredServer) -> Option<Problem> {
    let keys = server.entry.get("oauth")?.as_object()?.keys();
    let unused: Vec<&str> = keys.map(String::as_str).filter(|key| !OAUTH.contains(key)).collect();
    (!unused.is_empty()).then(|| Problem {
        path: server.file.clone(),
        pointer: format!("mcpServers.{}.oauth", server.name),
        reason: format!(
            "this version does not use {}; it uses {}",
            unused.join(", "),
            OAUTH.join(", ")
        ),
    })
}

/// Refuses a type that this version does not know, by its name.
fn refuse_unknown(config: &McpServerConfig) -> Result<(), String> {
    let McpServerConfig::Unknown(_) = config else { return Ok(()) };
    let config = serde_json::to_value(config).unwrap_or_default();
    let found = match &config["type"] {
        Value::String(name) => format!("\"{name}\""),
        other => kind(other).to_owned(),
    };
    Err(format!("its `type` is {found}; known are \"stdio\", \"http\", \"sse\" and \"ws\""))
}

/// The configuration without `always_allow` for its tools: a user who approves a server does not thereby allow its tools.
fn without_grants(mut config: Value) -> Value {
    for tool in config.get_mut("tools").and_then(Value::as_array_mut).into_iter().flatten() {
        if tool.get("permission_policy").is_some_and(|policy| policy == "always_allow")
            && let Some(tool) = tool.as_object_mut()
        {
            tool.shift_remove("permission_policy");
        }
    }
    config
}

/// Fills in `${NAME}` and `${NAME:-default}`; notes names without a value.
fn fill(text: &str, var: impl Fn(&str) -> Option<String>, missing: &mut Vec<String>) -> String {
    interpolate::fill(text, Syntax::Braces, |inside| {
        let (name, default) = match inside.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inside, None),
        };
        let value = var(name).or_else(|| default.map(str::to_owned));
        if value.is_none() {
            missing.push(name.to_owned());
        }
        value
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str, missing: &[&str]) {
        let var = |name: &str| (name == "SET").then(|| "it".to_owned());
        let mut noted = Vec::new();
        assert_eq!(fill(text, var, &mut noted), expected);
        assert_eq!(noted, missing, "{text}");
    }

    #[test]
    fn variables_are_filled_in() {
        check("a ${SET} b ${SET}", "a it b it", &[]);
        check("${SET:-x}${NOT:-y}${NOT:-}", "ity", &[]);
        check("${NOT}", "${NOT}", &["NOT"]);
        check("$SET {SET} ${SET", "$SET {SET} ${SET", &[]);
    }
}
