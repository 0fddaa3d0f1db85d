//! Compares this crate with the official Python SDK on the same folder: listing, reading and changing sessions.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::SystemTime;

use ostler::Message;
use ostler::sessions::{ForkOptions, SessionInfo};
use serde_json::{Value, json};

use super::folder::{BUSY, COMPACTED, Folder, LONG, OTHER, SIDECHAIN, TITLED, WORKTREE};
use super::texts;

struct Python {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Python {
    fn start(folder: &Folder) -> Self {
        let environment = std::env::var_os("OSTLER_PYTHON").expect("OSTLER_PYTHON is not set");
        let driver = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/peers/sessions.py");
        let mut child = Command::new(PathBuf::from(environment).join("bin/python"))
            .arg(driver)
            .env("CLAUDE_CONFIG_DIR", folder.config())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = child.stdin.take().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self { child, input, output }
    }

    fn ask(&mut self, command: &str, args: Value) -> Value {
        writeln!(self.input, "{}", json!([command, args])).unwrap();
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).expect("an answer of the SDK")
    }
}

impl Drop for Python {
    fn drop(&mut self) {
        // After a failed test it still waits for commands; otherwise it may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn millis(time: SystemTime) -> u128 {
    time.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_millis()
}

/// As the Python driver prints it.
fn info_json(info: &SessionInfo) -> Value {
    json!({
        "id": info.id, "summary": info.summary, "last_modified": millis(info.last_modified),
        "file_size": info.file_size, "custom_title": info.custom_title, "first_prompt": info.first_prompt,
        "git_branch": info.git_branch, "cwd": info.cwd, "tag": info.tag, "created_at": info.created_at.map(millis),
    })
}

fn message_json(message: &Message) -> Value {
    let (kind, uuid, session, message) = match message {
        Message::User(it) => ("user", json!(it.uuid), json!(it.session_id), json!(it.message)),
        Message::Assistant(it) => {
            ("assistant", json!(it.uuid), json!(it.session_id), json!(it.message))
        }
        _ => panic!("{message:?}"),
    };
    json!({"type": kind, "uuid": uuid, "session": session, "message": message})
}

#[tokio::test]
#[ignore = "needs a Python package; run by cargo xtask test"]
async fn the_official_sdk_lists_and_reads_the_same() {
    let folder = Folder::new();
    let mut python = Python::start(&folder);
    let here = folder.sessions().folder(folder.cwd());
    let directory = json!({"directory": folder.cwd()});
    let list = |listed: Vec<SessionInfo>| listed.iter().map(info_json).collect::<Value>();
    assert_eq!(list(here.list().await.unwrap()), python.ask("list", directory));
    let alone = json!({"directory": folder.cwd(), "include_worktrees": false});
    let ours = here.clone().without_worktrees().list().await.unwrap();
    assert_eq!(list(ours), python.ask("list", alone));
    assert_eq!(list(folder.sessions().list().await.unwrap()), python.ask("list", json!({})));
    let page = json!({"limit": 2, "offset": 1});
    assert_eq!(list(folder.sessions().page(1, 2).await.unwrap()), python.ask("list", page));
    for id in [TITLED, BUSY, COMPACTED, LONG, SIDECHAIN, WORKTREE, OTHER, "nonsense"] {
        let info = folder.sessions().info(id).await.unwrap();
        let theirs = python.ask("info", json!({"session_id": id}));
        assert_eq!(info.as_ref().map_or(Value::Null, info_json), theirs);
        let theirs = python.ask("messages", json!({"session_id": id}));
        let ours = folder.sessions().messages(id).await.unwrap_or_default();
        assert_eq!(ours.iter().map(message_json).collect::<Value>(), theirs, "{id}");
    }
}

#[tokio::test]
#[ignore = "needs a Python package; run by cargo xtask test"]
async fn the_official_sdk_and_this_crate_see_each_others_changes() {
    let folder = Folder::new();
    let mut python = Python::start(&folder);
    let sessions = folder.sessions();
    let same = async |python: &mut Python, id: &str| {
        let info = info_json(&sessions.info(id).await.unwrap().unwrap());
        assert_eq!(info, python.ask("info", json!({"session_id": id})));
        info
    };
    sessions.rename(BUSY, " by us ").await.unwrap();
    sessions.tag(BUSY, Some("ours")).await.unwrap();
    let info = same(&mut python, BUSY).await;
    assert_eq!((&info["summary"], &info["tag"]), (&json!("by us"), &json!("ours")));
    python.ask("rename", json!({"session_id": BUSY, "title": " by them "}));
    python.ask("tag", json!({"session_id": BUSY, "tag": null}));
    let info = same(&mut python, BUSY).await;
    assert_eq!((&info["summary"], &info["tag"]), (&json!("by them"), &Value::Null));

    let up_to = "00000000-0000-4000-8000-000000000002";
    let ours = sessions.fork_with(TITLED, ForkOptions::new().up_to(up_to)).await.unwrap();
    let theirs = json!({"session_id": TITLED, "up_to_message_id": up_to});
    let theirs = python.ask("fork", theirs).as_str().unwrap().to_owned();
    for fork in [ours.as_str(), &theirs] {
        let info = same(&mut python, fork).await;
        assert_eq!(info["summary"], "A title (fork)");
        let copy = sessions.messages(fork).await.unwrap();
        assert_eq!(texts(&copy), ["hello", "hi"]);
        let read = python.ask("messages", json!({"session_id": fork}));
        assert_eq!(copy.iter().map(message_json).collect::<Value>(), read);
    }
    sessions.delete(BUSY).await.unwrap();
    let gone = python.ask("delete", json!({"session_id": BUSY}));
    assert_eq!(gone, json!({"error": "FileNotFoundError"}));
    python.ask("delete", json!({"session_id": COMPACTED}));
    assert_eq!(sessions.info(COMPACTED).await.unwrap(), None);
}
