//! Sends the events of a turn from the log, until it ends or waits for the client.

use std::collections::BTreeSet;

use ostler::engine::sandbox::NETWORK_TOOL;
use ostler::proto::frame::ToHost;
use ostler_agui::event::{Body, Event, TextRole};
use ostler_base::error::{self, Fallible};
use ostler_core::approvals::record::Approval;
use ostler_core::config::agui::{Approvals, Disconnect};
use ostler_core::log::Logged;
use ostler_core::log_writers;
use ostler_core::model::run::{Run, RunState};
use serde::Deserialize;
use serde_json::Value;
use tokio::time::Instant;

use super::asks::Asks;
use super::connect::{PromptEvent, prompt_id};
use super::interrupts;
use super::run::{Failure, RunStream};
use super::thread::Place;

/// What a turn waits for.
struct Waits {
    calls: Vec<String>,
    has_asks: bool,
}

/// The runs of the session whose events are sent.
struct Followed {
    /// Those that have not ended, in their order.
    awaited: Vec<String>,
    /// All of them.
    all: BTreeSet<String>,
    /// The engine's result at the end of a turn. It is not known yet whether the run has ended.
    result: Option<ToHost>,
    /// Whether the client receives how they end.
    tells_end: bool,
}

impl Followed {
    fn new(runs: Vec<String>, tells_end: bool) -> Self {
        Self { all: runs.iter().cloned().collect(), awaited: runs, result: None, tells_end }
    }
}

/// A message in the log.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct MessageEvent {
    run_id: Option<String>,
    pub(super) message: ToHost,
}

impl RunStream<'_> {
    /// Sends events until these runs have ended, or wait.
    pub(super) async fn follow(&mut self, runs: Vec<String>) -> Result<(), Failure> {
        self.thread.run = runs.last().cloned();
        self.hear_all(Followed::new(runs, true), true).await
    }

    /// Stops a turn that waits for an answer which the client will not give any more, before another begins.
    pub(super) async fn give_up_turn(&mut self) -> Result<(), Failure> {
        let Some(run) = self.live.take() else { return Ok(()) };
        self.app().sessions.cancel(self.caller, &run.id).await?;
        self.hear_all(Followed::new(vec![run.id], false), false).await
    }

    async fn hear_all(&mut self, mut followed: Followed, may_wait: bool) -> Result<(), Failure> {
        let stream = log_writers::stream(&self.session.id)?;
        let mut reader = self.app().sessions.log.reader(&stream, self.thread.told);
        let (stop, shutdown) = (self.stop.clone(), self.agui.shutdown().clone());
        let (settles, tool_calls) = (self.agui.config().settle, self.tool_calls.clone());
        let mut stopping = false;
        let mut quiet_since = Instant::now();
        while !followed.awaited.is_empty() {
            // One reading of the clock for both: a turn that was not quiet a moment ago must be checked again.
            let is_quiet = quiet_since.elapsed() >= settles;
            if let Some(waits) = self.waits(is_quiet).filter(|_| may_wait) {
                return self.wait(waits).await;
            }
            let stops_with_client =
                self.agui.config().disconnect == Disconnect::Stop && !self.looks_on;
            tokio::select! {
                some = reader.next() => {
                    quiet_since = Instant::now();
                    for logged in some? {
                        self.thread.told = logged.event.seq;
                        self.hear(&logged, &mut followed).await?;
                    }
                }
                () = tool_calls.changed() => quiet_since = Instant::now(),
                () = tokio::time::sleep_until(quiet_since + settles), if self.is_waiting() && !is_quiet => {}
                () = stop.cancelled(), if !stopping => {
                    stopping = true;
                    self.stop_all(&followed).await?;
                }
                () = self.outlet.closed(), if stops_with_client && !stopping => {
                    stopping = true;
                    self.stop_all(&followed).await?;
                }
                () = shutdown.cancelled() => {
                    return Err(Failure::new("the server is shutting down", "shutdown"));
                }
            }
        }
        Ok(())
    }

    async fn stop_all(&mut self, followed: &Followed) -> Result<(), Failure> {
        self.translator.stopping();
        // The last first: a queued run must not begin when the active one has ended.
        for run in followed.awaited.iter().rev() {
            self.app().sessions.cancel(self.caller, run).await?;
        }
        Ok(())
    }

    /// Processes the next event of the log.
    async fn hear(&mut self, logged: &Logged, followed: &mut Followed) -> Result<(), Failure> {
        let event = &logged.event;
        match event.kind.as_str() {
            "message" => {
                let entry: MessageEvent = read(logged)?;
                if entry.run_id.is_some_and(|run| followed.all.contains(&run)) {
                    self.message(entry.message, followed).await;
                }
            }
            "prompt" => {
                let entry: PromptEvent = read(logged)?;
                if entry.steered && followed.all.contains(&entry.run_id) {
                    let id = prompt_id(&entry.run_id, event.seq);
                    self.outlet.send(said_by_user(id, entry.text)).await;
                }
            }
            "approval" => {
                let mut entry: Value = read(logged)?;
                let ask = serde_json::from_value::<Approval>(entry["approval"].take());
                self.asks.heard(ask.map_err(error::internal)?);
            }
            "state" if event.seq > self.state_from => {
                let mut entry: Value = read(logged)?;
                let delta = serde_json::from_value(entry["delta"].take());
                let delta = delta.map_err(error::internal)?;
                self.outlet.send([Event::from(Body::StateDelta { delta })]).await;
            }
            "engine" => self.translator.engine_begins(),
            "run" => {
                let mut entry: Value = read(logged)?;
                let run = serde_json::from_value::<Run>(entry["run"].take());
                self.run_changed(&run.map_err(error::internal)?, followed).await;
            }
            _ => {}
        }
        Ok(())
    }

    async fn message(&mut self, message: ToHost, followed: &mut Followed) {
        if let ToHost::Assistant(said) = &message
            && said.parent_tool_use_id.is_none()
        {
            self.thread.here = Some(Place {
                conversation: said.session_id.to_string(),
                message: said.uuid.to_string(),
            });
        }
        if matches!(message, ToHost::Result(_)) {
            followed.result = Some(message);
            return;
        }
        followed.result = None;
        let events = self.translator.frame(&message);
        self.outlet.send(events).await;
    }

    async fn run_changed(&mut self, run: &Run, followed: &mut Followed) {
        if !run.state.is_over() || !followed.awaited.contains(&run.id) {
            return;
        }
        followed.awaited.retain(|id| *id != run.id);
        let result = followed.result.take();
        if !followed.tells_end || !followed.awaited.is_empty() {
            return;
        }
        if run.state == RunState::Cancelled {
            self.translator.stopping();
        }
        let end = match (result, run.state) {
            (Some(result), _) => self.translator.frame(&result),
            (None, RunState::Cancelled) => self.translator.cancelled("interrupted"),
            (None, _) => {
                let failure = ended(run);
                self.translator.fail(&failure.message, &failure.code)
            }
        };
        self.outlet.send(end).await;
    }

    // --- waiting

    /// Whether a turn waits for an answer.
    pub(super) fn is_waiting(&self) -> bool {
        !self.asks.open().is_empty() || !self.tool_calls.waiting_calls().is_empty()
    }

    /// Whether the turn can continue only with the client's help.
    fn waits(&self, is_quiet: bool) -> Option<Waits> {
        let (calls, asks) = (self.tool_calls.waiting_calls(), self.asks.open());
        if calls.is_empty() && asks.is_empty() {
            return None;
        }
        // A question about a host is not about a call: the program that wants to reach it runs already, and waits.
        let of_calls = asks.iter().filter(|ask| ask.tool_name != NETWORK_TOOL);
        let about: BTreeSet<&str> =
            of_calls.clone().filter_map(|ask| ask.tool_use_id.as_deref()).collect();
        let asks_for_host = of_calls.count() < asks.len();
        let waiting =
            |id: &str| asks_for_host || about.contains(id) || calls.iter().any(|call| call == id);
        // A call may wait before the log has it.
        let is_told = |id: &str| self.waited.contains(id) || self.translator.knows(id);
        let all_told = about.iter().copied().chain(calls.iter().map(String::as_str)).all(is_told);
        let all = all_told && self.translator.only_waits(&waiting, &|_| true);
        let begun = self.tool_calls.begun();
        let rest_is_quiet =
            is_quiet && self.translator.only_waits(&waiting, &|id| begun.contains(id));
        (all || rest_is_quiet).then_some(Waits { has_asks: !asks.is_empty(), calls })
    }

    async fn wait(&mut self, waits: Waits) -> Result<(), Failure> {
        let Approvals::Tool(name) = &self.agui.config().approvals else {
            if waits.has_asks {
                return self.ask_again().await;
            }
            return self.wait_for(waits.calls).await;
        };
        let mut calls = waits.calls;
        for ask in self.asks.open() {
            let call = Asks::call_for(ask);
            if self.thread.asked_by_call.insert(ask.id.clone()) {
                let arguments = interrupts::arguments(ask);
                let events = self.translator.call_client(&call, name, &arguments);
                self.outlet.send(events).await;
            }
            calls.push(call);
        }
        self.wait_for(calls).await
    }

    async fn wait_for(&mut self, calls: Vec<String>) -> Result<(), Failure> {
        // First the calls of this run, in their order; then those of earlier ones.
        let mut pending = self.translator.unanswered();
        pending.extend(calls.into_iter().filter(|id| !pending.contains(id)).collect::<Vec<_>>());
        let end = self.translator.wait_for_calls(pending);
        self.outlet.send(end).await;
        Ok(())
    }

    /// Ends with the open questions.
    pub(super) async fn ask_again(&mut self) -> Result<(), Failure> {
        let owner = |ask: &Approval| self.translator.owner(ask.tool_use_id.as_deref()?);
        let open = self.asks.open().iter();
        let interrupts = open.map(|ask| interrupts::interrupt(ask, owner(ask))).collect();
        let end = self.translator.interrupt(interrupts);
        self.outlet.send(end).await;
        Ok(())
    }

    /// Ends with what the client still has to answer.
    pub(super) async fn wait_again(&mut self) -> Result<(), Failure> {
        let has_asks = !self.asks.open().is_empty();
        self.wait(Waits { calls: self.tool_calls.waiting_calls(), has_asks }).await
    }
}

fn read<'a, T: Deserialize<'a>>(logged: &'a Logged) -> Fallible<T> {
    serde_json::from_str(logged.event.body.as_str()).map_err(error::internal)
}

/// Why a run ended, if not by the engine's result.
fn ended(run: &Run) -> Failure {
    let error = run.outcome.as_ref().and_then(|outcome| outcome.error.as_ref());
    let Some(error) = error else { return Failure::new("the run has ended", "agent_gone") };
    let code = match error.code.as_str() {
        "run_timeout" | "stale" | "tool_timeout" => "timeout",
        "engine" | "no_engine" => "agent_unavailable",
        "engine_lost" | "engine_malformed" => "agent_gone",
        "interrupted" => "shutdown",
        other => other,
    };
    // The engine's own log output is not for every client.
    Failure::new(error.message.lines().next().unwrap_or_default(), code)
}

/// A prompt of the user during a run that did not come from this client.
fn said_by_user(message_id: String, delta: String) -> [Event; 3] {
    let (role, id) = (Some(TextRole::User), message_id.clone());
    [
        Body::TextMessageStart { message_id: id.clone(), role, name: None },
        Body::TextMessageContent { message_id: id, delta },
        Body::TextMessageEnd { message_id },
    ]
    .map(Event::from)
}
