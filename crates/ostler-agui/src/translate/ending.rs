//! How a run ends: with the result of a turn, or because somebody waits, stops it, or nothing goes on any more.

use std::collections::BTreeMap;

use ostler_proto::api::SYNTHETIC_MODEL;
use ostler_proto::message::{Assistant, ResultSubtype, TerminalReason, TurnResult};
use serde_json::Value;

use super::subagent::SubagentEnd;
use super::{Counts, Translator, lane};
use crate::event::{Body, Event, Interrupt, Outcome, TokenUsage};

/// What the engine wrote in the model's place because the API failed.
#[derive(Debug)]
pub(super) struct Failure {
    message: String,
    code: String,
}

impl Translator {
    /// An error of the API comes as if the model had said it. It is kept for the end.
    pub(super) fn is_failure(&mut self, said: &Assistant) -> bool {
        let marked = said.error.is_some() || said.is_api_error_message == Some(true);
        if !marked || said.message.model != SYNTHETIC_MODEL {
            return false;
        }
        let texts = said.message.content.iter().filter_map(|block| block.as_text());
        let message = texts.collect::<Vec<_>>().join("\n");
        let code = said.error.as_ref().and_then(word);
        let code = code.or_else(|| said.api_error_type.clone());
        self.failure =
            Some(Failure { message, code: code.unwrap_or_else(|| "api_error".to_owned()) });
        true
    }

    /// Whoever asked for the run wants it stopped: its end is no failure.
    pub fn stopping(&mut self) {
        self.stopping = true;
    }

    /// A turn is over, and the run with it.
    pub fn result(&mut self, result: &TurnResult) -> Vec<Event> {
        self.step(|it| {
            let usage = it.usage.by_result(&result.model_usage);
            match ending(result, it.stopping) {
                Ending::Done => {
                    let mut event = it.finished(
                        result.structured_output.clone().filter(|output| !output.is_null()),
                        Outcome::Success { pending_tool_call_ids: None },
                        usage,
                    );
                    if let Some(reason) = result.stop_reason.as_ref().and_then(lane::unusual) {
                        event = event.with_metadata("stopReason", reason);
                    }
                    it.end(event);
                }
                Ending::Stopped(reason) => {
                    let event = it.finished(None, Outcome::Cancelled {}, usage);
                    it.end(event.with_metadata("reason", reason));
                }
                Ending::Failed => {
                    let Failure { message, code } = it.reason(result);
                    it.end(failed(message, code, usage));
                }
            }
        })
    }

    /// The run ends because the client has to answer calls. The agent's turn goes on in a later run.
    pub fn wait_for_calls(&mut self, pending: Vec<String>) -> Vec<Event> {
        self.step(|it| {
            let usage = it.usage.by_sight();
            let outcome = Outcome::Success { pending_tool_call_ids: Some(pending) };
            let event = it.finished(None, outcome, usage);
            it.end(event);
        })
    }

    /// The run ends with questions. The agent's turn goes on in a later run.
    pub fn interrupt(&mut self, interrupts: Vec<Interrupt>) -> Vec<Event> {
        self.step(|it| {
            let usage = it.usage.by_sight();
            let event = it.finished(None, Outcome::Interrupt { interrupts }, usage);
            it.end(event);
        })
    }

    /// The run ends because there was nothing to do.
    pub fn nothing_to_do(&mut self) -> Vec<Event> {
        self.step(|it| {
            let outcome = Outcome::Success { pending_tool_call_ids: None };
            let event = it.finished(None, outcome, Vec::new());
            it.end(event);
        })
    }

    /// The run ends because somebody wanted that, and the agent will not say so any more.
    pub fn cancelled(&mut self, reason: &str) -> Vec<Event> {
        self.step(|it| {
            let usage = it.usage.by_sight();
            let event = it.finished(None, Outcome::Cancelled {}, usage);
            it.end(event.with_metadata("reason", reason));
        })
    }

    /// The run ends because something failed outside the agent.
    pub fn fail(&mut self, message: &str, code: &str) -> Vec<Event> {
        self.step(|it| {
            let usage = it.usage.by_sight();
            it.end(failed(message.to_owned(), code.to_owned(), usage));
        })
    }

    /// What was reported as used, here and before.
    pub fn reported(&self) -> &BTreeMap<String, Counts> {
        self.usage.reported()
    }

    /// Another engine goes on with the conversation, and counts from nothing.
    pub fn engine_begins(&mut self) {
        self.usage.begin_anew();
    }

    fn finished(&self, result: Option<Value>, outcome: Outcome, usage: Vec<TokenUsage>) -> Event {
        Event::new(Body::RunFinished {
            thread_id: self.settings.thread_id.clone(),
            run_id: self.settings.run_id.clone(),
            result,
            outcome: Some(outcome),
            usage: (!usage.is_empty()).then_some(usage),
        })
    }

    fn end(&mut self, event: Event) {
        for speaker in self.lanes.keys().cloned().collect::<Vec<_>>() {
            self.close_lane(&speaker);
        }
        self.close_calls();
        // Children before those that started them: they began later.
        for call in self.active_subagents().into_iter().rev() {
            self.end_subagent(&call, SubagentEnd::Suspended);
        }
        self.out.push(event);
        self.over = true;
    }

    /// Why a turn failed.
    fn reason(&mut self, result: &TurnResult) -> Failure {
        let known = |code: &String| code != "unknown";
        if let Some(Failure { message, code }) = self.failure.take() {
            let code = Some(code).filter(known).or_else(|| result.api_error_type.clone());
            return Failure { message, code: code.unwrap_or_else(|| "api_error".to_owned()) };
        }
        let errors = result.errors.iter().flatten().cloned().collect::<Vec<_>>().join("\n");
        let message = if errors.is_empty() { result.result.clone() } else { Some(errors) };
        let code = result.api_error_type.clone();
        let code = code.or_else(|| {
            (result.subtype != ResultSubtype::Success).then(|| word(&result.subtype))?
        });
        Failure {
            message: message.unwrap_or_else(|| "the agent failed without saying why".to_owned()),
            code: code.unwrap_or_else(|| "api_error".to_owned()),
        }
    }
}

enum Ending {
    Done,
    Stopped(String),
    Failed,
}

fn ending(result: &TurnResult, stopping: bool) -> Ending {
    match (&result.subtype, &result.terminal_reason) {
        (ResultSubtype::ErrorMaxTurns, _) => Ending::Stopped("max_turns".to_owned()),
        (ResultSubtype::ErrorMaxBudgetUsd, _) => Ending::Stopped("max_budget_usd".to_owned()),
        (_, Some(TerminalReason::AbortedStreaming | TerminalReason::AbortedTools)) => {
            Ending::Stopped("interrupted".to_owned())
        }
        (ResultSubtype::ErrorDuringExecution, _) if stopping => {
            Ending::Stopped("interrupted".to_owned())
        }
        (ResultSubtype::Success, _) if !result.is_error => Ending::Done,
        _ => Ending::Failed,
    }
}

fn failed(message: String, code: String, usage: Vec<TokenUsage>) -> Event {
    let usage = (!usage.is_empty()).then_some(usage);
    Event::new(Body::RunError { message, code: Some(code), usage })
}

/// A word of the wire.
fn word(value: &impl serde::Serialize) -> Option<String> {
    serde_json::to_value(value).ok()?.as_str().map(str::to_owned)
}
