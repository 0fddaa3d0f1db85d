//! `/compact`: a compaction that the user asks for, in place of a turn.

use ostler_proto::api::Content;
use ostler_proto::frame::ToHost;
use ostler_proto::message::User;

use super::{CompactError, CompactJob, CompactedConversation, Trigger, compact, cut};
use crate::drive::{TurnContext, TurnOutcome, passed};
use crate::ids::{fresh_uuid, timestamp};
use crate::model::ChatMessage;
use crate::rescue::LentConversation;
use crate::session::report;
use crate::turn::{Ending, Limit};

/// The command, as hosts know it.
const NAME: &str = "compact";

/// The answer to `/compact` in an empty conversation.
const EMPTY: &str = "There is nothing to compact yet.";

/// Compacts the whole conversation.
pub(crate) async fn run(
    context: &TurnContext,
    conversation: LentConversation,
    instructions: &str,
) -> TurnOutcome {
    if conversation.is_empty() {
        context.outbox.send(report::init(context)).await;
        return finished(Ok(EMPTY.to_owned()), Vec::new());
    }
    let job = CompactJob {
        trigger: Trigger::Manual,
        conversation: &conversation,
        to: cut::end(&conversation),
        request: None,
        instructions: Some(instructions).filter(|words| !words.is_empty()),
        is_too_long: false,
    };
    let stop = async {
        tokio::select! {
            () = context.cx.cancelled.cancelled() => {}
            () = passed(context.deadline) => {}
        }
    };
    match compact(context, job, stop).await {
        Ok(CompactedConversation { conversation: compacted, tokens: (before, after), .. }) => {
            drop(conversation.take());
            let words = format!("Compacted {before} tokens to about {after}.");
            say(context, &words).await;
            finished(Ok(String::new()), compacted)
        }
        Err(why) => {
            context.outbox.send(report::init(context)).await;
            match &why {
                CompactError::Stopped if context.cx.cancelled.is_cancelled() => {
                    TurnOutcome::new(Ending::Interrupted { in_tools: false }, conversation.take())
                }
                CompactError::Stopped => {
                    TurnOutcome::new(Ending::OverLimit(Limit::Time), conversation.take())
                }
                CompactError::Blocked(_) | CompactError::Failed(_) => {
                    let words = format!("The conversation was not compacted: {}", why.reason());
                    finished(Err(words), conversation.take())
                }
            }
        }
    }
}

fn finished(outcome: Result<String, String>, conversation: Vec<ChatMessage>) -> TurnOutcome {
    TurnOutcome::new(Ending::Command { name: NAME.to_owned(), outcome }, conversation)
}

/// Sends the output of the command. It is not part of the conversation.
async fn say(context: &TurnContext, words: &str) {
    let text = format!("<local-command-stdout>{words}</local-command-stdout>");
    let user = User {
        uuid: Some(fresh_uuid()),
        timestamp: Some(timestamp()),
        is_replay: Some(true),
        ..User::new(Content::Text(text), Some(context.outbox.session_id.clone()))
    };
    context.outbox.send(ToHost::User(Box::new(user))).await;
}
