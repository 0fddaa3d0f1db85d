//! Versions of engines: one that is too old is refused, a newer one is reported once, `ostler` is never compared.

use std::sync::{Arc, Mutex};

use ostler_sdk::proto::message::System;
use ostler_sdk::proto::version::{NEWEST, OLDEST};
use ostler_sdk::{Client, EngineVersion, Error, ErrorKind, Message};

use crate::fake::{ANSWERS, Fake, INTRODUCES, error, run, within};

const OLD: &str = r#""claude_code_version":"2.1.49""#;
const TESTED: &str = r#""claude_code_version":"2.1.50""#;
const NEWER: &str = r#""claude_code_version":"2.99.0""#;
/// `ostler` 0.1.0 reports both; its version must not be taken for that of a very old Claude Code.
const OSTLER: &str = r#""claude_code_version":"0.1.0","ostler_version":"0.1.0""#;

/// An engine that reports its version in its answer to `initialize`, as Claude Code 2.1.325 does.
fn introduces(version: &str) -> String {
    INTRODUCES.replace(r#""response":{}"#, &format!(r#""response":{{{version}}}"#))
}

/// An engine that reports its version at the start of its first turn, as Claude Code 2.1.50 does.
fn init(version: &str) -> String {
    format!(
        r#"printf '%s\n' '{{"type":"system","subtype":"init","cwd":"/","session_id":"s","tools":[],"mcp_servers":[],"model":"m","permissionMode":"default","slash_commands":[],{version},"uuid":"u"}}'"#
    )
}

fn early(version: &str) -> Fake {
    Fake::new(&[&introduces(version), "read -r prompt", &init(version), ANSWERS, "cat > /dev/null"])
}

fn late(version: &str) -> Fake {
    let turn = [init(version), ANSWERS.to_owned()].join("\n");
    Fake::new(&[INTRODUCES, "echo $$ > pid", "while read -r prompt; do", &turn, "done"])
}

/// The warnings among the messages, by their tags.
fn warnings(messages: &[Message]) -> Vec<(String, String)> {
    let warnings = messages.iter().filter_map(|message| match message {
        Message::System(System::Informational(warning)) => {
            Some((warning.tag.clone().unwrap_or_default(), warning.content.clone()))
        }
        _ => None,
    });
    warnings.collect()
}

fn is_too_old(error: &Error) {
    assert!(matches!(error, Error::TooOld { .. }), "{error:?}");
    assert_eq!((error.kind(), error.is_retryable()), (ErrorKind::Engine, false));
    let text = error.to_string();
    let parts = ["2.1.49", &OLDEST.to_string(), "claude update", "Options::executable"];
    assert!(parts.iter().all(|part| text.contains(part)), "{text}");
}

// Mutant: `Handle::introduce` does not judge the version.
#[tokio::test]
async fn an_engine_that_is_too_old_is_refused_before_the_first_prompt() {
    let fake = early(OLD);
    is_too_old(&within(Client::connect(fake.options())).await.unwrap_err());
}

// Mutant: `Session::judge_version` does nothing.
#[tokio::test]
async fn an_engine_that_is_too_old_and_reports_its_version_late_is_ended() {
    let fake = late(OLD);
    let (messages, errors) = run(fake.options()).await;
    assert!(messages.is_empty(), "{messages:?}");
    let [error] = &errors[..] else { panic!("{errors:?}") };
    is_too_old(error);
}

// Mutant: `too_old` is not asked when the engine does not introduce itself.
#[tokio::test]
async fn an_engine_that_is_too_old_for_initialize_is_recognized_by_its_version_option() {
    let version = r#"[ "$1" = --version ] && { echo '2.1.49 (Claude Code)'; exit 0; }"#;
    let refuses = Fake::new(&[version, "echo \"error: unknown option '--verbose'\" >&2; exit 1"]);
    is_too_old(&error(refuses.options()).await);
    let hangs = Fake::new(&[version, "cat > /dev/null"]);
    let mut options = hangs.options();
    options.engine.start_timeout = Some(std::time::Duration::from_millis(300));
    is_too_old(&error(options).await);
}

#[tokio::test]
async fn an_engine_of_a_tested_version_causes_no_warning() {
    for fake in [early(TESTED), late(TESTED)] {
        let (messages, errors) = run(fake.options()).await;
        assert!(errors.is_empty(), "{errors:?}");
        assert_eq!(warnings(&messages), []);
    }
}

// Mutant: `judge_version` judges every `init`, whatever is known already.
#[tokio::test]
async fn an_engine_newer_than_the_tested_ones_is_reported_once() {
    for fake in [early(NEWER), late(NEWER)] {
        let received = Arc::new(Mutex::new(String::new()));
        let sink = Arc::clone(&received);
        let options = fake.options().on_stderr(move |text| sink.lock().unwrap().push_str(text));
        let mut client = within(Client::connect(options)).await.unwrap();
        let mut messages = Vec::new();
        for _ in 0..2 {
            client.send("hello").await.unwrap();
            let mut turn = client.turn();
            while let Some(message) = within(turn.next()).await {
                messages.push(message.unwrap());
            }
            if fake.folder.path().join("pid").exists() {
                continue;
            }
            // The first engine answers one prompt.
            break;
        }
        assert!(matches!(messages[0], Message::System(System::Init(_))), "{messages:?}");
        let [(tag, text)] = &warnings(&messages)[..] else { panic!("{messages:?}") };
        assert_eq!(tag, "engine_version_untested");
        assert!(text.contains("2.99.0") && text.contains(&NEWEST.to_string()), "{text}");
        assert_eq!(*received.lock().unwrap(), *text);
        let version = client.handle().reported_version().unwrap();
        assert_eq!(version.to_string(), "Claude Code 2.99.0");
    }
}

// Mutant: `EngineVersion::read` looks at `claude_code_version` first.
#[tokio::test]
async fn the_version_of_ostler_is_not_compared_with_versions_of_claude_code() {
    for fake in [early(OSTLER), late(OSTLER)] {
        let mut client = within(Client::connect(fake.options())).await.unwrap();
        within(client.prompt("hello")).await.unwrap();
        let version = client.handle().reported_version();
        assert_eq!(version, Some(EngineVersion::Ostler("0.1.0".to_owned())));
    }
}

#[tokio::test]
async fn an_engine_that_does_not_report_its_version_is_used() {
    let fake = early(r#""claude_code_version":"nightly""#);
    let (messages, errors) = run(fake.options()).await;
    assert!(errors.is_empty() && warnings(&messages).is_empty(), "{errors:?} {messages:?}");
    let silent = Fake::new(&[INTRODUCES, "read -r prompt", ANSWERS, "cat > /dev/null"]);
    let client = within(Client::connect(silent.options())).await.unwrap();
    assert_eq!(client.handle().reported_version(), None);
}
