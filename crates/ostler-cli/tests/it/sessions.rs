//! Sessions that are resumed.

use std::fs;

use ostler_testkit::{Script, ScriptedApi, reply, when};
use serde_json::{Value, json};

use crate::run::Ostler;

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_resumed_where_it_ended() {
    let script =
        Script::new().rule(when().prompt_contains("my name"), reply().text("Hello Ada.")).rule(
            when().prompt_contains("who am I").any_text_contains("my name is Ada"),
            reply().text("You are Ada."),
        );
    let api = ScriptedApi::start(script).await;
    let ostler =
        Ostler::new().env("ANTHROPIC_API_KEY", "key").env("ANTHROPIC_BASE_URL", &api.base_url());
    ostler.run(&["my name is Ada"]).shows(&["Hello Ada."]);
    ostler.run(&["-c", "who am I?"]).shows(&["You are Ada."]);

    let listed = ostler.run(&["sessions"]);
    let id = listed.stdout.split_whitespace().next().unwrap().to_owned();
    assert!(
        listed.stdout.contains("just now") || listed.stdout.contains(" min "),
        "{}",
        listed.stdout
    );
    assert_eq!(listed.stdout.lines().count(), 1, "{}", listed.stdout);
    ostler.run(&["--resume", &id, "--fork-session", "who am I?"]).shows(&["You are Ada."]);
    assert_eq!(ostler.run(&["sessions"]).stdout.lines().count(), 2);
    api.finish();
}

#[test]
fn a_session_without_persistence_is_not_saved() {
    let ostler = Ostler::new();
    ostler.run(&["--no-session-persistence", "list the files"]);
    ostler.run(&["sessions"]).shows(&["no sessions yet"]);
}

#[test]
fn a_missing_session_is_an_error() {
    let ostler = Ostler::new();
    for arguments in
        [&["--continue", "hi"][..], &["--resume", "00000000-0000-4000-8000-000000000000", "hi"]]
    {
        let ran = ostler.run(arguments);
        assert!(ran.stderr.contains("No conversation found"), "{}", ran.stderr);
        assert!(
            arguments[0] == "--continue" || ran.stderr.contains("ostler sessions"),
            "{}",
            ran.stderr
        );
        assert_eq!(ran.code, Some(1));
    }
}

#[test]
fn a_session_that_cannot_be_saved_is_reported_and_continues() {
    let ostler = Ostler::new().env("CLAUDE_CONFIG_DIR", "/dev/null/nowhere");
    ostler.run(&["list the files"]).shows(&["this session is not being saved", "README.md"]);
}

/// The lines of the only session file.
fn transcript(ostler: &Ostler) -> Vec<Value> {
    let projects = fs::read_dir(ostler.path("no-home/.claude/projects")).unwrap();
    let files: Vec<_> = projects
        .flat_map(|folder| fs::read_dir(folder.unwrap().path()).unwrap())
        .map(|file| file.unwrap().path())
        .collect();
    assert_eq!(files.len(), 1, "{files:?}");
    let text = fs::read_to_string(&files[0]).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The message that contains a text.
fn uuid_of(lines: &[Value], text: &str) -> String {
    let said = lines.iter().find(|line| {
        let is_message = matches!(line["type"].as_str(), Some("user" | "assistant"));
        is_message && line["message"].to_string().contains(text)
    });
    said.unwrap_or_else(|| panic!("{text} in {lines:?}"))["uuid"].as_str().unwrap().to_owned()
}

#[test]
fn a_new_session_can_be_given_an_unused_id() {
    let ostler = Ostler::new();
    let id = "11111111-1111-4111-8111-111111111111";
    let json = ["--output-format", "json", "--session-id", id, "-p", "list the files"];
    let result: Value = serde_json::from_str(&ostler.run(&json).stdout).unwrap();
    assert_eq!(result["session_id"], id);
    ostler.run(&["sessions"]).shows(&[id]);

    let again = ostler.run(&json);
    assert_eq!((again.code, again.stdout.as_str()), (Some(1), ""));
    assert!(again.stderr.contains("already in use"), "{}", again.stderr);
    let odd = ostler.run(&["--session-id", "mine", "-p", "list the files"]);
    assert!(odd.code == Some(2) && odd.stderr.contains("not a UUID"), "{}", odd.stderr);

    let unkept = [&["--no-session-persistence"], &json[..]].concat();
    let result: Value = serde_json::from_str(&ostler.run(&unkept).stdout).unwrap();
    assert_eq!(result["session_id"], id, "a session that is not saved has the id, too");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_is_resumed_from_an_earlier_message() {
    let script = Script::new()
        .rule(when().prompt_contains("first"), reply().text("Answer one."))
        .rule(when().prompt_contains("second"), reply().text("Answer two."))
        .rule(when().prompt_contains("third"), reply().text("Answer three."));
    let api = ScriptedApi::start(script).await;
    let ostler =
        Ostler::new().env("ANTHROPIC_API_KEY", "key").env("ANTHROPIC_BASE_URL", &api.base_url());
    ostler.run(&["first"]);
    ostler.run(&["--continue", "second"]);
    let lines = transcript(&ostler);
    let id = lines.iter().find_map(|line| line["sessionId"].as_str()).unwrap();
    let [first, second] = ["first", "second"].map(|prompt| uuid_of(&lines, prompt));
    let answer = uuid_of(&lines, "Answer one.");

    // The guard: only the named turn may be dropped, which is checked before the model is asked.
    let arguments = ["--resume", id, "--resume-session-at", &answer, "--resume-drops-turn"];
    let format = ["--output-format", "stream-json", "-p", "third"];
    let refused = ostler.run(&[&arguments[..], &[&first], &format].concat());
    let result: Value = serde_json::from_str(refused.stdout.lines().next().unwrap()).unwrap();
    assert_eq!((&result["subtype"], refused.code), (&json!("error_during_execution"), Some(1)));
    assert!(result["errors"][0].as_str().unwrap().contains("--resume-drops-turn"), "{result}");
    assert_eq!(api.requests().len(), 2, "the model was not asked");

    ostler.run(&[&arguments[..], &[&second], &["third"]].concat()).shows(&["Answer three."]);
    let asked = api.requests()[2].body["messages"].to_string();
    assert!(asked.contains("Answer one.") && !asked.contains("second"), "{asked}");
    api.finish();
}

#[test]
fn a_missing_session_is_reported_to_a_program_by_a_result() {
    let missing = "99999999-9999-4999-8999-999999999999";
    for (format, key) in
        [("json", missing), ("stream-json", missing), ("stream-json", "no such title")]
    {
        let ran = Ostler::new().run(&["--resume", key, "--output-format", format, "-p", "hi"]);
        assert_eq!(ran.code, Some(1), "{}", ran.stderr);
        let mut lines = ran.stdout.lines();
        let result: Value = serde_json::from_str(lines.next().unwrap()).unwrap();
        assert_eq!(lines.next(), None, "nothing else");
        assert_eq!((&result["type"], &result["is_error"]), (&json!("result"), &json!(true)));
        assert_eq!(
            (&result["subtype"], &result["num_turns"]),
            (&json!("error_during_execution"), &json!(0))
        );
        let expected = format!("No conversation found with session ID: {key}");
        assert_eq!(result["errors"], json!([expected]));
        if key == missing {
            assert_eq!(result["session_id"], missing);
        }
    }
    // Also with frames on standard input: it does not wait for the host's first frame.
    let ran = Ostler::new()
        .args(&[
            "--resume",
            missing,
            "--input-format",
            "stream-json",
            "--output-format",
            "stream-json",
        ])
        .type_lines(&[]);
    assert!(ran.stdout.starts_with(r#"{"type":"result""#), "{}", ran.stdout);
    assert_eq!(ran.code, Some(1));
}

#[test]
fn options_for_resumed_sessions_need_a_session() {
    for arguments in [
        &["--resume-session-at", "99999999-9999-4999-8999-999999999999", "hi"][..],
        &["--continue", "--resume-drops-turn", "99999999-9999-4999-8999-999999999999", "hi"],
    ] {
        let ran = Ostler::new().run(arguments);
        assert_eq!(ran.code, Some(2), "{arguments:?}: {}", ran.stderr);
    }
}
