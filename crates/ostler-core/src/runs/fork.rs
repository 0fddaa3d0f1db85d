//! Forks: a new session that continues the conversation of another one from a given place.

use std::collections::HashSet;

use ostler_base::error::{self, ApiError, Fallible};
use ostler_base::ids;
use ostler_store::{Event, Expected, NewEvent};
use serde::Deserialize;
use serde_json::Value;

use super::{Sessions, rewind};
use crate::log_writers;
use crate::model::event;
use crate::model::run::{Begin, Forked, Origin, Session, Setup};
use crate::records::Kept as _;

/// How many events are read, and written, at once.
const STEP: usize = 256;
/// How many bytes are written at once; a larger event is written alone.
const BYTES: usize = 4 << 20;

/// Where the copy ends.
#[derive(Clone, Debug)]
pub enum Place {
    /// After the last message of the conversation.
    End,
    /// Before the prompt of this run.
    Before(String),
    /// After this message of the agent.
    Behind(String),
}

/// A session that is being copied.
struct Copy {
    place: Place,
    /// The run in progress in the original session.
    live: Option<String>,
    /// The last message of the agent so far, by its ids in the engine.
    origin: Option<Origin>,
    /// The run of that message.
    run: Option<String>,
    /// The events to write.
    events: Vec<NewEvent>,
    prompts: Vec<String>,
    /// Runs that never began.
    unsaid: HashSet<String>,
    is_done: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Prompt {
    run_id: String,
    text: String,
    #[serde(default)]
    begin: Begin,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Said {
    run_id: Option<String>,
    message: Frame,
}

#[derive(Deserialize)]
struct Frame {
    #[serde(rename = "type")]
    kind: String,
    uuid: Option<String>,
    session_id: Option<String>,
    parent_tool_use_id: Option<String>,
    error: Option<Value>,
}

impl Sessions {
    /// Creates a session of a user with the conversation of another one up to a place.
    pub async fn fork(
        &self,
        source: &Session,
        owner: &str,
        setup: Setup,
        title: Option<&str>,
        place: Place,
    ) -> Fallible<Session> {
        let live = self.live_run(&source.id).await?.map(|run| run.id);
        if let (Place::End, Some(_)) = (&place, &live) {
            return Err(rewind::busy());
        }
        let forked = format!("{} (fork)", source.title);
        let new = self.session(ids::new("session"), owner, title.unwrap_or(&forked), setup)?;
        // The session is invisible until its record exists, so a failed copy does no harm.
        let copy = self.copy(source, &new.id, place.clone(), live).await?;
        let from = match place {
            Place::Before(run) => Some(run),
            _ => copy.run,
        };
        let forked_from = Forked { session: source.id.clone(), run: from };
        let event = event::forked(&source.title, &forked_from)?;
        let mut new = Session { origin: copy.origin, forked_from: Some(forked_from), ..new };
        copy.prompts.iter().for_each(|prompt| new.said(prompt));
        self.log_writers.write(&new.id, vec![event], vec![new.put(Expected::Absent)?]).await?;
        Ok(new)
    }

    async fn copy(
        &self,
        source: &Session,
        to: &str,
        place: Place,
        live: Option<String>,
    ) -> Fallible<Copy> {
        let stream = log_writers::stream(&source.id)?;
        let (origin, events, prompts) = (source.origin.clone(), Vec::new(), Vec::new());
        let unsaid = self.unsaid(&source.id).await?;
        let mut copy =
            Copy { place, live, origin, run: None, events, prompts, unsaid, is_done: false };
        let mut after = source.begins;
        while !copy.is_done {
            let events = self.log.read(&stream, after, STEP).await?;
            let Some(last) = events.last() else { break };
            after = last.seq;
            for event in &events {
                copy.take(event)?;
            }
            copy.write(self, to).await?;
        }
        match &copy.place {
            Place::Before(_) if !copy.is_done => Err(rewind::no_run()),
            Place::Behind(_) if !copy.is_done => {
                let why = "there is no such message of the agent in this session";
                Err(ApiError::invalid("message", why))
            }
            _ => Ok(copy),
        }
    }
}

impl Copy {
    fn take(&mut self, event: &Event) -> Fallible<()> {
        if self.is_done {
            return Ok(());
        }
        match event.kind.as_str() {
            "prompt" => self.prompt(event),
            "message" => self.message(event),
            "run" => {
                let body: Value = event.body.to().map_err(error::internal)?;
                let state = body["run"]["state"].as_str().unwrap_or_default();
                // Only the final state matters.
                if !matches!(state, "queued" | "running" | "waiting") {
                    self.keep(event);
                }
                Ok(())
            }
            "notice" | "cut_off" => {
                self.keep(event);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn prompt(&mut self, event: &Event) -> Fallible<()> {
        let prompt: Prompt = event.body.to().map_err(error::internal)?;
        if matches!(&self.place, Place::Before(run) if *run == prompt.run_id) {
            self.is_done = true;
            return Ok(());
        }
        if self.unsaid.contains(&prompt.run_id) {
            return Ok(());
        }
        match prompt.begin {
            Begin::Blank => self.origin = None,
            Begin::Behind { conversation, message } => {
                self.origin = Some(Origin { conversation, message });
            }
            Begin::Here | Begin::Anew => {}
        }
        let mut body: Value = event.body.to().map_err(error::internal)?;
        let messages = body.get_mut("messages").and_then(Value::as_array_mut);
        let messages = messages.into_iter().flatten().filter_map(Value::as_object_mut);
        for (number, message) in messages.enumerate() {
            // Ids given by a client belong to the other conversation; here the message gets another id.
            let name = foreign_id(&prompt.run_id, event.seq, number);
            message.insert("id".to_owned(), Value::String(name));
        }
        self.events.push(NewEvent::new("prompt", body));
        self.prompts.push(prompt.text);
        Ok(())
    }

    fn message(&mut self, event: &Event) -> Fallible<()> {
        let Said { run_id, message } = event.body.to().map_err(error::internal)?;
        // Deltas are repeated in the complete message.
        if message.kind == "stream_event" {
            return Ok(());
        }
        self.keep(event);
        let is_word = message.kind == "assistant"
            && message.parent_tool_use_id.is_none()
            && message.error.is_none_or(|error| error.is_null());
        let (Some(uuid), Some(conversation)) = (message.uuid, message.session_id) else {
            return Ok(());
        };
        if !is_word {
            return Ok(());
        }
        if matches!(&self.place, Place::Behind(wanted) if *wanted == uuid) {
            if run_id.is_some() && run_id == self.live {
                return Err(rewind::busy());
            }
            self.is_done = true;
        }
        self.run = run_id;
        self.origin = Some(Origin { conversation, message: uuid });
        Ok(())
    }

    fn keep(&mut self, event: &Event) {
        self.events.push(NewEvent::new(event.kind.clone(), event.body.clone()));
    }

    /// Writes the collected events to the log of the new session.
    async fn write(&mut self, sessions: &Sessions, to: &str) -> Fallible<()> {
        let (mut part, mut bytes) = (Vec::new(), 0);
        for event in std::mem::take(&mut self.events) {
            let length = event.body.as_str().len();
            if bytes + length > BYTES && !part.is_empty() {
                sessions.log_writers.write(to, std::mem::take(&mut part), Vec::new()).await?;
                bytes = 0;
            }
            bytes += length;
            part.push(event);
        }
        if !part.is_empty() {
            sessions.log_writers.write(to, part, Vec::new()).await?;
        }
        Ok(())
    }
}

/// The id in AG-UI of a message that did not come from an AG-UI client.
fn foreign_id(run: &str, seq: u64, number: usize) -> String {
    format!("prompt-{run}-{seq}-{number}")
}

/// Refuses a request with two places.
pub fn place(before: Option<String>, message: Option<String>) -> Fallible<Place> {
    match (before, message) {
        (None, None) => Ok(Place::End),
        (Some(run), None) => Ok(Place::Before(run)),
        (None, Some(message)) => Ok(Place::Behind(message)),
        (Some(_), Some(_)) => {
            Err(ApiError::invalid("message", "name a run or a message, not both"))
        }
    }
}
