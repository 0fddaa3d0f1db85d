//! Rebuilds the conversation from the events of a log, in the form of a client.

use std::collections::{HashMap, HashSet};

use ostler::proto::frame::ToHost;
use ostler_agui::message::{Message, MessageBody};
use ostler_agui::transcript::Transcript;
use ostler_agui::translate::Translator;
use ostler_base::error::{self, Fallible};
use ostler_core::model::run::Begin;
use ostler_store::Event as Logged;
use serde::Deserialize;
use serde_json::json;

use super::connect::{PromptEvent, prompt_id};
use super::follow::MessageEvent;
use super::history_page::{Glance, History};

#[derive(Deserialize)]
struct CutOff {
    text: String,
}

/// The conversation so far, while it is rebuilt.
pub(super) struct Past<'a> {
    history: &'a History<'a>,
    pub(super) transcript: Transcript,
    /// The run that is being read, and its translator.
    translator: Option<(String, Translator)>,
    /// The number of messages after each message of the agent.
    places: HashMap<String, usize>,
    /// The active run.
    live: Option<&'a str>,
    pub(super) unsaid: HashSet<String>,
    /// The event with its prompt.
    pub(super) begins: Option<u64>,
    /// Whether the conversation went back to a message that is not here.
    pub(super) lacks: bool,
    /// Whether the earlier messages no longer count.
    pub(super) is_blank: bool,
}

impl<'a> Past<'a> {
    pub(super) fn new(history: &'a History<'a>, live: Option<&'a str>) -> Self {
        Self {
            history,
            live,
            transcript: Transcript::default(),
            translator: None,
            places: HashMap::new(),
            unsaid: HashSet::new(),
            begins: None,
            lacks: false,
            is_blank: false,
        }
    }

    pub(super) fn take(&mut self, event: &Logged) -> Fallible<()> {
        match event.kind.as_str() {
            "prompt" => {
                let entry = serde_json::from_str(event.body.as_str()).map_err(error::internal)?;
                self.prompt(event.seq, entry)
            }
            "message" => self.message(event.body.as_str()),
            "cut_off" => {
                let entry = serde_json::from_str(event.body.as_str()).map_err(error::internal)?;
                self.cut_off(event.seq, entry);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Adds the incomplete text of a run.
    fn cut_off(&mut self, seq: u64, entry: CutOff) {
        let body = MessageBody::Assistant { content: Some(entry.text), tool_calls: None };
        let mut message = Message::new(format!("cut-off-{seq}"), body);
        message.metadata = json!({"cutOff": true}).as_object().cloned();
        self.transcript.said(message);
    }

    fn prompt(&mut self, seq: u64, entry: PromptEvent) -> Fallible<()> {
        if self.unsaid.contains(&entry.run_id) {
            return Ok(());
        }
        if self.live == Some(entry.run_id.as_str()) {
            self.begins.get_or_insert(seq);
            if entry.steered {
                // It is sent in its place, with the rest of the run.
                return Ok(());
            }
        }
        match &entry.begin {
            Begin::Blank => {
                self.is_blank = true;
                self.cut(0);
            }
            Begin::Behind { message, .. } => {
                let kept = self.places.get(message).copied();
                self.lacks |= kept.is_none();
                self.cut(kept.unwrap_or_default());
            }
            Begin::Here | Begin::Anew => {}
        }
        if entry.messages.is_empty() && !entry.text.is_empty() {
            let id = prompt_id(&entry.run_id, seq);
            let content = entry.text.into();
            self.transcript.said(Message::new(id, MessageBody::User { content }));
        }
        for message in entry.messages {
            self.transcript.said(serde_json::from_value(message).map_err(error::internal)?);
        }
        Ok(())
    }

    fn cut(&mut self, kept: usize) {
        self.transcript.truncate(kept);
        // The ids of removed messages are free again.
        self.translator = None;
    }

    fn message(&mut self, body: &str) -> Fallible<()> {
        let glance: Glance<'_> = serde_json::from_str(body).map_err(error::internal)?;
        let Some(run) = glance.run_id.filter(|run| self.live != Some(*run)) else {
            return Ok(());
        };
        let MessageEvent { message: frame, .. } =
            serde_json::from_str(body).map_err(error::internal)?;
        for event in self.translator(run).frame(&frame) {
            self.transcript.apply(&event);
        }
        if let ToHost::Assistant(said) = &frame {
            self.places.insert(said.uuid.to_string(), self.transcript.len());
        }
        Ok(())
    }

    fn translator(&mut self, run: &str) -> &mut Translator {
        let translator = match self.translator.take() {
            Some(known) if known.0 == run => known,
            before => {
                // One set of ids for all runs: a copy per run would be quadratic.
                let mut taken = before.map(|(_, before)| before.into_taken()).unwrap_or_default();
                let is_known = |id: &str| taken.contains(id);
                let new: Vec<String> = self
                    .transcript
                    .ids()
                    .rev()
                    .take_while(|id| !is_known(id))
                    .map(str::to_owned)
                    .collect();
                taken.extend(new);
                (run.to_owned(), Translator::new(self.history.settings(taken)))
            }
        };
        &mut self.translator.insert(translator).1
    }
}
