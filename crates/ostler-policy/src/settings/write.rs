//! Changes one settings file: everything else in it stays in its order, and the file is complete at every moment.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::Path;

use ostler_proto::permission::{PermissionBehavior, PermissionUpdate, RulesUpdate};
use serde_json::{Map, Value, json};

use super::SettingsError;
use crate::permission::Rule;

/// Writes a change of permissions to a settings file. Creates the file and its folder if they are missing.
pub fn keep(path: &Path, update: &PermissionUpdate) -> Result<(), SettingsError> {
    // A link stays a link: its target is rewritten.
    let path = &path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let _lock = lock(path)?;
    let mut root = read(path)?;
    let permissions = root.entry("permissions").or_insert_with(|| json!({}));
    let Value::Object(permissions) = permissions else {
        return Err(SettingsError::one(path, "permissions", "it is not an object"));
    };
    change(permissions, update)
        .map_err(|reason| SettingsError::one(path, "permissions", reason))?;
    put(path, &root)
}

/// Merges changes into a settings file: objects by their fields, everything else as a whole; `null` removes a field.
pub fn merge(path: &Path, change: &Map<String, Value>) -> Result<(), SettingsError> {
    let path = &path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let _lock = lock(path)?;
    let mut root = read(path)?;
    join(&mut root, change);
    put(path, &root)
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
/// time are both written. The folder is locked, because the file itself is replaced. Dropping the file unlocks it.
fn lock(path: &Path) -> Result<File, SettingsError> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let locked = || {
        fs::create_dir_all(folder)?;
        let folder = File::open(folder)?;
        folder.lock()?;
        Ok(folder)
    };
    locked().map_err(|error: std::io::Error| {
        SettingsError::one(path, "", format!("it cannot be locked, so it is not changed: {error}"))
    })
}

/// The settings of a file; empty if the file is missing.
fn read(path: &Path) -> Result<Map<String, Value>, SettingsError> {
    let wrong = |reason: &dyn ToString| SettingsError::one(path, "", reason.to_string());
    match ostler_files::read_text(path, super::load::LONGEST_FILE) {
        Ok(text) if text.trim().is_empty() => Ok(Map::new()),
        Ok(text) => match serde_json::from_str(&text) {
            Ok(Value::Object(root)) => Ok(root),
            Ok(_) => Err(wrong(&"it is not a JSON object and is not changed")),
            Err(error) => Err(wrong(&format!("it is malformed and is not changed: {error}"))),
        },
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Map::new()),
        Err(error) => Err(wrong(&error)),
    }
}

fn put(path: &Path, root: &Map<String, Value>) -> Result<(), SettingsError> {
    let wrong = |reason: &dyn ToString| SettingsError::one(path, "", reason.to_string());
    let mut text = serde_json::to_string_pretty(root).map_err(|error| wrong(&error))?;
    text.push('\n');
    ostler_files::replace(path, text.as_bytes(), 0o666).map_err(|error| wrong(&error))
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
