//! Session files that are damaged, hostile or not files: the session is resumed without the unreadable parts, or the
//! program reports that there is no session.

use std::fs;
use std::path::PathBuf;

use ostler_testkit::{Script, ScriptedApi, reply, when};
use serde_json::{Value, json};

use super::peak::measure;
use super::{at, prompt};
use crate::run::{Ostler, Ran};

/// A session of two prompts, in a file.
struct Conversation {
    api: ScriptedApi,
    ostler: Ostler,
    id: String,
    file: PathBuf,
}

impl Conversation {
    async fn new() -> Self {
        let script = Script::new().rule(when(), reply().text("Fine."));
        let api = ScriptedApi::start(script).await;
        let ostler = at(&api.base_url());
        let ran = ostler.run(&["-p", "first prompt", "--output-format", "json"]);
        let result: Value = serde_json::from_str(&ran.stdout).unwrap();
        let id = result["session_id"].as_str().unwrap().to_owned();
        let ran = ostler.run(&["--resume", &id, "-p", "second prompt"]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let sessions = ostler.path("no-home").join(".claude/projects");
        let folder = fs::read_dir(sessions).unwrap().next().unwrap().unwrap().path();
        let file = folder.join(format!("{id}.jsonl"));
        Self { api, ostler, id, file }
    }

    fn resume(&self, name: &str) -> Ran {
        let arguments = ["--resume", &self.id, "-p", "third prompt"];
        let name = format!("session file: {name}");
        tokio::task::block_in_place(|| measure(&name, prompt(&self.ostler, &arguments)))
    }

    /// The last request to the model, as text.
    fn last_request(&self) -> String {
        self.api.requests().last().unwrap().body.to_string()
    }
}

/// Damages the file and resumes the session; the new prompt and these earlier ones reach the model.
async fn check_resumed(name: &str, damage: impl Fn(Vec<u8>) -> Vec<u8>, kept: &[&str]) {
    let conversation = Conversation::new().await;
    let bytes = fs::read(&conversation.file).unwrap();
    fs::write(&conversation.file, damage(bytes)).unwrap();
    let ran = conversation.resume(name);
    assert_eq!(ran.code, Some(0), "{name}: {:.500} {:.500}", ran.stdout, ran.stderr);
    let request = conversation.last_request();
    for part in [kept, &["third prompt"]].concat() {
        assert!(request.contains(part), "{name}: {part:?} is missing in {request:.3000}");
    }
}

/// Damages the file so that nothing is left of the session; the program reports it.
async fn check_refused(name: &str, damage: impl Fn(&Conversation)) {
    let conversation = Conversation::new().await;
    damage(&conversation);
    let ran = conversation.resume(name);
    assert_eq!(ran.code, Some(1), "{name}: {:.500} {:.500}", ran.stdout, ran.stderr);
    assert!(ran.stderr.contains("No conversation found"), "{name}: {:.500}", ran.stderr);
    let listed = prompt(&conversation.ostler, &["sessions"]);
    let listed = tokio::task::block_in_place(|| measure(&format!("sessions: {name}"), listed));
    assert_eq!(listed.code, Some(0), "{name}: {}", listed.stderr);
}

fn appended(mut bytes: Vec<u8>, more: &[u8]) -> Vec<u8> {
    bytes.extend_from_slice(more);
    bytes
}

#[tokio::test(flavor = "multi_thread")]
async fn a_torn_session_file_is_resumed() {
    let torn = |bytes: Vec<u8>| bytes[..bytes.len() - 40].to_vec();
    check_resumed("torn at the end", torn, &["first prompt"]).await;
    let middle = |mut bytes: Vec<u8>| {
        let end = bytes.iter().position(|byte| *byte == b'\n').unwrap();
        bytes.splice(end + 1..end + 1, b"{\"type\":\"user\",\"mess\n".to_vec());
        bytes
    };
    check_resumed("torn in the middle", middle, &["first prompt", "second prompt"]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_file_with_junk_in_it_is_resumed() {
    let all = ["first prompt", "second prompt"];
    let junk: Vec<u8> =
        (0..1_000_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    check_resumed("junk", |bytes| appended(appended(bytes, &junk), b"\n"), &all).await;
    check_resumed("a million NULs", |bytes| appended(bytes, &[0; 1_000_000]), &all).await;
    let deep = "[".repeat(50_000) + &"]".repeat(50_000) + "\n";
    check_resumed("50,000 levels", |bytes| appended(bytes, deep.as_bytes()), &all).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_file_whose_messages_are_their_own_parents_ends() {
    let conversation = Conversation::new().await;
    let text = fs::read_to_string(&conversation.file).unwrap();
    let mut lines: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let last = lines.iter().rev().find_map(|line| line["uuid"].as_str()).unwrap().to_owned();
    let first = lines.iter_mut().find(|line| line["uuid"].is_string()).unwrap();
    first["parentUuid"] = json!(last);
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    fs::write(&conversation.file, text).unwrap();
    let ran = conversation.resume("a circle of parents");
    // No message in it is a beginning.
    assert_eq!(ran.code, Some(1), "{:.500} {:.500}", ran.stdout, ran.stderr);
    assert!(ran.stderr.contains("No conversation found"), "{}", ran.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_file_that_is_empty_or_a_pipe_is_not_a_session() {
    check_refused("empty", |it| fs::write(&it.file, "").unwrap()).await;
    check_refused("a named pipe", |it| {
        fs::remove_file(&it.file).unwrap();
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        let kind = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, &it.file, kind, mode, 0).unwrap();
    })
    .await;
    check_refused("a folder", |it| {
        fs::remove_file(&it.file).unwrap();
        fs::create_dir(&it.file).unwrap();
    })
    .await;
}
