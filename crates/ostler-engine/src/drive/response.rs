//! The model's response: events, blocks, its end, and its failures.

use ostler_proto::api::{ContentBlock, Folded, Message, StopReason, StreamEvent};

use super::model_switch::tell_of_fallback;
use super::{Driver, display};
use crate::model::ledger::{add_usage, count_tokens};
use crate::model::{ModelError, ModelEvent};
use crate::response::{ResponseHeader, StreamEventMeta};
use crate::turn::{Input, Turn};
use crate::{agents, call};

impl Driver {
    /// Handles an event of the response, an error, or its end.
    pub(super) async fn heard(
        &mut self,
        event: Option<Result<ModelEvent, ModelError>>,
        turn: &mut Turn,
    ) {
        match event {
            Some(Ok(ModelEvent::Stream(event))) => self.streamed(event, turn).await,
            Some(Ok(ModelEvent::Whole(message))) => self.whole(message, turn).await,
            Some(Ok(ModelEvent::Named(id))) => self.request_id = Some(id),
            Some(Ok(ModelEvent::Retry(retry))) => self.context.outbox.send_retry(&retry).await,
            Some(Ok(ModelEvent::Fallback(fallback))) => {
                tell_of_fallback(&self.context, &fallback);
                self.context.outbox.send_fallback(fallback).await;
            }
            Some(Err(error)) => self.fail(error, turn).await,
            None => {
                self.fail(ModelError::Broken("it has no end".to_owned()), turn).await;
            }
        }
    }

    pub(super) async fn streamed(&mut self, event: StreamEvent, turn: &mut Turn) {
        if let StreamEvent::MessageStart(start) = &event {
            self.frame = Some(ResponseHeader::new(&start.message, self.request_id.clone()));
        }
        let is_token = matches!(event, StreamEvent::ContentBlockDelta(_));
        let is_first = self.finished.timing.hear(is_token);
        let folded = match self.response.push(&event) {
            Ok(folded) => folded,
            Err(error) => return self.fail(ModelError::Broken(error.to_string()), turn).await,
        };
        self.shown.saw(&event);
        match folded {
            // Text that hooks may replace is withheld until they have seen it.
            Folded::Nothing if display::is_text(&event) && display::is_judged(&self.context) => {}
            Folded::Block(block) => {
                // The finished block goes before the event that finishes it; hosts rely on it.
                self.block(block, Some(&event), turn).await;
                self.show(event, false).await;
            }
            Folded::Message(message) => {
                self.show(event, false).await;
                self.replied(&message, turn);
            }
            _ => self.show(event, is_first).await,
        }
    }

    /// Sends an event to a host that follows the response.
    pub(super) async fn show(&mut self, event: StreamEvent, is_first: bool) {
        if matches!(event, StreamEvent::ContentBlockDelta(_)) {
            self.finished.timing.show();
        }
        let begins = matches!(event, StreamEvent::MessageStart(_));
        let about = StreamEventMeta {
            message_id: self.message_id(),
            time_to_first: self.asked.filter(|_| begins).map(|asked| asked.elapsed()),
            answers: if is_first { self.context.answering.to_vec() } else { Vec::new() },
            abandoned_blocks: None,
        };
        self.context.outbox.send_event(event, about).await;
    }

    pub(super) fn message_id(&self) -> Option<String> {
        self.frame.as_ref().and_then(|frame| frame.message.id.clone())
    }

    /// A response that came in one piece.
    pub(super) async fn whole(&mut self, message: Message, turn: &mut Turn) {
        self.frame = Some(ResponseHeader::new(&message, self.request_id.clone()));
        self.finished.timing.hear(true);
        for block in &message.content {
            self.block(block.clone(), None, turn).await;
        }
        self.replied(&message, turn);
    }

    /// Drops the response stream and counts the time it took.
    pub(super) fn hang_up(&mut self) {
        self.stream = None;
        if let Some(asked) = self.asked.take() {
            self.context.records.ledger.add_time(asked.elapsed());
        }
    }

    pub(super) fn replied(&mut self, message: &Message, turn: &mut Turn) {
        self.hang_up();
        let usage = message.usage.clone().unwrap_or_default();
        // The model that answered, which after a fallback is not the one that was asked.
        self.context.records.ledger.add(&message.model, &usage);
        self.context.context_usage.measure(&usage);
        if let Some(subagent) = &self.context.outbox.subagent {
            subagent.count(&usage);
        }
        count_tokens(&self.context.tokens, &usage);
        add_usage(&mut self.finished.usage, &usage);
        self.finished.stop_reason.clone_from(&message.stop_reason);
        if message.stop_reason == Some(StopReason::Refusal) {
            self.finished.n_safety_stops += 1;
            // Its end says why.
            self.frame = Some(ResponseHeader::new(message, self.request_id.clone()));
        }
        self.finished.timing.first_usage.get_or_insert(usage);
        let over = self.over_limit();
        turn.handle(Input::Replied { stop_reason: message.stop_reason.clone(), over });
    }

    /// A finished block; `end` is the event that finishes it.
    pub(super) async fn block(
        &mut self,
        mut block: ContentBlock,
        end: Option<&StreamEvent>,
        turn: &mut Turn,
    ) {
        self.ids.settle(&mut block);
        let shown = display::ask(&self.context, &self.id, &block).await;
        if let Some(text) = block.as_text() {
            text.clone_into(&mut self.finished.text);
            self.finished.shown = shown.clone();
        }
        if let Some(text) = end.and_then(|end| display::delta(&self.context, end, &block, &shown)) {
            self.show(text, false).await;
        }
        if let Some(frame) = &mut self.frame {
            frame.answers = std::mem::take(&mut self.answers);
            frame.call = match &block {
                ContentBlock::ToolUse(call) => display::of_call(&self.context, call),
                _ => None,
            };
            self.finished.timing.show();
            match shown {
                Some(text) => {
                    self.context.outbox.send_replaced_block(frame, block.clone(), text).await
                }
                None => self.context.outbox.send_block(frame, block.clone()).await,
            }
        }
        turn.handle(match block {
            ContentBlock::ToolUse(call) => {
                let meant = agents::by_name(&call, &self.context.tools);
                let parallel = call::is_parallel(&self.context.tools, &self.context.cx, &meant);
                Input::Called { call, parallel }
            }
            block => Input::Block(block),
        });
    }

    pub(super) async fn fail(&mut self, error: ModelError, turn: &mut Turn) {
        self.hang_up();
        self.close_stream(false).await;
        if self.attempts.helps_against(&self.context, &error)
            && let Some(input) = self.compact(turn, true).await
        {
            return turn.handle(input);
        }
        turn.handle(Input::Failed(error));
    }

    /// Closes the stream of a response that will not be finished, so that a host that follows its events sees their
    /// end.
    pub(super) async fn close_stream(&mut self, kept: bool) {
        for (event, abandoned) in self.shown.close(kept) {
            let about = StreamEventMeta {
                message_id: self.message_id(),
                abandoned_blocks: abandoned,
                ..StreamEventMeta::default()
            };
            self.context.outbox.send_event(event, about).await;
        }
    }

    /// Interrupts the response. Its text so far stays in the conversation: the user has read it.
    pub(super) async fn interrupt(&mut self, turn: &mut Turn) {
        self.hang_up();
        let kept = self.response.unfinished_text().is_some();
        if let (Some(text), Some(frame)) = (self.response.unfinished_text(), &mut self.frame) {
            frame.answers = std::mem::take(&mut self.answers);
            text.clone_into(&mut self.finished.text);
            let block = ContentBlock::text(text);
            self.context.outbox.send_cut_block(frame, block.clone()).await;
            turn.handle(Input::Block(block));
        }
        self.close_stream(kept).await;
        turn.handle(Input::Interrupt);
    }
}
