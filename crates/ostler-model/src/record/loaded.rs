//! The contents of a recording, and the exchange that answers a request. Pure.
//!
//! Requests are found by their content, not by their order: subagents and parallel calls ask in any order. Of several
//! equal ones the first unused one is taken. If a file has several runs, the newest one with the first request answers
//! all requests.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use ostler_proto::launch::ReplayMatch;
use serde_json::Value;

use super::difference;
use super::edit::{Edit, Editor, Form, add};
use super::line::{CallOutcome, ExchangeEnd};
use super::recorded_request::{RecordedRequest, RequestPart};

/// A recording.
#[derive(Debug, Default)]
pub(crate) struct LoadedRecording {
    /// The model of the last run.
    pub(crate) model: Option<String>,
    pub(crate) exchanges: Vec<RecordedExchange>,
    pub(crate) calls: Vec<RecordedCall>,
    /// The run that is replayed, once it is known.
    run: Option<usize>,
    n_asked: usize,
    learned: IdSubstitutions,
}

#[derive(Debug)]
pub(crate) struct RecordedExchange {
    pub(crate) run: usize,
    pub(crate) number: u64,
    /// Its line in the file.
    pub(crate) line: usize,
    pub(crate) asked: RecordedRequest,
    pub(crate) events: Vec<Value>,
    pub(crate) ms: Vec<u64>,
    pub(crate) end: ExchangeEnd,
    pub(crate) is_used: bool,
}

#[derive(Debug)]
pub(crate) struct RecordedCall {
    pub(crate) run: usize,
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) input: Arc<RequestPart>,
    pub(crate) outcome: CallOutcome,
    pub(crate) is_used: bool,
}

impl LoadedRecording {
    /// Takes the exchange that answers a request; it is not used again.
    ///
    /// # Errors
    /// When there is none.
    pub(crate) fn take(
        &mut self,
        asked: &RecordedRequest,
        matching: ReplayMatch,
    ) -> Result<&RecordedExchange, String> {
        self.n_asked += 1;
        let fits = |exchange: &RecordedExchange| match matching {
            ReplayMatch::Loose => shape(&exchange.asked) == shape(asked),
            _ => exchange.asked.is_like(asked),
        };
        let rank = |exchange: &RecordedExchange| {
            let is_of_run = Some(exchange.run) == self.run;
            (is_of_run, exchange.run, similarity(&exchange.asked, asked), Reverse(exchange.number))
        };
        let found = self.exchanges.iter().enumerate();
        let found = found.filter(|(_, exchange)| !exchange.is_used && fits(exchange));
        let Some((found, _)) = found.max_by_key(|(_, exchange)| rank(exchange)) else {
            return Err(self.complaint(asked, matching));
        };
        let exchange = &mut self.exchanges[found];
        exchange.is_used = true;
        self.run = Some(exchange.run);
        self.learned.compare(&exchange.asked, asked);
        Ok(exchange)
    }

    /// Takes the outcome of a call; it is not used again.
    ///
    /// # Errors
    /// When the recording has no such call.
    pub(crate) fn take_call(
        &mut self,
        id: &str,
        name: &str,
        input: &RequestPart,
    ) -> Result<CallOutcome, String> {
        let is_it = |call: &&mut RecordedCall| !call.is_used && call.id == id && call.name == name;
        let run = self.run;
        let found = self.calls.iter_mut().filter(is_it).max_by_key(|call| Some(call.run) == run);
        let Some(call) = found else {
            return Err(format!("the recording has no result of this call of {name} ({id})"));
        };
        if let Some(difference) = difference::first(&call.input.normal.value, &input.normal.value) {
            return Err(format!(
                "the recording has this call of {name} ({id}) with another input: {difference}"
            ));
        }
        call.is_used = true;
        Ok(call.outcome.clone())
    }

    /// The substitutions for ids of the recording in this run.
    pub(crate) fn learned(&self) -> &IdSubstitutions {
        &self.learned
    }

    /// The error for a request without an answer in the recording.
    fn complaint(&self, asked: &RecordedRequest, matching: ReplayMatch) -> String {
        let n_messages = asked.messages.len();
        let request = format!(
            "request {} of this run ({n_messages} message{}, {})",
            self.n_asked,
            if n_messages == 1 { "" } else { "s" },
            last_words(asked),
        );
        let of_run = self.run.or_else(|| self.exchanges.iter().map(|known| known.run).max());
        let known = self.exchanges.iter().filter(|known| Some(known.run) == of_run);
        let nearest = known.max_by_key(|known| {
            let alike = known.asked.n_same_messages(asked);
            let is_same_head = known.asked.head.normal.value == asked.head.normal.value;
            let is_same_length = known.asked.messages.len() == n_messages;
            (!known.is_used, alike, is_same_length, is_same_head, Reverse(known.number))
        });
        let Some(nearest) = nearest else {
            return format!("the recording is empty, so it has no answer to {request}");
        };
        let (number, line) = (nearest.number, nearest.line);
        if nearest.is_used {
            return format!(
                "the recording has no answer to {request}: all of its exchanges have been replayed"
            );
        }
        let difference = difference::first(&nearest.asked.normal(), &asked.normal());
        let difference = difference.map(|it| it.to_string()).unwrap_or_default();
        let loose = match matching {
            ReplayMatch::Loose => "",
            _ => ", or replay with `--replay-match loose` if this does not matter",
        };
        format!(
            "the recording has no answer to {request}. The nearest is exchange {number} (line {line}), and the first \
             difference is {difference}. Record again{loose}"
        )
    }
}

/// The end of a conversation, to identify it in an error.
fn last_words(asked: &RecordedRequest) -> String {
    let Some(last) = asked.messages.last() else { return "nothing said".to_owned() };
    let block = &last.value["content"];
    let block = block.as_array().and_then(|blocks| blocks.last()).unwrap_or(block);
    let text = block["text"].as_str().or_else(|| block["content"].as_str());
    match text {
        Some(text) => {
            let short: String = text.chars().take(60).collect();
            format!("the last one {short:?}")
        }
        None => format!("the last one a {}", block["type"].as_str().unwrap_or("text")),
    }
}

/// The kinds of messages and blocks, and the names of the tools.
fn shape(asked: &RecordedRequest) -> Vec<String> {
    let word = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let of_message = |message: &Arc<RequestPart>| {
        let mut words = word(&message.value["role"]);
        for block in message.value["content"].as_array().into_iter().flatten() {
            words = format!("{words} {}{}", word(&block["type"]), word(&block["name"]));
        }
        words
    };
    asked.messages.iter().map(of_message).collect()
}

/// How many parts two requests have in common.
fn similarity(one: &RecordedRequest, other: &RecordedRequest) -> usize {
    let is_same = |(one, other): &(&Arc<RequestPart>, &Arc<RequestPart>)| {
        one.normal.value == other.normal.value
    };
    let heads = one.head.normal.value == other.head.normal.value;
    one.messages.iter().zip(&other.messages).filter(is_same).count() + usize::from(heads)
}

/// Substitutes ids, temporary files and addresses of the recording by those of this run.
///
/// A tool that creates an id returns another one every time, and a recorded answer contains only the old one.
#[derive(Clone, Debug, Default)]
pub(crate) struct IdSubstitutions(BTreeMap<String, String>);

impl IdSubstitutions {
    fn compare(&mut self, recorded: &RecordedRequest, now: &RecordedRequest) {
        for (recorded, now) in recorded.messages.iter().zip(&now.messages) {
            let (old, new) = (&recorded.normal, &now.normal);
            if old.value != new.value || old.names.len() != new.names.len() {
                continue;
            }
            for (old, new) in old.names.iter().zip(&new.names).filter(|(old, new)| old != new) {
                self.0.insert(old.clone(), new.clone());
            }
        }
    }
}

impl Editor for IdSubstitutions {
    fn edits(&self, text: &str, form: Form) -> Vec<Edit> {
        let mut edits = Vec::new();
        let mut known: Vec<_> = self.0.iter().collect();
        known.sort_by_key(|(old, _)| Reverse(old.len()));
        for (old, new) in known {
            let written = form.write(old);
            for (at, _) in text.match_indices(&written) {
                add(&mut edits, Edit { range: at..at + written.len(), text: form.write(new) });
            }
        }
        edits
    }
}

#[cfg(test)]
#[path = "loaded_tests.rs"]
mod tests;
