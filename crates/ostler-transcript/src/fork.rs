//! Forking: copies a conversation under a new id, with new uuids and the origin of each line.

use std::collections::HashMap;
use std::fs;
use std::io::Write as _;
use std::path::Path;

use ostler_proto::build;
use ostler_proto::transcript::{FileHistorySnapshot, FileSnapshot, TranscriptLine};
use ostler_proto::{SessionId, Uuid};
use serde_json::{Map, Value, json};

use super::file::create_private;
use super::line::links;
use super::{Clock, StoreError, io_error};
use crate::ids::fresh_uuid;

/// A finished fork.
pub(super) struct ForkedSession {
    pub(super) leaf: Option<Uuid>,
    /// The states of files before its prompts.
    pub(super) snapshots: Vec<FileSnapshot>,
}

/// Writes a copy of `lines`, in the order of the conversation, and of the `snapshots` of their prompts.
pub(super) fn write(
    path: &Path,
    lines: &[&TranscriptLine],
    snapshots: Vec<FileSnapshot>,
    from: &SessionId,
    to: &SessionId,
    title: &str,
    clock: &mut Clock,
) -> Result<ForkedSession, StoreError> {
    // Progress lines are only for the host of that run.
    let lines: Vec<_> =
        lines.iter().filter(|line| !matches!(line, TranscriptLine::Progress(_))).collect();
    let uuids: HashMap<&str, String> = lines
        .iter()
        .filter_map(|line| Some((links(line)?.uuid, fresh_uuid().to_string())))
        .collect();
    let mut bytes = Vec::new();
    let mut leaf: Option<String> = None;
    for (n, line) in lines.iter().enumerate() {
        let (Some(links), Ok(Value::Object(mut fields))) =
            (links(line), serde_json::to_value(line))
        else {
            continue;
        };
        // A single chain, whatever the tree was: every reader can walk it.
        let parent = links.parent.and(leaf.as_ref());
        fields.insert("parentUuid".to_owned(), json!(parent));
        for link in ["logicalParentUuid", "sourceToolAssistantUUID"] {
            map_link(&mut fields, link, &uuids);
        }
        let uuid = uuids.get(links.uuid).cloned().unwrap_or_default();
        fields.insert("uuid".to_owned(), json!(uuid));
        fields.insert("sessionId".to_owned(), json!(to));
        fields.insert("isSidechain".to_owned(), json!(false));
        fields
            .insert("forkedFrom".to_owned(), json!({"sessionId": from, "messageUuid": links.uuid}));
        if n + 1 == lines.len() {
            fields.insert("timestamp".to_owned(), json!(clock.tick()));
        }
        for foreign in ["teamName", "agentName", "slug"] {
            fields.shift_remove(foreign);
        }
        push(&mut bytes, &Value::Object(fields));
        leaf = Some(uuid);
    }
    let snapshots = renamed(snapshots, &uuids);
    for snapshot in &snapshots {
        let line = build!(FileHistorySnapshot {
            message_id: snapshot.message_id.clone(),
            snapshot: snapshot.clone(),
            is_snapshot_update: false,
        });
        push(&mut bytes, &json!(TranscriptLine::FileHistorySnapshot(line)));
    }
    let title = json!({"type": "custom-title", "customTitle": title, "sessionId": to});
    push(&mut bytes, &title);
    let mut file = create_private(path).map_err(io_error("create", path))?;
    if let Err(error) = file.write_all(&bytes) {
        // Half a fork would be taken for a whole one. If it cannot be removed either, the first error is enough.
        let _ = fs::remove_file(path);
        return Err(io_error("write", path)(error));
    }
    Ok(ForkedSession { leaf: leaf.map(Uuid::from), snapshots })
}

/// The snapshots of copied prompts, with the ids that hosts know and with those in the copy.
fn renamed(snapshots: Vec<FileSnapshot>, uuids: &HashMap<&str, String>) -> Vec<FileSnapshot> {
    let twice = snapshots.into_iter().filter_map(|known| {
        let new = uuids.get(known.message_id.as_str())?.as_str();
        let copy = build!(FileSnapshot { message_id: new.into(), ..known.clone() });
        Some([known, copy])
    });
    twice.flatten().collect()
}

fn map_link(fields: &mut Map<String, Value>, name: &str, uuids: &HashMap<&str, String>) {
    let Some(old) = fields.get(name) else { return };
    match old.as_str().and_then(|old| uuids.get(old)) {
        Some(new) => _ = fields.insert(name.to_owned(), json!(new)),
        None => _ = fields.shift_remove(name),
    }
}

fn push(bytes: &mut Vec<u8>, line: &Value) {
    bytes.extend_from_slice(line.to_string().as_bytes());
    bytes.push(b'\n');
}
