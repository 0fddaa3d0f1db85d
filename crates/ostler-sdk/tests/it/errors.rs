//! Engines that are missing, do not start, end early or send malformed messages: one clear error each, and no hang.

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
async fn an_executable_that_does_not_exist_is_an_engine_error() {
    let missing = error(Options::new().executable("/no/such/engine")).await;
    assert_eq!(missing.kind(), ErrorKind::Engine);
    let text = missing.to_string();
    assert!(text.contains("/no/such/engine") && text.contains("install ostler"), "{text}");
}

#[tokio::test]
async fn a_file_that_is_not_executable_is_an_engine_error() {
    let fake = Fake::new(&[]);
    let plain = fake.folder.path().join("plain");
    std::fs::write(&plain, "no program").unwrap();
    let error = error(Options::new().executable(&plain)).await;
    assert!(matches!(error, Error::Start { .. }), "{error:?}");
    assert_eq!(error.kind(), ErrorKind::Engine);
    assert!(error.to_string().contains("Permission denied"), "{error}");
}

#[tokio::test]
async fn a_working_directory_that_does_not_exist_is_a_usage_error() {
    let error = error(Fake::new(&[]).options().cwd("/no/such/folder")).await;
    assert_eq!(error.kind(), ErrorKind::Usage);
    assert!(error.to_string().contains("/no/such/folder"), "{error}");
}

#[tokio::test]
async fn the_error_for_an_engine_that_exits_at_once_has_exit_code_and_stderr() {
    let error = error(Fake::new(&["echo 'no licence' >&2; exit 3"]).options()).await;
    assert_eq!((error.kind(), error.exit_code()), (ErrorKind::Connection, Some(3)));
    assert_eq!(error.stderr(), Some("no licence\n"));
    assert!(error.to_string().ends_with("its stderr: no licence"), "{error}");
}

#[tokio::test]
async fn an_engine_that_exits_successfully_without_a_message_is_an_error() {
    let error = error(Fake::new(&["exit 0"]).options()).await;
    assert!(matches!(error, Error::Closed(_)), "{error:?}");
}

#[tokio::test]
async fn the_error_for_an_engine_that_is_killed_names_the_signal() {
    let error = error(Fake::new(&[INTRODUCES, "read -r prompt; kill -KILL $$"]).options()).await;
    assert_eq!((error.kind(), error.exit_code()), (ErrorKind::Connection, None));
    assert!(error.to_string().contains("SIGKILL"), "{error}");
}

#[tokio::test]
async fn an_engine_that_exits_during_a_turn_is_an_error_after_its_messages() {
    let init = r#"printf '%s\n' '{"type":"system","subtype":"status","status":null,"uuid":"u","session_id":"s"}'"#;
    let fake = Fake::new(&[INTRODUCES, "read -r prompt", init, "echo 'out of memory' >&2; exit 9"]);
    let (messages, errors) = run(fake.options()).await;
    assert_eq!(messages.len(), 1, "{messages:?}");
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert_eq!((errors[0].exit_code(), errors[0].stderr()), (Some(9), Some("out of memory\n")));
}

#[tokio::test]
async fn only_the_end_of_a_long_stderr_is_kept() {
    let flood = "i=0; while [ $i -lt 4000 ]; do echo line-$i >&2; i=$((i+1)); done; exit 1";
    let error = error(Fake::new(&[flood]).options()).await;
    let stderr = error.stderr().unwrap();
    assert!(stderr.ends_with("line-3999\n") && !stderr.contains("line-1\n"), "{}", stderr.len());
    assert!(stderr.len() <= 16 * 1024, "{}", stderr.len());
}

// Mutants: `noise` of the session reports nothing; reports without end.
#[tokio::test]
async fn a_line_that_is_not_json_is_reported_and_a_broken_frame_is_an_error() {
    let noise = r#"echo 'Debugger attached.'; echo '{"type":"result","subtype":7}'"#;
    let flood = "i=0; while [ $i -lt 500 ]; do echo noise; i=$((i+1)); done";
    let fake = Fake::new(&[INTRODUCES, "read -r prompt", noise, flood, ANSWERS, "cat > /dev/null"]);
    let received = Arc::new(Mutex::new(Vec::new()));
    let lines = Arc::clone(&received);
    let options = fake.options().on_stderr(move |line| lines.lock().unwrap().push(line.to_owned()));
    let (messages, errors) = run(options).await;
    let warnings = messages.iter().filter_map(|message| match message {
        Message::System(System::Informational(warning)) => Some(warning.content.clone()),
        _ => None,
    });
    let warnings: Vec<_> = warnings.collect();
    assert!(warnings[0].contains("Debugger attached."), "{warnings:?}");
    let is_last_note = |text: &String| text.contains("no longer reported");
    assert!(warnings.len() == 20 && is_last_note(&warnings[19]), "{warnings:?}");
    assert_eq!(*received.lock().unwrap(), warnings);
    assert_eq!(errors.len(), 1, "{errors:?}");
    assert_eq!(errors[0].kind(), ErrorKind::Protocol);
    assert!(messages.iter().any(|message| message.as_result().is_some()), "{messages:?}");
}

#[tokio::test]
async fn an_engine_that_does_not_answer_initialize_is_ended() {
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
async fn an_engine_that_closes_its_output_but_keeps_running_is_ended() {
    let fake = Fake::new(&[INTRODUCES, "echo $$ > pid", "exec >&-; sleep 600"]);
    let error = error(fake.options()).await;
    assert_eq!(error.kind(), ErrorKind::Timeout);
    gone(&fake.folder.path().join("pid")).await;
}

#[tokio::test]
async fn dropping_the_client_ends_an_engine_that_ignores_sigterm() {
    let fake =
        Fake::new(&["trap '' TERM", "echo $$ > pid", INTRODUCES, "while :; do sleep 1; done"]);
    let client = within(Client::connect(fake.options())).await.unwrap();
    drop(client);
    gone(&fake.folder.path().join("pid")).await;
}

#[tokio::test]
async fn a_child_that_holds_the_engines_output_open_does_not_delay_the_end() {
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
async fn a_refusal_contains_the_engines_reason() {
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
async fn the_stderr_listener_receives_stderr_as_it_is_written() {
    let received = Arc::new(Mutex::new(String::new()));
    let sink = Arc::clone(&received);
    let fake =
        Fake::new(&[INTRODUCES, "read -r prompt; echo careful >&2", ANSWERS, "cat > /dev/null"]);
    let mut options = fake.options();
    options.engine.stderr = Some(Arc::new(move |text: &str| sink.lock().unwrap().push_str(text)));
    let (_, errors) = run(options).await;
    assert!(errors.is_empty(), "{errors:?}");
    assert_eq!(*received.lock().unwrap(), "careful\n");
}

/// Waits until the process whose id is in a file has ended.
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

/// What a failing engine does after it has received a prompt, and the error that the host gets.
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
async fn every_failure_has_its_kind_its_text_and_whether_a_retry_helps() {
    for failure in FAILURES {
        let Failure { requirement, engine, kind, is_retryable, says } = failure;
        let fake = Fake::new(&[INTRODUCES, "read -r prompt", engine]);
        let error = within(ostler_sdk::prompt("hello", fake.options())).await.unwrap_err();
        assert_eq!(error.kind(), *kind, "{requirement}: {error}");
        assert_eq!(error.is_retryable(), *is_retryable, "{requirement}: {error}");
        for text in *says {
            assert!(error.to_string().contains(text), "{requirement}: no {text:?} in {error}");
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

/// Runs one test in a child process and returns its output; `None` in that child process.
async fn output_of(test: &str) -> Option<String> {
    const ALONE: &str = "OSTLER_TEST_ALONE";
    if std::env::var_os(ALONE).is_some() {
        return None;
    }
    let mut program = tokio::process::Command::new(std::env::current_exe().unwrap());
    program.args(["--exact", test, "--nocapture"]).env(ALONE, "1");
    let output = within(program.output()).await.unwrap();
    let (stdout, stderr) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && stdout.contains("1 passed"), "{stdout}{stderr}");
    Some(format!("{stdout}{stderr}"))
}

#[tokio::test]
async fn the_engines_stderr_is_kept_in_order_for_errors_and_not_printed() {
    let test = "errors::the_engines_stderr_is_kept_in_order_for_errors_and_not_printed";
    if let Some(output) = output_of(test).await {
        assert!(!output.contains("careful"), "{output}");
        return;
    }
    let engine = "echo careful one >&2; read -r prompt; echo careful two >&2";
    let fake = Fake::new(&["echo careful zero >&2", INTRODUCES, engine, "exit 4"]);
    let error = error(fake.options()).await;
    assert_eq!(error.stderr(), Some("careful zero\ncareful one\ncareful two\n"));
}

#[tokio::test]
async fn after_every_failure_no_process_and_no_task_is_left() {
    let tasks = || tokio::runtime::Handle::current().metrics().num_alive_tasks();
    let before = tasks();
    let starts = "sleep 600 & echo $! > child; echo $$ > pid";
    // Engines that fail before they answer `initialize`, and after it.
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

/// The tests of each requirement on errors. The test below fails if a row or a test is missing.
#[rustfmt::skip]
const ROWS: &[(u16, &[&str])] = &[
    (291, &["an_executable_that_does_not_exist_is_an_engine_error"]),
    (292, &["a_connection_that_breaks_may_be_tried_again", "every_failure_has_its_kind_its_text_and_whether_a_retry_helps"]),
    (293, &["the_error_for_an_engine_that_exits_at_once_has_exit_code_and_stderr", "every_failure_has_its_kind_its_text_and_whether_a_retry_helps"]),
    (294, &["a_line_that_is_not_json_is_reported_and_a_broken_frame_is_an_error", "every_failure_has_its_kind_its_text_and_whether_a_retry_helps"]),
    (295, &["every_failure_has_its_kind_its_text_and_whether_a_retry_helps"]),
    (296, &["every_failure_has_its_kind_its_text_and_whether_a_retry_helps"]),
    (299, &["the_stderr_listener_receives_stderr_as_it_is_written", "the_engines_stderr_is_kept_in_order_for_errors_and_not_printed"]),
    (300, &["the_engines_stderr_is_kept_in_order_for_errors_and_not_printed", "only_the_end_of_a_long_stderr_is_kept"]),
    // In ostler/tests/it/errors.rs: these need a real engine.
    (301, &["an_unknown_extra_argument_is_refused_and_the_error_names_it"]),
    (304, &["errors_of_the_engine_name_their_cause"]),
    (305, &["after_every_failure_no_process_and_no_task_is_left", "an_engine_that_does_not_answer_initialize_is_ended"]),
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
    // Those of tasks (R297, R298), workspaces (R302) and AG-UI (R303) are not part of this crate.
    let ours = (291..=305).filter(|number| ![297, 298, 302, 303].contains(number));
    assert!(ours.eq(ROWS.iter().map(|(number, _)| *number)));
}
