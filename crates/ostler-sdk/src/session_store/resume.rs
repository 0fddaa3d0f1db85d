//! Loads the session to resume from its store, and writes it to a folder in which the engine looks for sessions.

use std::collections::HashSet;
use std::io;
use std::path::Path;
use std::time::Duration;

use ostler_process::Environment;
use ostler_proto::launch::SessionChoice;
use serde_json::{Map, Value};

use super::{
    ConfigFolder, SessionKey, SessionStoreError, SessionStoreOptions, StoreFuture, project_key,
};
use crate::callback::{Failure, called};
use crate::error::{Error, SessionError};

/// The type of lines with metadata of a subagent. On disk these lines are a separate file.
const AGENT_METADATA: &str = "agent_metadata";

/// A session of a store.
struct Loaded {
    session_id: String,
    entries: Vec<Value>,
    /// The transcripts of its subagents, by `subpath`.
    subagents: Vec<(String, Vec<Value>)>,
}

/// A session in a folder in which the engine finds it.
pub(crate) struct Resumable {
    pub(crate) session_id: String,
    pub(crate) folder: ConfigFolder,
}

/// Loads the session of `choice` for an engine in `cwd`. `None` if there is nothing to load: a new session, or one that
/// the store does not have.
pub(crate) async fn load_for_resume(
    store: &SessionStoreOptions,
    choice: &SessionChoice,
    cwd: &Path,
    env: &Environment,
) -> Result<Option<Resumable>, Error> {
    let folder_name = project_key(cwd);
    let project = store.project_key.as_ref().unwrap_or(&folder_name);
    let loaded = match &choice.resume {
        // Ids become file names.
        Some(id) if is_uuid(id) => load(store, &SessionKey::new(project, id)).await?,
        None if choice.go_on => newest(store, project).await?,
        // A title or the beginning of an id is resolved by the engine, on its disk.
        _ => None,
    };
    let Some(loaded) = loaded else { return Ok(None) };
    let session_id = loaded.session_id.clone();
    let env = env.clone();
    let written = tokio::task::spawn_blocking(move || {
        let folder = ConfigFolder::create(&env)?;
        write(&folder, &folder_name, &loaded)?;
        Ok::<_, io::Error>(folder)
    });
    match written.await.map_err(io::Error::other).flatten() {
        Ok(folder) => Ok(Some(Resumable { session_id, folder })),
        Err(error) => Err(SessionError::Storage(format!(
            "cannot write session {session_id} to a temporary folder: {error}"
        ))
        .into()),
    }
}

/// The session that was changed last. Transcripts of subagents that a store lists as sessions are skipped.
async fn newest(store: &SessionStoreOptions, project: &str) -> Result<Option<Loaded>, Error> {
    let listing = store.store.list_sessions(project);
    let mut sessions = answer(listing, store.load_timeout, "list_sessions").await?;
    sessions.sort_by_key(|session| std::cmp::Reverse(session.modified));
    for session in sessions.into_iter().filter(|session| is_uuid(&session.session_id)) {
        if let Some(loaded) = load(store, &SessionKey::new(project, session.session_id)).await?
            && loaded.entries[0].get("isSidechain") != Some(&Value::Bool(true))
        {
            return Ok(Some(loaded));
        }
    }
    Ok(None)
}

/// A session with its subagents; `None` if it has no lines.
async fn load(store: &SessionStoreOptions, key: &SessionKey) -> Result<Option<Loaded>, Error> {
    let limit = store.load_timeout;
    let entries = answer(store.store.load(key), limit, "load").await?.unwrap_or_default();
    if entries.is_empty() {
        return Ok(None);
    }
    let subkeys = match called(store.store.list_subkeys(key), Some(limit)).await {
        Ok(Err(SessionStoreError::Unsupported(_))) => Vec::new(),
        answered => checked(answered, "list_subkeys")?,
    };
    let mut subagents = Vec::new();
    for subpath in subkeys {
        if !is_relative(&subpath) {
            tracing::warn!(subpath, "left out of a resumed session: it is not a relative path");
            continue;
        }
        let key = key.clone().with_subpath(&subpath);
        let entries = answer(store.store.load(&key), limit, "load").await?.unwrap_or_default();
        subagents.push((subpath, entries));
    }
    Ok(Some(Loaded { session_id: key.session_id.clone(), entries, subagents }))
}

/// The answer of a store, or an error if it takes too long.
async fn answer<T>(
    asked: StoreFuture<'_, T>,
    limit: Duration,
    method: &'static str,
) -> Result<T, Error> {
    checked(called(asked, Some(limit)).await, method)
}

fn checked<T>(
    answered: Result<Result<T, SessionStoreError>, Failure>,
    method: &'static str,
) -> Result<T, Error> {
    let reason = match answered {
        Ok(Ok(value)) => return Ok(value),
        Ok(Err(error)) => error.to_string(),
        Err(failure) => failure.text(),
    };
    Err(SessionError::Storage(format!(
        "cannot resume: the session store's `{method}` failed: {reason}"
    ))
    .into())
}

fn write(folder: &ConfigFolder, project: &str, loaded: &Loaded) -> io::Result<()> {
    let project = folder.transcripts().join(project);
    let Loaded { session_id, entries, subagents } = loaded;
    folder.write(&project.join(format!("{session_id}.jsonl")), &lines(entries.iter()))?;
    for (subpath, entries) in subagents {
        let (metadata, transcript): (Vec<_>, Vec<_>) =
            entries.iter().partition(|entry| entry.get("type") == Some(&AGENT_METADATA.into()));
        let path = |end: &str| project.join(session_id).join(format!("{subpath}{end}"));
        if !transcript.is_empty() {
            folder.write(&path(".jsonl"), &lines(transcript.into_iter()))?;
        }
        // Metadata is written again when a subagent is resumed, so the last line counts.
        if let Some(Value::Object(metadata)) = metadata.last() {
            let mut metadata = metadata.clone();
            metadata.shift_remove("type");
            folder.write(&path(".meta.json"), &serde_json::to_vec(&metadata)?)?;
        }
    }
    Ok(())
}

/// The lines of a file. A line that a retry stored twice is written once.
fn lines<'a>(entries: impl Iterator<Item = &'a Value>) -> Vec<u8> {
    let mut seen = HashSet::new();
    let mut bytes = Vec::new();
    for entry in entries {
        let uuid = entry.get("uuid").and_then(Value::as_str);
        if uuid.is_none_or(|uuid| seen.insert(uuid)) {
            bytes.extend_from_slice(type_first(entry).to_string().as_bytes());
            bytes.push(b'\n');
        }
    }
    bytes
}

/// Puts `type` first: a database may change the order of fields, and programs that search session files for titles and
/// tags look for `{"type":`. Lines of the conversation stay as they are, because they are parsed completely.
fn type_first(entry: &Value) -> Value {
    let Value::Object(fields) = entry else { return entry.clone() };
    let Some(kind) = fields.get("type").filter(|_| !fields.contains_key("parentUuid")) else {
        return entry.clone();
    };
    let mut sorted = Map::from_iter([("type".to_owned(), kind.clone())]);
    sorted.extend(fields.iter().map(|(name, value)| (name.clone(), value.clone())));
    Value::Object(sorted)
}

fn is_uuid(text: &str) -> bool {
    text.len() == 36 && uuid::Uuid::try_parse(text).is_ok()
}

/// Whether a `subpath` of a store stays inside the folder of its session.
fn is_relative(subpath: &str) -> bool {
    let is_name =
        |part: &str| !matches!(part, "" | "." | "..") && !part.contains(['\\', '\0', ':']);
    subpath.split('/').all(is_name)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_relative_subpaths_become_files() {
        for good in ["subagents/agent-1", "subagents/team/agent-1", "x"] {
            assert!(is_relative(good), "{good}");
        }
        for bad in ["", "/etc/x", "..", "a/../b", "a//b", "./a", "a/", "a\\b", "C:x", "a\0b"] {
            assert!(!is_relative(bad), "{bad}");
        }
    }

    #[test]
    fn a_line_that_was_stored_twice_is_written_once_and_its_type_comes_first() {
        let entries = [
            json!({"uuid": "u1", "type": "user"}),
            json!({"customTitle": "A", "type": "custom-title"}),
            json!({"uuid": "u1", "type": "user"}),
            json!({"customTitle": "A", "type": "custom-title"}),
        ];
        let title = r#"{"type":"custom-title","customTitle":"A"}"#;
        let expected = format!("{{\"type\":\"user\",\"uuid\":\"u1\"}}\n{title}\n{title}\n");
        assert_eq!(String::from_utf8(lines(entries.iter())).unwrap(), expected);
    }
}
