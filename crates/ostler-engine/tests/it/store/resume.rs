//! Resuming, continuing, forking and finding sessions, and changing them from outside.

use std::time::{Duration, SystemTime};

use ostler_engine::store::{StoreError, Transcript};

use super::*;

const MISSING: &str = "99999999-9999-4999-8999-999999999999";
const CHOSEN: &str = "77777777-7777-4777-8777-777777777777";

/// Two turns: `p1 a1 r1 b1`, then `p2 b2`.
fn two_turns(disk: &Disk) -> TranscriptWriter {
    let mut writer = disk.begin();
    writer.asks("p1", "first");
    writer.says("a1", "m1", call("t"));
    writer.answers("r1", "t", "seen");
    writer.says("b1", "m2", text("One."));
    writer.asks("p2", "second");
    writer.says("b2", "m3", text("Two."));
    writer
}

fn at(id: &str, uuid: &str, drops: Option<&str>) -> SessionStart {
    SessionStart { at: Some(uuid.into()), drops_turn: drops.map(Into::into), ..resume(id) }
}

fn set_age(path: &Path, seconds: u64) {
    let file = std::fs::File::options().append(true).open(path).unwrap();
    file.set_modified(SystemTime::now() - Duration::from_secs(seconds)).unwrap();
}

#[test]
fn the_newest_session_is_continued() {
    let disk = Disk::new();
    let latest = SessionStart { begin: StartFrom::Latest, ..SessionStart::default() };
    assert_eq!(disk.error(latest.clone()), "No conversation found to continue");
    let mut old = disk.begin();
    old.asks("p", "old");
    set_age(old.path(), 100);
    let mut new = disk.begin();
    new.asks("p", "new");
    disk.begin();
    let opened = disk.open(latest);
    assert_eq!(opened.writer.session_id(), new.session_id());
    assert_eq!(story(&opened.conversation), ["user: new"]);
    let listed: Vec<_> =
        disk.projects.sessions(&disk.cwd()).into_iter().map(|info| info.summary).collect();
    assert_eq!(listed, ["new", "old"]);
}

#[test]
fn errors_about_sessions_that_cannot_be_opened_are_those_that_hosts_know() {
    let disk = Disk::new();
    assert_eq!(
        disk.error(resume(MISSING)),
        format!("No conversation found with session ID: {MISSING}")
    );
    assert_eq!(
        disk.error(resume("not-a-uuid")),
        "No conversation found with session ID: not-a-uuid"
    );
    disk.put(MISSING, "");
    assert!(disk.error(resume(MISSING)).starts_with("No conversation found"), "an empty file");
    let chosen = SessionStart { session_id: Some(CHOSEN.into()), ..SessionStart::default() };
    let mut writer = disk.open(chosen.clone()).writer;
    assert_eq!(writer.session_id().as_str(), CHOSEN);
    writer.asks("p", "mine");
    assert_eq!(disk.error(chosen), format!("Session ID {CHOSEN} is already in use"));
    let path = SessionStart { session_id: Some("../../etc/x".into()), ..SessionStart::default() };
    assert!(disk.error(path).ends_with("is not a UUID"));
    let both = SessionStart { session_id: Some(MISSING.into()), ..resume(CHOSEN) };
    assert!(disk.error(both).contains("forked session"));
}

#[test]
fn a_session_is_found_by_id_prefix_or_title() {
    let disk = Disk::new();
    let ids = ["aaaa1111-0000-4000-8000-000000000000", "aaaa2222-0000-4000-8000-000000000000"];
    for id in ids {
        let start = SessionStart { session_id: Some(id.into()), ..SessionStart::default() };
        disk.open(start).writer.asks("p", "hi");
    }
    disk.projects.rename(&ids[1].into(), "  The\nsecond ").unwrap();
    let find = |key: &str| disk.projects.find(&disk.cwd(), key).map(|id| id.to_string());
    assert_eq!(find("aaaa1").unwrap(), ids[0]);
    assert_eq!(find("The second").unwrap(), ids[1]);
    assert_eq!(find(&ids[0].to_ascii_uppercase()).unwrap(), ids[0]);
    assert!(matches!(find("aaaa"), Err(StoreError::Ambiguous { n: 2, .. })));
    assert!(matches!(find(""), Err(StoreError::NotFound(_))));
    // The whole id is enough from anywhere.
    let elsewhere = disk.root.path();
    assert_eq!(disk.projects.find(elsewhere, ids[0]).unwrap().as_str(), ids[0]);
    assert!(disk.projects.find(elsewhere, "aaaa1").is_err());
}

#[test]
fn resuming_at_a_message_drops_the_messages_after_it() {
    let disk = Disk::new();
    let id = two_turns(&disk).session_id().to_string();
    let mut opened = disk.open(at(&id, "b1", None));
    assert_eq!(
        story(&opened.conversation),
        ["user: first", "assistant: Look(t)", "user: t=seen", "assistant: One."]
    );
    opened.writer.asks("p3", "other");
    let conversation = disk.resume(&id).conversation;
    assert_eq!(story(&conversation)[4..], ["user: other"]);
    // A response is never split: its calls need their results.
    assert_eq!(story(&disk.open(at(&id, "a1", None)).conversation)[2..], ["user: t=seen"]);
    let error = disk.error(at(&id, "nowhere", None));
    assert_eq!(error, format!("No message nowhere found in session {id}"));
}

#[test]
fn the_drop_guard_allows_only_the_named_turn_to_be_dropped() {
    let disk = Disk::new();
    let mut writer = two_turns(&disk);
    let id = writer.session_id().to_string();
    assert_eq!(disk.open(at(&id, "b1", Some("p2"))).conversation.len(), 4);
    assert_eq!(disk.open(at(&id, "b2", Some("p2"))).conversation.len(), 6, "nothing is dropped");
    for (kept, dropped) in [("b1", "p1"), ("p1", "p2"), ("r1", "p2")] {
        let error = disk.error(at(&id, kept, Some(dropped)));
        assert!(error.starts_with("Resume rejected by --resume-drops-turn: "), "{error}");
    }
    // The turn has a message that the caller has not seen.
    writer.asks("late", "a queued prompt");
    let error = disk.error(at(&id, "b1", Some("p2")));
    assert!(error.contains("a later message (late)"), "{error}");
    assert_eq!(disk.open(at(&id, "b1", None)).conversation.len(), 4, "unguarded, it goes");
}

#[test]
fn the_drop_guard_ignores_markers_between_the_turns() {
    let disk = Disk::new();
    let mut writer = disk.begin();
    writer.asks("p1", "first");
    writer.says("a1", "m1", text("Half"));
    let mut marker = User::new(ostler_engine::turn::INTERRUPTED.into(), None);
    marker.uuid = Some("x".into());
    writer.frame(&ToHost::User(Box::new(marker))).unwrap();
    writer.asks("p2", "second");
    let id = writer.session_id().to_string();
    assert_eq!(disk.open(at(&id, "a1", Some("p2"))).conversation.len(), 2);
}

/// A host that mirrors a fork does not have its lines yet. Mutant: `mirror` starts with nothing.
#[test]
fn the_lines_of_a_fork_are_mirrored_in_frames_that_every_host_can_read() {
    let disk = Disk::new();
    let mut writer = two_turns(&disk);
    let id = writer.session_id().to_string();
    for n in 0..8 {
        writer.says(&format!("l{n}"), &format!("m{n}"), text(&"x".repeat(200_000)));
    }
    for fork in [true, false] {
        let mut writer = disk.open(SessionStart { fork, ..resume(&id) }).writer;
        writer.mirror();
        writer.asks("new", "one more");
        let mut mirrored = Vec::new();
        loop {
            let lines = writer.take_mirrored();
            if lines.is_empty() {
                break;
            }
            let n_bytes = json!(lines).to_string().len();
            assert!(n_bytes < ostler_proto::codec::PYTHON_LINE_LIMIT, "{n_bytes}");
            mirrored.extend(lines);
        }
        let written = json_lines(writer.path());
        let expected = if fork { &written[..] } else { &written[written.len() - 1..] };
        assert_eq!(mirrored.len(), expected.len());
        assert!(mirrored == expected, "each line once and in order");
    }
}

#[test]
fn a_fork_is_a_copy_and_the_original_stays() {
    let disk = Disk::new();
    let original = two_turns(&disk);
    let id = original.session_id().to_string();
    let before = std::fs::read(original.path()).unwrap();
    let start = SessionStart { fork: true, session_id: Some(CHOSEN.into()), ..at(&id, "b1", None) };
    let mut fork = disk.open(start.clone());
    assert_eq!(fork.writer.session_id().as_str(), CHOSEN);
    assert_eq!(fork.conversation.len(), 4);
    fork.writer.asks("f", "elsewhere");
    assert_eq!(std::fs::read(original.path()).unwrap(), before);
    assert_eq!(disk.error(start), format!("Session ID {CHOSEN} is already in use"));

    let lines = json_lines(fork.writer.path());
    assert_eq!(lines[0]["forkedFrom"], json!({"sessionId": id, "messageUuid": "p1"}));
    for (n, line) in lines[..5].iter().enumerate() {
        assert_eq!(line["sessionId"], CHOSEN);
        assert_eq!(line["uuid"].as_str().unwrap().len(), 36);
        let parent = n.checked_sub(1).map_or(json!(null), |before| lines[before]["uuid"].clone());
        assert_eq!(line["parentUuid"], parent);
    }
    assert_eq!(lines[3]["sourceToolAssistantUUID"], lines[2]["uuid"]);
    assert_eq!(lines[6]["parentUuid"], lines[4]["uuid"]);
    let info = disk.projects.sessions(&disk.cwd());
    let info = info.iter().find(|info| info.id.as_str() == CHOSEN).unwrap();
    assert_eq!(info.title.as_deref(), Some("first (fork)"));
    let conversation = disk.resume(CHOSEN).conversation;
    assert_valid(&conversation);
    assert_eq!(conversation[..4], fork.conversation, "the fork sends the same bytes");
    assert_eq!(story(&conversation)[4..], ["user: elsewhere"]);
}

/// The vendor's old level takes the latest line for the last one.
#[test]
fn new_lines_are_later_than_old_ones_whatever_the_clock_says() {
    let disk = Disk::new();
    let writer = two_turns(&disk);
    let id = writer.session_id().to_string();
    let lines = std::fs::read_to_string(writer.path()).unwrap();
    let year = &json_lines(writer.path())[0]["timestamp"].as_str().unwrap()[..4].to_owned();
    std::fs::write(writer.path(), lines.replace(&format!("\"{year}-"), "\"2999-")).unwrap();
    for fork in [false, true] {
        let mut writer = disk.open(SessionStart { fork, ..resume(&id) }).writer;
        writer.asks("new", "later");
        let times: Vec<_> = json_lines(writer.path())
            .iter()
            .filter_map(|line| line["timestamp"].as_str().map(str::to_owned))
            .collect();
        assert!(times.is_sorted_by(|a, b| a < b), "{times:#?}");
    }
}

#[test]
fn a_fork_keeps_calls_that_ran_in_parallel() {
    let disk = Disk::new();
    let mut writer = disk.begin();
    writer.asks("p", "go");
    writer.says("a1", "m1", call("t1"));
    writer.says("a2", "m1", call("t2"));
    writer.answers("r2", "t2", "two");
    writer.answers("r1", "t1", "one");
    writer.says("b", "m2", text("Done."));
    let id = writer.session_id().to_string();
    let whole = disk.resume(&id).conversation;
    let fork = disk.open(SessionStart { fork: true, ..resume(&id) });
    assert_eq!(fork.conversation, whole);
    assert_eq!(disk.resume(fork.writer.session_id().as_str()).conversation, whole);
}

#[test]
fn titles_and_tags_are_lines_and_deleting_removes_everything() {
    let disk = Disk::new();
    let mut writer = two_turns(&disk);
    let id = writer.session_id().clone();
    let info = || disk.projects.latest(&disk.cwd()).unwrap();
    assert_eq!((&*info().summary, info().title), ("first", None));
    writer.turn_ended().unwrap();
    assert_eq!(info().summary, "second");
    disk.projects.rename(&id, "Refactoring").unwrap();
    disk.projects.tag(&id, Some("exp")).unwrap();
    assert_eq!((&*info().summary, info().tag.as_deref()), ("Refactoring", Some("exp")));
    disk.projects.tag(&id, None).unwrap();
    assert_eq!(info().tag, None);
    assert!(matches!(disk.projects.rename(&id, " \u{200b}"), Err(StoreError::Empty("title"))));
    assert_eq!(Transcript::read(writer.path()).unwrap().messages().len(), 6);
    assert_eq!(info().size, std::fs::metadata(writer.path()).unwrap().len());

    let subagents = writer.path().with_extension("").join("subagents");
    std::fs::create_dir_all(&subagents).unwrap();
    disk.projects.delete(&id).unwrap();
    assert!(!writer.path().exists() && !subagents.exists());
    assert!(matches!(disk.projects.delete(&id), Err(StoreError::NotFound(_))));
}

#[test]
fn a_listing_reads_only_both_ends() {
    let disk = Disk::new();
    let mut writer = disk.begin();
    writer.asks("p", &format!("please {}", "x".repeat(300)));
    writer.title("buried").unwrap();
    for n in 0..40 {
        writer.says(&format!("a{n}"), &format!("m{n}"), text(&"y".repeat(5000)));
    }
    writer.title("").unwrap_err();
    let info = disk.projects.latest(&disk.cwd()).unwrap();
    assert_eq!(info.title.as_deref(), Some("buried"), "the head counts when the tail has no title");
    let first = info.first_prompt.unwrap();
    assert_eq!((first.chars().count(), first.ends_with('…')), (201, true));
}

#[test]
fn long_paths_share_a_folder_whatever_the_hash() {
    let disk = Disk::new();
    let cwd = PathBuf::from(format!("/{}", "deep/".repeat(60)));
    let name = disk.projects.folder(&cwd);
    let name = name.file_name().unwrap().to_str().unwrap();
    let other =
        disk.root.path().join("config/projects").join(format!("{}-otherhash", &name[..200]));
    std::fs::create_dir_all(&other).unwrap();
    assert_eq!(disk.projects.folder(&cwd), other);
}

// Mutant: without the lock in `LineFile::claim` nobody is warned.
#[test]
fn a_session_that_is_open_elsewhere_is_reported() {
    let disk = Disk::new();
    let mut writer = disk.begin();
    writer.asks("p", "hi");
    let id = writer.session_id().to_string();
    assert!(disk.resume(&id).is_in_use, "the new one still has it");
    drop(writer);
    let resumed = disk.resume(&id);
    assert!(!resumed.is_in_use);
    assert!(disk.resume(&id).is_in_use, "the resumed one has it before it has written");
    let fork = SessionStart { fork: true, ..resume(&id) };
    assert!(!disk.open(fork).is_in_use, "no other program has the copy open");
}
