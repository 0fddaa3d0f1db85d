//! A prompt on its way into a turn: hooks hear of it first, and may add to it or refuse it.

use ostler_proto::api::ContentBlock;
use ostler_proto::hook::HookEvent;
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
    mut prompt: Vec<ContentBlock>,
    source: Option<&str>,
) -> Finished {
    let mut context = Vec::new();
    // Only the first turn of a session has one.
    if let Some(source) = source {
        let fields = json!({"source": source, "model": world.model.name()});
        context.extend(tell(world, HookEvent::SessionStart, fields).await.context);
    }
    let text: Vec<&str> = prompt.iter().filter_map(ContentBlock::as_text).collect();
    let verdict =
        tell(world, HookEvent::UserPromptSubmit, json!({"prompt": text.join("\n")})).await;
    if let Some(reason) = verdict.block.or(verdict.stop) {
        world.host.inform(reason.clone(), "warning", None).await;
        return Finished::new(Ending::Blocked(reason), conversation);
    }
    context.extend(verdict.context);
    prompt.extend(context.into_iter().map(ContentBlock::text));
    world.host.send(report::init(world)).await;
    drive(world, conversation, prompt).await
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
