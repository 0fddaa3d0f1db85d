//! A prompt before its turn: hooks run first, and may add to it or refuse it.
//!
//! The prompt is written to the session's file only when no hook refuses it: the model must not see a refused prompt
//! when the session is resumed.

use std::path::{Path, PathBuf};

use ostler_proto::api::{Content, ContentBlock, Role};
use ostler_proto::build;
use ostler_proto::frame::ToHost;
use ostler_proto::hook::HookEvent;
use ostler_proto::message::system::Informational;
use ostler_proto::message::{System, User};
use ostler_proto::permission::PermissionMode;
use serde_json::{Value, json};

use super::report;
use crate::commands::{self, BuiltIn, CommandCall, ExpandedCommand, mention};
use crate::drive::{TurnContext, TurnOutcome, drive};
use crate::hooks::Event;
use crate::hooks::verdict::Verdict;
use crate::ids::fresh_uuid;
use crate::model::ChatMessage;
use crate::rescue::LentConversation;
use crate::turn::{Ending, INTERRUPTED};

/// What is reported once, with the first prompt of a session.
#[derive(Debug)]
pub(crate) struct SessionStartInfo {
    /// Why the session begins.
    pub(crate) source: &'static str,
    /// The files with instructions that were read for it.
    pub(crate) memory: Vec<PathBuf>,
    /// The title that the host gave it.
    pub(crate) title: Option<String>,
}

/// The prompts after hooks ran.
#[derive(Debug, Default)]
struct AcceptedPrompts {
    /// What the model reads.
    blocks: Vec<ContentBlock>,
    /// The prompts for the session's file.
    kept: Vec<KeptPrompt>,
    title: Option<String>,
    /// The model that a command wants.
    model: Option<String>,
}

/// A prompt as the session's file gets it.
#[derive(Debug)]
struct KeptPrompt {
    prompt: User,
    /// The files that it mentions, for the model only.
    files: Option<User>,
}

/// A prompt that may go to the model.
struct AcceptedPrompt {
    blocks: Vec<ContentBlock>,
    kept: User,
    /// The files that it mentions.
    files: Option<User>,
    title: Option<String>,
    model: Option<String>,
}

/// Answers prompts, except those that a hook refuses.
pub(crate) async fn answer(
    context: &TurnContext,
    conversation: LentConversation,
    prompts: Vec<User>,
    start: Option<SessionStartInfo>,
) -> TurnOutcome {
    if let [prompt] = &prompts[..]
        && let Some(CommandCall::BuiltIn(command, _)) = commands::read(&context.library, prompt)
    {
        return obey(context, conversation, prompt.clone(), command).await;
    }
    let heard = tokio::select! {
        // First, because the interruption also cancels the hooks, which must not count as their verdict.
        biased;
        () = context.cx.cancelled.cancelled() => {
            return interrupted(context, conversation.take()).await;
        }
        heard = hear(context, prompts, start) => heard,
    };
    let AcceptedPrompts { blocks, kept, title, model } = match heard {
        Ok(heard) => heard,
        Err(reason) => return TurnOutcome::new(Ending::Blocked(reason), conversation.take()),
    };
    let mut context = context.clone();
    if let Some(model) = model {
        context.model_name = context.aliases.full_name(Some(&model), &context.model_name).into();
    }
    let context = &context;
    let TurnContext { outbox, permissions, records, .. } = context;
    let mode = permissions.mode();
    let mut lost = None;
    for KeptPrompt { prompt, files } in &kept {
        lost = lost.or(outbox.record(|writer| writer.prompt(prompt, &mode)));
        if let Some(files) = files {
            let frame = ToHost::User(Box::new(files.clone()));
            lost = lost.or(outbox.record(|writer| writer.frame(&frame)));
        }
    }
    if let Some(title) = title {
        lost = lost.or(outbox.record(|writer| writer.title(&title)));
    }
    if let Some(lost) = lost {
        outbox.send(lost).await;
    }
    let kept: Vec<User> = kept.into_iter().map(|kept| kept.prompt).collect();
    for prompt in kept.iter().filter(|prompt| prompt.is_synthetic != Some(true)) {
        if let Some(uuid) = &prompt.uuid {
            records.checkpoint(outbox, uuid).await;
        }
    }
    outbox.send(report::init(context)).await;
    if context.launch.output.replay_user_messages {
        for prompt in kept {
            outbox.send_replay(prompt).await;
        }
    }
    drive(context, conversation, blocks).await
}

/// Runs a built-in command in place of a turn. Hooks run first, because the arguments of `/compact` go to the model.
async fn obey(
    context: &TurnContext,
    conversation: LentConversation,
    prompt: User,
    command: BuiltIn,
) -> TurnOutcome {
    let taken = tokio::select! {
        biased;
        () = context.cx.cancelled.cancelled() => {
            let ending = Ending::Interrupted { in_tools: false };
            return TurnOutcome::new(ending, conversation.take());
        }
        taken = submit(context, prompt) => taken,
    };
    match taken {
        Ok(taken) => {
            // A hook may have replaced the prompt.
            let arguments = match commands::read(&context.library, &taken.kept) {
                Some(CommandCall::BuiltIn(_, arguments)) => arguments,
                _ => String::new(),
            };
            commands::obey(context, conversation, command, &arguments).await
        }
        Err(reason) => {
            context.outbox.send(refusal(context, &reason)).await;
            TurnOutcome::new(Ending::Blocked(reason), conversation.take())
        }
    }
}

/// Ends the turn before hooks have seen the prompts. Such prompts do not go to the model, neither now nor with the next
/// prompt: only the marker of the interruption stays.
async fn interrupted(context: &TurnContext, mut conversation: Vec<ChatMessage>) -> TurnOutcome {
    let marker = ContentBlock::text(INTERRUPTED);
    context.outbox.send(report::init(context)).await;
    context.outbox.send_user(vec![marker.clone()]).await;
    match conversation.last_mut() {
        Some(last) if last.role == Role::User => last.content.push(marker),
        _ => conversation.push(ChatMessage { role: Role::User, content: vec![marker] }),
    }
    let finished = TurnOutcome::new(Ending::Interrupted { in_tools: false }, conversation);
    TurnOutcome { n_user_messages: 2, ..finished }
}

/// Runs the hooks for the prompts, and for the session's start if they are the first.
///
/// # Errors
/// The reason, when hooks refuse all prompts.
async fn hear(
    context: &TurnContext,
    prompts: Vec<User>,
    start: Option<SessionStartInfo>,
) -> Result<AcceptedPrompts, String> {
    context.hooks.look_around(true).await;
    let mut first = Verdict::default();
    let named = start.as_ref().and_then(|start| start.title.clone());
    if let Some(start) = start {
        first = begin(context, start).await;
    }
    let mut heard = AcceptedPrompts::default();
    let mut refused = None;
    for prompt in prompts {
        match submit(context, prompt).await {
            Ok(taken) => {
                heard.blocks.extend(taken.blocks);
                heard.kept.push(KeptPrompt { prompt: taken.kept, files: taken.files });
                heard.title = taken.title.or(heard.title);
                heard.model = taken.model.or(heard.model);
            }
            Err(reason) => {
                context.outbox.send(refusal(context, &reason)).await;
                refused = Some(reason);
            }
        }
    }
    if let (true, Some(reason)) = (heard.blocks.is_empty(), refused) {
        return Err(reason);
    }
    let said = context.hooks.take_said();
    heard.blocks.splice(0..0, first.first_words.into_iter().map(ContentBlock::text));
    let planning = planning_reminder(context);
    let news = context.announced.take_news(&context.servers);
    heard.blocks.extend(
        first.context.into_iter().chain(said).chain(news).chain(planning).map(ContentBlock::text),
    );
    Ok(AcceptedPrompts { title: heard.title.or(first.title).or(named), ..heard })
}

/// The instructions for plan mode with this prompt; `None` when it is not planning.
fn planning_reminder(context: &TurnContext) -> Option<String> {
    let is_planning = context.permissions.mode() == PermissionMode::Plan;
    is_planning.then(|| format!("<system-reminder>\n{}\n</system-reminder>", context.planning))
}

/// Asks hooks about a prompt.
///
/// # Errors
/// The reason, when a hook refuses it.
async fn submit(context: &TurnContext, mut prompt: User) -> Result<AcceptedPrompt, String> {
    let mut blocks = match prompt.message.content.clone() {
        Some(Content::Text(text)) => vec![ContentBlock::text(text)],
        Some(Content::Blocks(blocks)) => blocks,
        None => Vec::new(),
    };
    // A text of the engine itself is not a prompt of the user.
    if prompt.is_synthetic == Some(true) {
        return Ok(AcceptedPrompt { blocks, kept: prompt, files: None, title: None, model: None });
    }
    context.hooks.begin_prompt(prompt.uuid.as_ref().map(ToString::to_string));
    let text: Vec<&str> = blocks.iter().filter_map(ContentBlock::as_text).collect();
    let text = text.join("\n");
    let fields = json!({"prompt": text});
    let verdict = tell(context, HookEvent::UserPromptSubmit, fields).await;
    if let Some(reason) = verdict.block.or(verdict.stop) {
        return Err(reason);
    }
    let (mut model, mut files) = (None, None);
    if let Some(CommandCall::File(command, arguments)) = commands::read(&context.library, &prompt)
        && !verdict.hides_prompt
    {
        let expanded = commands::expand(context, &command, &arguments, &text).await?;
        ExpandedCommand { blocks, model } = expanded;
        prompt.message.content = Some(Content::Blocks(blocks.clone()));
    } else if !verdict.hides_prompt && prompt.client_composed != Some(true) {
        let texts = mention::files(context, &text).await;
        let mentioned: Vec<_> = texts.into_iter().map(ContentBlock::text).collect();
        blocks.extend(mentioned.clone());
        files = (!mentioned.is_empty()).then(|| context.outbox.for_model(mentioned));
    }
    let added_context = verdict.context.into_iter().map(ContentBlock::text);
    if verdict.hides_prompt {
        // The hidden prompt is also not written to the file, so that a resumed session does not show it to the model.
        blocks = added_context.collect();
        prompt.message.content = Some(Content::Blocks(blocks.clone()));
    } else {
        blocks.extend(added_context);
    }
    if blocks.is_empty() {
        return Err("a hook keeps the prompt from the model and gives nothing in its place".into());
    }
    Ok(AcceptedPrompt { blocks, kept: prompt, files, title: verdict.title, model })
}

/// Runs the hooks for the session's start and for its instruction files.
pub(crate) async fn begin(context: &TurnContext, start: SessionStartInfo) -> Verdict {
    let TurnContext { outbox, permissions, hooks, .. } = context;
    let idle = hooks.idle_events();
    if !idle.is_empty() {
        let text = format!(
            "hooks for {} never run: these events do not happen in this version",
            idle.join(", ")
        );
        outbox.inform(text, "notice", Some("hooks_without_occasion")).await;
    }
    let fields = json!({"source": start.source, "model": context.model_name.as_ref()});
    let verdict = tell(context, HookEvent::SessionStart, fields).await;
    if hooks.any_for(&HookEvent::InstructionsLoaded) {
        for file in &start.memory {
            let fields = instructions(file, permissions.folders.user.as_deref());
            tell(context, HookEvent::InstructionsLoaded, fields).await;
        }
    }
    verdict
}

/// The input of hooks for an instruction file. Its folder and name show whose it is.
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

fn refusal(context: &TurnContext, reason: &str) -> ToHost {
    ToHost::System(System::Informational(build!(Informational {
        content: reason.to_owned(),
        level: "warning".to_owned(),
        prevent_continuation: Some(true),
        prompt_submit_outcome: Some(
            json!({"kind": "blocked_by_hook", "prompt_kept": false, "reason": reason}),
        ),
        session_id: context.outbox.session_id.clone(),
        uuid: fresh_uuid()
    })))
}

async fn tell(context: &TurnContext, event: HookEvent, fields: Value) -> Verdict {
    context.hooks.run(Event::new(event, fields)).await
}
