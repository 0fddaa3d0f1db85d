//! A configuration folder with sessions of every kind.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use ostler::Sessions;
use serde_json::{Value, json};

/// Has a title, a tag and two prompts.
pub(crate) const TITLED: &str = "00000000-0000-4000-8000-000000000001";
/// Ran two tools at once; also has a line for the model alone, one of a subagent and one of an unknown type.
pub(crate) const BUSY: &str = "00000000-0000-4000-8000-000000000002";
/// Was compacted.
pub(crate) const COMPACTED: &str = "00000000-0000-4000-8000-000000000003";
/// Is longer than the beginning and the end that a listing reads.
pub(crate) const LONG: &str = "00000000-0000-4000-8000-000000000004";
/// Belongs to a subagent and is not listed.
pub(crate) const SIDECHAIN: &str = "00000000-0000-4000-8000-000000000005";
/// Belongs to another git worktree of the same repository.
pub(crate) const WORKTREE: &str = "00000000-0000-4000-8000-000000000006";
/// Belongs to another folder.
pub(crate) const OTHER: &str = "00000000-0000-4000-8000-000000000007";

pub(crate) struct Folder {
    root: tempfile::TempDir,
    cwd: PathBuf,
}

impl Folder {
    pub(crate) fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let base = root.path().canonicalize().unwrap();
        let folder = Self { cwd: base.join("work"), root };
        let (linked, other) = (base.join("linked"), base.join("other"));
        let entry = folder.cwd.join(".git/worktrees/linked");
        for path in [&entry, &linked, &other, &folder.cwd.join(".git/refs")] {
            fs::create_dir_all(path).unwrap();
        }
        // The minimum that git accepts as a repository.
        fs::create_dir_all(folder.cwd.join(".git/objects")).unwrap();
        fs::write(folder.cwd.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
        fs::write(entry.join("HEAD"), "ref: refs/heads/side\n").unwrap();
        fs::write(entry.join("commondir"), "../..\n").unwrap();
        fs::write(entry.join("gitdir"), format!("{}\n", linked.join(".git").display())).unwrap();
        fs::write(linked.join(".git"), format!("gitdir: {}\n", entry.display())).unwrap();
        let cwd = folder.cwd.clone();
        folder.put(&cwd, TITLED, &titled(&cwd));
        folder.put(&cwd, BUSY, &busy());
        folder.put(&cwd, COMPACTED, &compacted());
        folder.put(&cwd, LONG, &long());
        folder.put(&cwd, SIDECHAIN, &[sidechain()]);
        folder.put(&linked, WORKTREE, &[user(WORKTREE, 1, None, json!("in the worktree"))]);
        folder.put(&other, OTHER, &[user(OTHER, 1, None, json!("somewhere else"))]);
        // Neither is a session.
        fs::write(folder.file(BUSY).with_file_name("notes.jsonl"), "{}\n").unwrap();
        let empty = "00000000-0000-4000-8000-00000000000f.jsonl";
        fs::write(folder.file(BUSY).with_file_name(empty), "").unwrap();
        folder
    }

    pub(crate) fn cwd(&self) -> &Path {
        &self.cwd
    }

    pub(crate) fn config(&self) -> PathBuf {
        self.root.path().join("config")
    }

    pub(crate) fn sessions(&self) -> Sessions {
        Sessions::new().config_folder(self.config())
    }

    /// The file of a session of the working directory.
    pub(crate) fn file(&self, id: &str) -> PathBuf {
        self.project(&self.cwd).join(format!("{id}.jsonl"))
    }

    fn project(&self, cwd: &Path) -> PathBuf {
        let name = cwd.display().to_string();
        let name = name.replace(|c: char| !c.is_ascii_alphanumeric(), "-");
        self.config().join("projects").join(name)
    }

    /// Writes a session. Its file is a minute newer than that of the session with the preceding id.
    fn put(&self, cwd: &Path, id: &str, lines: &[Value]) {
        let folder = self.project(cwd);
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join(format!("{id}.jsonl"));
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        fs::write(&path, text).unwrap();
        let minute: u64 = id[35..].parse().unwrap();
        let at = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000 + 60 * minute);
        fs::File::options().write(true).open(&path).unwrap().set_modified(at).unwrap();
    }
}

fn uuid(n: u32) -> String {
    format!("00000000-0000-4000-8000-{n:012x}")
}

fn line(session: &str, n: u32, parent: Option<u32>, kind: &str, message: Value) -> Value {
    json!({"parentUuid": parent.map(uuid), "isSidechain": false, "type": kind, "message": message,
        "uuid": uuid(n), "sessionId": session, "timestamp": format!("2026-01-01T00:00:{n:02}.000Z")})
}

fn user(session: &str, n: u32, parent: Option<u32>, content: Value) -> Value {
    line(session, n, parent, "user", json!({"role": "user", "content": content}))
}

fn model(session: &str, n: u32, parent: Option<u32>, response: &str, block: Value) -> Value {
    let message = json!({"model": "claude-sonnet-5-5", "id": response, "type": "message", "role": "assistant",
        "content": [block], "stop_reason": null, "stop_sequence": null,
        "usage": {"input_tokens": 1, "output_tokens": 2}});
    line(session, n, parent, "assistant", message)
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn with(mut line: Value, field: &str, value: impl Into<Value>) -> Value {
    line[field] = value.into();
    line
}

fn titled(cwd: &Path) -> Vec<Value> {
    let first = user(TITLED, 1, None, json!("hello"));
    let first = with(with(first, "cwd", cwd.display().to_string()), "gitBranch", "main");
    vec![
        first,
        model(TITLED, 2, Some(1), "m1", text("hi")),
        user(TITLED, 3, Some(2), json!([text("and now?")])),
        model(TITLED, 4, Some(3), "m2", text("nothing")),
        json!({"type": "last-prompt", "lastPrompt": "and now?", "sessionId": TITLED}),
        json!({"type": "custom-title", "customTitle": "A title", "sessionId": TITLED}),
        json!({"type": "tag", "tag": "kept", "sessionId": TITLED}),
    ]
}

fn busy() -> Vec<Value> {
    let call =
        |id: &str, name: &str| json!({"type": "tool_use", "id": id, "name": name, "input": {}});
    let result =
        |id: &str| json!([{"type": "tool_result", "tool_use_id": id, "content": "done with it"}]);
    vec![
        with(user(BUSY, 1, None, json!("for the model alone")), "isMeta", true),
        user(BUSY, 2, Some(1), json!("two things")),
        model(BUSY, 3, Some(2), "m1", call("t1", "Bash")),
        model(BUSY, 4, Some(3), "m1", call("t2", "Read")),
        with(user(BUSY, 5, Some(3), result("t1")), "sourceToolAssistantUUID", uuid(3)),
        with(user(BUSY, 6, Some(4), result("t2")), "sourceToolAssistantUUID", uuid(4)),
        with(user(BUSY, 7, None, json!("to a subagent")), "isSidechain", true),
        json!({"type": "something-new", "uuid": uuid(8), "parentUuid": null, "value": 1}),
        model(BUSY, 9, Some(6), "m2", text("both done")),
    ]
}

fn compacted() -> Vec<Value> {
    let boundary = json!({"type": "system", "subtype": "compact_boundary", "content": "Conversation compacted",
        "parentUuid": null, "logicalParentUuid": uuid(2), "isSidechain": false, "uuid": uuid(3),
        "sessionId": COMPACTED, "timestamp": "2026-01-01T00:00:03.000Z"});
    vec![
        user(COMPACTED, 1, None, json!("before it")),
        model(COMPACTED, 2, Some(1), "m1", text("an answer")),
        boundary,
        with(user(COMPACTED, 4, Some(3), json!("the summary")), "isCompactSummary", true),
        model(COMPACTED, 5, Some(4), "m2", text("after it")),
    ]
}

fn long() -> Vec<Value> {
    vec![
        user(LONG, 1, None, json!(format!("a long prompt {}", "word ".repeat(100)))),
        model(LONG, 2, Some(1), "m1", text(&"x".repeat(200_000))),
        json!({"type": "summary", "summary": "What it was about", "leafUuid": uuid(2)}),
    ]
}

fn sidechain() -> Value {
    with(user(SIDECHAIN, 1, None, json!("a subagent's")), "isSidechain", true)
}
