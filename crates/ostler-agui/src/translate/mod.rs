//! What the agent's messages become as events.
//!
//! One [`Translator`] belongs to one run. It takes frames in the order they came, whole and partial ones, and gives
//! events that always satisfy [`crate::verify`]: whatever a stream leaves open when it is cut is closed here, and what
//! comes twice (a block in pieces and then whole) is told once.
//!
//! `lane.rs` follows one speaker, the main agent or a subagent; `call.rs` knows the tool calls, `subagent.rs` who
//! belongs to whom, `ending.rs` how a run ends and `usage.rs` what it used; `outcome.rs` writes down results,
//! `activity.rs` lists of things to do, `notice.rs` what the engine says about itself.

mod activity;
mod call;
mod ending;
mod lane;
mod notice;
mod outcome;
mod subagent;
mod usage;

use std::collections::{BTreeMap, BTreeSet};

use ostler_proto::ToolUseId;
use ostler_proto::api::StreamEvent;
use ostler_proto::frame::ToHost;
use ostler_proto::message::{Assistant, StreamEventMessage, System, User};

use self::activity::ThingsToDo;
use self::call::Calls;
use self::ending::Failure;
use self::lane::Lane;
use self::subagent::Subagent;
pub use self::usage::Counts;
use self::usage::Usage;
use crate::PROTOCOL_VERSION;
use crate::event::{Body, Event};

/// What a run is to be told like.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Settings {
    /// The conversation.
    pub thread_id: String,
    /// The run.
    pub run_id: String,
    /// The run it branches off.
    pub parent_run_id: Option<String>,
    /// Ids of messages that the thread has already; a new message never gets one of them.
    pub taken: BTreeSet<String>,
    /// The names of tools on the wire, by those the model knows them by.
    pub tool_names: BTreeMap<String, String>,
    /// Tools, by the model's names, whose calls are nobody's business.
    pub hidden_tools: BTreeSet<String>,
    /// Calls of earlier runs that the client answered itself: it has the results already.
    pub answered_by_client: BTreeSet<String>,
    /// Tools, by the model's names, that the client runs.
    pub client_tools: BTreeSet<String>,
    /// What earlier runs of the same engine reported as used.
    pub reported: BTreeMap<String, Counts>,
    /// Whether what the engine says about itself is left out.
    pub quiet: bool,
}

impl Settings {
    /// For a run, and nothing special.
    pub fn new(thread_id: impl Into<String>, run_id: impl Into<String>) -> Self {
        let hidden_tools = BTreeSet::from(["StructuredOutput".to_owned()]);
        Self { thread_id: thread_id.into(), run_id: run_id.into(), hidden_tools, ..Self::default() }
    }
}

/// Who speaks: `None` for the main agent, else the call that started the subagent.
type Speaker = Option<String>;

/// Turns the messages of one run into events.
#[derive(Debug)]
pub struct Translator {
    settings: Settings,
    over: bool,
    lanes: BTreeMap<Speaker, Lane>,
    subagents: BTreeMap<String, Subagent>,
    calls: Calls,
    things_to_do: ThingsToDo,
    usage: Usage,
    failure: Option<Failure>,
    stopping: bool,
    message_ids: Vec<String>,
    out: Vec<Event>,
}

impl Translator {
    /// A run that has not begun.
    pub fn new(settings: Settings) -> Self {
        let usage = Usage::after(settings.reported.clone());
        Self {
            settings,
            over: false,
            lanes: BTreeMap::new(),
            subagents: BTreeMap::new(),
            calls: Calls::default(),
            things_to_do: ThingsToDo::default(),
            usage,
            failure: None,
            stopping: false,
            message_ids: Vec::new(),
            out: Vec::new(),
        }
    }

    /// The first event. To be sent before anybody asks the model.
    pub fn start(&self) -> Event {
        Event::new(Body::RunStarted {
            thread_id: self.settings.thread_id.clone(),
            run_id: self.settings.run_id.clone(),
            protocol_version: Some(PROTOCOL_VERSION.to_owned()),
            parent_run_id: self.settings.parent_run_id.clone(),
            input: None,
        })
    }

    /// Takes the next frame. After the end of the run there is nothing to say any more.
    pub fn frame(&mut self, frame: &ToHost) -> Vec<Event> {
        match frame {
            ToHost::Assistant(said) => self.assistant(said),
            ToHost::User(said) => self.user(said),
            ToHost::System(system) => self.system(system),
            ToHost::StreamEvent(event) => self.stream_event(event),
            ToHost::Result(result) => self.result(result),
            _ => Vec::new(),
        }
    }

    /// The model said something, whole.
    pub fn assistant(&mut self, said: &Assistant) -> Vec<Event> {
        self.step(|it| {
            if it.is_failure(said) {
                return;
            }
            let speaker =
                it.speaker(said.parent_tool_use_id.as_ref(), said.subagent_type.as_deref());
            it.whole_message(&speaker, said);
        })
    }

    /// The model is saying something.
    pub fn stream_event(&mut self, message: &StreamEventMessage) -> Vec<Event> {
        self.step(|it| {
            // Nothing is said with these.
            if matches!(message.event, StreamEvent::Ping(_) | StreamEvent::Error(_)) {
                return;
            }
            let speaker = it.speaker(message.parent_tool_use_id.as_ref(), None);
            it.piece(&speaker, &message.event);
        })
    }

    /// A tool answered. Prompts are known to the client, which sent them.
    pub fn user(&mut self, said: &User) -> Vec<Event> {
        self.step(|it| it.results(said))
    }

    /// The engine says something about itself.
    pub fn system(&mut self, system: &System) -> Vec<Event> {
        self.step(|it| it.notice(system))
    }

    /// The ids of messages that the client has from this run: texts, thoughts and results.
    pub fn message_ids(&self) -> &[String] {
        &self.message_ids
    }

    /// The ids that are taken now, for the translator of the next run.
    pub fn into_taken(self) -> BTreeSet<String> {
        self.settings.taken
    }

    /// Whether the run has ended.
    pub fn is_over(&self) -> bool {
        self.over
    }

    fn step(&mut self, work: impl FnOnce(&mut Self)) -> Vec<Event> {
        if !self.over {
            work(self);
        }
        std::mem::take(&mut self.out)
    }

    /// Says something on somebody's behalf.
    fn say(&mut self, speaker: &Speaker, body: Body) {
        self.say_event(speaker, Event::new(body));
    }

    fn say_event(&mut self, speaker: &Speaker, event: Event) {
        let run = self.run_of(speaker);
        self.out.push(event.of_subagent(run.as_deref()));
    }

    fn lane(&mut self, speaker: &Speaker) -> &mut Lane {
        self.lanes.entry(speaker.clone()).or_default()
    }

    /// Who speaks in a message; a subagent that was not heard of before begins with it.
    fn speaker(&mut self, parent: Option<&ToolUseId>, kind: Option<&str>) -> Speaker {
        let call = parent?.as_str();
        self.begin_subagent(call, kind, None);
        Some(call.to_owned())
    }
}
