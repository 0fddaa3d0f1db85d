//! An uncovered request fails the test, with the conversation and the reason of every rule.

use ostler_testkit::{FailureKind, Rule, Script, ScriptedApi, reply, when};
use serde_json::json;

use crate::support::{after_tool, ask, message, send, streamed};

const REPORT: &str = r#"no rule covers request 1 (model claude-test, turn 1, streaming)

conversation:
0.0 user       text: list
1.0 assistant  tool_use Bash toolu_000000000000000000000001: {"command":"ls"}
2.0 user       tool_result toolu_000000000000000000000001: a.txt

rules:
0: turn is 1, not 0
1 (greeting): prompt does not contain "hello"
"#;

/// Sends one covered and one uncovered request.
async fn cause_failure() -> (ScriptedApi, serde_json::Value) {
    let script = Script::new()
        .rule(when().turn(0), reply().tool_use("Bash", json!({"command": "ls"})))
        .with(Rule::new(when().prompt_contains("hello"), reply().text("hi")).named("greeting"));
    let server = ScriptedApi::start(script).await;
    let call = message(&server, &ask("list")).await;
    let answer = send(&server, &streamed(after_tool(ask("list"), &call, "a.txt"))).await;
    assert_eq!(answer.status(), 400);
    (server, answer.json().await.unwrap())
}

#[tokio::test]
async fn the_client_and_the_test_get_the_same_report() {
    let (server, answer) = cause_failure().await;
    assert_eq!(answer["error"]["type"], "invalid_request_error");
    assert_eq!(answer["error"]["message"], REPORT);
    assert_eq!(server.unmatched(), [REPORT]);
    let failures = server.take_failures();
    assert_eq!((failures[0].sequence, failures[0].kind), (1, FailureKind::Unmatched));
    server.finish();
}

#[tokio::test]
#[should_panic(expected = "no rule covers request 1")]
async fn finishing_panics_with_the_report() {
    let (server, _) = cause_failure().await;
    server.finish();
}

#[tokio::test]
#[should_panic(expected = "1.0 assistant  tool_use Bash toolu_000000000000000000000001")]
async fn dropping_panics_with_the_conversation() {
    let _server = cause_failure().await;
}

#[tokio::test]
#[should_panic(expected = "the test's own reason")]
async fn a_test_that_fails_by_itself_keeps_its_own_panic() {
    let _server = cause_failure().await;
    panic!("the test's own reason");
}

#[tokio::test]
async fn the_report_says_that_a_script_has_no_rules() {
    let server = ScriptedApi::start(Script::new()).await;
    send(&server, &ask("hi")).await;
    assert!(server.take_failures()[0].report.ends_with("rules:\n(the script has none)\n"));
}

/// A program whose `main` returns an error shows that error. Mutant: the name of the thread not checked.
#[tokio::test]
async fn dropping_in_main_does_not_hide_an_error_that_main_returns() {
    let in_main = |work: Box<dyn FnOnce() + Send>| {
        std::thread::Builder::new().name("main".to_owned()).spawn(work).unwrap().join()
    };
    let (server, _) = cause_failure().await;
    assert!(in_main(Box::new(move || drop(server))).is_ok());
    let (server, _) = cause_failure().await;
    assert!(
        in_main(Box::new(move || server.finish())).is_err(),
        "finish reports failures in main, too"
    );
}
