//! Whatever a file contains: reading it never fails, and the API accepts the conversation.

use std::sync::LazyLock;

use ostler_engine::store::{LOST_BEGINNING, Transcript};
use proptest::prelude::*;

use super::*;

fn read(text: &[u8]) -> Transcript {
    Transcript::from_reader(text).unwrap()
}

#[test]
fn a_file_cut_at_any_byte_is_read() {
    let disk = Disk::new();
    let mut writer = disk.begin();
    writer.queue("enqueue", Some("größer")).unwrap();
    writer.asks("p", "größer");
    writer.says("a1", "m1", call("t1"));
    writer.says("a2", "m1", call("t2"));
    writer.answers("r2", "t2", "two");
    writer.answers("r1", "t1", "one");
    writer.says("b", "m2", text("Done."));
    writer.turn_ended().unwrap();
    let whole = std::fs::read(writer.path()).unwrap();
    for end in 0..=whole.len() {
        let transcript = read(&whole[..end]);
        assert_eq!(transcript.n_skipped(), 0, "half a line at the end is expected");
        assert_valid(&transcript.conversation());
        transcript.messages();
    }
    assert_eq!(read(&whole).conversation().len(), 4);
}

#[test]
fn after_a_crash_the_next_line_is_still_readable() {
    let disk = Disk::new();
    let mut writer = disk.begin();
    writer.asks("p", "hi");
    writer.says("a", "m1", text("Hello."));
    let id = writer.session_id().clone();
    let whole = std::fs::read(writer.path()).unwrap();
    std::fs::write(writer.path(), &whole[..whole.len() - 20]).unwrap();
    let mut opened = disk.resume(id.as_str());
    assert_eq!(story(&opened.conversation), ["user: hi"]);
    opened.writer.asks("q", "still there?");
    let opened = disk.resume(id.as_str());
    assert_eq!(story(&opened.conversation), ["user: hi | still there?"]);
    assert_eq!(opened.n_skipped, 1);
}

#[test]
fn a_lost_line_loses_only_itself() {
    let disk = Disk::new();
    let mut writer = disk.begin();
    for n in 0..4 {
        writer.asks(&format!("p{n}"), &format!("question {n}"));
        writer.says(&format!("a{n}"), &format!("m{n}"), text(&format!("answer {n}")));
    }
    let whole = std::fs::read_to_string(writer.path()).unwrap();
    let mut lines: Vec<_> = whole.lines().collect();
    lines[4] = "{\"type\":\"assistant\", garbage";
    let transcript = read(lines.join("\n").as_bytes());
    assert_eq!(transcript.n_skipped(), 1);
    let conversation = transcript.conversation();
    assert_valid(&conversation);
    assert_eq!(story(&conversation)[2], "user: question 1 | question 2");
    assert_eq!(conversation.len(), 6);

    let transcript = read(whole.split_once('\n').unwrap().1.as_bytes());
    assert_eq!(story(&transcript.conversation())[0], format!("user: {LOST_BEGINNING}"));
    assert_valid(&transcript.conversation());
}

#[test]
fn a_line_may_be_huge() {
    let disk = Disk::new();
    let mut writer = disk.begin();
    writer.asks("p", "hi");
    writer.says("a", "m1", text(&"long ".repeat(2_000_000)));
    let opened = disk.resume(writer.session_id().as_str());
    assert_eq!((opened.conversation.len(), opened.n_skipped), (2, 0));
    assert_eq!(disk.projects.latest(&disk.cwd()).unwrap().summary, "hi");
}

fn block() -> impl Strategy<Value = Value> {
    let call = prop_oneof![Just("t0"), Just("t1"), Just("t2"), Just("t3"), Just("")];
    prop_oneof![
        Just(json!({"type": "text", "text": "words"})),
        Just(json!({"type": "text", "text": " \n"})),
        Just(json!({"type": "thinking", "thinking": "hm"})),
        Just(json!({"type": "thinking", "thinking": "hm", "signature": "s"})),
        Just(json!({"type": "novelty", "x": 1})),
        Just(json!({"type": "image", "source": {"type": "url", "url": "u"}})),
        call.clone()
            .prop_map(|id| json!({"type": "tool_use", "id": id, "name": "Look", "input": {}})),
        call.clone()
            .prop_map(|id| json!({"type": "tool_use", "id": id, "name": "Look", "input": 3})),
        call.clone()
            .prop_map(|id| json!({"type": "tool_result", "tool_use_id": id, "content": "x"})),
        call.clone().prop_map(|id| {
            json!({"type": "server_tool_use", "id": id, "name": "web_search", "input": {}})
        }),
        call.prop_map(|id| {
            json!({"type": "web_search_tool_result", "tool_use_id": id, "content": []})
        }),
    ]
}

/// A placeholder for the uuid of the line before.
const BEFORE: &str = "before";

/// Makes most lines follow one another, so that there are whole conversations and not only fragments.
fn chained(lines: &[String]) -> String {
    let mut before = "none".to_owned();
    let mut text = String::new();
    for line in lines {
        text += &line.replace(&format!("\"{BEFORE}\""), &format!("\"{before}\""));
        text.push('\n');
        if let Some(uuid) =
            serde_json::from_str::<Value>(line).ok().as_ref().and_then(|line| line["uuid"].as_str())
        {
            uuid.clone_into(&mut before);
        }
    }
    text
}

fn line() -> impl Strategy<Value = String> {
    let kind = prop_oneof![
        4 => Just("user"), 6 => Just("assistant"), 1 => Just("system"), 1 => Just("progress"),
        1 => Just("attachment"),
    ];
    let uuid = || (0..40_u8).prop_map(|n| format!("u{n}"));
    let parent = prop_oneof![
        8 => Just(json!(BEFORE)), 2 => uuid().prop_map(Value::from), 1 => Just(Value::Null)
    ];
    let flag = || prop::bool::weighted(0.1);
    let status = prop::option::weighted(0.1, prop_oneof![Just(400), Just(529)]);
    let content = prop::collection::vec(block(), 0..4);
    let known = (kind, uuid(), parent, (flag(), flag(), status), 0..4_u8, content).prop_map(
        |(kind, uuid, parent, (meta, sidechain, status), response, content)| {
            let message = if kind == "user" {
                json!({"role": "user", "content": content})
            } else {
                json!({"role": "assistant", "model": "m", "id": format!("m{response}"),
                    "content": content})
            };
            let mut line = json!({"type": kind, "uuid": uuid, "parentUuid": parent, "message": message,
                "sessionId": "s", "timestamp": "2026-01-01T00:00:00.000Z", "isMeta": meta,
                "isSidechain": sidechain, "subtype": "x", "data": {}});
            if let (Some(status), "assistant") = (status, kind) {
                line["isApiErrorMessage"] = true.into();
                line["apiErrorStatus"] = status.into();
            }
            line.to_string()
        },
    );
    prop_oneof![
        20 => known,
        1 => "[ -~]{0,30}",
        1 => Just(r#"{"type":"summary","summary":"s"}"#.to_owned()),
        1 => Just(r#"{"type":"user","uuid":7}"#.to_owned()),
    ]
}

/// Two turns with two calls each, as the writer writes them.
static SESSION: LazyLock<String> = LazyLock::new(|| {
    let disk = Disk::new();
    let mut writer = disk.begin();
    for n in 0..2 {
        writer.asks(&format!("p{n}"), "go");
        writer.says(&format!("a{n}"), &format!("m{n}"), call(&format!("t{n}")));
        writer.says(&format!("b{n}"), &format!("m{n}"), call(&format!("s{n}")));
        writer.answers(&format!("r{n}"), &format!("s{n}"), "s");
        writer.answers(&format!("q{n}"), &format!("t{n}"), "t");
        writer.says(&format!("c{n}"), &format!("n{n}"), text("Done."));
    }
    std::fs::read_to_string(writer.path()).unwrap()
});

proptest! {
    #[test]
    fn any_lines_make_a_valid_conversation(lines in prop::collection::vec(line(), 0..30)) {
        let transcript = read(chained(&lines).as_bytes());
        assert_valid(&transcript.conversation());
        transcript.messages();
    }

    #[test]
    fn any_bytes_are_read(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        assert_valid(&read(&bytes).conversation());
    }

    /// Lines of a real session, shuffled, lost and duplicated.
    #[test]
    fn a_shuffled_session_is_a_valid_conversation(order in prop::collection::vec(0..12_usize, 0..30)) {
        let lines: Vec<_> = SESSION.lines().collect();
        let shuffled: Vec<_> = order.iter().map(|at| lines[*at]).collect();
        assert_valid(&read(shuffled.join("\n").as_bytes()).conversation());
    }
}

// Mutant: session files are opened with `File::open`, which waits for a writer.
#[test]
fn a_pipe_in_place_of_a_session_is_skipped_at_once() {
    let disk = Disk::new();
    let mut writer = disk.begin();
    writer.asks("p", "hi");
    writer.says("a", "m1", text("Hello."));
    let pipe = writer.path().with_file_name(format!("{}.jsonl", uuid::Uuid::new_v4()));
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    assert!(Transcript::read(&pipe).is_err());
    assert_eq!(disk.projects.sessions(&disk.cwd()).len(), 1);
}
