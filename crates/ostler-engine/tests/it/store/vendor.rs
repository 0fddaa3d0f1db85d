//! Files that the vendor's CLI wrote, at both levels, and the smallest valid file.

use ostler_engine::store::Transcript;

use super::*;

const ID: &str = "00000000-0000-4000-8000-000000000001";

fn recorded(name: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/wire");
    std::fs::read_to_string(root.join(format!("transcript-{name}.jsonl"))).unwrap()
}

#[track_caller]
fn check(level: &str, kind: &str, summary: &str, expected: &[&str]) {
    let disk = Disk::new();
    disk.put(ID, &recorded(&format!("{level}-{kind}")));
    let info = disk.projects.latest(&disk.cwd()).unwrap();
    assert_eq!((info.id.as_str(), &*info.summary), (ID, summary));
    assert_eq!(
        (info.cwd.as_deref(), info.git_branch.as_deref()),
        (Some("/workspace"), Some("HEAD"))
    );
    assert!(info.created.is_some());
    let opened = disk.resume(ID);
    assert_eq!(opened.n_skipped, 0);
    assert_valid(&opened.conversation);
    assert_eq!(story(&opened.conversation), expected);
}

#[test]
fn tool_sessions_of_both_levels_are_resumed() {
    let expected = [
        "user: Run it",
        "assistant: Running it. | Bash(toolu_bash_1)",
        "user: toolu_bash_1=",
        "assistant: Done with bash.",
    ];
    check("2.1.50", "tool", "Run it", &expected);
    let expected = [
        expected[0],
        expected[1],
        "user: toolu_bash_1=(Bash completed with no output)",
        expected[3],
    ];
    check("2.1.325", "tool", "Run it", &expected);
}

#[test]
fn several_turns_with_checkpoints_are_resumed() {
    let written = "toolu_w_1=File created successfully at: /workspace/note.txt";
    for (level, summary) in [("2.1.50", "FIRST write"), ("2.1.325", "SECOND edit")] {
        let disk = Disk::new();
        disk.put(ID, &recorded(&format!("{level}-checkpoint")));
        assert_eq!(disk.projects.latest(&disk.cwd()).unwrap().summary, summary);
        let conversation = disk.resume(ID).conversation;
        assert_valid(&conversation);
        let story = story(&conversation);
        assert_eq!(story.len(), 8, "{story:#?}");
        assert!(story[2].starts_with(&format!("user: {written}")), "{story:#?}");
        assert_eq!(story[4], "user: SECOND edit");
    }
}

#[test]
fn a_compacted_session_begins_with_its_summary() {
    for level in ["2.1.50", "2.1.325"] {
        let disk = Disk::new();
        disk.put(ID, &recorded(&format!("{level}-compact")));
        let conversation = disk.resume(ID).conversation;
        assert_valid(&conversation);
        let story = story(&conversation);
        assert!(story[0].starts_with("user: This session is being continued"), "{story:#?}");
        assert!(story[0].ends_with("| After"), "{story:#?}");
        assert_eq!(story.len(), 2, "{story:#?}");
    }
}

#[test]
fn an_api_error_is_not_part_of_the_conversation() {
    check("2.1.50", "apierror", "Say hello", &["user: Say hello"]);
    // The newer level says that the prompt itself was refused.
    check("2.1.325", "apierror", "Say hello", &[]);
}

#[test]
fn subagents_are_read_but_not_listed() {
    for level in ["2.1.50", "2.1.325"] {
        let disk = Disk::new();
        let path = disk.put(ID, &recorded(&format!("{level}-subagent")));
        assert!(disk.projects.sessions(&disk.cwd()).is_empty());
        let transcript = Transcript::read_subagent(&path).unwrap();
        let conversation = transcript.conversation();
        assert_valid(&conversation);
        assert!(story(&conversation)[0].starts_with("user: SUBAGENT-WORK please"));
        assert!(Transcript::read(&path).unwrap().messages().is_empty());
    }
}

#[test]
fn our_lines_come_after_the_vendors() {
    for level in ["2.1.50", "2.1.325"] {
        let disk = Disk::new();
        let old = recorded(&format!("{level}-tool"));
        let path = disk.put(ID, &old);
        let mut writer = disk.resume(ID).writer;
        writer.asks("p", "more");
        writer.says("a", "m9", text("Yes."));
        let new = std::fs::read_to_string(path).unwrap();
        assert!(new.starts_with(&old), "only appended to");
        let conversation = disk.resume(ID).conversation;
        assert_eq!(story(&conversation)[4..], ["user: more", "assistant: Yes."]);
        assert_eq!(conversation.len(), 6);
    }
}

/// The vendor makes each result a child of its own call.
#[test]
fn parallel_calls_are_all_read() {
    let disk = Disk::new();
    let line = |kind: &str, uuid: &str, parent: &str, message: Value| {
        let line = json!({"type": kind, "uuid": uuid, "parentUuid": parent, "message": message,
            "sessionId": ID, "timestamp": "2026-01-01T00:00:00.000Z"});
        format!("{line}\n")
    };
    let says = |uuid: &str, parent: &str, id: &str, block: Value| {
        line("assistant", uuid, parent, json!({"role": "assistant", "id": id, "content": [block]}))
    };
    let result = |uuid: &str, parent: &str, id: &str| {
        let block = json!({"type": "tool_result", "tool_use_id": id, "content": "seen"});
        line("user", uuid, parent, json!({"role": "user", "content": [block]}))
    };
    let path = disk.put(
        ID,
        &[
            line("user", "p", "", json!({"role": "user", "content": "go"})),
            says("a1", "p", "m1", call("t1")),
            says("a2", "a1", "m1", call("t2")),
            says("a3", "a2", "m1", call("t3")),
            result("r3", "a3", "t3"),
            result("r1", "a1", "t1"),
            result("r2", "a2", "t2"),
            says("b", "r2", "m2", text("Done.")),
        ]
        .concat(),
    );
    let conversation = disk.resume(ID).conversation;
    assert_valid(&conversation);
    assert_eq!(
        story(&conversation),
        [
            "user: go",
            "assistant: Look(t1) | Look(t2) | Look(t3)",
            "user: t1=seen | t2=seen | t3=seen",
            "assistant: Done.",
        ]
    );
    let messages = Transcript::read(&path).unwrap();
    assert_eq!(uuids(&messages.messages()), ["p", "a1", "a2", "a3", "r3", "r1", "r2", "b"]);
}

#[test]
fn two_lines_with_only_the_required_fields_are_a_session() {
    let disk = Disk::new();
    let line = |kind: &str, uuid: &str, parent: Value, message: Value| {
        json!({"type": kind, "uuid": uuid, "parentUuid": parent, "sessionId": ID,
            "timestamp": "2026-01-01T00:00:00.000Z", "message": message})
    };
    let prompt = line("user", "u", Value::Null, json!({"role": "user", "content": "hi"}));
    let reply = json!({"role": "assistant", "content": "Hello."});
    let reply = line("assistant", "a", json!("u"), reply);
    disk.put(ID, &format!("{prompt}\n{reply}\n"));
    let info = disk.projects.latest(&disk.cwd()).unwrap();
    assert_eq!((&*info.summary, info.first_prompt.as_deref()), ("hi", Some("hi")));
    assert_eq!(story(&disk.resume(ID).conversation), ["user: hi", "assistant: Hello."]);
}

// Mutant: the next line continues after the last message (`Tree::end` returns its argument): the vendor's program, which
// continues after the last line, then does not see the turn.
#[test]
fn a_turn_continues_after_the_last_line_also_if_that_is_not_a_message() {
    let disk = Disk::new();
    let path = disk.put(ID, &recorded("2.1.325-tool"));
    let last = disk.resume(ID).writer.leaf().cloned().unwrap();
    let attachment = json!({"type": "attachment", "uuid": "00000000-0000-4000-8000-00000000000a",
        "parentUuid": last, "sessionId": ID, "isSidechain": false,
        "attachment": {"type": "prompt_snapshot"}, "timestamp": "2026-11-18T00:00:00.000Z"});
    let mut lines = std::fs::read_to_string(&path).unwrap();
    lines.push_str(&format!("{attachment}\n"));
    std::fs::write(&path, lines).unwrap();
    let mut opened = disk.resume(ID);
    assert_eq!(opened.writer.leaf().unwrap().as_str(), attachment["uuid"]);
    let before = opened.conversation.len();
    opened.writer.asks("p", "and now?");
    opened.writer.says("a", "m9", text("Done again."));
    assert_eq!(disk.resume(ID).conversation.len(), before + 2);
}
