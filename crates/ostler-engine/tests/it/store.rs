//! Sessions on disk: what is written, what is read back, what is listed.

mod damage;
mod resume;
mod vendor;
mod written;

use std::path::{Path, PathBuf};

use ostler_engine::model::ChatMessage;
use ostler_engine::store::{
    LineContext, OpenedSession, Projects, SessionStart, StartFrom, TranscriptWriter,
};
use ostler_proto::api::{Content, ContentBlock, Message, Role, ToolResultBlock};
use ostler_proto::build;
use ostler_proto::frame::ToHost;
use ostler_proto::message::{Assistant, User};
use ostler_proto::permission::PermissionMode;
use ostler_proto::transcript::TranscriptLine;
use serde_json::{Value, json};

/// A configuration folder and a working directory, both removed afterwards.
struct Disk {
    root: tempfile::TempDir,
    projects: Projects,
}

impl Disk {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("work")).unwrap();
        let projects = Projects::new(&root.path().join("config"));
        Self { root, projects }
    }

    fn cwd(&self) -> PathBuf {
        self.root.path().join("work").canonicalize().unwrap()
    }

    fn scene(&self) -> LineContext {
        LineContext {
            cwd: self.cwd(),
            version: "0.1.0".to_owned(),
            entrypoint: Some("cli".to_owned()),
        }
    }

    fn open(&self, start: SessionStart) -> OpenedSession {
        self.projects.open(self.scene(), &start).unwrap()
    }

    fn begin(&self) -> TranscriptWriter {
        self.open(SessionStart::default()).writer
    }

    fn resume(&self, id: &str) -> OpenedSession {
        self.open(resume(id))
    }

    /// Writes a session file of the working directory.
    fn put(&self, id: &str, lines: &str) -> PathBuf {
        let folder = self.projects.folder(&self.cwd());
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join(format!("{id}.jsonl"));
        std::fs::write(&path, lines).unwrap();
        path
    }

    fn error(&self, start: SessionStart) -> String {
        self.projects.open(self.scene(), &start).unwrap_err().to_string()
    }
}

fn resume(id: &str) -> SessionStart {
    SessionStart { begin: StartFrom::Resume(id.to_owned()), ..SessionStart::default() }
}

/// Writes to a transcript the way a session does.
trait Speak {
    fn asks(&mut self, uuid: &str, text: &str);
    fn says(&mut self, uuid: &str, response: &str, block: Value);
    fn answers(&mut self, uuid: &str, call: &str, text: &str);
}

impl Speak for TranscriptWriter {
    fn asks(&mut self, uuid: &str, text: &str) {
        let mut user = User::prompt(text);
        user.uuid = Some(uuid.into());
        self.prompt(&user, &PermissionMode::Default).unwrap();
    }

    fn says(&mut self, uuid: &str, response: &str, block: Value) {
        self.frame(&assistant(uuid, response, block)).unwrap();
    }

    fn answers(&mut self, uuid: &str, call: &str, text: &str) {
        self.frame(&result(uuid, call, text)).unwrap();
    }
}

fn assistant(uuid: &str, response: &str, block: Value) -> ToHost {
    let message = build!(Message {
        id: Some(response.to_owned()),
        role: Role::Assistant,
        model: "model".to_owned(),
        content: vec![serde_json::from_value(block).unwrap()]
    });
    ToHost::Assistant(Box::new(build!(Assistant { message, uuid: uuid.into() })))
}

fn result(uuid: &str, call: &str, text: &str) -> ToHost {
    let block =
        build!(ToolResultBlock { tool_use_id: call.into(), content: Some(Content::from(text)) });
    let mut user = User::new(vec![ContentBlock::ToolResult(block)].into(), None);
    user.uuid = Some(uuid.into());
    user.tool_use_result = Some(json!({"stdout": text}));
    ToHost::User(Box::new(user))
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn call(id: &str) -> Value {
    json!({"type": "tool_use", "id": id, "name": "Look", "input": {"word": id}})
}

/// A conversation, one line per message.
fn story(conversation: &[ChatMessage]) -> Vec<String> {
    let block = |block: &ContentBlock| match block {
        ContentBlock::Text(block) => block.text.clone(),
        ContentBlock::ToolUse(call) => format!("{}({})", call.name, call.id),
        ContentBlock::ToolResult(result) => {
            let text = result.content.as_ref().map(Content::text).unwrap_or_default();
            format!("{}={text}", result.tool_use_id)
        }
        other => format!("<{}>", other.tag().unwrap_or("?")),
    };
    let blocks =
        |said: &ChatMessage| said.content.iter().map(block).collect::<Vec<_>>().join(" | ");
    conversation.iter().map(|said| format!("{}: {}", said.role.as_str(), blocks(said))).collect()
}

fn uuids(lines: &[&TranscriptLine]) -> Vec<String> {
    lines
        .iter()
        .map(|line| serde_json::to_value(line).unwrap()["uuid"].as_str().unwrap().to_owned())
        .collect()
}

fn json_lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Panics unless the API would accept the conversation.
fn assert_valid(conversation: &[ChatMessage]) {
    for (n, said) in conversation.iter().enumerate() {
        let expected = if n % 2 == 0 { Role::User } else { Role::Assistant };
        assert_eq!(said.role, expected, "roles alternate: {:#?}", story(conversation));
        assert!(!said.content.is_empty(), "{:#?}", story(conversation));
        let calls: Vec<_> = match n.checked_sub(1) {
            Some(before) if said.role == Role::User => conversation[before]
                .content
                .iter()
                .filter_map(|block| Some(&block.as_tool_use()?.id))
                .collect(),
            _ => Vec::new(),
        };
        let mut results = Vec::new();
        let mut server_calls = Vec::new();
        for block in &said.content {
            let of_model = said.role == Role::Assistant;
            match block {
                ContentBlock::Text(block) => assert!(!block.text.trim().is_empty()),
                ContentBlock::Thinking(block) => {
                    assert!(of_model && block.signature.as_deref().is_some_and(|s| !s.is_empty()));
                }
                ContentBlock::ToolUse(call) => {
                    assert!(of_model && call.input.is_object());
                    assert!(n + 1 < conversation.len(), "unanswered: {:#?}", story(conversation));
                }
                ContentBlock::ServerToolUse(call) => server_calls.push(call.id.clone()),
                ContentBlock::WebSearchToolResult(result) => {
                    let at = server_calls.iter().position(|id| *id == result.tool_use_id);
                    server_calls.remove(at.expect("a server tool's result has a call"));
                }
                ContentBlock::ToolResult(result) => {
                    assert!(!of_model);
                    results.push(&result.tool_use_id);
                }
                _ => {}
            }
        }
        assert_eq!(results, calls, "every call is answered once: {:#?}", story(conversation));
        assert!(server_calls.is_empty(), "{:#?}", story(conversation));
    }
}
