//! Asks the model, with a shorter conversation if it would not fit.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use ostler_proto::api::Accumulator;

use super::{Driver, TurnContext, passed};
use crate::compact::{self, CompactError, CompactJob, CompactedConversation, Trigger};
use crate::limits::Limits;
use crate::model::ChatMessage;
use crate::turn::{Input, Limit, Turn};

impl Driver {
    pub(super) async fn ask(&mut self, messages: Arc<Vec<ChatMessage>>, whole: bool) {
        self.context.outbox.send_requesting(&self.context.answering).await;
        self.response = Accumulator::default();
        self.asked = Some(Instant::now());
        self.request_id = None;
        self.finished.timing.ask();
        self.attempts.ask();
        self.stream = Some(self.context.model.respond(self.context.request(messages, whole)));
    }

    /// Compacts the conversation. Returns the input for the turn; `None` when the conversation stays as it is.
    pub(super) async fn compact(&mut self, turn: &Turn, is_too_long: bool) -> Option<Input> {
        let context = Arc::clone(&self.context);
        let TurnContext { outbox, cx, .. } = &*context;
        let (conversation, to) = (turn.conversation(), turn.unanswered());
        if to.0 == 0 {
            // The prompt is all there is.
            return None;
        }
        let is_answered = to == compact::cut::end(&conversation);
        let job = CompactJob {
            trigger: Trigger::Auto,
            conversation: &conversation,
            to,
            request: is_answered.then_some(self.request.as_str()),
            instructions: None,
            is_too_long,
        };
        let deadline = self.deadline;
        let stop = async {
            tokio::select! {
                () = cx.cancelled.cancelled() => {}
                () = passed(deadline) => {}
            }
        };
        // Boxed: the future is large and rarely needed.
        match Box::pin(compact::compact(&context, job, stop)).await {
            Ok(CompactedConversation { conversation, prompt_from, .. }) => {
                self.attempts.succeed();
                // What was told in the conversation is told again.
                self.context.announced.forget();
                self.context.nested.forget();
                Some(Input::Compacted { conversation, prompt_from })
            }
            Err(CompactError::Stopped) if cx.cancelled.is_cancelled() => Some(Input::Interrupt),
            Err(CompactError::Stopped) => Some(Input::Deadline),
            Err(why) => {
                self.attempts.failed = true;
                let text = format!("The conversation was not compacted: {}", why.reason());
                outbox.inform(text, "warning", Some("compact_failed")).await;
                None
            }
        }
    }

    /// Asks the model, with a shorter conversation if this one would not fit.
    pub(super) async fn ask_if_it_fits(
        &mut self,
        messages: Arc<Vec<ChatMessage>>,
        whole: bool,
        turn: &mut Turn,
    ) {
        self.look_for_tools().await;
        if let Some(limit) = self.over_limit() {
            // Subagents or earlier prompts have used up the limit: the model is not asked again.
            turn.handle(Input::OverLimit(limit));
        } else if !whole && self.attempts.is_due(&self.context, &messages) {
            match self.compact(turn, false).await {
                Some(input) => turn.handle(input),
                None => self.ask(messages, whole).await,
            }
        } else {
            self.ask(messages, whole).await;
        }
    }

    /// Takes over what MCP servers have changed: tools that are new, others or gone.
    async fn look_for_tools(&mut self) {
        if let Some(context) = self.context.with_changed_tools().await {
            self.context = Arc::new(context);
        }
    }

    /// The limit that is reached, if one is.
    pub(super) fn over_limit(&self) -> Option<Limit> {
        let Limits { max_tokens, max_budget_usd, .. } = self.context.limits;
        let tokens = self.context.tokens.load(Ordering::Relaxed);
        let ledger = &self.context.records.ledger;
        let dollars =
            max_budget_usd.filter(|max| ledger.dollars() >= *max || ledger.unpriced().is_some());
        let tokens = max_tokens.filter(|max| tokens >= *max);
        dollars.map(|_| Limit::Dollars).or(tokens.map(|_| Limit::Tokens))
    }
}
