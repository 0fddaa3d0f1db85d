//! Changes one settings file: everything else in it stays in its order, and the file is complete at every moment.

use std::fs::File;
use std::io;
use std::path::Path;

use ostler_files::RealPath;
use ostler_proto::permission::{PermissionBehavior, PermissionUpdate, RulesUpdate};
use serde_json::{Map, Value, json};

use super::{Folders, SettingsError};
use crate::permission::{Rule, Source};

/// Writes a change of permissions to a settings file. Creates the file and its folder if they are missing.
pub fn keep(
    folders: &Folders,
    path: &Path,
    update: &PermissionUpdate,
) -> Result<(), SettingsError> {
    let file = real_file(folders, path)?;
    let _lock = lock(&file)?;
    let mut root = read(&file)?;
    let permissions = root.entry("permissions").or_insert_with(|| json!({}));
    let Value::Object(permissions) = permissions else {
        return Err(SettingsError::one(path, "permissions", "it is not an object"));
    };
    change(permissions, update)
        .map_err(|reason| SettingsError::one(path, "permissions", reason))?;
    put(&file, &root)
}

/// Merges changes into a settings file: objects by their fields, everything else as a whole; `null` removes a field.
pub fn merge(
    folders: &Folders,
    path: &Path,
    change: &Map<String, Value>,
) -> Result<(), SettingsError> {
    let file = real_file(folders, path)?;
    let _lock = lock(&file)?;
    let mut root = read(&file)?;
    join(&mut root, change);
    put(&file, &root)
}

/// The file that a settings file really is: a link stays a link, and its target is rewritten. A command can put a link
/// into a project, so there it may only lead to another file of the project.
fn real_file(folders: &Folders, path: &Path) -> Result<RealPath, SettingsError> {
    let wrong = |reason: String| SettingsError::one(path, "", reason);
    let file = RealPath::resolve(path)
        .map_err(|error| wrong(format!("it leads nowhere and is not changed: {error}")))?;
    let of_project = [Source::Project, Source::Local].map(|source| folders.file(source));
    // In the home directory the user's file is also that of the project.
    let is_of_user = folders.file(Source::User).as_deref() == Some(path);
    if of_project.iter().flatten().any(|known| known == path) && !is_of_user {
        let project =
            RealPath::resolve(&folders.project).map_err(|error| wrong(error.to_string()))?;
        if !file.as_path().starts_with(project.as_path()) {
            let leads = file.as_path().display();
            return Err(wrong(format!(
                "it leads to {leads}, outside the project, and is not changed; put a file in place of the link"
            )));
        }
    }
    Ok(file)
}

/// Merges settings, see [`merge`].
pub fn join(into: &mut Map<String, Value>, from: &Map<String, Value>) {
    for (name, value) in from {
        match (into.get_mut(name), value) {
            (_, Value::Null) => _ = into.shift_remove(name),
            (Some(Value::Object(into)), Value::Object(from)) => join(into, from),
            _ => _ = into.insert(name.clone(), value.clone()),
        }
    }
}

/// Keeps other sessions from changing the file between reading and writing it: two rules that are granted at the same
/// time are both written. The folder above the file's own is locked: the file itself is replaced, and a sandbox that keeps
/// the place of a missing folder locks that folder while a command runs. Dropping the file unlocks it.
fn lock(file: &RealPath) -> Result<File, SettingsError> {
    let locked = || {
        let folder = file.parent()?;
        folder.create_folders(0o777)?;
        let above = folder.parent().unwrap_or(folder);
        let above = above.open_folder()?;
        above.lock()?;
        Ok(above)
    };
    locked().map_err(|error: io::Error| {
        let reason = format!("it cannot be locked, so it is not changed: {error}");
        SettingsError::one(file.as_path(), "", reason)
    })
}

/// The settings of a file; empty if the file is missing.
fn read(file: &RealPath) -> Result<Map<String, Value>, SettingsError> {
    let wrong = |reason: &dyn ToString| SettingsError::one(file.as_path(), "", reason.to_string());
    match file.read_text(super::load::LONGEST_FILE) {
        Ok(text) if text.trim().is_empty() => Ok(Map::new()),
        Ok(text) => match serde_json::from_str(&text) {
            Ok(Value::Object(root)) => Ok(root),
            Ok(_) => Err(wrong(&"it is not a JSON object and is not changed")),
            Err(error) => Err(wrong(&format!("it is malformed and is not changed: {error}"))),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Map::new()),
        Err(error) => Err(wrong(&error)),
    }
}

fn put(file: &RealPath, root: &Map<String, Value>) -> Result<(), SettingsError> {
    let wrong = |reason: &dyn ToString| SettingsError::one(file.as_path(), "", reason.to_string());
    let mut text = serde_json::to_string_pretty(root).map_err(|error| wrong(&error))?;
    text.push('\n');
    file.replace(text.as_bytes(), 0o666).map_err(|error| wrong(&error))
}

fn change(permissions: &mut Map<String, Value>, update: &PermissionUpdate) -> Result<(), String> {
    match update {
        PermissionUpdate::AddRules(update) => {
            add(list(permissions, word(update)?)?, texts(update)?)
        }
        PermissionUpdate::ReplaceRules(update) => {
            let list = list(permissions, word(update)?)?;
            list.clear();
            add(list, texts(update)?);
        }
        PermissionUpdate::RemoveRules(update) => {
            let rules: Vec<Rule> =
                texts(update)?.iter().filter_map(|text| text.parse().ok()).collect();
            // Two spellings of the same rule count as one.
            list(permissions, word(update)?)?.retain(|kept| {
                !kept
                    .as_str()
                    .and_then(|text| text.parse().ok())
                    .is_some_and(|rule| rules.contains(&rule))
            });
        }
        PermissionUpdate::SetMode(update) => {
            permissions.insert("defaultMode".to_owned(), json!(update.mode.to_string()));
        }
        PermissionUpdate::AddDirectories(update) => {
            add(list(permissions, "additionalDirectories")?, update.directories.clone());
        }
        PermissionUpdate::RemoveDirectories(update) => {
            let list = list(permissions, "additionalDirectories")?;
            list.retain(|kept| {
                !kept
                    .as_str()
                    .is_some_and(|kept| update.directories.iter().any(|gone| gone == kept))
            });
        }
        other => return Err(format!("a change of an unknown kind: {other:?}")),
    }
    Ok(())
}

fn word(update: &RulesUpdate) -> Result<&'static str, String> {
    match &update.behavior {
        PermissionBehavior::Allow => Ok("allow"),
        PermissionBehavior::Deny => Ok("deny"),
        PermissionBehavior::Ask => Ok("ask"),
        other => Err(format!("{other} is not a valid behaviour of rules")),
    }
}

fn texts(update: &RulesUpdate) -> Result<Vec<String>, String> {
    let rules = update.rules.iter().map(|rule| Rule::from_wire(rule).map(|rule| rule.to_string()));
    rules.collect::<Result<_, _>>().map_err(|error| error.to_string())
}

fn list<'m>(
    permissions: &'m mut Map<String, Value>,
    name: &str,
) -> Result<&'m mut Vec<Value>, String> {
    match permissions.entry(name).or_insert_with(|| json!([])) {
        Value::Array(list) => Ok(list),
        _ => Err(format!("{name} is not a list")),
    }
}

fn add(list: &mut Vec<Value>, texts: Vec<String>) {
    for text in texts {
        if !list.iter().any(|kept| kept.as_str() == Some(&text)) {
            list.push(Value::String(text));
        }
    }
}
