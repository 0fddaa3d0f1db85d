//! All recorded traffic of the official SDKs and CLIs decodes, is known, and encodes unchanged.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Debug;

use ostler_proto::control::{self, ControlResponse, Response};
use ostler_proto::frame::{Frame, ToEngine, ToHost};
use ostler_proto::tool::{ToolInput, ToolOutput};
use ostler_proto::transcript::TranscriptLine;
use ostler_proto::{DecodeError, drift};
use serde_json::{Value, json};

use crate::fixtures::{self, Recorded};

/// A field or value in recorded traffic that the types do not name, and why not.
type Explained = (&'static str, &'static str);

const JUNK: Explained = (
    "PermissionMode = junk",
    "the scenario asks for a mode that does not exist, to see it refused",
);
const VENDOR_SERVICES: &[Explained] = &[
    ("InitializeReply.feedback_mode", "the vendor's feedback service"),
    ("InitializeReply.ide_rc_auto_enable_gate", "a switch of the vendor's roll-out"),
    ("InitializeReply.other_hook_ask_outranks_host", "a switch of the vendor's roll-out"),
    ("InitializeReply.remote_control_auto_connect_default", "the vendor's remote control service"),
    ("InitializeReply.remote_control_auto_enable", "the vendor's remote control service"),
    ("InitializeReply.remote_control_auto_on_by_default", "the vendor's remote control service"),
    ("InitializeReply.remote_control_available", "the vendor's remote control service"),
];

/// Fields and values that were read as unknown, with their first place.
#[derive(Default)]
struct Unknown(BTreeMap<String, String>);

impl Unknown {
    /// Decodes `line` as `F`, checks that it encodes equal, and records what was not known.
    fn round_trip<F: Frame + Debug>(&mut self, recorded: &Recorded) -> F {
        let (frame, seen) = drift::observe(|| F::from_line(&recorded.line));
        let frame = frame.unwrap_or_else(|error| panic!("{}: {error}", recorded.at));
        let original: Value = serde_json::from_str(&recorded.line).unwrap();
        let written: Value = serde_json::from_str(&frame.to_line()).unwrap();
        assert_eq!(written, original, "{}", recorded.at);
        self.note(seen, &recorded.at);
        frame
    }

    fn note(&mut self, seen: impl IntoIterator<Item = String>, at: &str) {
        for name in seen {
            self.0.entry(name).or_insert_with(|| at.to_owned());
        }
    }

    /// Fails unless this is exactly what is explained.
    fn check(self, explained: &[Explained]) {
        let mut explained: Vec<_> = explained.iter().map(|(name, _)| *name).collect();
        explained.sort_unstable();
        let names: Vec<_> = self.0.keys().map(String::as_str).collect();
        assert_eq!(names, explained, "kept only as unknown: {:#?}", self.0);
    }
}

#[test]
fn all_recorded_output_is_known_and_survives() {
    let mut unknown = Unknown::default();
    for recorded in fixtures::lines(".stdout.jsonl") {
        let frame = unknown.round_trip::<ToHost>(&recorded);
        assert!(!matches!(frame, ToHost::Unknown(_)), "{}: unknown type", recorded.at);
    }
    unknown.check(&[JUNK]);
}

#[test]
fn all_recorded_input_is_known_and_survives() {
    let mut unknown = Unknown::default();
    for recorded in fixtures::lines(".stdin.jsonl") {
        let frame = unknown.round_trip::<ToEngine>(&recorded);
        assert!(!matches!(frame, ToEngine::Unknown(_)), "{}: unknown type", recorded.at);
    }
    unknown.check(&[JUNK]);
}

#[test]
fn all_recorded_session_files_are_known_and_survive() {
    let mut unknown = Unknown::default();
    let mirrored =
        fixtures::lines(".stdout.jsonl").into_iter().flat_map(|recorded| mirrored_lines(&recorded));
    let transcripts = fixtures::lines(".jsonl")
        .into_iter()
        .filter(|recorded| recorded.at.starts_with("transcript-"));
    for recorded in transcripts.chain(mirrored) {
        let line = unknown.round_trip::<TranscriptLine>(&recorded);
        assert!(
            !matches!(line, TranscriptLine::Unknown(_)),
            "{}: unknown type: {line:?}",
            recorded.at
        );
    }
    unknown.check(&[]);
}

/// The session lines inside a `transcript_mirror` frame.
fn mirrored_lines(recorded: &Recorded) -> Vec<Recorded> {
    let Ok(ToHost::TranscriptMirror(mirror)) = ToHost::from_line(&recorded.line) else {
        return Vec::new();
    };
    mirror
        .entries
        .iter()
        .map(|entry| Recorded { at: recorded.at.clone(), line: entry.to_string() })
        .collect()
}

#[test]
fn all_recorded_answers_have_the_type_of_their_request() {
    let mut unknown = Unknown::default();
    let mut answers = 0;
    for scenario in fixtures::scenarios() {
        let input = fixtures::lines(&format!("{scenario}.stdin.jsonl"));
        let output = fixtures::lines(&format!("{scenario}.stdout.jsonl"));
        let asked = subtypes(input.iter().chain(&output));
        for recorded in input.iter().chain(&output) {
            let Some((id, response)) = successful_answer(&recorded.line) else { continue };
            let Some(subtype) = asked.get(&id) else { continue };
            let (reread, seen) =
                drift::observe(|| control::reread_reply(subtype, response.as_ref()));
            let reread = reread.unwrap_or_else(|error| panic!("{}: {error}", recorded.at));
            assert_eq!(
                reread,
                response.unwrap_or(json!({})),
                "{}: answer to {subtype}",
                recorded.at
            );
            unknown.note(seen, &recorded.at);
            answers += 1;
        }
    }
    assert!(answers > 300, "only {answers} answers found their request");
    unknown.check(&[VENDOR_SERVICES, &[JUNK]].concat());
}

fn subtypes<'a>(recorded: impl Iterator<Item = &'a Recorded>) -> HashMap<String, String> {
    let mut subtypes = HashMap::new();
    for recorded in recorded {
        let frame: Value = serde_json::from_str(&recorded.line).unwrap();
        if let (Some(id), Some(subtype)) =
            (frame["request_id"].as_str(), frame["request"]["subtype"].as_str())
        {
            subtypes.insert(id.to_owned(), subtype.to_owned());
        }
    }
    subtypes
}

fn successful_answer(line: &str) -> Option<(String, Option<Value>)> {
    let Ok(ToHost::ControlResponse(ControlResponse {
        response: Response::Success(success), ..
    })) = ToHost::from_line(line)
    else {
        return None;
    };
    Some((success.request_id?.to_string(), success.response))
}

/// The built-in tools' inputs and structured outputs, as far as the recorded conversations use them.
#[test]
fn all_recorded_tool_calls_have_the_published_types() {
    let mut unknown = Unknown::default();
    let mut names = HashMap::new();
    let mut outputs = 0;
    for recorded in fixtures::lines(".stdout.jsonl") {
        let frame: Value = serde_json::from_str(&recorded.line).unwrap();
        for block in frame["message"]["content"].as_array().into_iter().flatten() {
            let (tool, value) = match block["type"].as_str() {
                Some("tool_use") => {
                    names.insert(
                        block["id"].to_string(),
                        block["name"].as_str().unwrap().to_owned(),
                    );
                    (block["name"].as_str().unwrap(), &block["input"])
                }
                Some("tool_result") if frame["tool_use_result"].is_object() => {
                    outputs += 1;
                    (names[&block["tool_use_id"].to_string()].as_str(), &frame["tool_use_result"])
                }
                _ => continue,
            };
            // A deliberate mistake of the script, to see it refused.
            if *value == json!({"wrong": 1}) {
                continue;
            }
            let (written, seen) = drift::observe(|| match block["type"].as_str() {
                Some("tool_use") => ToolInput::parse(tool, value).map(|input| input.to_value()),
                _ => ToolOutput::parse(tool, value).map(|output| output.to_value()),
            });
            assert_eq!(written.unwrap(), *value, "{}: {tool}", recorded.at);
            unknown.note(seen, &recorded.at);
        }
    }
    assert!(outputs > 50, "only {outputs} structured outputs found");
    unknown.check(&[]);
}

/// Lines that make the vendor's CLI exit are errors here, all others are frames; a line that is not an object (which
/// the vendor ignores) has its own error, which the engine ignores.
#[test]
fn odd_input_lines_are_classified_as_the_vendor_does() {
    let refused = ["badjson", "ctl-norequest", "garbage", "no-message"];
    let not_objects = ["array", "null", "number"];
    let cases: BTreeMap<String, Value> =
        serde_json::from_str(&fixtures::text("raw-stdin-cases.json")).unwrap();
    assert!(
        refused.iter().chain(&not_objects).all(|name| cases.contains_key(*name)),
        "{:?}",
        cases.keys()
    );
    for (name, case) in &cases {
        let lines = case["stdin"].as_array().unwrap().iter().map(|line| line.as_str().unwrap());
        // A line such as `@1.5` makes the recorder wait; it was not sent.
        let sent = lines.filter(|line| !line.starts_with('@') && !line.trim().is_empty());
        let errors: Vec<_> = sent.filter_map(|line| ToEngine::from_line(line).err()).collect();
        match errors[..] {
            [] => assert!(!refused.contains(&name.as_str()), "{name} should be refused"),
            [DecodeError::NotAnObject { .. }] => {
                assert!(not_objects.contains(&name.as_str()), "{name}")
            }
            [_] => assert!(refused.contains(&name.as_str()), "{name}: {errors:?}"),
            _ => panic!("{name}: {errors:?}"),
        }
    }
}
