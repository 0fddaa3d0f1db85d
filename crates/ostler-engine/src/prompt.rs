//! A prompt on its way into a turn: hooks hear of it first, and may add to it or refuse it.

use ostler_proto::api::{Content, ContentBlock};
use ostler_proto::hook::HookEvent;
use ostler_proto::message::User;
use serde_json::json;

use crate::drive::{Finished, World, drive};
use crate::hooks::Event;
use crate::hooks::verdict::Verdict;
use crate::model::Said;
use crate::report;
use crate::turn::Ending;

/// Answers a prompt, unless a hook refuses it.
pub(crate) async fn answer(
    world: &World,
    conversation: Vec<Said>,
    prompts: Vec<User>,
    source: Option<&str>,
) -> Finished {
    let mut context = Vec::new();
    // Only the first turn of a session has one.
    if let Some(source) = source {
        let fields = json!({"source": source, "model": world.model.name()});
        context.extend(tell(world, HookEvent::SessionStart, fields).await.context);
    }
    let mut content = Vec::new();
    let mut refused = None;
    for prompt in prompts {
        match submit(world, prompt).await {
            Ok(blocks) => content.extend(blocks),
            Err(reason) => {
                world.host.inform(reason.clone(), "warning", None).await;
                refused = Some(reason);
            }
        }
    }
    if let (true, Some(reason)) = (content.is_empty(), refused) {
        return Finished::new(Ending::Blocked(reason), conversation);
    }
    content.extend(context.into_iter().map(ContentBlock::text));
    world.host.send(report::init(world)).await;
    drive(world, conversation, content).await
}

/// Asks hooks about a prompt; what the model is to read of it, or why it is not to read it.
async fn submit(world: &World, prompt: User) -> Result<Vec<ContentBlock>, String> {
    let mut blocks = match prompt.message.content {
        Some(Content::Text(text)) => vec![ContentBlock::text(text)],
        Some(Content::Blocks(blocks)) => blocks,
        None => Vec::new(),
    };
    // What the engine itself has to say is no prompt of the user's.
    if prompt.is_synthetic == Some(true) {
        return Ok(blocks);
    }
    let text: Vec<&str> = blocks.iter().filter_map(ContentBlock::as_text).collect();
    let fields = json!({"prompt": text.join("\n")});
    let verdict = tell(world, HookEvent::UserPromptSubmit, fields).await;
    if let Some(reason) = verdict.block.or(verdict.stop) {
        return Err(reason);
    }
    blocks.extend(verdict.context.into_iter().map(ContentBlock::text));
    Ok(blocks)
}

async fn tell(world: &World, event: HookEvent, fields: serde_json::Value) -> Verdict {
    let event = Event { event, tool: None, call: None, fields };
    let hooks = world.host.hooks();
    tokio::select! {
        // First, because the interruption also takes back what hooks are asked: that is no verdict of theirs.
        biased;
        () = world.cx.cancelled.cancelled() => Verdict::default(),
        verdict = hooks.run(&world.host, &world.cx.cwd, event) => verdict,
    }
}
