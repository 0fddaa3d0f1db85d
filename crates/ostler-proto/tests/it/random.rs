//! Random traffic: the rules hold for changed recordings and for any JSON.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::sync::LazyLock;

use ostler_proto::build;
use ostler_proto::codec::FrameDecoder;
use ostler_proto::control::{ControlCancelRequest, ControlResponse};
use ostler_proto::frame::{Frame, ToEngine, ToHost};
use ostler_proto::peer::{CallError, Peer};
use ostler_proto::transcript::TranscriptLine;
use ostler_proto::{DecodeError, RequestId};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use proptest::test_runner::TestCaseResult;
use serde_json::{Map, Number, Value};

use crate::fixtures;

/// A failing case is printed, minimised, and becomes a separate test; files of seeds are not needed.
fn config() -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn frames_do_not_depend_on_the_size_of_portions(lines in vec(line(), 0..12), cuts in vec(any::<Index>(), 0..24)) {
        let bytes = lines.concat();
        let whole = decode::<ToHost>([&bytes[..]]);
        prop_assert_eq!(decode::<ToHost>(portions(&bytes, &cuts)), whole);
        let whole = decode::<ToEngine>([&bytes[..]]);
        prop_assert_eq!(decode::<ToEngine>(portions(&bytes, &cuts)), whole);
    }

    #[test]
    fn any_object_survives_or_is_refused_by_name(object in object()) {
        check_all(&object)?;
    }

    #[test]
    fn a_changed_frame_survives_or_is_refused_by_name(frame in changed_frame()) {
        check_all(&frame)?;
    }

    #[test]
    fn every_waiter_is_notified_exactly_once(operations in vec(operation(), 0..80)) {
        let mut model = Model::default();
        for operation in &operations {
            model.perform(operation)?;
        }
        model.close()?;
        prop_assert!(model.notified.iter().all(|times| *times == 1), "notified: {:?}", model.notified);
    }
}

// --- lines in portions

/// A line with its ending: recorded, garbage, blank, not UTF-8.
fn line() -> impl Strategy<Value = Vec<u8>> {
    let text = prop_oneof![
        4 => select(&RECORDED.lines[..]).prop_map(String::into_bytes),
        2 => "\\PC{0,20}".prop_map(String::into_bytes),
        1 => "[ \t]{0,4}".prop_map(String::into_bytes),
        1 => vec(any::<u8>(), 0..20),
    ];
    let ending = select(vec!["\n", "\r\n", "\n\n", "\r", ""]);
    (text, ending).prop_map(|(text, ending)| [&text, ending.as_bytes()].concat())
}

fn portions<'a>(bytes: &'a [u8], cuts: &[Index]) -> Vec<&'a [u8]> {
    let cuts: BTreeSet<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
    let starts = std::iter::once(0).chain(cuts.iter().copied());
    let ends = cuts.iter().copied().chain([bytes.len()]);
    starts.zip(ends).map(|(start, end)| &bytes[start..end]).collect()
}

fn decode<'a, F: Frame>(
    portions: impl IntoIterator<Item = &'a [u8]>,
) -> Vec<Result<F, DecodeError>> {
    let mut decoder = FrameDecoder::new();
    let mut results = Vec::new();
    for portion in portions {
        decoder.push(portion);
        results.extend(std::iter::from_fn(|| decoder.next_frame()));
    }
    decoder.finish();
    results.extend(std::iter::from_fn(|| decoder.next_frame()));
    results
}

// --- any JSON

fn check_all(object: &Value) -> TestCaseResult {
    check::<ToHost>(object)?;
    check::<ToEngine>(object)?;
    check::<TranscriptLine>(object)
}

/// What decodes is written back equal; what does not is an error that names the type.
fn check<F: Frame + Debug>(original: &Value) -> TestCaseResult {
    let frame = match F::from_line(&original.to_string()) {
        Ok(frame) => frame,
        Err(error) => {
            let kind = original.get("type").and_then(Value::as_str);
            let named = kind.is_some_and(|kind| error.to_string().contains(kind));
            prop_assert!(named, "{} with type {kind:?}: {error}", F::NAME);
            return Ok(());
        }
    };
    let written: Value = serde_json::from_str(&frame.to_line()).expect("a frame is JSON");
    prop_assert_eq!(&written, original, "{}", F::NAME);
    Ok(())
}

fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (0..3u8).prop_map(Value::from),
        any::<f64>().prop_filter_map("finite", |float| Number::from_f64(float).map(Value::from)),
        select(&RECORDED.words[..]).prop_map(Value::from),
        "\\PC{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..5).prop_map(Value::from),
            vec((key(), inner), 0..5).prop_map(from_entries),
        ]
    })
}

/// An object with a known type, an unknown one, or none.
fn object() -> impl Strategy<Value = Value> {
    let kind = prop_oneof![
        4 => select(&RECORDED.kinds[..]).prop_map(|kind| Some(Value::from(kind))),
        1 => json().prop_map(Some),
        1 => Just(None),
    ];
    let entries = vec((key(), json()), 0..6);
    (kind, entries, any::<Index>()).prop_map(|(kind, mut entries, place)| {
        if let Some(kind) = kind {
            entries.retain(|(key, _)| key != "type");
            entries.insert(place.index(entries.len() + 1), ("type".to_owned(), kind));
        }
        from_entries(entries)
    })
}

fn key() -> impl Strategy<Value = String> {
    prop_oneof![3 => select(&RECORDED.keys[..]), 1 => "[a-zA-Z_]{1,6}", 1 => "\\PC{0,4}"]
}

fn from_entries(entries: Vec<(String, Value)>) -> Value {
    Value::Object(entries.into_iter().collect())
}

// --- recorded frames with changes

/// A change of one field of one object somewhere in a frame.
#[derive(Clone, Debug)]
enum Change {
    Drop,
    Replace(Value),
    Add(String, Value),
    /// The field moves to the front of its object.
    MoveToFront,
}

fn changed_frame() -> impl Strategy<Value = Value> {
    let change = prop_oneof![
        Just(Change::Drop),
        Just(Change::Replace(Value::Null)),
        json().prop_map(Change::Replace),
        select(&RECORDED.words[..]).prop_map(|word| Change::Replace(word.into())),
        (key(), json()).prop_map(|(key, value)| Change::Add(key, value)),
        Just(Change::MoveToFront),
    ];
    let changes = vec((any::<Index>(), any::<Index>(), change), 1..5);
    (select(&RECORDED.lines[..]), changes).prop_map(|(line, changes)| {
        let mut frame = serde_json::from_str(&line).expect("recordings are JSON");
        for (object, field, change) in changes {
            apply(&mut frame, object, field, change);
        }
        frame
    })
}

fn apply(frame: &mut Value, object: Index, field: Index, change: Change) {
    let mut pointers = Vec::new();
    find_objects(frame, String::new(), &mut pointers);
    let pointer = object.get(&pointers);
    let fields =
        frame.pointer_mut(pointer).and_then(Value::as_object_mut).expect("it was just found");
    if let Change::Add(key, value) = change {
        // Not over a known field: that is `Replace`.
        fields.entry(key).or_insert(value);
        return;
    }
    if fields.is_empty() {
        return;
    }
    let key = fields.keys().nth(field.index(fields.len())).expect("an index within").clone();
    match change {
        Change::Drop => drop(fields.shift_remove(&key)),
        Change::Replace(value) => drop(fields.insert(key, value)),
        Change::MoveToFront => {
            let value = fields.shift_remove(&key).expect("the key is there");
            let rest = std::mem::replace(fields, Map::from_iter([(key, value)]));
            fields.extend(rest);
        }
        Change::Add(..) => unreachable!("done above"),
    }
}

/// JSON pointers to all objects, the outermost first.
fn find_objects(value: &Value, pointer: String, found: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            found.push(pointer.clone());
            for (key, value) in fields {
                let key = key.replace('~', "~0").replace('/', "~1");
                find_objects(value, format!("{pointer}/{key}"), found);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                find_objects(item, format!("{pointer}/{index}"), found);
            }
        }
        _ => {}
    }
}

/// The parts of recorded traffic.
struct Corpus {
    lines: Vec<String>,
    keys: Vec<String>,
    /// Short strings: tags, enum words, ids.
    words: Vec<String>,
    kinds: Vec<String>,
}

static RECORDED: LazyLock<Corpus> = LazyLock::new(|| {
    let recorded = fixtures::lines(".jsonl");
    let lines: Vec<_> = recorded.into_iter().map(|recorded| recorded.line).collect();
    let (mut keys, mut words, mut kinds) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for line in &lines {
        let frame: Value = serde_json::from_str(line).expect("recordings are JSON");
        kinds.extend(frame["type"].as_str().map(str::to_owned));
        collect(&frame, &mut keys, &mut words);
    }
    let [keys, words, kinds] = [keys, words, kinds].map(|set| set.into_iter().collect());
    Corpus { lines, keys, words, kinds }
});

fn collect(value: &Value, keys: &mut BTreeSet<String>, words: &mut BTreeSet<String>) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                keys.insert(key.clone());
                collect(value, keys, words);
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, keys, words)),
        Value::String(text) if text.len() < 24 => drop(words.insert(text.clone())),
        _ => {}
    }
}

// --- questions and answers

#[derive(Clone, Debug)]
enum Operation {
    Ask,
    /// To a question of ours, open or not.
    Answer {
        question: Index,
        success: bool,
    },
    AnswerToNobody,
    Cancel(Index),
    Serve(u8),
    Served(u8),
    Cancelled(u8),
    Close,
    StopServing,
}

fn operation() -> impl Strategy<Value = Operation> {
    prop_oneof![
        8 => Just(Operation::Ask),
        6 => (any::<Index>(), any::<bool>())
            .prop_map(|(question, success)| Operation::Answer { question, success }),
        1 => Just(Operation::AnswerToNobody),
        3 => any::<Index>().prop_map(Operation::Cancel),
        4 => (0..6u8).prop_map(Operation::Serve),
        3 => (0..6u8).prop_map(Operation::Served),
        2 => (0..6u8).prop_map(Operation::Cancelled),
        1 => Just(Operation::StopServing),
        1 => Just(Operation::Close),
    ]
}

/// A peer, and a simple model of it.
struct Model {
    peer: Peer<usize, u8>,
    /// How often each waiter was notified; the index is its token. A cancelled one counts as notified.
    notified: Vec<u32>,
    /// Ids of all questions, with their tokens, in the order they were asked.
    questions: Vec<(RequestId, usize)>,
    open: BTreeSet<RequestId>,
    work: BTreeMap<RequestId, u8>,
    closed: bool,
}

impl Default for Model {
    fn default() -> Self {
        Self {
            peer: Peer::new("r"),
            notified: Vec::new(),
            questions: Vec::new(),
            open: BTreeSet::new(),
            work: BTreeMap::new(),
            closed: false,
        }
    }
}

impl Model {
    fn perform(&mut self, operation: &Operation) -> TestCaseResult {
        match operation {
            Operation::Ask => self.ask()?,
            Operation::Answer { question, success } => self.answer(question, *success)?,
            Operation::AnswerToNobody => {
                let answer = ControlResponse::success("unknown".into(), None);
                prop_assert!(self.peer.answered(answer).is_none());
            }
            Operation::Cancel(question) => self.cancel(question)?,
            Operation::Serve(name) => {
                let id = work_id(*name);
                let free = !self.closed && !self.work.contains_key(&id);
                let expected = if free { Ok(()) } else { Err(*name) };
                prop_assert_eq!(self.peer.serve(id.clone(), *name), expected);
                if free {
                    self.work.insert(id, *name);
                }
            }
            Operation::Served(name) => {
                let id = work_id(*name);
                prop_assert_eq!(self.peer.served(&id), self.work.remove(&id));
            }
            Operation::Cancelled(name) => {
                let request_id = work_id(*name);
                let expected = self.work.remove(&request_id);
                let cancel = build!(ControlCancelRequest { request_id });
                prop_assert_eq!(self.peer.cancelled(&cancel), expected);
            }
            Operation::StopServing => {
                let stopped: BTreeSet<_> = self.peer.stop_serving().into_iter().collect();
                prop_assert_eq!(stopped, std::mem::take(&mut self.work).into_values().collect());
            }
            Operation::Close => self.close()?,
        }
        prop_assert_eq!(self.peer.waiting(), self.open.len());
        prop_assert_eq!(self.peer.working(), self.work.len());
        Ok(())
    }

    fn ask(&mut self) -> TestCaseResult {
        let token = self.notified.len();
        self.notified.push(0);
        match self.peer.ask(token) {
            Ok(id) => {
                prop_assert!(!self.closed && self.open.insert(id.clone()));
                self.questions.push((id, token));
            }
            Err((returned, error)) => {
                let closed = matches!(error, CallError::Closed { .. });
                prop_assert!(self.closed && closed);
                self.notified[returned] += 1;
            }
        }
        Ok(())
    }

    fn answer(&mut self, question: &Index, success: bool) -> TestCaseResult {
        let Some((id, token)) = self.pick(question) else { return Ok(()) };
        let answer = if success {
            ControlResponse::success(id.clone(), None)
        } else {
            ControlResponse::error(id.clone(), "no")
        };
        let notified = self.peer.answered(answer).map(|(who, result)| (who, result.is_ok()));
        prop_assert_eq!(notified, self.open.remove(&id).then_some((token, success)));
        self.notified[token] += u32::from(notified.is_some());
        Ok(())
    }

    fn cancel(&mut self, question: &Index) -> TestCaseResult {
        let Some((id, token)) = self.pick(question) else { return Ok(()) };
        let notified = self.peer.cancel(&id).map(|(who, frame)| (who, frame.request_id));
        self.notified[token] += u32::from(notified.is_some());
        prop_assert_eq!(notified, self.open.remove(&id).then_some((token, id)));
        Ok(())
    }

    fn close(&mut self) -> TestCaseResult {
        let notified: BTreeMap<_, _> = self.peer.close("the end").into_iter().collect();
        prop_assert_eq!(notified.len(), self.open.len());
        for (token, error) in notified {
            let CallError::Closed { id, .. } = error else { panic!("closed with {error}") };
            prop_assert!(self.open.remove(&id) && self.questions.contains(&(id, token)));
            self.notified[token] += 1;
        }
        self.closed = true;
        Ok(())
    }

    fn pick(&self, question: &Index) -> Option<(RequestId, usize)> {
        (!self.questions.is_empty()).then(|| question.get(&self.questions).clone())
    }
}

fn work_id(name: u8) -> RequestId {
    RequestId::from(format!("work-{name}"))
}
