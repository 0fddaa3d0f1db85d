//! Reads the part of a session file that a resumed conversation needs: everything after the last compaction.
//!
//! A compacted conversation begins at its boundary. The part before it is searched for file snapshots and otherwise
//! neither parsed nor stored, so that a session of hundreds of megabytes takes no more memory than its end.

use std::io::{self, BufReader, Seek as _, SeekFrom};
use std::path::Path;

use memchr::memmem::Finder;
use ostler_proto::transcript::TranscriptLine;

use super::reader::{Transcript, read_line};

/// The size of a chunk.
const PORTION: usize = 1024 * 1024;

/// Reads the end of a session file. `None` when the conversation needs more than that: it was never compacted, or a
/// line after the last boundary has a parent before it.
pub(super) fn read(path: &Path) -> io::Result<Option<Transcript>> {
    let mut file = ostler_files::open(path)?;
    let Some(BoundaryPosition { offset, snapshots }) = look_through(&file)? else {
        return Ok(None);
    };
    file.seek(SeekFrom::Start(offset))?;
    let transcript = Transcript::from_reader(BufReader::with_capacity(PORTION, file))?;
    let is_whole = {
        let tree = transcript.tree();
        tree.is_closed()
            && tree.leaf().is_some_and(|leaf| tree.is_ours(leaf) && !tree.is_meta(leaf))
    };
    Ok(is_whole.then(|| transcript.after(snapshots)))
}

/// The position of the last boundary, and the file snapshots before it.
struct BoundaryPosition {
    offset: u64,
    snapshots: Vec<TranscriptLine>,
}

fn look_through(file: &std::fs::File) -> io::Result<Option<BoundaryPosition>> {
    let (boundary, snapshot) =
        (Finder::new("compact_boundary"), Finder::new("file-history-snapshot"));
    let mut reader = BufReader::with_capacity(PORTION, file);
    let (mut line, mut at) = (Vec::new(), 0);
    let (mut last, mut snapshots, mut n_before) = (None, Vec::new(), 0);
    while let Some(read) = read_line(&mut reader, &mut line)? {
        if snapshot.find(&line).is_some()
            && let Ok(found @ TranscriptLine::FileHistorySnapshot(_)) =
                serde_json::from_slice(&line)
        {
            snapshots.push(found);
        } else if boundary.find(&line).is_some() && is_boundary(&line) {
            last = Some(at);
            n_before = snapshots.len();
        }
        at += read.n_bytes;
    }
    // Those after the boundary are read with everything else there.
    snapshots.truncate(n_before);
    Ok(last.map(|offset| BoundaryPosition { offset, snapshots }))
}

/// Whether a line is a compaction boundary, and not one that only mentions it.
fn is_boundary(line: &[u8]) -> bool {
    matches!(serde_json::from_slice(line), Ok(TranscriptLine::System(entry))
        if entry.subtype == "compact_boundary" && entry.is_sidechain != Some(true) && entry.parent_uuid.is_none())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn said(role: &str, uuid: &str, parent: Option<&str>, text: &str) -> Value {
        let content = json!([{"type": "text", "text": text}]);
        let message = match role {
            "user" => json!({"role": "user", "content": content}),
            _ => {
                json!({"role": "assistant", "id": uuid, "type": "message", "model": "m", "content": content})
            }
        };
        json!({"type": role, "uuid": uuid, "parentUuid": parent, "sessionId": "s", "isSidechain": false,
            "timestamp": "2026-01-01T00:00:00.000Z", "message": message})
    }

    fn boundary(uuid: &str) -> Value {
        json!({"type": "system", "subtype": "compact_boundary", "uuid": uuid, "parentUuid": null, "sessionId": "s",
            "isSidechain": false, "timestamp": "2026-01-01T00:00:00.000Z", "content": "Conversation compacted"})
    }

    fn snapshot(of: &str) -> Value {
        json!({"type": "file-history-snapshot", "messageId": of, "isSnapshotUpdate": false,
            "snapshot": {"messageId": of, "trackedFileBackups": {}, "timestamp": "2026-01-01T00:00:00.000Z"}})
    }

    fn file(lines: &[Value]) -> tempfile::NamedTempFile {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        file
    }

    fn compacted() -> Vec<Value> {
        vec![
            snapshot("a1"),
            said("user", "a1", None, "old prompt that mentions compact_boundary"),
            said("assistant", "a2", Some("a1"), "old answer"),
            boundary("b1"),
            said("user", "c1", Some("b1"), "older summary"),
            snapshot("c1"),
            boundary("b2"),
            said("user", "d1", Some("b2"), "summary"),
            said("assistant", "d2", Some("d1"), "answer"),
            snapshot("d1"),
        ]
    }

    // Mutants: the first boundary counts; snapshots before it are dropped.
    #[test]
    fn the_end_of_a_compacted_file_gives_the_same_conversation_as_the_whole_file() {
        let file = file(&compacted());
        let (end, whole) =
            (read(file.path()).unwrap().unwrap(), Transcript::read(file.path()).unwrap());
        assert_eq!(end.conversation(), whole.conversation());
        assert_eq!(end.leaf(), whole.leaf());
        assert_eq!(end.lines().len(), 6, "three lines, three snapshots");
        let snapshots = |it: &Transcript| crate::checkpoint::snapshots(it.lines());
        assert_eq!(snapshots(&end), snapshots(&whole));
    }

    // Mutant: `is_closed` is always true.
    #[test]
    fn a_conversation_that_begins_before_the_boundary_is_read_whole() {
        let never = &compacted()[..3];
        // A session was resumed from before the compaction.
        let rewound = [compacted(), vec![said("user", "e1", Some("a2"), "another way")]].concat();
        let bare = &compacted()[..7];
        for lines in [never, &rewound, bare, &[]] {
            assert!(read(file(lines).path()).unwrap().is_none(), "{lines:?}");
        }
    }
}
