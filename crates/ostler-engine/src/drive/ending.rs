//! The end of a turn: hooks that may prolong it, and what the host reads about it.

use std::sync::Arc;

use ostler_proto::api::{ContentBlock, Message, StopReason};
use ostler_proto::frame::ToHost;
use ostler_proto::hook::HookEvent;
use ostler_proto::message::AssistantError;
use serde_json::json;

use super::{Driver, TurnContext, TurnOutcome};
use crate::hooks::Event;
use crate::rescue::LentTurn;
use crate::turn::{Ending, INTERRUPTED, INTERRUPTED_TOOLS, Input, MAX_REFUSALS, StopVerdict};

/// What the user reads when the model declined to answer.
pub(crate) const REFUSED: &str = "The model declined to answer this.";
/// What the user reads when the answer was cut too often.
pub(crate) const CUT: &str = "The answer was longer than the model may write, also in pieces.";

impl Driver {
    /// Asks hooks whether the turn may end.
    pub(super) async fn may_stop(&mut self, again: bool) -> Input {
        let context = Arc::clone(&self.context);
        let TurnContext { outbox, hooks, cx, .. } = &*context;
        let mut fields = json!({
            "stop_hook_active": again,
            "last_assistant_message": self.finished.text,
            "background_tasks": cx.tasks.summary(),
            // The engine has no schedules.
            "session_crons": [],
        });
        let event = match &outbox.subagent {
            None => HookEvent::Stop,
            Some(subagent) => {
                let path = outbox.transcript.as_ref().map(|transcript| transcript.path());
                fields["agent_id"] = json!(subagent.id);
                fields["agent_type"] = json!(subagent.kind);
                fields["agent_transcript_path"] = json!(path.unwrap_or_default());
                HookEvent::SubagentStop
            }
        };
        let event = Event::new(event, fields);
        tokio::select! {
            // First, because the interruption also cancels the hooks, which must not count as their verdict.
            biased;
            () = cx.cancelled.cancelled() => Input::Interrupt,
            verdict = hooks.run(event) => {
                // The model reads the hooks' text still in this turn.
                let words: Vec<_> = verdict.block.into_iter().chain(verdict.context).collect();
                self.stopped_by_hook(verdict.stop.clone());
                Input::StopVerdict(match verdict.stop {
                    None if !words.is_empty() => StopVerdict::GoOn(words.join("\n")),
                    _ => StopVerdict::Stop,
                })
            }
        }
    }

    /// Notes why a hook ended the turn.
    pub(super) fn stopped_by_hook(&mut self, reason: Option<String>) {
        if let Some(reason) = reason.filter(|reason| !reason.trim().is_empty()) {
            self.finished.hook_stop_reason = Some(reason);
        }
    }

    /// Reports that stop hooks refused the end too often.
    pub(super) async fn overruled(&mut self) {
        let text = format!("Stop hooks continued the turn {MAX_REFUSALS} times; it ends now.");
        self.context.outbox.inform(text, "warning", Some("stop_hooks_overruled")).await;
    }

    /// Asks hooks whether the results of a response may go to the model.
    pub(super) async fn may_continue(&mut self) -> Input {
        let context = Arc::clone(&self.context);
        let TurnContext { hooks, cx, .. } = &*context;
        let fields = json!({"tool_calls": std::mem::take(&mut self.batch)});
        tokio::select! {
            biased;
            () = cx.cancelled.cancelled() => Input::Interrupt,
            verdict = hooks.run(Event::new(HookEvent::PostToolBatch, fields)) => {
                let stop = verdict.stop.is_some() || verdict.block.is_some();
                self.stopped_by_hook(verdict.stop.or(verdict.block));
                Input::GoOnVerdict { context: verdict.context, stop }
            }
        }
    }

    /// Runs the hooks for a failed turn. Their answers change nothing.
    pub(super) async fn tell_of_failure(&mut self, error: AssistantError, details: String) {
        let context = Arc::clone(&self.context);
        let TurnContext { outbox, hooks, cx, .. } = &*context;
        if outbox.subagent.is_some() {
            return;
        }
        let fields = json!({
            "error": error, "error_details": details, "last_assistant_message": details,
        });
        tokio::select! {
            _ = hooks.run(Event::new(HookEvent::StopFailure, fields)) => {}
            () = cx.cancelled.cancelled() => {}
        }
    }

    /// Sends a message in the model's place that says why there is no answer.
    pub(super) async fn apologise(&mut self, words: String, error: AssistantError) {
        self.context.outbox.send_error(words.clone(), error.clone()).await;
        self.tell_of_failure(error, words).await;
    }

    /// Sends text of the turn itself that makes the model continue.
    pub(super) async fn nudge(&mut self, words: String) {
        match self.refused().cloned() {
            Some(refused) => {
                self.finished.n_user_messages += 1;
                self.context.outbox.send_refused_once(&refused, words).await;
            }
            None => self.prompt(words).await,
        }
    }

    /// The response that was stopped as unsafe, if the newest one was.
    pub(super) fn refused(&self) -> Option<&Message> {
        let was_refused = self.finished.stop_reason == Some(StopReason::Refusal);
        self.frame.as_ref().filter(|_| was_refused).map(|frame| &frame.message)
    }

    /// Sends text of the turn itself as a user message.
    pub(super) async fn prompt(&mut self, words: String) {
        self.finished.n_user_messages += 1;
        self.context.outbox.send_synthetic(words).await;
    }

    /// Sends text of a call that follows its result. As a list of blocks, like the vendor's program.
    pub(super) async fn follow_up(&mut self, text: &str) {
        self.finished.n_user_messages += 1;
        let message = self.context.outbox.for_model(vec![ContentBlock::text(text)]);
        self.context.outbox.send(ToHost::User(Box::new(message))).await;
    }

    pub(super) async fn finish(mut self, ending: Ending, turn: LentTurn) -> TurnOutcome {
        self.hang_up();
        self.close_stream(false).await;
        self.jobs.shutdown().await;
        let context = Arc::clone(&self.context);
        let TurnContext { outbox, .. } = &*context;
        match &ending {
            Ending::Interrupted { in_tools } => {
                let marker = if *in_tools { INTERRUPTED_TOOLS } else { INTERRUPTED };
                self.finished.n_user_messages += 1;
                outbox.send_user(vec![ContentBlock::text(marker)]).await;
            }
            Ending::Failed(error) => {
                outbox.send_api_error(error).await;
                self.tell_of_failure(error.kind(), error.to_string()).await;
            }
            Ending::Refused => {
                let refused = self.refused().cloned().unwrap_or_default();
                outbox.send_refusal(&refused, REFUSED).await;
                self.tell_of_failure(AssistantError::InvalidRequest, REFUSED.to_owned()).await;
            }
            Ending::MaxOutputTokens => {
                self.apologise(CUT.to_owned(), AssistantError::MaxOutputTokens).await
            }
            Ending::Completed
            | Ending::HookStopped
            | Ending::Blocked(_)
            | Ending::Command { .. }
            | Ending::MaxTurns
            | Ending::SchemaMissed
            | Ending::OverLimit(_) => {}
        }
        TurnOutcome { ending, conversation: turn.into_conversation(), ..self.finished }
    }
}
