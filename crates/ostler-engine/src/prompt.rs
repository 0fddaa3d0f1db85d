//! A prompt on its way into a turn: hooks hear of it first, and may add to it or refuse it.
//!
//! The prompt is written to the session's file only when no hook refuses it: what was kept from the model must not
//! come back to it when the session is resumed.

use std::path::{Path, PathBuf};

use ostler_proto::api::{Content, ContentBlock};
use ostler_proto::frame::ToHost;
use ostler_proto::hook::HookEvent;
use ostler_proto::message::system::Informational;
use ostler_proto::message::{System, User};
use serde_json::{Value, json};

use crate::drive::{Finished, World, drive};
use crate::hooks::Event;
use crate::hooks::verdict::Verdict;
use crate::host::fresh_uuid;
use crate::model::Said;
use crate::report;
use crate::turn::{Ending, INTERRUPTED};

/// What is told once, with the first prompt of a session.
#[derive(Debug)]
pub(crate) struct Start {
    /// Why the session begins.
    pub(crate) source: &'static str,
    /// The files with instructions that were read for it.
    pub(crate) memory: Vec<PathBuf>,
}

/// What becomes of a prompt once hooks have heard it.
#[derive(Debug, Default)]
struct Heard {
    /// What the model reads.
    blocks: Vec<ContentBlock>,
    /// The prompt itself is not for the model, and so not for the file either.
    hides_prompt: bool,
    title: Option<String>,
}

/// Answers a prompt, unless a hook refuses it.
pub(crate) async fn answer(
    world: &World,
    conversation: Vec<Said>,
    mut prompt: User,
    start: Option<Start>,
) -> Finished {
    let host = &world.host;
    host.hooks().begin_prompt(prompt.uuid.as_ref().map(ToString::to_string));
    let heard = tokio::select! {
        heard = hear(world, &prompt, start) => heard,
        () = world.cx.cancelled.cancelled() => {
            host.say_as_user(vec![ContentBlock::text(INTERRUPTED)], None).await;
            return Finished::new(Ending::Interrupted { in_tools: false }, conversation);
        }
    };
    let Heard { blocks, hides_prompt, title } = match heard {
        Ok(heard) => heard,
        Err(reason) => {
            host.send(refusal(world, &reason)).await;
            return Finished::new(Ending::Blocked(reason), conversation);
        }
    };
    if hides_prompt {
        prompt.message.content = Some(Content::Blocks(blocks.clone()));
    }
    let mode = host.mode();
    let mut lost = host.record(|writer| writer.prompt(&prompt, &mode));
    if let Some(title) = title {
        lost = lost.or(host.record(|writer| writer.title(&title)));
    }
    if let Some(lost) = lost {
        host.send(lost).await;
    }
    host.send(report::init(world)).await;
    drive(world, conversation, blocks).await
}

/// Tells hooks of the prompt, and of the session if it is the first.
///
/// # Errors
/// Why a hook does not want the prompt answered.
async fn hear(world: &World, prompt: &User, start: Option<Start>) -> Result<Heard, String> {
    let mut first = Verdict::default();
    if let Some(start) = start {
        first = begin(world, start).await;
    }
    let mut blocks = blocks(prompt.message.content.clone());
    let text: Vec<&str> = blocks.iter().filter_map(ContentBlock::as_text).collect();
    let fields = json!({"prompt": text.join("\n")});
    let verdict = tell(world, HookEvent::UserPromptSubmit, fields).await;
    if let Some(reason) = verdict.block.or(verdict.stop) {
        return Err(reason);
    }
    if verdict.hides_prompt {
        blocks.clear();
    }
    let said = world.host.hooks().take_said();
    let context = first.context.into_iter().chain(said).chain(verdict.context);
    let first_words = first.first_words.into_iter().map(ContentBlock::text);
    let blocks: Vec<_> = first_words.chain(blocks).chain(context.map(ContentBlock::text)).collect();
    if blocks.is_empty() {
        return Err("a hook keeps the prompt from the model and gives nothing in its place".into());
    }
    Ok(Heard { blocks, hides_prompt: verdict.hides_prompt, title: verdict.title.or(first.title) })
}

/// Tells hooks that the session begins and which instructions it begins with.
async fn begin(world: &World, start: Start) -> Verdict {
    let host = &world.host;
    let idle = host.hooks().idle_events();
    if !idle.is_empty() {
        let text = format!("hooks for {} never run: nothing sets them off yet", idle.join(", "));
        host.inform(text, "notice", Some("hooks_without_occasion")).await;
    }
    let fields = json!({"source": start.source, "model": world.model.name()});
    let verdict = tell(world, HookEvent::SessionStart, fields).await;
    if host.hooks().any_for(&HookEvent::InstructionsLoaded) {
        for file in &start.memory {
            let fields = instructions(file, host.folders.user.as_deref());
            tell(world, HookEvent::InstructionsLoaded, fields).await;
        }
    }
    verdict
}

/// What hooks are told of a file with instructions. Whose it is shows in where it lies and what it is called.
fn instructions(file: &Path, user: Option<&Path>) -> Value {
    let name = file.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let kind = match name {
        "CLAUDE.local.md" => "Local",
        _ if user.is_some_and(|user| file.starts_with(user)) => "User",
        _ => "Project",
    };
    let is_own = matches!(name, "CLAUDE.md" | "CLAUDE.local.md");
    let reason = if is_own { "session_start" } else { "include" };
    json!({"file_path": file.display().to_string(), "memory_type": kind, "load_reason": reason})
}

fn refusal(world: &World, reason: &str) -> ToHost {
    ToHost::System(System::Informational(Informational {
        content: reason.to_owned(),
        level: "warning".to_owned(),
        prevent_continuation: Some(true),
        prompt_submit_outcome: Some(
            json!({"kind": "blocked_by_hook", "prompt_kept": false, "reason": reason}),
        ),
        session_id: world.host.session_id.clone(),
        uuid: fresh_uuid(),
        ..Informational::default()
    }))
}

async fn tell(world: &World, event: HookEvent, fields: Value) -> Verdict {
    world.host.hooks().run(&world.host, &world.cx.cwd, Event::new(event, fields)).await
}

fn blocks(content: Option<Content>) -> Vec<ContentBlock> {
    match content {
        Some(Content::Text(text)) => vec![ContentBlock::text(text)],
        Some(Content::Blocks(blocks)) => blocks,
        None => Vec::new(),
    }
}
