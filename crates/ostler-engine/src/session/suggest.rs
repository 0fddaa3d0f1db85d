//! Suggestions for the next prompt (`promptSuggestions`).
//!
//! The model is asked once more after a turn, with the unchanged conversation, so that nearly all of the request is in
//! its cache. There is no suggestion after the first turn, which shows too little. A new prompt cancels a suggestion.

use std::sync::Arc;

use ostler_proto::api::{ContentBlock, Role};
use ostler_proto::build;
use ostler_proto::frame::ToHost;
use ostler_proto::message::PromptSuggestion;

use super::Session;
use crate::ask_model::ask_model;
use crate::ids::fresh_uuid;
use crate::model::ChatMessage;

const QUESTION: &str = "Guess what I will most likely ask you next. Answer with that one prompt, in my words and \
    at most 12 of them, and with nothing else. If you cannot tell, answer with a single dash.";

/// A longer answer, in characters, is an explanation and not a prompt.
const MOST_LETTERS: usize = 200;

impl Session {
    /// Cancels the suggestion under way, if there is one, and takes the conversation back.
    pub(super) async fn end_guess(&mut self) {
        // Waited for, so that there is no other reference to the conversation: a second one would copy it.
        self.suggesting.shutdown().await;
        if let Some(conversation) = self.guessing.take() {
            self.conversation = Arc::unwrap_or_clone(conversation);
            // The request for a suggestion is not part of the conversation.
            self.conversation.pop();
        }
    }

    /// The conversation so far.
    pub(super) fn conversation(&self) -> &[ChatMessage] {
        match self.guessing.as_deref().and_then(|asked| asked.split_last()) {
            Some((_question, conversation)) => conversation,
            None => &self.conversation,
        }
    }

    /// Starts a suggestion, if the host wants suggestions.
    pub(super) fn suggest(&mut self) {
        if !self.wants_suggestions || self.totals.n_results() < 2 || self.queue.n_turns() > 0 {
            return;
        }
        if self.conversation.last().is_none_or(|said| said.role != Role::Assistant) {
            return;
        }
        let (context, mut conversation) =
            (self.context.clone(), std::mem::take(&mut self.conversation));
        let content = vec![ContentBlock::text(QUESTION)];
        conversation.push(ChatMessage { role: Role::User, content });
        let conversation = Arc::new(conversation);
        self.guessing = Some(Arc::clone(&conversation));
        self.suggesting.spawn(async move {
            let context = context.with_server_tools().await;
            let request = context.request(conversation, false);
            // A suggestion that fails is ignored.
            let Ok(answer) =
                ask_model(&*context.model, &context.outbox, &context.records.ledger, request).await
            else {
                return;
            };
            let texts: Vec<&str> =
                answer.content.iter().filter_map(ContentBlock::as_text).collect();
            let suggestion = texts.concat().trim().to_owned();
            let is_prompt = !suggestion.trim_matches('-').is_empty()
                && suggestion.chars().count() <= MOST_LETTERS;
            if is_prompt {
                let frame = build!(PromptSuggestion {
                    suggestion,
                    session_id: context.outbox.session_id.clone(),
                    uuid: fresh_uuid(),
                });
                context.outbox.send(ToHost::PromptSuggestion(frame)).await;
            }
        });
    }
}
