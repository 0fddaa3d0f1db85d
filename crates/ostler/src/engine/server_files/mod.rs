//! Finds the MCP servers of a session.
//!
//! A server comes from the command line (`--mcp-config`), from the user's `~/.claude.json` (for one project, or for all),
//! or from a `.mcp.json` of the project or of a folder above it. If a name occurs several times, the first of these wins:
//! command line, local scope, project, user scope. If the administrator has a `managed-mcp.json`, only its servers count.
//!
//! A project's `.mcp.json` names programs to run, so a server in it starts only if the user approved it: see `approval.rs`.
//! A malformed entry is a server that has failed, with the reason; the others are not affected.

mod approval;
mod command_line;
mod entry;
mod managed;
mod project;
mod user_file;
pub mod write;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ostler_engine::mcp::KnownServer;
use ostler_engine::project_file::{Boundary, Refusal};
use ostler_engine::settings::{Folders, Problem, ServerLists, Settings};
use ostler_proto::launch::SettingSource;
use serde_json::{Map, Value};

use self::approval::Choices;
use self::user_file::UserFile;
use super::{StartContext, StartError, rules};

pub(super) use self::user_file::{FILE as USER_FILE, LONGEST as USER_FILE_LONGEST};

/// The largest file with servers, in bytes.
const LONGEST_FILE: u64 = 4 * 1024 * 1024;

/// Who configured a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Scope {
    /// The administrator.
    Managed,
    /// The command line.
    Dynamic,
    /// The user, for one project.
    Local,
    /// The project, for all its users.
    Project,
    /// The user, for all projects.
    User,
}

impl Scope {
    /// The name in the wire protocol and on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Self::Managed => "managed",
            Self::Dynamic => "dynamic",
            Self::Local => "local",
            Self::Project => "project",
            Self::User => "user",
        }
    }
}

/// Whether a configured server may start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Approval {
    /// It starts.
    Approved,
    /// It comes with the project, and the user has not approved it.
    Pending,
    /// The user has rejected it.
    Rejected,
    /// The user has switched it off in this project.
    Disabled,
}

/// An entry of a configuration.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ConfiguredServer {
    /// The server's name.
    pub name: String,
    /// Who configured it.
    pub scope: Scope,
    /// The file, or `--mcp-config`.
    pub file: PathBuf,
    /// As it is written, before variables are filled in.
    pub entry: Value,
    /// Whether it may start.
    pub approval: Approval,
}

/// Everything that configures servers.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Configured {
    /// All entries; of several with the same name the first counts.
    pub servers: Vec<ConfiguredServer>,
    /// What could not be read, and why.
    pub warnings: Vec<Problem>,
    /// The settings' lists of allowed and denied servers.
    pub lists: ServerLists,
}

/// The servers to start, and warnings about those that are left out.
pub(super) struct ServerFiles {
    pub(super) servers: BTreeMap<String, KnownServer>,
    pub(super) warnings: Vec<Problem>,
    pub(super) lists: ServerLists,
}

/// Finds the servers of a session.
///
/// # Errors
/// When a configuration of the command line or of the administrator cannot be read.
pub(super) fn find(
    context: &StartContext,
    folders: &Folders,
    settings: &Settings,
) -> Result<ServerFiles, StartError> {
    let Configured { servers: all, mut warnings, lists } = configured(context, folders, settings)?;
    warnings.extend(approval::waiting(&all));
    let mut servers = BTreeMap::new();
    for server in all {
        if matches!(server.approval, Approval::Approved | Approval::Disabled)
            && !servers.contains_key(&server.name)
        {
            warnings.extend(entry::unused(&server));
            servers.insert(server.name.clone(), entry::known(&server, context));
        }
    }
    Ok(ServerFiles { servers, warnings, lists })
}

/// Reads everything that configures servers, for people who want to see it.
///
/// # Errors
/// When a configuration of the command line or of the administrator cannot be read.
pub fn configured(
    context: &StartContext,
    folders: &Folders,
    settings: &Settings,
) -> Result<Configured, StartError> {
    let mut found = Configured { lists: settings.server_lists.clone(), ..Configured::default() };
    if let Some(managed) = managed::read(folders)? {
        let known =
            managed.iter().map(|server| (server.name.clone(), entry::known(server, context)));
        found.lists.managed = Some(known.map(|(name, known)| (name, known.config)).collect());
        found.servers = managed;
        // They are refused, with the reason.
        found.servers.extend(command_line::read(context)?);
        return Ok(found);
    }
    found.servers = command_line::read(context)?;
    if context.launch.strict_mcp_config {
        return Ok(found);
    }
    let of_user = UserFile::read(context).unwrap_or_else(|problem| {
        found.warnings.push(problem);
        UserFile::unreadable()
    });
    let choices = Choices::of(folders, settings, &of_user);
    if rules::wants(context, SettingSource::Local) {
        found.servers.extend(of_user.local_servers(&mut found.warnings));
    }
    if rules::wants(context, SettingSource::Project) {
        project::read(context, &folders.project, &choices, &mut found);
    }
    if rules::wants(context, SettingSource::User) {
        found.servers.extend(of_user.user_servers(&mut found.warnings));
    }
    Ok(found)
}

/// The configuration of a server as a session uses it: variables are filled in.
///
/// # Errors
/// What is wrong with the entry.
pub fn resolved(
    server: &ConfiguredServer,
    context: &StartContext,
) -> Result<ostler_proto::mcp::McpServerConfig, String> {
    let known = entry::known(server, context);
    known.problem.map_or(Ok(known.config), Err)
}

/// Checks an entry before it is written: it is well-formed, and the lists of the settings allow it.
///
/// # Errors
/// What is wrong with it.
pub fn check(
    context: &StartContext,
    folders: &Folders,
    settings: &Settings,
    scope: Scope,
    (name, entry): (&str, &Value),
) -> Result<(), String> {
    let file = write::place(context, scope)?.file;
    let (name, entry) = (name.to_owned(), entry.clone());
    let server = ConfiguredServer { name, scope, file, entry, approval: Approval::Approved };
    let config = entry::config(&server, context)?;
    let lists = configured(context, folders, settings).map_err(|error| error.to_string())?.lists;
    lists.refusal(&server.name, &config).map_or(Ok(()), Err)
}

/// Reads a JSON file; `None` if it is missing.
fn read(path: &Path, most: u64, boundary: &Boundary) -> Result<Option<Value>, Problem> {
    let problem =
        |reason: String| Problem { path: path.to_owned(), pointer: String::new(), reason };
    match boundary.read_text(path, most) {
        Ok(text) if text.trim().is_empty() => Ok(Some(Value::Object(Map::new()))),
        Ok(text) => serde_json::from_str(&text).map(Some).map_err(|error| {
            problem(format!("its MCP servers are left out, because it is not valid JSON: {error}"))
        }),
        Err(Refusal::Missing) => Ok(None),
        Err(refusal) => Err(problem(format!("its MCP servers are left out: {refusal}"))),
    }
}

/// The entries of a file: below `mcpServers`, or, where that is usual, without it.
fn entries(config: Value) -> Result<Map<String, Value>, String> {
    let servers = match config {
        Value::Object(mut config) => {
            config.shift_remove("mcpServers").unwrap_or(Value::Object(config))
        }
        other => other,
    };
    match servers {
        Value::Object(servers) => Ok(servers),
        Value::Null => Ok(Map::new()),
        other => {
            Err(format!("expected an object with MCP servers by name, found {}", kind(&other)))
        }
    }
}

/// What kind of JSON a value is. The value itself may be a secret.
fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests;
