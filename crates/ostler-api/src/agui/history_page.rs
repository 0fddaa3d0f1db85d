//! The newest messages of a conversation, and earlier ones page by page.
//!
//! A session may have thousands of runs, and a client that opens it wants to see the last ones. So the log is read
//! backwards from its end, to the first place with enough messages where no run was active. A page that does not begin
//! at the start begins with a message that says so ([`EARLIER`]). Clients send this message back with the others, which
//! shows the server what they never received.

use std::collections::{BTreeSet, HashSet, VecDeque};

use ostler_agui::history::Known;
use ostler_agui::input::Tool;
use ostler_agui::message::{Message, MessageBody};
use ostler_agui::translate::Settings;
use ostler_base::error::Fallible;
use ostler_core::app::App;
use ostler_core::log_writers;
use ostler_core::model::run::Session;
use ostler_store::Event as Logged;
use serde::Deserialize;
use serde_json::json;

use super::frontend_tools::FrontendTools;
use super::past::Past;
use super::shared_state;
use super::thread::Thread;

/// The prefix of the id of that first message. The number of the user's earlier messages that came from AG-UI clients
/// follows.
const EARLIER: &str = "earlier-";
/// How many event numbers are read in one step backwards.
pub(super) const STEP: u64 = 512;
/// The minimum number of relevant events on a page, if there are so many.
const PAGE: usize = 200;

/// How many messages of the user a client never received, according to its first message.
pub(super) fn left_off(messages: &[Message]) -> usize {
    let number = |message: &Message| message.id.strip_prefix(EARLIER)?.parse().ok();
    messages.iter().find_map(number).unwrap_or(0)
}

/// A page of a session's conversation, for clients without AG-UI: the newest, or the one before an event.
pub(crate) async fn of(app: &App, session: &Session, before: Option<u64>) -> Fallible<HistoryPage> {
    let thread = Thread::find(&app.sessions.records, session).await?.unwrap_or_default();
    let history = History { app, session, tools: &thread.page.tools };
    let end = app.sessions.log.head(&log_writers::stream(&session.id)?).await? + 1;
    // The number is untrusted; the log is read backwards from it, step by step.
    history.page(before.unwrap_or(end).min(end), &thread.known, None).await
}

/// The source of a page.
pub(crate) struct History<'a> {
    pub app: &'a App,
    pub(crate) session: &'a Session,
    /// The tools of the client, which have their own names.
    pub(crate) tools: &'a [Tool],
}

/// A page of a conversation.
pub(crate) struct HistoryPage {
    pub(crate) messages: Vec<Message>,
    /// The number of the event with the prompt of the active run.
    pub(crate) live: Option<u64>,
    /// The number of the event before which there are more messages.
    pub(crate) earlier: Option<u64>,
}

/// The fields of an event that are read first.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Glance<'a> {
    pub(super) run_id: Option<&'a str>,
    #[serde(borrow)]
    message: Option<Kind<'a>>,
    pub(super) run: Option<RunGlance<'a>>,
    #[serde(default)]
    pub(super) steered: bool,
}

#[derive(Deserialize)]
struct Kind<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
}

#[derive(Deserialize)]
pub(super) struct RunGlance<'a> {
    pub(super) id: &'a str,
    pub(super) state: &'a str,
    started: Option<u64>,
    /// Whether the run followed background work, without a prompt.
    #[serde(default)]
    pub(super) background: bool,
}

/// Events beginning at a place where no run was active.
struct Window {
    events: VecDeque<Logged>,
    /// Its first event, if that is not the beginning of the session.
    from: Option<u64>,
}

impl History<'_> {
    pub(crate) async fn newest(&self, known: &Known, live: Option<&str>) -> Fallible<HistoryPage> {
        let stream = log_writers::stream(&self.session.id)?;
        let end = self.app.sessions.log.head(&stream).await? + 1;
        self.page(end, known, live).await
    }

    /// The page before an event.
    pub(crate) async fn page(
        &self,
        before: u64,
        known: &Known,
        live: Option<&str>,
    ) -> Fallible<HistoryPage> {
        let mut wanted = PAGE;
        loop {
            let Window { events, from } = self.window(before, wanted, live).await?;
            let mut past = Past::new(self, live);
            past.unsaid = unsaid(&events);
            for event in &events {
                past.take(event)?;
            }
            if past.lacks && from.is_some() {
                // The conversation went back to a place before the page.
                wanted *= 4;
                continue;
            }
            let earlier = from.filter(|_| !past.is_blank);
            let mut messages = past.transcript.into_messages();
            if let Some(before) = earlier {
                let missing = known.before(messages.iter().map(|message| message.id.as_str()));
                messages.insert(0, marker(missing, before));
            }
            return Ok(HistoryPage { messages, live: past.begins, earlier });
        }
    }

    async fn window(&self, before: u64, wanted: usize, live: Option<&str>) -> Fallible<Window> {
        let first = self.session.begins + 1;
        let mut events = VecDeque::new();
        let mut low = before.max(first);
        while low > first {
            let high = low;
            low = high.saturating_sub(STEP).max(first);
            for event in self.range(low, high).await?.into_iter().rev() {
                events.push_front(event);
            }
            if events.len() >= wanted
                && let Some(start) = quiet_start(&events, live)
            {
                events.drain(..start);
                let from = events.front().map(|event: &Logged| event.seq);
                return Ok(Window { events, from: from.filter(|from| *from > first) });
            }
        }
        Ok(Window { events, from: None })
    }

    /// The relevant events with these numbers.
    pub(super) async fn range(&self, low: u64, high: u64) -> Fallible<Vec<Logged>> {
        let stream = log_writers::stream(&self.session.id)?;
        let (mut found, mut after) = (Vec::new(), low - 1);
        while after + 1 < high {
            let limit = usize::try_from(high - 1 - after).unwrap_or(usize::MAX);
            let some = self.app.store.read_from(&stream, after, limit).await?;
            let Some(last) = some.last() else { break };
            after = last.seq;
            found
                .extend(some.into_iter().filter(|event| event.seq < high && says_something(event)));
        }
        Ok(found)
    }
}

pub(super) fn glance(event: &Logged) -> Option<Glance<'_>> {
    serde_json::from_str(event.body.as_str()).ok()
}

/// Deltas are repeated in complete messages, and ends of runs have no content.
fn says_something(event: &Logged) -> bool {
    match event.kind.as_str() {
        "prompt" | "run" | "cut_off" => true,
        "message" => !glance(event)
            .and_then(|it| it.message)
            .is_some_and(|message| matches!(message.kind, "stream_event" | "result")),
        _ => false,
    }
}

/// The index of the first event from which every run has its prompt.
fn quiet_start(events: &VecDeque<Logged>, live: Option<&str>) -> Option<usize> {
    let mut under_way: HashSet<String> = live.into_iter().map(str::to_owned).collect();
    let mut start = None;
    for (index, event) in events.iter().enumerate().rev() {
        let Some(glance) = glance(event) else { continue };
        // A run after background work has no prompt; this is its first event.
        let by_itself =
            glance.run.as_ref().is_some_and(|run| run.background && run.state == "running");
        let run = glance.run_id.or(glance.run.map(|run| run.id)).unwrap_or_default();
        if by_itself || event.kind == "prompt" && !glance.steered {
            under_way.remove(run);
            if under_way.is_empty() {
                start = Some(index);
            }
        } else if !run.is_empty() {
            under_way.insert(run.to_owned());
        }
    }
    start
}

/// Runs that were withdrawn before they began: their prompts were never sent to the agent.
fn unsaid(events: &VecDeque<Logged>) -> HashSet<String> {
    let runs = events.iter().filter(|event| event.kind == "run");
    let runs = runs.filter_map(|event| glance(event)?.run);
    let unsaid = runs.filter(|run| run.state == "cancelled" && run.started.is_none());
    unsaid.map(|run| run.id.to_owned()).collect()
}

fn marker(missing: usize, before: u64) -> Message {
    let content = "Earlier messages of this conversation are not shown.".to_owned();
    let mut message = Message::new(format!("{EARLIER}{missing}"), MessageBody::System { content });
    message.metadata = json!({"earlier": {"before": before}}).as_object().cloned();
    message
}

impl History<'_> {
    pub(super) fn settings(&self, taken: BTreeSet<String>) -> Settings {
        let tools = FrontendTools::new(self.tools);
        let mut settings = Settings::new(&self.session.id, "history");
        settings.taken = taken;
        settings.client_tools = tools.names.keys().cloned().collect();
        settings.tool_names = tools.names;
        settings.hidden_tools.insert(shared_state::TOOL.to_owned());
        settings.quiet = true;
        settings
    }
}
