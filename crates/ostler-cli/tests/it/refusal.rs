//! A failed start is reported to a program that sends frames: as a result and as the answer to `initialize`.

use std::io::{BufRead as _, BufReader, Write as _};

use serde_json::{Value, json};

use crate::run::Ostler;

const FRAMES: &[&str] =
    &["-p", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose"];

/// What a host reads that sends `initialize` only after a while, and closes the input after the answer.
fn read_by_host(ostler: &Ostler, arguments: &[&str]) -> (Value, Value, Option<i32>) {
    let mut child = ostler.spawn(&[FRAMES, arguments].concat());
    let mut stdin = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = || serde_json::from_str::<Value>(&lines.next().unwrap().unwrap()).unwrap();
    let result = next();
    let introduction =
        json!({"type": "control_request", "request_id": "7", "request": {"subtype": "initialize"}});
    // If the program had ended, this would be a broken pipe.
    writeln!(stdin, "{introduction}").unwrap();
    let answer = next();
    writeln!(stdin, "{}", json!({"type": "user", "message": {"role": "user", "content": "hi"}}))
        .unwrap();
    drop(stdin);
    (result, answer, child.wait().unwrap().code())
}

#[test]
fn a_failed_start_is_reported_by_a_result_and_by_the_answer_to_initialize() {
    let missing = "99999999-9999-4999-8999-999999999999";
    let cases = [
        (&["--resume", missing][..], "No conversation found with session ID: 99999999"),
        (&["--settings", r#"{"permissions":{"allow":5}}"#], "permissions"),
        (&["--permission-mode", "sometimes"], "sometimes"),
    ];
    for (arguments, reason) in cases {
        let (result, answer, code) = read_by_host(&Ostler::new(), arguments);
        assert_eq!((&result["type"], &result["is_error"]), (&json!("result"), &json!(true)));
        let error = result["errors"][0].as_str().unwrap();
        assert!(error.contains(reason), "{arguments:?}: {result}");
        let response = &answer["response"];
        assert_eq!((&response["subtype"], &response["request_id"]), (&json!("error"), &json!("7")));
        assert!(response["error"].as_str().unwrap().contains(reason), "{arguments:?}: {answer}");
        assert_eq!(code, Some(1), "{arguments:?}");
    }
}

/// A host that never closes the input does not keep the program running.
#[test]
fn a_refused_start_ends_although_the_input_stays_open() {
    let mut child =
        Ostler::new().spawn(&[FRAMES, &["--settings", r#"{"permissions":{"allow":5}}"#]].concat());
    let stdin = child.stdin.take();
    assert_eq!(child.wait().unwrap().code(), Some(1));
    drop(stdin);
}
