//! Telling a client that comes later what was said on a thread, and what goes on there.
//!
//! What is over comes as one snapshot, made of the same events that were told when it happened. The run that is under
//! way is told from its beginning, as if its client had been there.

use std::collections::{HashMap, HashSet};

use ostler::proto::frame::ToHost;
use ostler_agui::event::{Body, Event};
use ostler_agui::message::{Message, MessageBody};
use ostler_agui::transcript::Transcript;
use ostler_agui::translate::Translator;
use ostler_store::Event as Logged;
use serde::Deserialize;
use serde_json::Value;

use super::follow::MessageEvent;
use super::run::{Failure, Telling, settings};
use crate::fault::{self, Fallible};
use crate::runs::record::Begin;
use crate::scribe;

/// How many events are read at once.
const STEP: usize = 256;
/// How the ids of messages begin that came from no client of AG-UI.
pub(super) const PROMPT: &str = "prompt-run_";

/// What a prompt is called that came from no client of AG-UI: by the name of the run, so that it is known again, and the
/// number, because more may be said in one run.
pub(super) fn prompt_id(run: &str, seq: u64) -> String {
    format!("prompt-{run}-{seq}")
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PromptEvent {
    pub(super) run_id: String,
    pub(super) text: String,
    #[serde(default)]
    begin: Begin,
    #[serde(default)]
    messages: Vec<Value>,
    /// Whether it was said in the middle of the run.
    #[serde(default)]
    pub(super) steered: bool,
}

/// A message of which only this much is read at first: most are pieces.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Glance<'a> {
    run_id: Option<&'a str>,
    #[serde(borrow)]
    message: Kind<'a>,
}

#[derive(Deserialize)]
struct Kind<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
}

/// The conversation so far, while it is put together.
struct Past<'t, 'a> {
    telling: &'t Telling<'a>,
    transcript: Transcript,
    /// Who tells of the run that is being read.
    translator: Option<(String, Translator)>,
    /// How much was said when the agent had said a message.
    places: HashMap<String, usize>,
    /// The run that is under way.
    live: Option<&'t str>,
    /// Runs that were taken back before they began: nobody heard what they would have said.
    unsaid: HashSet<String>,
    /// Where its prompt is.
    begins: Option<u64>,
}

impl Telling<'_> {
    /// Tells all of the thread.
    pub(super) async fn attach(&mut self) -> Result<(), Failure> {
        let (messages, begins) = self.past().await?;
        self.outlet.send([Event::from(Body::MessagesSnapshot { messages })]).await;
        let state = match self.live {
            Some(_) => self.desk.state().await,
            None => self.thread.state.clone(),
        };
        if !state.is_null() {
            self.outlet.send([Event::from(Body::StateSnapshot { snapshot: state })]).await;
        }
        let stream = scribe::stream(&self.session.id)?;
        self.state_from = self.app().hub.log.head(&stream).await?;
        match (self.live.take(), begins) {
            (Some(run), Some(seq)) => {
                self.thread.told = seq;
                // Whatever others were told, this client was not.
                self.waited.clear();
                self.thread.asked_by_call.clear();
                self.follow(vec![run.id]).await
            }
            _ if !self.asks.open().is_empty() => self.ask_again().await,
            _ => {
                let end = self.translator.nothing_to_do();
                self.outlet.send(end).await;
                Ok(())
            }
        }
    }

    /// What is over, and where what is not begins.
    async fn past(&self) -> Fallible<(Vec<Message>, Option<u64>)> {
        let stream = scribe::stream(&self.session.id)?;
        let live = self.live.as_ref().map(|run| run.id.as_str());
        let unsaid = self.app().hub.unsaid(&self.session.id).await?;
        let mut past = Past {
            unsaid,
            telling: self,
            transcript: Transcript::default(),
            translator: None,
            places: HashMap::new(),
            live,
            begins: None,
        };
        let mut after = self.session.begins;
        loop {
            let events = self.app().store.read_from(&stream, after, STEP).await?;
            let Some(last) = events.last() else { break };
            after = last.seq;
            for event in &events {
                past.take(event)?;
            }
        }
        Ok((past.transcript.into_messages(), past.begins))
    }
}

impl Past<'_, '_> {
    fn take(&mut self, event: &Logged) -> Fallible<()> {
        match event.kind.as_str() {
            "prompt" => {
                let told = serde_json::from_str(event.body.as_str()).map_err(fault::internal)?;
                self.prompt(event.seq, told)
            }
            "message" => self.message(event.body.as_str()),
            _ => Ok(()),
        }
    }

    fn prompt(&mut self, seq: u64, told: PromptEvent) -> Fallible<()> {
        if self.unsaid.contains(&told.run_id) {
            return Ok(());
        }
        if self.live == Some(told.run_id.as_str()) {
            self.begins.get_or_insert(seq);
            if told.steered {
                // It is told where it was said, with the rest of the run.
                return Ok(());
            }
        }
        match &told.begin {
            Begin::Blank => self.transcript.truncate(0),
            Begin::Behind { message, .. } => {
                let kept = self.places.get(message).copied().unwrap_or_default();
                self.transcript.truncate(kept);
            }
            Begin::Here | Begin::Anew => {}
        }
        if told.messages.is_empty() && !told.text.is_empty() {
            let id = prompt_id(&told.run_id, seq);
            let content = told.text.into();
            self.transcript.said(Message::new(id, MessageBody::User { content }));
        }
        for message in told.messages {
            self.transcript.said(serde_json::from_value(message).map_err(fault::internal)?);
        }
        Ok(())
    }

    fn message(&mut self, body: &str) -> Fallible<()> {
        let glance: Glance<'_> = serde_json::from_str(body).map_err(fault::internal)?;
        let Some(run) = glance.run_id.filter(|run| self.live != Some(*run)) else {
            return Ok(());
        };
        // Pieces come again as a whole, and ends say nothing that was said.
        if matches!(glance.message.kind, "stream_event" | "result") {
            return Ok(());
        }
        let MessageEvent { message: frame, .. } =
            serde_json::from_str(body).map_err(fault::internal)?;
        for event in self.translator(run.to_owned()).frame(&frame) {
            self.transcript.apply(&event);
        }
        if let ToHost::Assistant(said) = &frame {
            self.places.insert(said.uuid.to_string(), self.transcript.len());
        }
        Ok(())
    }

    fn translator(&mut self, run: String) -> &mut Translator {
        let known = self.translator.take().filter(|(known, _)| *known == run);
        let translator = known.unwrap_or_else(|| {
            let telling = self.telling;
            let mut settings = settings(telling.agui, telling.input, None);
            settings.taken = self.transcript.ids().map(str::to_owned).collect();
            settings.quiet = true;
            (run, Translator::new(settings))
        });
        &mut self.translator.insert(translator).1
    }
}
