//! Engines that are not there, do not start, die or talk nonsense: one clear error each, and never a hang.

use std::path::Path;
use std::time::Duration;

use ostler_sdk::{Client, Error, ErrorKind, Options};

use crate::fake::{ANSWERS, Fake, INTRODUCES, error, run, within};

#[tokio::test]
async fn an_engine_that_is_not_there() {
    let missing = error(Options::new().executable("/no/such/engine")).await;
    assert_eq!(missing.kind(), ErrorKind::Engine);
    let text = missing.to_string();
    assert!(text.contains("/no/such/engine") && text.contains("install ostler"), "{text}");
}

#[tokio::test]
async fn an_engine_that_cannot_be_executed() {
    let fake = Fake::new(&[]);
    let plain = fake.folder.path().join("plain");
    std::fs::write(&plain, "no program").unwrap();
    let error = error(Options::new().executable(&plain)).await;
    assert!(matches!(error, Error::Start { .. }), "{error:?}");
    assert_eq!(error.kind(), ErrorKind::Engine);
    assert!(error.to_string().contains("Permission denied"), "{error}");
}

#[tokio::test]
async fn a_folder_that_is_not_there() {
    let error = error(Fake::new(&[]).options().cwd("/no/such/folder")).await;
    assert_eq!(error.kind(), ErrorKind::Usage);
    assert!(error.to_string().contains("/no/such/folder"), "{error}");
}

#[tokio::test]
async fn an_engine_that_exits_at_once() {
    let error = error(Fake::new(&["echo 'no licence' >&2; exit 3"]).options()).await;
    assert_eq!((error.kind(), error.exit_code()), (ErrorKind::Connection, Some(3)));
    assert_eq!(error.stderr(), Some("no licence\n"));
    assert!(error.to_string().ends_with("it said: no licence"), "{error}");
}

#[tokio::test]
async fn an_engine_that_leaves_politely_without_a_word() {
    let error = error(Fake::new(&["exit 0"]).options()).await;
    assert!(matches!(error, Error::Closed(_)), "{error:?}");
}

#[tokio::test]
async fn an_engine_that_is_killed() {
    let error = error(Fake::new(&[INTRODUCES, "read -r prompt; kill -KILL $$"]).options()).await;
    assert_eq!((error.kind(), error.exit_code()), (ErrorKind::Connection, None));
    assert!(error.to_string().contains("SIGKILL"), "{error}");
}

#[tokio::test]
async fn an_engine_that_dies_in_the_middle_of_a_turn() {
    let init = r#"printf '%s\n' '{"type":"system","subtype":"status","status":null,"uuid":"u","session_id":"s"}'"#;
    let fake = Fake::new(&[INTRODUCES, "read -r prompt", init, "echo 'out of memory' >&2; exit 9"]);
    let (messages, errors) = run(fake.options()).await;
    assert_eq!(messages.len(), 1, "{messages:?}");
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert_eq!((errors[0].exit_code(), errors[0].stderr()), (Some(9), Some("out of memory\n")));
}

#[tokio::test]
async fn only_the_end_of_long_last_words_is_kept() {
    let flood = "i=0; while [ $i -lt 4000 ]; do echo line-$i >&2; i=$((i+1)); done; exit 1";
    let error = error(Fake::new(&[flood]).options()).await;
    let kept = error.stderr().unwrap();
    assert!(kept.ends_with("line-3999\n") && !kept.contains("line-1\n"), "{}", kept.len());
    assert!(kept.len() <= 16 * 1024, "{}", kept.len());
}

#[tokio::test]
async fn what_is_no_frame_is_passed_over_and_what_is_a_broken_one_is_told() {
    let noise = r#"echo 'Debugger attached.'; echo '{"type":"result","subtype":7}'"#;
    let fake = Fake::new(&[INTRODUCES, "read -r prompt", noise, ANSWERS, "cat > /dev/null"]);
    let (messages, errors) = run(fake.options()).await;
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert_eq!(errors[0].kind(), ErrorKind::Protocol);
    assert!(messages.iter().any(|message| message.as_result().is_some()), "{messages:?}");
}

#[tokio::test]
async fn an_engine_that_never_introduces_itself_is_ended() {
    let fake = Fake::new(&["echo $$ > pid; sleep 600 & echo $! > child; wait"]);
    let mut options = fake.options();
    options.engine.start_timeout = Some(Duration::from_millis(500));
    let error = error(options).await;
    assert_eq!(error.kind(), ErrorKind::Timeout);
    for name in ["pid", "child"] {
        gone(&fake.folder.path().join(name)).await;
    }
}

#[tokio::test]
async fn an_engine_that_closes_its_output_but_lives_is_ended() {
    let fake = Fake::new(&[INTRODUCES, "echo $$ > pid", "exec >&-; sleep 600"]);
    let error = error(fake.options()).await;
    assert_eq!(error.kind(), ErrorKind::Timeout);
    gone(&fake.folder.path().join("pid")).await;
}

#[tokio::test]
async fn an_engine_that_does_not_end_when_it_should_is_ended_by_dropping() {
    let fake =
        Fake::new(&["trap '' TERM", "echo $$ > pid", INTRODUCES, "while :; do sleep 1; done"]);
    let client = within(Client::connect(fake.options())).await.unwrap();
    drop(client);
    gone(&fake.folder.path().join("pid")).await;
}

#[tokio::test]
async fn a_request_to_an_engine_that_has_ended_is_refused() {
    let client =
        within(Client::connect(Fake::new(&[INTRODUCES, "exit 0"]).options())).await.unwrap();
    let error = within(client.handle().interrupt()).await.unwrap_err();
    assert!(matches!(error, Error::Closed(_)), "{error:?}");
}

#[tokio::test]
async fn a_refusal_keeps_the_engines_words() {
    let refuses = r#"
read -r line
id=$(printf '%s' "$line" | sed 's/.*"request_id":"\([^"]*\)".*/\1/')
printf '{"type":"control_response","response":{"subtype":"error","request_id":"%s","error":"no such model"}}\n' "$id"
cat > /dev/null"#;
    let client =
        within(Client::connect(Fake::new(&[INTRODUCES, refuses]).options())).await.unwrap();
    let error = within(client.handle().set_model(Some("x".to_owned()))).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert_eq!(error.to_string(), "the engine refused set_model: no such model");
}

#[tokio::test]
async fn the_error_output_is_heard_as_it_comes() {
    let heard = std::sync::Arc::new(std::sync::Mutex::new(String::new()));
    let keeps = std::sync::Arc::clone(&heard);
    let fake =
        Fake::new(&[INTRODUCES, "read -r prompt; echo careful >&2", ANSWERS, "cat > /dev/null"]);
    let mut options = fake.options();
    options.engine.stderr =
        Some(std::sync::Arc::new(move |text: &str| keeps.lock().unwrap().push_str(text)));
    let (_, errors) = run(options).await;
    assert!(errors.is_empty(), "{errors:?}");
    assert_eq!(*heard.lock().unwrap(), "careful\n");
}

/// Waits until the process whose id stands in a file has gone.
pub(crate) async fn gone(file: &Path) {
    let id = std::fs::read_to_string(file).unwrap();
    let process = Path::new("/proc").join(id.trim());
    within(async {
        while std::fs::read_link(process.join("exe")).is_ok() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await;
}
