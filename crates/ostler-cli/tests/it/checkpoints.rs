//! File checkpoints over real pipes.

use std::fs;
use std::path::PathBuf;

use ostler_testkit::{Script, ScriptedApi, reply, when};
use serde_json::{Value, json};

use crate::run::Ostler;
use crate::talk::Talk;

const FIRST: &str = "11111111-1111-4111-8111-111111111111";
const SECOND: &str = "22222222-2222-4222-8222-222222222222";
const ARGUMENTS: &[&str] = &["--permission-mode=acceptEdits", "--allowedTools", "Bash"];

/// The model creates a file, then changes two.
async fn place() -> (ScriptedApi, Ostler) {
    let ostler = Ostler::new();
    let path = |name: &str| ostler.path(name).display().to_string();
    let script = Script::new()
        .rule(
            when().turn(0),
            reply().tool_use("Write", json!({"file_path": path("note.txt"), "content": "one\n"})),
        )
        .rule(when().turn(1), reply().text("Wrote it."))
        .rule(
            when().turn(2),
            reply()
                .tool_use("Read", json!({"file_path": path("README.md")}))
                .tool_use("Read", json!({"file_path": path("note.txt")})),
        )
        .rule(
            when().turn(3),
            reply()
                .tool_use(
                    "Edit",
                    json!({"file_path": path("note.txt"), "old_string": "one", "new_string": "two"}),
                )
                .tool_use(
                    "Edit",
                    json!({"file_path": path("README.md"), "old_string": "A readme", "new_string": "No"}),
                ),
        )
        .rule(when(), reply().text("Edited."));
    let api = ScriptedApi::start(script).await;
    let ostler = ostler
        .env("ANTHROPIC_API_KEY", "key")
        .env("ANTHROPIC_BASE_URL", &api.base_url())
        .env("CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING", "true");
    (api, ostler)
}

fn rewind(to: &str) -> Value {
    json!({"subtype": "rewind_files", "user_message_id": to})
}

fn read(ostler: &Ostler, name: &str) -> Option<String> {
    fs::read_to_string(ostler.path(name)).ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_rewound_to_before_a_prompt_also_by_a_resumed_session() {
    let (_api, ostler) = place().await;
    let mut talk = Talk::with(&ostler, ARGUMENTS);
    talk.asked(json!({"subtype": "initialize"}));
    talk.say("write", Some(FIRST));
    let session = talk.result()["session_id"].as_str().unwrap().to_owned();
    talk.say("edit", Some(SECOND));
    talk.result();
    assert_eq!(read(&ostler, "note.txt").unwrap(), "two\n");

    let mut dry = rewind(SECOND);
    dry["dry_run"] = json!(true);
    let preview = talk.asked(dry);
    let folder = ostler.folder.path().canonicalize().unwrap();
    let path = |name: &str| folder.join(name).display().to_string();
    let expected = json!({
        "canRewind": true,
        "filesChanged": [path("README.md"), path("note.txt")],
        "insertions": 2,
        "deletions": 2,
    });
    assert_eq!(preview, expected);
    assert_eq!(read(&ostler, "note.txt").unwrap(), "two\n", "a dry run changes nothing");

    assert_eq!(talk.asked(rewind(SECOND)), json!({"canRewind": true, "skippedLinks": 0}));
    assert_eq!(read(&ostler, "note.txt").unwrap(), "one\n");
    assert_eq!(read(&ostler, "README.md").unwrap(), "# A readme\n");
    let unknown = talk.refused(rewind("99999999-9999-4999-8999-999999999999"));
    assert_eq!(unknown, "No file checkpoint found for this message.");
    assert_eq!(talk.end().code, Some(0));

    let backups = ostler.path("no-home/.claude/file-history").join(&session);
    assert!(backups.is_dir(), "{}", backups.display());
    let resume = format!("--resume={session}");
    let mut talk = Talk::with(&ostler, &[ARGUMENTS, &[&resume]].concat());
    talk.asked(rewind(FIRST));
    assert_eq!(read(&ostler, "note.txt"), None, "the file did not exist before the first prompt");
    assert_eq!(talk.end().code, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn no_checkpoints_are_made_unless_enabled() {
    let (_api, ostler) = place().await;
    let ostler = ostler.env("CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING", "");
    let mut talk = Talk::with(&ostler, ARGUMENTS);
    talk.say("write", Some(FIRST));
    talk.result();
    assert_eq!(talk.refused(rewind(FIRST)), "File rewinding is not enabled.");
    talk.end();
    assert!(!ostler.path("no-home/.claude/file-history").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_without_persistence_can_rewind_and_leaves_no_files() {
    let (_api, ostler) = place().await;
    let mut talk = Talk::with(&ostler, &[ARGUMENTS, &["--no-session-persistence"]].concat());
    talk.say("write", Some(FIRST));
    talk.result();
    assert!(ostler.path("note.txt").exists());
    talk.asked(rewind(FIRST));
    assert!(!ostler.path("note.txt").exists());
    talk.end();
    assert!(!ostler.path("no-home/.claude/file-history").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fork_rewinds_files_with_its_own_backups() {
    let (_api, ostler) = place().await;
    let mut talk = Talk::with(&ostler, ARGUMENTS);
    talk.say("write", Some(FIRST));
    let session = talk.result()["session_id"].as_str().unwrap().to_owned();
    talk.say("edit", Some(SECOND));
    talk.result();
    talk.end();
    let resume = format!("--resume={session}");
    let mut talk = Talk::with(&ostler, &[ARGUMENTS, &[&resume, "--fork-session"]].concat());
    talk.say("continue", None);
    let fork = talk.result()["session_id"].as_str().unwrap().to_owned();
    assert_ne!(fork, session);
    // The original's backups are not needed any more.
    let backups = ostler.path("no-home/.claude/file-history");
    fs::remove_dir_all(backups.join(&session)).unwrap();
    talk.asked(rewind(SECOND));
    assert_eq!(read(&ostler, "note.txt").unwrap(), "one\n");
    assert_eq!(read(&ostler, "README.md").unwrap(), "# A readme\n");
    talk.end();
    // A session that resumes the fork finds them in the fork's file.
    let resume = format!("--resume={fork}");
    let mut talk = Talk::with(&ostler, &[ARGUMENTS, &[&resume]].concat());
    talk.asked(rewind(FIRST));
    assert_eq!(read(&ostler, "note.txt"), None);
    talk.end();
}

/// The vendor's newer program, from npm.
fn vendor() -> PathBuf {
    let folder =
        std::env::var_os("OSTLER_NATIVE_PEERS").expect("it names a folder with npm packages");
    let machine = std::env::consts::ARCH.replace("x86_64", "x64").replace("aarch64", "arm64");
    let package = format!("node_modules/@anthropic-ai/claude-agent-sdk-linux-{machine}/claude");
    PathBuf::from(folder).join(package)
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs npm packages; run by cargo xtask test"]
async fn either_program_rewinds_changes_of_the_other() {
    let ours = Ostler::new().program;
    for (changing, rewinding) in [(ours.clone(), vendor()), (vendor(), ours)] {
        let (_api, mut ostler) = place().await;
        for quiet in ["CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "DISABLE_TELEMETRY"] {
            ostler = ostler.env(quiet, "1");
        }
        let arguments = [ARGUMENTS, &["--model=claude-sonnet-4-5"]].concat();
        ostler.program = changing;
        let mut talk = Talk::with(&ostler, &arguments);
        talk.asked(json!({"subtype": "initialize"}));
        talk.say("write", Some(FIRST));
        let session = talk.result()["session_id"].as_str().unwrap().to_owned();
        talk.say("edit", Some(SECOND));
        talk.result();
        talk.end();
        assert_eq!(read(&ostler, "note.txt").unwrap(), "two\n");

        ostler.program = rewinding;
        let resume = format!("--resume={session}");
        let mut talk = Talk::with(&ostler, &[&arguments[..], &[&resume]].concat());
        talk.asked(json!({"subtype": "initialize"}));
        talk.asked(rewind(SECOND));
        assert_eq!(read(&ostler, "note.txt").unwrap(), "one\n", "{}", ostler.program.display());
        assert_eq!(read(&ostler, "README.md").unwrap(), "# A readme\n");
        talk.asked(rewind(FIRST));
        assert_eq!(read(&ostler, "note.txt"), None, "{}", ostler.program.display());
        talk.end();
    }
}
