//! Turns the agent's messages into events.
//!
//! One [`Translator`] belongs to one run. It takes complete and partial frames in order, and returns events that always
//! satisfy [`crate::verify`]: it closes everything that an aborted stream leaves open, and sends content that arrives
//! twice (first as deltas, then complete) only once.
//!
//! `lane.rs` follows one speaker, the main agent or a subagent; `call.rs` has the tool calls, `subagent.rs` the tree
//! of subagents, `ending.rs` the end of a run and `usage.rs` its tokens; `outcome.rs` converts tool results,
//! `activity.rs` to-do lists, `notice.rs` the engine's own notices.

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

use self::activity::TodoLists;
use self::call::Calls;
use self::ending::Failure;
use self::lane::Lane;
use self::subagent::Subagent;
pub use self::usage::Counts;
use self::usage::Usage;
use crate::PROTOCOL_VERSION;
use crate::event::{Body, Event};

/// The settings of a run's translation.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Settings {
    /// The id of the conversation.
    pub thread_id: String,
    /// The id of the run.
    pub run_id: String,
    /// The run from which it branches off.
    pub parent_run_id: Option<String>,
    /// Message ids that the thread already has; a new message never gets one of them.
    pub taken: BTreeSet<String>,
    /// Tool names for the client, by the model's names.
    pub tool_names: BTreeMap<String, String>,
    /// Tools, by the model's names, whose calls the client does not see.
    pub hidden_tools: BTreeSet<String>,
    /// Calls of earlier runs that the client answered itself: it has the results already.
    pub answered_by_client: BTreeSet<String>,
    /// Tools, by the model's names, that the client runs.
    pub client_tools: BTreeSet<String>,
    /// Usage that earlier runs of the same engine reported.
    pub reported: BTreeMap<String, Counts>,
    /// Whether the engine's own notices are left out.
    pub quiet: bool,
}

impl Settings {
    /// The defaults for a run.
    pub fn new(thread_id: impl Into<String>, run_id: impl Into<String>) -> Self {
        let hidden_tools = BTreeSet::from(["StructuredOutput".to_owned()]);
        Self { thread_id: thread_id.into(), run_id: run_id.into(), hidden_tools, ..Self::default() }
    }
}

/// `None` for the main agent, else the call that started the subagent.
type Speaker = Option<String>;

/// Turns the messages of one run into events.
#[derive(Debug)]
pub struct Translator {
    settings: Settings,
    over: bool,
    lanes: BTreeMap<Speaker, Lane>,
    subagents: BTreeMap<String, Subagent>,
    calls: Calls,
    things_to_do: TodoLists,
    usage: Usage,
    failure: Option<Failure>,
    stopping: bool,
    message_ids: Vec<String>,
    out: Vec<Event>,
}

impl Translator {
    /// A translator for a run that has not started.
    pub fn new(settings: Settings) -> Self {
        let usage = Usage::after(settings.reported.clone());
        Self {
            settings,
            over: false,
            lanes: BTreeMap::new(),
            subagents: BTreeMap::new(),
            calls: Calls::default(),
            things_to_do: TodoLists::default(),
            usage,
            failure: None,
            stopping: false,
            message_ids: Vec::new(),
            out: Vec::new(),
        }
    }

    /// The first event. Send it before the model is asked.
    pub fn start(&self) -> Event {
        Event::new(Body::RunStarted {
            thread_id: self.settings.thread_id.clone(),
            run_id: self.settings.run_id.clone(),
            protocol_version: Some(PROTOCOL_VERSION.to_owned()),
            parent_run_id: self.settings.parent_run_id.clone(),
            input: None,
        })
    }

    /// Translates the next frame. Returns nothing after the end of the run.
    pub fn frame(&mut self, frame: &ToHost) -> Vec<Event> {
        match frame {
            ToHost::Assistant(message) => self.assistant(message),
            ToHost::User(message) => self.user(message),
            ToHost::System(system) => self.system(system),
            ToHost::StreamEvent(event) => self.stream_event(event),
            ToHost::Result(result) => self.result(result),
            _ => Vec::new(),
        }
    }

    /// Translates a complete message of the model.
    pub fn assistant(&mut self, message: &Assistant) -> Vec<Event> {
        self.step(|it| {
            if it.is_failure(message) {
                return;
            }
            let speaker =
                it.speaker(message.parent_tool_use_id.as_ref(), message.subagent_type.as_deref());
            it.whole_message(&speaker, message);
        })
    }

    /// Translates a delta of the model.
    pub fn stream_event(&mut self, message: &StreamEventMessage) -> Vec<Event> {
        self.step(|it| {
            // These have no content.
            if matches!(message.event, StreamEvent::Ping(_) | StreamEvent::Error(_)) {
                return;
            }
            let speaker = it.speaker(message.parent_tool_use_id.as_ref(), None);
            it.stream_delta(&speaker, &message.event);
        })
    }

    /// Translates tool results. Prompts are skipped, because the client sent them.
    pub fn user(&mut self, message: &User) -> Vec<Event> {
        self.step(|it| it.results(message))
    }

    /// Translates a notice of the engine.
    pub fn system(&mut self, system: &System) -> Vec<Event> {
        self.step(|it| it.notice(system))
    }

    /// Ids of the messages that the client received in this run: text, reasoning and results.
    pub fn message_ids(&self) -> &[String] {
        &self.message_ids
    }

    /// All message ids of the thread, for the translator of the next run.
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

    /// Adds an event for a speaker.
    fn emit(&mut self, speaker: &Speaker, body: Body) {
        self.emit_event(speaker, Event::new(body));
    }

    fn emit_event(&mut self, speaker: &Speaker, event: Event) {
        let run = self.run_of(speaker);
        self.out.push(event.of_subagent(run.as_deref()));
    }

    fn lane(&mut self, speaker: &Speaker) -> &mut Lane {
        self.lanes.entry(speaker.clone()).or_default()
    }

    /// The speaker of a message. Starts the subagent if it is unknown.
    fn speaker(&mut self, parent: Option<&ToolUseId>, kind: Option<&str>) -> Speaker {
        let call = parent?.as_str();
        self.begin_subagent(call, kind, None);
        Some(call.to_owned())
    }
}
