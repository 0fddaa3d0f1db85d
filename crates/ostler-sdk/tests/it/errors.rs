//! Engines that are not there, do not start, die or talk nonsense: one clear error each, and never a hang.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use ostler_sdk::proto::message::System;
use ostler_sdk::transport::{Link, Start, Transport};
use ostler_sdk::{Client, Error, ErrorKind, Message, Options};

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

// Mutants: `noise` of the session reports nothing; reports without end.
#[tokio::test]
async fn a_line_that_is_not_json_is_reported_and_a_broken_frame_is_an_error() {
    let noise = r#"echo 'Debugger attached.'; echo '{"type":"result","subtype":7}'"#;
    let flood = "i=0; while [ $i -lt 500 ]; do echo noise; i=$((i+1)); done";
    let fake = Fake::new(&[INTRODUCES, "read -r prompt", noise, flood, ANSWERS, "cat > /dev/null"]);
    let heard = Arc::new(Mutex::new(Vec::new()));
    let lines = Arc::clone(&heard);
    let options = fake.options().on_stderr(move |line| lines.lock().unwrap().push(line.to_owned()));
    let (messages, errors) = run(options).await;
    let told = messages.iter().filter_map(|message| match message {
        Message::System(System::Informational(told)) => Some(told.content.clone()),
        _ => None,
    });
    let told: Vec<_> = told.collect();
    assert!(told[0].contains("Debugger attached."), "{told:?}");
    assert!(told.len() == 20 && told[19].contains("no longer reported"), "{told:?}");
    assert_eq!(*heard.lock().unwrap(), told);
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
async fn an_engine_whose_child_holds_its_output_open_is_not_waited_for() {
    let leaves = "read -r prompt; sleep 600 & echo $! > child";
    let fake = Fake::new(&[INTRODUCES, leaves, ANSWERS, "exit 3"]);
    let (messages, errors) = run(fake.options()).await;
    assert!(messages.iter().any(|message| message.as_result().is_some()), "{messages:?}");
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert_eq!(errors[0].exit_code(), Some(3));
    gone(&fake.folder.path().join("child")).await;
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
    let heard = Arc::new(Mutex::new(String::new()));
    let keeps = Arc::clone(&heard);
    let fake =
        Fake::new(&[INTRODUCES, "read -r prompt; echo careful >&2", ANSWERS, "cat > /dev/null"]);
    let mut options = fake.options();
    options.engine.stderr = Some(Arc::new(move |text: &str| keeps.lock().unwrap().push_str(text)));
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

/// What a failing engine does after it was given a prompt, and what the host is told.
struct Failure {
    requirement: &'static str,
    engine: &'static str,
    kind: ErrorKind,
    is_retryable: bool,
    says: &'static [&'static str],
}

/// A result that ends a turn with an error.
macro_rules! ends_with {
    ($fields:literal) => {
        concat!(
            r#"printf '%s\n' '{"type":"result","duration_ms":1,"duration_api_ms":1,"num_turns":1,"total_cost_usd":0,"usage":{},"modelUsage":{},"permission_denials":[],"uuid":"u","session_id":"s","#,
            $fields,
            "}'; cat > /dev/null"
        )
    };
}

#[rustfmt::skip]
const FAILURES: &[Failure] = &[
    Failure { requirement: "R293", engine: "echo 'no licence' >&2; exit 3", kind: ErrorKind::Connection, is_retryable: false, says: &["exit status: 3", "no licence"] },
    Failure { requirement: "R292", engine: "kill -KILL $$", kind: ErrorKind::Connection, is_retryable: true, says: &["SIGKILL"] },
    Failure { requirement: "R294", engine: r#"echo '{"type":"result","subtype":7,"marker":1}'; cat > /dev/null"#, kind: ErrorKind::Protocol, is_retryable: false, says: &["subtype", "marker"] },
    Failure { requirement: "R294", engine: r#"echo '{"type":"result",'; cat > /dev/null"#, kind: ErrorKind::Protocol, is_retryable: false, says: &[r#"{"type":"result","#] },
    Failure { requirement: "R295", engine: ends_with!(r#""subtype":"error_max_turns","is_error":true,"errors":["Reached 3 turns"]"#), kind: ErrorKind::MaxTurns, is_retryable: false, says: &["Reached 3 turns"] },
    Failure { requirement: "R296", engine: ends_with!(r#""subtype":"error_max_budget_usd","is_error":true,"errors":["Spent 1 $"]"#), kind: ErrorKind::Budget, is_retryable: false, says: &["Spent 1 $"] },
    Failure { requirement: "R296", engine: ends_with!(r#""subtype":"error_during_execution","is_error":true,"errors":["one","two"]"#), kind: ErrorKind::Turn, is_retryable: false, says: &["one; two"] },
    Failure { requirement: "R296", engine: ends_with!(r#""subtype":"error_max_structured_output_retries","is_error":true,"errors":["no shape"]"#), kind: ErrorKind::Answer, is_retryable: false, says: &["no shape"] },
    Failure { requirement: "R296", engine: ends_with!(r#""subtype":"success","is_error":true,"result":"API Error: 529","api_error_status":529"#), kind: ErrorKind::Api, is_retryable: true, says: &["529"] },
    Failure { requirement: "R296", engine: ends_with!(r#""subtype":"success","is_error":true,"result":"API Error: 401","api_error_status":401"#), kind: ErrorKind::Api, is_retryable: false, says: &["401"] },
    // The older program does not mark these as errors.
    Failure { requirement: "R295", engine: ends_with!(r#""subtype":"error_max_turns","is_error":false"#), kind: ErrorKind::MaxTurns, is_retryable: false, says: &["error_max_turns"] },
];

#[tokio::test]
async fn every_failure_has_its_kind_its_words_and_its_hint() {
    for failure in FAILURES {
        let Failure { requirement, engine, kind, is_retryable, says } = failure;
        let fake = Fake::new(&[INTRODUCES, "read -r prompt", engine]);
        let error = within(ostler_sdk::prompt("hello", fake.options())).await.unwrap_err();
        assert_eq!(error.kind(), *kind, "{requirement}: {error}");
        assert_eq!(error.is_retryable(), *is_retryable, "{requirement}: {error}");
        for words in *says {
            assert!(error.to_string().contains(words), "{requirement}: no {words:?} in {error}");
        }
    }
}

/// A transport whose connection breaks.
struct Breaks;

impl Transport for Breaks {
    fn start(&self, _: Start) -> BoxFuture<'static, Result<Link, Error>> {
        let lost = Error::Lost { reason: "reset by peer".to_owned(), stderr: String::new() };
        async move { Err(lost) }.boxed()
    }
}

#[tokio::test]
async fn a_connection_that_breaks_may_be_tried_again() {
    let error = error(Options::new().transport(Breaks)).await;
    assert_eq!(error.kind(), ErrorKind::Connection);
    assert!(error.is_retryable() && error.to_string().contains("reset by peer"), "{error}");
}

/// The error output of this very process, when it runs one test that says something on it.
async fn overheard(test: &str) -> Option<String> {
    const ALONE: &str = "OSTLER_TEST_ALONE";
    if std::env::var_os(ALONE).is_some() {
        return None;
    }
    let mut program = tokio::process::Command::new(std::env::current_exe().unwrap());
    program.args(["--exact", test, "--nocapture"]).env(ALONE, "1");
    let output = within(program.output()).await.unwrap();
    let (said, heard) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && said.contains("1 passed"), "{said}{heard}");
    Some(format!("{said}{heard}"))
}

#[tokio::test]
async fn what_an_engine_says_on_its_error_output_is_kept_in_order_and_not_shown() {
    let test = "errors::what_an_engine_says_on_its_error_output_is_kept_in_order_and_not_shown";
    if let Some(heard) = overheard(test).await {
        assert!(!heard.contains("careful"), "{heard}");
        return;
    }
    let engine = "echo careful one >&2; read -r prompt; echo careful two >&2";
    let fake = Fake::new(&["echo careful zero >&2", INTRODUCES, engine, "exit 4"]);
    let error = error(fake.options()).await;
    assert_eq!(error.stderr(), Some("careful zero\ncareful one\ncareful two\n"));
}

#[tokio::test]
async fn whatever_goes_wrong_nothing_is_left_behind() {
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let before = tasks();
    let starts = "sleep 600 & echo $! > child; echo $$ > pid";
    // Before the introduction, and after it.
    let early = ["exit 0", "exit 3", "kill -KILL $$", "echo '{'; sleep 600"];
    let early = early.map(|engine| Fake::new(&[starts, engine]));
    let late =
        FAILURES.iter().map(|it| Fake::new(&[starts, INTRODUCES, "read -r prompt", it.engine]));
    for fake in early.into_iter().chain(late) {
        let mut options = fake.options();
        options.engine.start_timeout = Some(Duration::from_secs(2));
        let error = within(ostler_sdk::prompt("hello", options)).await.unwrap_err();
        for name in ["pid", "child"] {
            gone(&fake.folder.path().join(name)).await;
        }
        within(async {
            while tasks() > before {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        })
        .await;
        drop(error);
    }
}

/// Which test shows what becomes of a failure. A missing row fails.
#[rustfmt::skip]
const ROWS: &[(u16, &[&str])] = &[
    (291, &["an_engine_that_is_not_there"]),
    (292, &["a_connection_that_breaks_may_be_tried_again", "every_failure_has_its_kind_its_words_and_its_hint"]),
    (293, &["an_engine_that_exits_at_once", "every_failure_has_its_kind_its_words_and_its_hint"]),
    (294, &["a_line_that_is_not_json_is_reported_and_a_broken_frame_is_an_error", "every_failure_has_its_kind_its_words_and_its_hint"]),
    (295, &["every_failure_has_its_kind_its_words_and_its_hint"]),
    (296, &["every_failure_has_its_kind_its_words_and_its_hint"]),
    (299, &["the_error_output_is_heard_as_it_comes", "what_an_engine_says_on_its_error_output_is_kept_in_order_and_not_shown"]),
    (300, &["what_an_engine_says_on_its_error_output_is_kept_in_order_and_not_shown", "only_the_end_of_long_last_words_is_kept"]),
    // In ostler/tests/it/errors.rs: it takes an engine that is one.
    (301, &["an_unknown_extra_argument_is_refused_and_the_error_names_it"]),
    (304, &["errors_of_the_engine_name_their_cause"]),
    (305, &["whatever_goes_wrong_nothing_is_left_behind", "an_engine_that_never_introduces_itself_is_ended"]),
];

#[test]
fn every_requirement_on_errors_has_its_test() {
    let tests =
        concat!(include_str!("errors.rs"), include_str!("../../../ostler/tests/it/errors.rs"));
    for (requirement, names) in ROWS {
        for name in *names {
            let head = format!("async fn {name}() {{");
            assert!(tests.contains(&head), "R{requirement}: there is no test {name}");
        }
    }
    // Those of tasks (R297, R298), workspaces (R302) and AG-UI (R303) are no part of this crate.
    let ours = (291..=305).filter(|number| ![297, 298, 302, 303].contains(number));
    assert!(ours.eq(ROWS.iter().map(|(number, _)| *number)));
}
