//! The end of a run: with the result of a turn, or because it waits for the client, was stopped, or failed.

use std::collections::BTreeMap;

use ostler_proto::api::SYNTHETIC_MODEL;
use ostler_proto::message::{Assistant, ResultSubtype, TerminalReason, TurnResult};
use serde_json::Value;

use super::subagent::SubagentEnd;
use super::{Counts, Translator, lane};
use crate::event::{Body, Event, Interrupt, Outcome, TokenUsage};

/// An API error that the engine sent as an assistant message.
#[derive(Debug)]
pub(super) struct Failure {
    message: String,
    code: String,
}

impl Translator {
    /// Whether a message is an API error, which the engine sends as an assistant message. Stores it for the end of the
    /// run.
    pub(super) fn is_failure(&mut self, sent: &Assistant) -> bool {
        let marked = sent.error.is_some() || sent.is_api_error_message == Some(true);
        if !marked || sent.message.model != SYNTHETIC_MODEL {
            return false;
        }
        let texts = sent.message.content.iter().filter_map(|block| block.as_text());
        let message = texts.collect::<Vec<_>>().join("\n");
        let code = sent.error.as_ref().and_then(wire_name);
        let code = code.or_else(|| sent.api_error_type.clone());
        self.failure =
            Some(Failure { message, code: code.unwrap_or_else(|| "api_error".to_owned()) });
        true
    }

    /// Notes that the caller stops the run, so that its end is not a failure.
    pub fn stopping(&mut self) {
        self.stopping = true;
    }

    /// Ends the run with the result of a turn.
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

    /// Ends the run because the client must run tools. The agent's turn continues in a later run.
    pub fn wait_for_calls(&mut self, pending: Vec<String>) -> Vec<Event> {
        self.step(|it| {
            let usage = it.usage.by_responses();
            let outcome = Outcome::Success { pending_tool_call_ids: Some(pending) };
            let event = it.finished(None, outcome, usage);
            it.end(event);
        })
    }

    /// Ends the run with questions. The agent's turn continues in a later run.
    pub fn interrupt(&mut self, interrupts: Vec<Interrupt>) -> Vec<Event> {
        self.step(|it| {
            let usage = it.usage.by_responses();
            let event = it.finished(None, Outcome::Interrupt { interrupts }, usage);
            it.end(event);
        })
    }

    /// Ends a run that has nothing to do.
    pub fn nothing_to_do(&mut self) -> Vec<Event> {
        self.step(|it| {
            let outcome = Outcome::Success { pending_tool_call_ids: None };
            let event = it.finished(None, outcome, Vec::new());
            it.end(event);
        })
    }

    /// Ends a run that was cancelled, if the agent will not send a result any more.
    pub fn cancelled(&mut self, reason: &str) -> Vec<Event> {
        self.step(|it| {
            let usage = it.usage.by_responses();
            let event = it.finished(None, Outcome::Cancelled {}, usage);
            it.end(event.with_metadata("reason", reason));
        })
    }

    /// Ends the run because of a failure outside the agent.
    pub fn fail(&mut self, message: &str, code: &str) -> Vec<Event> {
        self.step(|it| {
            let usage = it.usage.by_responses();
            it.end(failed(message.to_owned(), code.to_owned(), usage));
        })
    }

    /// Usage reported by this run and earlier ones.
    pub fn reported(&self) -> &BTreeMap<String, Counts> {
        self.usage.reported()
    }

    /// Notes that another engine continues the conversation and counts usage from zero.
    pub fn engine_begins(&mut self) {
        self.usage.reset();
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
        // In reverse order, so that subagents end before their parents, which started earlier.
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
            (result.subtype != ResultSubtype::Success).then(|| wire_name(&result.subtype))?
        });
        Failure {
            message: message.unwrap_or_else(|| "the agent failed without a reason".to_owned()),
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

/// The wire name of an enum value.
fn wire_name(value: &impl serde::Serialize) -> Option<String> {
    serde_json::to_value(value).ok()?.as_str().map(str::to_owned)
}
