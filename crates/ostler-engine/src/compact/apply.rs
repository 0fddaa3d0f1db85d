//! The end of a compaction: what the host sees of it, what is written to the transcript, which hooks run.

use std::time::Duration;

use ostler_proto::Num;
use ostler_proto::api::{Content, ContentBlock, Role};
use ostler_proto::build;
use ostler_proto::frame::ToHost;
use ostler_proto::hook::HookEvent;
use ostler_proto::message::system::{CompactBoundary, CompactMetadata};
use ostler_proto::message::{System, User};
use serde_json::json;

use super::{CompactJob, CompactedConversation, Summary, Trigger, cut, prompts};
use crate::drive::TurnContext;
use crate::hooks::Event;
use crate::ids::{fresh_uuid, timestamp};
use crate::model::ChatMessage;
use crate::session::report;

/// Puts the summary in the place of the conversation. From here on nothing can fail.
pub(super) async fn keep(
    context: &TurnContext,
    job: &CompactJob<'_>,
    summary: Summary,
    took: Duration,
) -> CompactedConversation {
    let before = context.context_usage.tokens(context, job.conversation);
    let messages = cut::before(job.conversation, job.to);
    let beginning = prompts::beginning(&summary.text, &messages, summary.covered, job.request);
    let prompt = cut::behind(job.conversation, job.to);
    let mut first = vec![ContentBlock::text(beginning.as_str())];
    first.extend(prompt.iter().cloned());
    let mut conversation = vec![ChatMessage { role: Role::User, content: first }];
    // The API's count belongs to the conversation before.
    context.context_usage.forget();
    let tokens = (before, context.context_usage.tokens(context, &conversation));
    if job.trigger == Trigger::Manual {
        context.outbox.send(report::init(context)).await;
    }
    mark(context, job.trigger, tokens, took).await;
    write(context, beginning).await;
    let added_context = tell_hooks(context, job.trigger, &summary.text).await;
    let n_context = added_context.len();
    write_quietly(context, &added_context, true).await;
    write_quietly(context, &prompt, false).await;
    if let Some(first) = conversation.first_mut() {
        first.content.splice(1..1, added_context);
    }
    CompactedConversation { conversation, prompt_from: (1, 1 + n_context), tokens }
}

/// `compact_boundary`: the conversation begins again.
async fn mark(
    context: &TurnContext,
    trigger: Trigger,
    (before, after): (u64, u64),
    took: Duration,
) {
    let outbox = &context.outbox;
    let boundary = build!(CompactBoundary {
        compact_metadata: build!(CompactMetadata {
            trigger: trigger.as_str().to_owned(),
            pre_tokens: before,
            post_tokens: Some(after),
            duration_ms: Some(Num::from(took.as_millis() as u64))
        }),
        logical_parent_uuid: outbox.transcript.as_ref().and_then(|transcript| transcript.leaf()),
        session_id: outbox.session_id.clone(),
        uuid: fresh_uuid()
    });
    let frame = ToHost::System(System::CompactBoundary(boundary));
    let lost = outbox.record(|writer| writer.frame(&frame));
    show(context, lost.into_iter().chain([frame])).await;
}

/// The summary itself.
async fn write(context: &TurnContext, beginning: String) {
    let outbox = &context.outbox;
    let summary = User {
        uuid: Some(fresh_uuid()),
        timestamp: Some(timestamp()),
        is_synthetic: Some(true),
        is_replay: Some(false),
        ..User::new(Content::Text(beginning), Some(outbox.session_id.clone()))
    };
    let lost = outbox.record(|writer| writer.compact_summary(&summary));
    show(context, lost.into_iter().chain([ToHost::User(Box::new(summary))])).await;
}

/// Writes further blocks of the new beginning to the transcript, for a resumed session. The host does not receive them:
/// it has seen them, or must not see them.
async fn write_quietly(context: &TurnContext, blocks: &[ContentBlock], is_synthetic: bool) {
    if blocks.is_empty() {
        return;
    }
    let outbox = &context.outbox;
    let user = User {
        uuid: Some(fresh_uuid()),
        is_synthetic: is_synthetic.then_some(true),
        ..User::new(blocks.to_vec().into(), Some(outbox.session_id.clone()))
    };
    let frame = ToHost::User(Box::new(user));
    if let Some(lost) = outbox.record(|writer| writer.frame(&frame)) {
        show(context, [lost]).await;
    }
}

/// Sends the host frames that the transcript has already. It sees nothing of the conversations of subagents.
async fn show(context: &TurnContext, frames: impl IntoIterator<Item = ToHost>) {
    for frame in frames {
        if context.outbox.subagent.is_none() {
            let _ = context.outbox.frames.send(frame).await;
        }
    }
}

/// Runs the hooks for the finished compaction and for the conversation that begins again. Returns their text for the
/// model.
async fn tell_hooks(context: &TurnContext, trigger: Trigger, summary: &str) -> Vec<ContentBlock> {
    let TurnContext { outbox, hooks, cx, .. } = context;
    let all = async {
        let fields = json!({"trigger": trigger.as_str(), "compact_summary": summary});
        hooks.run(Event::new(HookEvent::PostCompact, fields)).await;
        if outbox.subagent.is_some() {
            return Vec::new();
        }
        let fields = json!({"source": "compact", "model": context.model_name.as_ref()});
        let event = Event::new(HookEvent::SessionStart, fields);
        let verdict = hooks.run(event).await;
        let words = verdict.first_words.into_iter().chain(verdict.context);
        words.filter(|text| !text.trim().is_empty()).map(ContentBlock::text).collect()
    };
    tokio::select! {
        biased;
        () = cx.cancelled.cancelled() => Vec::new(),
        added_context = all => added_context,
    }
}
