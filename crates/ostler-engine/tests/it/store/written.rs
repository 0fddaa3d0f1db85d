//! What the writer writes to disk.

use ostler_engine::store::{AgentMeta, StoreError, Transcript, TranscriptWriter};
use ostler_proto::build;
use ostler_proto::frame::ToHost;
use ostler_proto::message::system::{CompactBoundary, CompactMetadata};
use ostler_proto::message::{System, User};
use serde_json::json;

use super::*;

#[test]
fn lines_have_the_vendors_fields() {
    let disk = Disk::new();
    std::fs::create_dir(disk.cwd().join(".git")).unwrap();
    std::fs::write(disk.cwd().join(".git/HEAD"), "ref: refs/heads/feature/x\n").unwrap();
    let mut writer = disk.begin();
    assert!(!writer.path().exists(), "there is no message yet");
    writer.queue("enqueue", Some("hi")).unwrap();
    writer.queue("dequeue", None).unwrap();
    writer.asks("p", "hi");
    writer.says("a", "m1", call("t"));
    writer.answers("r", "t", "seen");
    writer.says("b", "m2", text("Done."));
    writer.turn_ended().unwrap();

    let lines = json_lines(writer.path());
    let id = writer.session_id().as_str();
    assert_eq!(lines[0]["content"], "hi");
    assert!(lines[1].get("content").is_none());
    for line in &lines[2..7] {
        assert_eq!(line["sessionId"], id);
        assert_eq!(line["isSidechain"], false);
        assert_eq!(line["userType"], "external");
        assert_eq!(line["cwd"], disk.cwd().display().to_string());
        assert_eq!(line["version"], "0.1.0");
        assert_eq!(line["gitBranch"], "feature/x");
        let time = line["timestamp"].as_str().unwrap();
        assert!(time.len() == 24 && time.ends_with('Z') && &time[19..20] == ".", "{time}");
    }
    assert_eq!(lines[2]["parentUuid"], json!(null));
    assert_eq!(lines[2]["permissionMode"], "default");
    // The vendor's program looks for something of this kind after the first prompt.
    let today = lines[3]["timestamp"].as_str().unwrap()[..10].to_owned();
    assert_eq!(lines[3]["attachment"], json!({"type": "date", "date": today}));
    assert_eq!(lines[3]["parentUuid"], "p");
    assert_eq!((&lines[4]["uuid"], &lines[4]["parentUuid"]), (&json!("a"), &lines[3]["uuid"]));
    assert_eq!(lines[5]["sourceToolAssistantUUID"], "a");
    assert_eq!(lines[5]["toolUseResult"], json!({"stdout": "seen"}));
    assert_eq!(lines[6]["parentUuid"], "r");
    assert_eq!(
        lines[7],
        json!({"type": "last-prompt", "lastPrompt": "hi", "leafUuid": "b", "sessionId": id})
    );
    assert_eq!(lines.len(), 8);
}

#[test]
fn a_session_reads_back_as_it_was_written() {
    let disk = Disk::new();
    let mut writer = disk.begin();
    writer.asks("p", "look twice");
    writer.says("a1", "m1", text("Looking."));
    writer.says("a2", "m1", call("t1"));
    // The first call is answered while the response still streams, the third before the second.
    writer.answers("r1", "t1", "one");
    writer.says("a3", "m1", call("t2"));
    writer.says("a4", "m1", call("t3"));
    writer.answers("r3", "t3", "three");
    writer.answers("r2", "t2", "two");
    writer.says("b", "m2", text("Three things."));
    let opened = disk.resume(writer.session_id().as_str());
    assert!(opened.resumed);
    assert_valid(&opened.conversation);
    assert_eq!(
        story(&opened.conversation),
        [
            "user: look twice",
            "assistant: Looking. | Look(t1) | Look(t2) | Look(t3)",
            "user: t1=one | t2=two | t3=three",
            "assistant: Three things.",
        ]
    );
    let transcript = Transcript::read(writer.path()).unwrap();
    assert_eq!(uuids(&transcript.messages()), ["p", "a1", "a2", "r1", "a3", "a4", "r3", "r2", "b"]);
}

#[test]
fn an_interrupted_call_reads_back_as_the_turn_left_it() {
    let disk = Disk::new();
    let mut writer = disk.begin();
    writer.asks("p", "go");
    writer.says("a", "m1", call("t"));
    let mut marker = User::new(ostler_engine::turn::INTERRUPTED_TOOLS.into(), None);
    marker.uuid = Some("x".into());
    writer.frame(&ToHost::User(Box::new(marker))).unwrap();
    let conversation = disk.resume(writer.session_id().as_str()).conversation;
    let expected = format!(
        "user: t={} | {}",
        ostler_engine::turn::INTERRUPTED_CALL,
        ostler_engine::turn::INTERRUPTED_TOOLS
    );
    assert_eq!(story(&conversation)[2], expected);
    assert_valid(&conversation);
}

#[test]
fn compaction_begins_a_new_conversation_in_the_same_file() {
    let disk = Disk::new();
    let mut writer = disk.begin();
    writer.asks("p", "long story");
    writer.says("a", "m1", text("Very long."));
    let compact_metadata = build!(CompactMetadata { trigger: "manual".to_owned(), pre_tokens: 15 });
    let boundary = build!(CompactBoundary { compact_metadata, uuid: "c".into() });
    writer.frame(&ToHost::System(System::CompactBoundary(boundary))).unwrap();
    let mut summary = User::new("In short.".into(), None);
    summary.uuid = Some("s".into());
    writer.compact_summary(&summary).unwrap();
    writer.asks("q", "and now?");
    let boundary = &json_lines(writer.path())[3];
    assert_eq!(
        (&boundary["parentUuid"], &boundary["logicalParentUuid"]),
        (&json!(null), &json!("a"))
    );
    assert_eq!(boundary["compactMetadata"], json!({"trigger": "manual", "preTokens": 15}));
    let conversation = disk.resume(writer.session_id().as_str()).conversation;
    assert_eq!(story(&conversation), ["user: In short. | and now?"]);
}

#[test]
fn a_subagent_has_its_own_file() {
    let disk = Disk::new();
    let mut writer = disk.begin();
    writer.asks("p", "delegate");
    writer.says("a", "m1", call("t"));
    let meta = AgentMeta {
        agent_type: "general-purpose".to_owned(),
        description: "work".to_owned(),
        tool_use_id: "t".into(),
        spawn_depth: 1,
        parent_agent_id: None,
    };
    let mut agent = writer.subagent("a1b2".into(), &meta).unwrap();
    agent.asks("sp", "do it");
    let ToHost::Assistant(mut said) = assistant("sa", "m2", text("Did it.")) else { panic!() };
    said.parent_tool_use_id = Some("t".into());
    let frame = ToHost::Assistant(said);
    agent.frame(&frame).unwrap();
    let before = json_lines(writer.path()).len();
    writer.frame(&frame).unwrap();
    assert_eq!(json_lines(writer.path()).len(), before, "not the main conversation's");

    let folder = writer.path().with_extension("").join("subagents");
    assert_eq!(agent.path(), folder.join("agent-a1b2.jsonl"));
    let meta = &json_lines(&folder.join("agent-a1b2.meta.json"))[0];
    assert_eq!(meta["toolUseId"], "t");
    for line in json_lines(agent.path()) {
        assert_eq!((&line["isSidechain"], &line["agentId"]), (&json!(true), &json!("a1b2")));
    }
    let read = Transcript::read_subagent(agent.path()).unwrap();
    assert_eq!(story(&read.conversation()), ["user: do it", "assistant: Did it."]);
    assert_eq!(disk.projects.all_sessions().len(), 1, "a subagent is not a session");
    assert!(writer.subagent("../x".into(), &AgentMeta::default()).is_err());
}

/// Resuming from the mirrored lines also needs `meta.json`.
#[test]
fn the_mirrored_lines_of_a_subagent_begin_with_its_metadata() {
    let disk = Disk::new();
    let mut writer = disk.begin();
    writer.mirror();
    let meta = AgentMeta { agent_type: "Explore".to_owned(), ..AgentMeta::default() };
    let mut agent = writer.subagent("a1".into(), &meta).unwrap();
    agent.asks("p", "do it");
    let mirrored = agent.take_mirrored();
    assert_eq!(
        mirrored[0],
        json!({"type": "agent_metadata", "agentType": "Explore", "description": "", "toolUseId": "", "spawnDepth": 0})
    );
    assert_eq!(mirrored[1..], json_lines(agent.path()));
}

#[cfg(unix)]
#[test]
fn files_and_folders_are_private() {
    use std::os::unix::fs::PermissionsExt as _;
    let disk = Disk::new();
    let mut writer = disk.begin();
    writer.asks("p", "hi");
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(writer.path()), 0o600);
    assert_eq!(mode(writer.path().parent().unwrap()), 0o700);
    writer.subagent("a1".into(), &AgentMeta::default()).unwrap();
    let folder = writer.path().with_extension("").join("subagents");
    assert_eq!((mode(&folder), mode(&folder.join("agent-a1.meta.json"))), (0o700, 0o600));
}

#[test]
fn a_failed_write_loses_only_its_lines() {
    let disk = Disk::new();
    let mut writer = disk.begin();
    // There is a file in place of the folder.
    let folder = writer.path().parent().unwrap().to_owned();
    std::fs::create_dir_all(folder.parent().unwrap()).unwrap();
    std::fs::write(&folder, "").unwrap();
    let error = writer.title("no").unwrap_err();
    assert!(matches!(&error, StoreError::Io { .. }) && error.code().is_some(), "{error}");
    std::fs::remove_file(&folder).unwrap();
    writer.asks("p", "again");
    assert_eq!(story(&disk.resume(writer.session_id().as_str()).conversation), ["user: again"]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_reported_as_such() {
    let disk = Disk::new();
    let mut writer = disk.begin();
    writer.asks("p", "hi");
    let path = writer.path().to_owned();
    let mut resumed = disk.resume(writer.session_id().as_str()).writer;
    std::fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink("/dev/full", &path).unwrap();
    assert_eq!(resumed.title("too much").unwrap_err().code(), Some("ENOSPC"));
}

#[test]
fn many_sessions_write_in_parallel() {
    let disk = Disk::new();
    let writers: Vec<_> = (0..8).map(|_| disk.begin()).collect();
    let speak = |mut writer: TranscriptWriter| {
        for n in 0..50 {
            writer.asks(&format!("p{n}"), "hi");
            writer.says(&format!("a{n}"), &format!("m{n}"), text(&"x".repeat(5000)));
        }
        writer.session_id().clone()
    };
    let ids: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> =
            writers.into_iter().map(|writer| scope.spawn(move || speak(writer))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    for id in ids {
        let opened = disk.resume(id.as_str());
        assert_eq!((opened.conversation.len(), opened.n_skipped), (100, 0));
    }
}
