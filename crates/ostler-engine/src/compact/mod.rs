//! Compaction: a conversation that fills the context window becomes a summary of itself.
//!
//! The model is asked for the summary at the end of the unchanged conversation, so that the request begins with the
//! same bytes as the last one. The result is one user message: the summary, the last messages as text, and the
//! unanswered prompt word for word. It contains no calls, results or thinking blocks, so no call loses its result.
//! Nothing changes before the summary is complete: a compaction that fails, that a hook forbids or that is interrupted
//! leaves the conversation and its file as they were.
//!
//! `context_usage.rs` decides when, `cut.rs` where; `prompts.rs` has the texts, `manual.rs` runs `/compact`, `apply.rs`
//! stores the result.

mod apply;
mod context_usage;
pub(crate) mod cut;
pub(crate) mod manual;
mod prompts;

use std::future::Future;
use std::time::Instant;

use ostler_proto::api::{ContentBlock, Role, StopReason};
use ostler_proto::build;
use ostler_proto::frame::ToHost;
use ostler_proto::hook::HookEvent;
use ostler_proto::message::System;
use ostler_proto::message::system::Status;
use serde_json::json;

pub use self::context_usage::Compaction;
pub(crate) use self::context_usage::ContextUsage;
use self::cut::CutPoint;
use crate::ask_model::ask_model;
use crate::drive::TurnContext;
use crate::hooks::Event;
use crate::ids::fresh_uuid;
use crate::model::{ChatMessage, ModelError};

/// The fewest model calls between two automatic compactions.
const CALLS_BETWEEN: u32 = 3;

/// Who started a compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trigger {
    /// The user.
    Manual,
    /// The engine, because the context is full.
    Auto,
}

impl Trigger {
    fn as_str(self) -> &'static str {
        match self {
            Self::Manual => "manual",
            Self::Auto => "auto",
        }
    }
}

/// A conversation to compact.
pub(crate) struct CompactJob<'a> {
    pub(crate) trigger: Trigger,
    pub(crate) conversation: &'a [ChatMessage],
    /// Where the prompt begins that stays unchanged; without one, the end of the conversation.
    pub(crate) to: CutPoint,
    /// The request that is being worked on, when it is not after `to`.
    pub(crate) request: Option<&'a str>,
    /// The user's instructions for the summary.
    pub(crate) instructions: Option<&'a str>,
    /// The API has refused the conversation because of its length.
    pub(crate) is_too_long: bool,
}

/// A conversation after a compaction.
#[derive(Debug)]
pub(crate) struct CompactedConversation {
    pub(crate) conversation: Vec<ChatMessage>,
    /// Where in it the prompt begins that has no answer yet.
    pub(crate) prompt_from: CutPoint,
    /// Tokens before and after, the latter estimated.
    pub(crate) tokens: (u64, u64),
}

/// Why a conversation was not compacted.
#[derive(Debug, PartialEq)]
pub(crate) enum CompactError {
    /// A hook objected, with its reason.
    Blocked(String),
    /// It failed, with the reason.
    Failed(String),
    /// It was cancelled.
    Stopped,
}

impl CompactError {
    /// The reason, for users.
    pub(crate) fn reason(&self) -> String {
        match self {
            Self::Blocked(reason) if reason.is_empty() => "a hook does not want it".to_owned(),
            Self::Blocked(reason) => format!("a hook does not want it: {reason}"),
            Self::Failed(reason) => reason.clone(),
            Self::Stopped => "it was interrupted".to_owned(),
        }
    }
}

/// The compactions that a turn has tried so far, so that it does not try for ever.
#[derive(Debug, Default)]
pub(crate) struct Attempts {
    /// One failed, and the next one would fail too.
    pub(crate) failed: bool,
    /// The context was full again right after one.
    refilled: bool,
    /// The API has refused the conversation because of its length once.
    was_too_long: bool,
    /// Model calls since the last one.
    calls_since: Option<u32>,
}

impl Attempts {
    /// Whether to compact before the model is asked.
    pub(crate) fn is_due(&mut self, context: &TurnContext, conversation: &[ChatMessage]) -> bool {
        let answers_user = conversation.last().is_some_and(|last| last.role == Role::User);
        if !context.compaction.automatic || self.failed || self.refilled || !answers_user {
            return false;
        }
        let threshold = context.compaction.threshold(&context.asked_model());
        if context.context_usage.tokens(context, conversation) < threshold {
            return false;
        }
        self.refilled = self.calls_since.is_some_and(|calls| calls < CALLS_BETWEEN);
        !self.refilled
    }

    /// Whether to compact after an error of the API. Once per turn.
    pub(crate) fn helps_against(&mut self, context: &TurnContext, error: &ModelError) -> bool {
        error.is_prompt_too_long()
            && context.compaction.automatic
            && !self.failed
            && !std::mem::replace(&mut self.was_too_long, true)
    }

    /// Counts a model call.
    pub(crate) fn ask(&mut self) {
        self.calls_since = self.calls_since.map(|calls| calls.saturating_add(1));
    }

    /// Counts a successful compaction.
    pub(crate) fn succeed(&mut self) {
        self.calls_since = Some(0);
    }
}

/// Compacts a conversation, unless `stop` comes first.
pub(crate) async fn compact(
    context: &TurnContext,
    job: CompactJob<'_>,
    stop: impl Future<Output = ()>,
) -> Result<CompactedConversation, CompactError> {
    let begun = Instant::now();
    tell(context, build!(Status { status: Some("compacting".to_owned()) })).await;
    let made = tokio::select! {
        // First, because an interruption also cancels the hooks, which must not count as their verdict.
        biased;
        () = stop => Err(CompactError::Stopped),
        made = summarise(context, &job) => made,
    };
    match made {
        Ok(summary) => {
            let compact_result = Some("success".to_owned());
            tell(context, build!(Status { compact_result })).await;
            Ok(apply::keep(context, &job, summary, begun.elapsed()).await)
        }
        Err(why) => {
            let status = build!(Status {
                compact_result: Some("failed".to_owned()),
                compact_error: Some(why.reason())
            });
            tell(context, status).await;
            Err(why)
        }
    }
}

/// A summary, and how many messages it covers.
struct Summary {
    text: String,
    covered: usize,
}

async fn summarise(context: &TurnContext, job: &CompactJob<'_>) -> Result<Summary, CompactError> {
    let wishes = ask_hooks(context, job).await?;
    let question = prompts::question(&wishes);
    let mut places = cut::places(job.conversation, job.to);
    if job.is_too_long {
        // With the question it would be longer still.
        places.retain(|place| *place != cut::end(job.conversation));
    }
    let mut refused = "there is nothing to summarise".to_owned();
    for place in places {
        let messages = cut::asking(job.conversation, place, &question);
        match ask_for_summary(context, messages).await {
            Ok(text) => return Ok(Summary { text, covered: place.0 }),
            Err(SummaryError::TooLong(why)) => refused = why,
            Err(SummaryError::Other(why)) => return Err(CompactError::Failed(why)),
        }
    }
    Err(CompactError::Failed(refused))
}

/// Runs the hooks before a compaction. Returns their instructions for the summary and the user's; a hook may object.
async fn ask_hooks(
    context: &TurnContext,
    job: &CompactJob<'_>,
) -> Result<Vec<String>, CompactError> {
    let fields = json!({"trigger": job.trigger.as_str(), "custom_instructions": job.instructions});
    let event = Event::new(HookEvent::PreCompact, fields);
    let verdict = context.hooks.run(event).await;
    match verdict.block.or(verdict.stop) {
        Some(reason) => Err(CompactError::Blocked(reason)),
        None => {
            let wish = job.instructions.map(str::to_owned);
            Ok(wish.into_iter().chain(verdict.context).collect())
        }
    }
}

enum SummaryError {
    /// The request does not fit the model's window.
    TooLong(String),
    Other(String),
}

/// Asks for the summary, with the same beginning as every request of the conversation. Tool calls in the answer are not
/// run. The request does not forbid them, because that would change its beginning.
async fn ask_for_summary(
    context: &TurnContext,
    messages: Vec<ChatMessage>,
) -> Result<String, SummaryError> {
    let asked = Instant::now();
    let request = context.request(messages.into(), false);
    let TurnContext { model, outbox, records, .. } = context;
    let ledger = &records.ledger;
    let mut answer = ask_model(&**model, outbox, ledger, request.clone()).await;
    if answer.as_ref().is_err_and(ModelError::is_broken_stream) {
        let whole = crate::model::Request { stream: false, ..request };
        answer = ask_model(&**model, outbox, ledger, whole).await;
    }
    context.records.ledger.add_time(asked.elapsed());
    let message = match answer {
        Ok(message) => message,
        Err(error) if error.is_prompt_too_long() => {
            return Err(SummaryError::TooLong(error.to_string()));
        }
        Err(error) => return Err(SummaryError::Other(error.to_string())),
    };
    if message.stop_reason == Some(StopReason::Refusal) {
        return Err(SummaryError::Other("the model declined to write a summary".to_owned()));
    }
    let texts: Vec<&str> = message.content.iter().filter_map(ContentBlock::as_text).collect();
    match texts.join("\n").trim() {
        "" => Err(SummaryError::Other("the model wrote no summary".to_owned())),
        text => Ok(text.to_owned()),
    }
}

/// Sends the host the status of the compaction, unless a subagent compacts.
async fn tell(context: &TurnContext, status: Status) {
    let outbox = &context.outbox;
    if outbox.subagent.is_none() {
        let session_id = outbox.session_id.clone();
        let status = build!(Status { session_id, uuid: fresh_uuid(), ..status });
        outbox.send(ToHost::System(System::Status(status))).await;
    }
}
