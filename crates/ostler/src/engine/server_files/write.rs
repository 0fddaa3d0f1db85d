//! Changes the files with servers: `~/.claude.json`, which the vendor's program writes too, and `.mcp.json`.
//!
//! Everything else in a file stays, in its order, and the file is complete at every moment.

use std::path::{Path, PathBuf};

use ostler_files::{FileLock, RealPath};
use serde_json::{Map, Value, json};

use super::project::FILE;
use super::{LONGEST_FILE, Scope, StartContext, rules, user_file};

/// Where entries of a scope are written.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Place {
    /// The file.
    pub file: PathBuf,
    /// The project whose entry of `~/.claude.json` it is.
    pub project: Option<PathBuf>,
}

/// The place of a scope.
///
/// # Errors
/// When there is no home directory, or for a scope that no file belongs to.
pub fn place(context: &StartContext, scope: Scope) -> Result<Place, String> {
    let of_user =
        || user_file::path(context).ok_or("there is no home directory: set HOME".to_owned());
    match scope {
        Scope::User => Ok(Place { file: of_user()?, project: None }),
        Scope::Local => {
            Ok(Place { file: of_user()?, project: Some(user_file::project_key(context)) })
        }
        Scope::Project => {
            Ok(Place { file: rules::folders(context).project.join(FILE), project: None })
        }
        Scope::Dynamic | Scope::Managed => {
            Err(format!("servers of the scope {} are not in a file of yours", scope.word()))
        }
    }
}

/// Adds an entry.
///
/// # Errors
/// When there is one of this name, or the file cannot be changed.
pub fn add(
    context: &StartContext,
    scope: Scope,
    name: &str,
    entry: Value,
) -> Result<Place, String> {
    let place = place(context, scope)?;
    change(context, scope, &place, |root| {
        let servers = object(within(root, &place)?, "mcpServers")?;
        if servers.contains_key(name) {
            let scope = scope.word();
            return Err(format!(
                "the MCP server {name} exists already in the {scope} scope: remove it first, with ostler mcp remove \
                 {name} -s {scope}"
            ));
        }
        servers.insert(name.to_owned(), entry);
        Ok(())
    })?;
    Ok(place)
}

/// Removes an entry. Returns whether there was one.
///
/// # Errors
/// When the file cannot be changed.
pub fn remove(context: &StartContext, scope: Scope, name: &str) -> Result<bool, String> {
    let place = place(context, scope)?;
    if !place.file.exists() {
        return Ok(false);
    }
    change(context, scope, &place, |root| {
        Ok(object(within(root, &place)?, "mcpServers")?.shift_remove(name).is_some())
    })
}

/// Notes that the user approves a server of `.mcp.json`.
///
/// # Errors
/// When the file cannot be changed.
pub fn approve(context: &StartContext, name: &str) -> Result<Place, String> {
    choose(context, "enabledMcpjsonServers", name)
}

/// Notes that the user rejects a server of `.mcp.json`.
///
/// # Errors
/// When the file cannot be changed.
pub fn reject(context: &StartContext, name: &str) -> Result<Place, String> {
    choose(context, "disabledMcpjsonServers", name)
}

/// Adds the name of a server to a list of the user's choices for this project.
fn choose(context: &StartContext, list: &str, name: &str) -> Result<Place, String> {
    let place = place(context, Scope::Local)?;
    change(context, Scope::Local, &place, |root| {
        let entry = within(root, &place)?;
        let names = entry.entry(list).or_insert_with(|| json!([]));
        let names = names.as_array_mut().ok_or_else(|| format!("{list} is not a list"))?;
        if !names.iter().any(|it| it == name) {
            names.push(json!(name));
        }
        Ok(())
    })?;
    Ok(place)
}

/// Forgets the choices about servers of `.mcp.json` in `~/.claude.json`. Returns whether there were any.
///
/// # Errors
/// When the file cannot be changed.
pub fn reset_choices(context: &StartContext) -> Result<bool, String> {
    let place = place(context, Scope::Local)?;
    if !place.file.exists() {
        return Ok(false);
    }
    change(context, Scope::Local, &place, |root| {
        let entry = within(root, &place)?;
        let keys =
            ["enabledMcpjsonServers", "disabledMcpjsonServers", "enableAllProjectMcpServers"];
        let is_choice = |value: Value| !matches!(&value, Value::Array(names) if names.is_empty());
        let removed = keys.map(|key| entry.shift_remove(key).is_some_and(is_choice));
        Ok(removed.contains(&true))
    })
}

/// Changes a file under its lock. It is written only if something has changed.
fn change<T>(
    context: &StartContext,
    scope: Scope,
    place: &Place,
    change: impl FnOnce(&mut Map<String, Value>) -> Result<T, String>,
) -> Result<T, String> {
    let is_of_project = scope == Scope::Project;
    let wrong = |reason: String| format!("{}: {reason}", place.file.display());
    let file = real_file(context, &place.file, is_of_project).map_err(wrong)?;
    let _lock = FileLock::take(&file, !is_of_project).map_err(wrong)?;
    let most = if is_of_project { LONGEST_FILE } else { user_file::LONGEST };
    let mut root = read(&file, most).map_err(wrong)?;
    let before = root.clone();
    let changed = change(&mut root).map_err(wrong)?;
    if root != before {
        let text = serde_json::to_string_pretty(&root).map_err(|error| wrong(error.to_string()))?;
        // The user's file may hold secrets.
        let mode = if is_of_project { 0o666 } else { 0o600 };
        let written = file.replace(format!("{text}\n").as_bytes(), mode);
        written.map_err(|error| wrong(format!("it cannot be written: {error}")))?;
    }
    Ok(changed)
}

/// The file that a path leads to. A command can put a link into a project, so there it may only lead to another file of
/// the project.
fn real_file(context: &StartContext, path: &Path, is_of_project: bool) -> Result<RealPath, String> {
    let resolve = |path: &Path| {
        RealPath::resolve(path)
            .map_err(|error| format!("it leads nowhere and is not changed: {error}"))
    };
    let file = resolve(path)?;
    let project = resolve(&rules::folders(context).project)?;
    if is_of_project && !file.as_path().starts_with(project.as_path()) {
        let leads = file.as_path().display();
        return Err(format!(
            "it leads to {leads}, outside the project, and is not changed; put a file in place of the link"
        ));
    }
    Ok(file)
}

fn read(file: &RealPath, most: u64) -> Result<Map<String, Value>, String> {
    match file.read_text(most) {
        Ok(text) if text.trim().is_empty() => Ok(Map::new()),
        Ok(text) => match serde_json::from_str(&text) {
            Ok(Value::Object(root)) => Ok(root),
            Ok(_) => Err("it is not a JSON object and is not changed".to_owned()),
            Err(error) => Err(format!("it is malformed and is not changed: {error}")),
        },
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Map::new()),
        Err(error) => Err(format!("it cannot be read and is not changed: {error}")),
    }
}

/// The object in which a place has its entries.
fn within<'r>(
    root: &'r mut Map<String, Value>,
    place: &Place,
) -> Result<&'r mut Map<String, Value>, String> {
    match &place.project {
        None => Ok(root),
        Some(project) => object(object(root, "projects")?, &project.to_string_lossy()),
    }
}

fn object<'r>(
    root: &'r mut Map<String, Value>,
    key: &str,
) -> Result<&'r mut Map<String, Value>, String> {
    let value = root.entry(key).or_insert_with(|| json!({}));
    value.as_object_mut().ok_or_else(|| format!("{key} is not an object, and nothing is changed"))
}
