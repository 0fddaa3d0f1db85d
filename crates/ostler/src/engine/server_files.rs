//! Finds the MCP servers of a session: those of the command line, and those of the project that the user approved.
//!
//! A project's `.mcp.json` names programs to run, so a server in it starts only if the user's settings, or those of a
//! trusted project, approve it: with `enableAllProjectMcpServers`, or with its name in `enabledMcpjsonServers`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ostler_engine::interpolate::{self, Syntax};
use ostler_engine::mcp::KnownServer;
use ostler_engine::project_file::{Boundary, Refusal};
use ostler_engine::settings::{Problem, Settings};
use ostler_proto::launch::SettingSource;
use ostler_proto::mcp::McpServerConfig;
use serde_json::{Map, Value};

use super::{StartContext, StartError, rules};

/// The largest `.mcp.json`, in bytes.
const LONGEST_FILE: u64 = 4 * 1024 * 1024;

/// The servers to start, and warnings about those that are left out.
pub(super) struct ServerFiles {
    pub(super) servers: BTreeMap<String, KnownServer>,
    pub(super) warnings: Vec<Problem>,
}

/// Reads the command line and the project's `.mcp.json`.
///
/// # Errors
/// When `--mcp-config` names a file that cannot be read, or contains an invalid configuration.
pub(super) fn find(context: &StartContext, settings: &Settings) -> Result<ServerFiles, StartError> {
    let mut servers = BTreeMap::new();
    let mut warnings = Vec::new();
    let takes_project =
        !context.launch.strict_mcp_config && rules::wants(context, SettingSource::Project);
    if takes_project {
        warnings.extend(of_project(context, settings, &mut servers));
    }
    for (name, config) in of_command_line(context)? {
        servers.insert(name, known(config, "dynamic", context).map_err(refused)?);
    }
    Ok(ServerFiles { servers, warnings })
}

fn refused(reason: String) -> StartError {
    StartError::Refused(format!("the MCP servers of --mcp-config: {reason}"))
}

/// The servers of `--mcp-config`: JSON like that of `.mcp.json`, the path of such a file, or a list of both. If a name
/// occurs twice, the later one wins.
fn of_command_line(context: &StartContext) -> Result<Map<String, Value>, StartError> {
    let mut all = Map::new();
    let places = match &context.launch.mcp_config {
        None => return Ok(all),
        Some(Value::Array(places)) => places.clone(),
        Some(place) => vec![place.clone()],
    };
    for place in places {
        let config = match place {
            Value::String(path) => read(&context.cwd.join(path)).map_err(refused)?,
            config => config,
        };
        all.extend(servers_of(config).map_err(refused)?);
    }
    Ok(all)
}

/// Adds the approved servers of `.mcp.json`. Returns a warning if the file is malformed or a server is not approved.
fn of_project(
    context: &StartContext,
    settings: &Settings,
    servers: &mut BTreeMap<String, KnownServer>,
) -> Option<Problem> {
    let root = context.launch.project_config_root.as_ref().map(PathBuf::from);
    let root = root.unwrap_or_else(|| context.cwd.clone());
    let path = root.join(".mcp.json");
    let problem = |reason: String| Problem { path: path.clone(), pointer: String::new(), reason };
    let boundary = match rules::trusts_project(context) {
        true => Boundary::default(),
        false => Boundary::inside(&root, Arc::default()),
    };
    let text = match boundary.read_text(&path, LONGEST_FILE) {
        Ok(text) => text,
        Err(Refusal::Missing) => return None,
        Err(refusal) => return Some(problem(format!("its servers are left out: {refusal}"))),
    };
    let found = match parsed(&path, &text).and_then(servers_of) {
        Ok(found) => found,
        Err(reason) => return Some(problem(reason)),
    };
    let mut waiting = Vec::new();
    for (name, config) in found {
        if !is_approved(settings, &name) {
            waiting.push(name);
            continue;
        }
        let is_trusted = rules::trusts_project(context);
        let config = if is_trusted { config } else { without_grants(config) };
        match known(config, "project", context) {
            Ok(known) => _ = servers.insert(name, known),
            Err(reason) => return Some(problem(format!("{name}: {reason}"))),
        }
    }
    waiting.retain(|name| !is_listed(settings, "disabledMcpjsonServers", name));
    (!waiting.is_empty()).then(|| {
        problem(format!(
            "these servers are not started until you approve them: {}; put their names into \
             enabledMcpjsonServers of your own settings",
            waiting.join(", ")
        ))
    })
}

/// The configuration without `always_allow` for its tools: a user who approves a server does not thereby allow its tools.
fn without_grants(mut config: Value) -> Value {
    for tool in config.get_mut("tools").and_then(Value::as_array_mut).into_iter().flatten() {
        if tool.get("permission_policy").is_some_and(|policy| policy == "always_allow")
            && let Some(tool) = tool.as_object_mut()
        {
            tool.remove("permission_policy");
        }
    }
    config
}

/// Whether the settings approve a server of the project. They do not contain settings of a project that is not trusted.
fn is_approved(settings: &Settings, name: &str) -> bool {
    let all = settings.extra.get("enableAllProjectMcpServers") == Some(&Value::Bool(true));
    let is_wanted = all || is_listed(settings, "enabledMcpjsonServers", name);
    is_wanted && !is_listed(settings, "disabledMcpjsonServers", name)
}

fn is_listed(settings: &Settings, key: &str, name: &str) -> bool {
    let list = settings.extra.get(key).and_then(Value::as_array);
    list.is_some_and(|list| list.iter().any(|listed| listed == name))
}

fn read(path: &Path) -> Result<Value, String> {
    let text = Boundary::default().read_text(path, LONGEST_FILE);
    let text = text.map_err(|refusal| format!("{} cannot be read: {refusal}", path.display()))?;
    parsed(path, &text)
}

fn parsed(path: &Path, text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|error| format!("{}: {error}", path.display()))
}

fn servers_of(config: Value) -> Result<Map<String, Value>, String> {
    let servers = match config {
        Value::Object(mut config) => config.remove("mcpServers").unwrap_or(Value::Object(config)),
        other => other,
    };
    match servers {
        Value::Object(servers) => Ok(servers),
        other => Err(format!("expected an object with servers by name, found {other}")),
    }
}

/// Parses a configuration and fills in variables. If one is not set, only this server fails, not the session.
fn known(
    config: Value,
    scope: &'static str,
    context: &StartContext,
) -> Result<KnownServer, String> {
    let mut missing = Vec::new();
    let var = |name: &str| context.var(name);
    let filled = interpolate::map_texts(config, &mut |text| fill(text, var, &mut missing));
    let config: McpServerConfig =
        serde_json::from_value(filled).map_err(|error| error.to_string())?;
    let problem = (!missing.is_empty()).then(|| {
        format!("its configuration names variables that are not set: {}", missing.join(", "))
    });
    Ok(KnownServer { config, scope, problem })
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
    use ostler_proto::launch::Launch;
    use serde_json::json;

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

    fn found(project: Value, settings: Value, launch: Launch) -> (Vec<String>, usize) {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(".mcp.json"), project.to_string()).unwrap();
        let mut context = StartContext::new(launch, folder.path());
        context.env.replaces = true;
        let known = Settings {
            extra: settings.as_object().cloned().unwrap_or_default(),
            ..Settings::default()
        };
        let ServerFiles { servers, warnings } = find(&context, &known).unwrap();
        (servers.into_keys().collect(), warnings.len())
    }

    #[test]
    fn a_server_of_the_project_starts_only_if_the_settings_approve_it() {
        let project = || json!({"mcpServers": {"a": {"command": "a"}, "b": {"command": "b"}}});
        let check = |settings: Value, expected: &[&str], n_warnings: usize| {
            let actual = found(project(), settings.clone(), Launch::default());
            let expected = expected.iter().map(|name| (*name).to_owned()).collect();
            assert_eq!(actual, (expected, n_warnings), "{settings}");
        };
        check(json!({}), &[], 1);
        check(json!({"enabledMcpjsonServers": ["a"]}), &["a"], 1);
        check(json!({"enableAllProjectMcpServers": true}), &["a", "b"], 0);
        check(json!({"enableAllProjectMcpServers": "true"}), &[], 1);
        let all_but_b =
            json!({"enableAllProjectMcpServers": true, "disabledMcpjsonServers": ["b"]});
        check(all_but_b, &["a"], 0);
        let strict = Launch { strict_mcp_config: true, ..Launch::default() };
        let all = json!({"enableAllProjectMcpServers": true});
        assert_eq!(found(project(), all.clone(), strict), (Vec::new(), 0));
        let without =
            Launch { setting_sources: Some(vec![SettingSource::User]), ..Launch::default() };
        assert_eq!(found(project(), all.clone(), without), (Vec::new(), 0));
        assert_eq!(found(json!([1]), all, Launch::default()), (Vec::new(), 1));
    }

    #[test]
    fn several_configurations_are_merged_and_the_later_one_wins() {
        let launch = Launch {
            mcp_config: Some(json!([
                {"mcpServers": {"a": {"command": "1"}, "b": {"command": "1"}}},
                {"b": {"command": "2"}, "c": {"type": "http", "url": "${NOWHERE}"}},
            ])),
            ..Launch::default()
        };
        let mut context = StartContext::new(launch, "/");
        context.env.replaces = true;
        let servers = find(&context, &Settings::default()).unwrap().servers;
        assert_eq!(servers.keys().collect::<Vec<_>>(), ["a", "b", "c"]);
        let McpServerConfig::Stdio(b) = &servers["b"].config else { panic!() };
        assert_eq!(b.command, "2");
        assert!(servers["c"].problem.as_ref().unwrap().contains("NOWHERE"));
        let odd = Launch { mcp_config: Some(json!("/no/such/file")), ..Launch::default() };
        let error = find(&StartContext::new(odd, "/"), &Settings::default()).err().unwrap();
        assert!(error.to_string().contains("/no/such/file"), "{error}");
    }
}
