//! Which exchange answers which request.

use std::path::Path;

use ostler_proto::api::{ContentBlock, Role};
use serde_json::json;

use super::super::edit::edited;
use super::super::recorded_request::RequestNormalizer;
use super::super::redactor::RecordingRedactor;
use super::*;
use crate::{ChatMessage, Request};

fn asked(texts: &[&str]) -> RecordedRequest {
    let normalizer =
        RequestNormalizer::new(RecordingRedactor::new(Path::new("/a"), None, Path::new("/t")));
    let said =
        |text: &&str| ChatMessage { role: Role::User, content: vec![ContentBlock::text(*text)] };
    normalizer.file(&Request::new("claude-opus-5", texts.iter().map(said).collect()))
}

/// A recording of runs, each a list of conversations.
fn library(runs: &[&[&[&str]]]) -> LoadedRecording {
    let mut library = LoadedRecording::default();
    for (run, requests) in runs.iter().enumerate() {
        for (number, texts) in requests.iter().enumerate() {
            let number = number as u64 + 1;
            let line = library.exchanges.len() + 2;
            let (events, ms) = (Vec::new(), Vec::new());
            let (asked, end, is_used) = (asked(texts), ExchangeEnd::Complete, false);
            let exchange = RecordedExchange { run, number, line, asked, events, ms, end, is_used };
            library.exchanges.push(exchange);
        }
    }
    library
}

/// Which exchange answers, as `run.number`.
fn take(library: &mut LoadedRecording, texts: &[&str], matching: ReplayMatch) -> String {
    match library.take(&asked(texts), matching) {
        Ok(exchange) => format!("{}.{}", exchange.run, exchange.number),
        Err(complaint) => complaint,
    }
}

#[test]
fn requests_are_found_in_any_order() {
    let mut library = library(&[&[&["a"], &["b"], &["c"]]]);
    let mut found = |text: &str| take(&mut library, &[text], ReplayMatch::Strict);
    assert_eq!([found("c"), found("a"), found("b")], ["0.3", "0.1", "0.2"]);
}

#[test]
fn equal_requests_are_answered_in_turn_and_then_no_more() {
    let mut library = library(&[&[&["a"], &["b"], &["a"]]]);
    let mut found = |text: &str| take(&mut library, &[text], ReplayMatch::Strict);
    assert_eq!([found("a"), found("a"), found("b")], ["0.1", "0.3", "0.2"]);
    let complaint = found("a");
    assert!(complaint.contains("all of its exchanges have been replayed"), "{complaint}");
}

#[test]
fn the_newest_run_with_the_first_request_answers_all_requests() {
    let runs: &[&[&[&str]]] = &[&[&["a"], &["x"]], &[&["a"], &["x"]], &[&["z"]]];
    let mut library = library(runs);
    let mut found = |text: &str| take(&mut library, &[text], ReplayMatch::Strict);
    assert_eq!([found("a"), found("x")], ["1.1", "1.2"]);
    // A conversation that was recorded in two runs may continue in one.
    assert_eq!(found("z"), "2.1");
}

#[test]
fn a_request_that_is_not_recorded_is_reported_with_the_first_difference() {
    let mut library = library(&[&[&["fix it", "one result"], &["another"]]]);
    let complaint = take(&mut library, &["fix it", "two results"], ReplayMatch::Strict);
    for part in [
        "no answer to request 1 of this run (2 messages, the last one \"two results\")",
        "exchange 1 (line 2)",
        "at messages[1].content[0].text: recorded is \"one result\", requested is \"two results\"",
        "Record again, or replay with `--replay-match loose`",
    ] {
        assert!(complaint.contains(part), "{part}: {complaint}");
    }
}

#[test]
fn loose_matching_compares_the_kinds_of_messages_and_takes_the_most_similar() {
    let mut library = library(&[&[&["a", "b"], &["c", "d"], &["e"]]]);
    let mut found = |texts: &[&str]| take(&mut library, texts, ReplayMatch::Loose);
    assert_eq!(found(&["changed", "d"]), "0.2");
    assert_eq!(found(&["changed"]), "0.3");
    assert_eq!(found(&["changed", "too"]), "0.1");
    let complaint = found(&["a", "b", "c"]);
    assert!(complaint.contains("no answer") && !complaint.contains("loose"), "{complaint}");
}

#[test]
fn ids_of_the_recording_are_replaced_by_those_of_this_run() {
    let mut library = library(&[&[&["task b12ab34cd in /t/ostler-1 done"]]]);
    let now = &["task b99ff00ee in /t/ostler-2 done"];
    assert_eq!(take(&mut library, now, ReplayMatch::Strict), "0.1");
    let text = "stop b12ab34cd, see <ostler:tmp>/ostler-1/x";
    let now = edited(text, Form::Plain, library.learned());
    assert_eq!(now, "stop b99ff00ee, see <ostler:tmp>/ostler-2/x");
}

#[test]
fn a_call_is_found_by_its_id_and_must_have_the_same_input() {
    let mut library = library(&[&[&["a"]]]);
    let (id, name) = ("toolu_1".to_owned(), "Bash".to_owned());
    let input = RequestPart::new(json!({"command": "ls"}));
    let outcome = CallOutcome::Failed("no".into());
    library.calls.push(RecordedCall { run: 0, id, name, input, outcome, is_used: false });
    let mut call = |id: &str, command: &str| {
        library.take_call(id, "Bash", &RequestPart::new(json!({"command": command})))
    };
    assert!(
        call("toolu_2", "ls").unwrap_err().contains("no result of this call of Bash (toolu_2)")
    );
    let changed = call("toolu_1", "rm").unwrap_err();
    assert!(changed.contains("at command: recorded is \"ls\", requested is \"rm\""), "{changed}");
    assert_eq!(call("toolu_1", "ls"), Ok(CallOutcome::Failed("no".into())));
    assert!(call("toolu_1", "ls").is_err());
}
