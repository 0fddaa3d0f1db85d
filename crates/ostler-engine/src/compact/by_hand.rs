//! `/compact`: a compaction that the user asks for, in place of a turn.

use ostler_proto::api::Content;
use ostler_proto::frame::ToHost;
use ostler_proto::message::User;

use super::{Compacted, Job, NotCompacted, Trigger, compact, cut};
use crate::drive::{Finished, World};
use crate::ids::{fresh_uuid, timestamp};
use crate::model::Said;
use crate::rescue::LentConversation;
use crate::session::report;
use crate::turn::Ending;

/// The command, as hosts know it.
const NAME: &str = "compact";

/// What is said where there is nothing to do.
const EMPTY: &str = "There is nothing to compact yet.";

/// Compacts the whole conversation.
pub(crate) async fn run(
    world: &World,
    conversation: LentConversation,
    instructions: &str,
) -> Finished {
    if conversation.is_empty() {
        world.host.send(report::init(world)).await;
        return finished(Ok(EMPTY.to_owned()), Vec::new());
    }
    let job = Job {
        trigger: Trigger::Manual,
        conversation: &conversation,
        to: cut::end(&conversation),
        request: None,
        instructions: Some(instructions).filter(|words| !words.is_empty()),
        is_too_long: false,
    };
    match compact(world, job, world.cx.cancelled.cancelled()).await {
        Ok(Compacted { conversation: compacted, tokens: (before, after), .. }) => {
            drop(conversation.take());
            let words = format!("Compacted {before} tokens to about {after}.");
            say(world, &words).await;
            finished(Ok(String::new()), compacted)
        }
        Err(why) => {
            world.host.send(report::init(world)).await;
            match &why {
                NotCompacted::Stopped => {
                    Finished::new(Ending::Interrupted { in_tools: false }, conversation.take())
                }
                NotCompacted::Blocked(_) | NotCompacted::Failed(_) => {
                    let words = format!("The conversation was not compacted: {}", why.reason());
                    finished(Err(words), conversation.take())
                }
            }
        }
    }
}

fn finished(outcome: Result<String, String>, conversation: Vec<Said>) -> Finished {
    Finished::new(Ending::Command { name: NAME.to_owned(), outcome }, conversation)
}

/// What the command prints. It is no part of the conversation.
async fn say(world: &World, words: &str) {
    let text = format!("<local-command-stdout>{words}</local-command-stdout>");
    let user = User {
        uuid: Some(fresh_uuid()),
        timestamp: Some(timestamp()),
        is_replay: Some(true),
        ..User::new(Content::Text(text), Some(world.host.session_id.clone()))
    };
    world.host.send(ToHost::User(Box::new(user))).await;
}
