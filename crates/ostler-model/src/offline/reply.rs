//! The answer to a conversation: pure, and always the same for the same conversation.

use ostler_proto::api::{ContentBlock, Role, StopReason, ToolUseBlock, Usage};
use ostler_proto::build;
use serde_json::{Value, json};

use super::help::{HELP, NOTE, SHORT_HELP};
use super::intent::Intent;
use super::progress::{
    AGENT_NOTICE, Position, Stage, TASK_NOTICE, TurnProgress, instruction, position,
};
use super::question::Question;
use super::report;
use super::shape;
use super::steps::steps;
use crate::{ChatMessage, Request};

/// A response before it is streamed.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct OfflineResponse {
    /// `msg_offline_…`.
    pub(super) id: String,
    /// Text, then calls.
    pub(super) blocks: Vec<ContentBlock>,
    /// `tool_use` if there are calls.
    pub(super) stop_reason: StopReason,
    /// An estimate: four characters per token.
    pub(super) usage: Usage,
}

/// Answers a conversation.
pub(super) fn answer(request: &Request) -> OfflineResponse {
    let turn = TurnProgress::of(&request.messages);
    let steps = steps(&turn.text);
    let (mut text, mut calls) = match notice(&turn) {
        Some(text) => (text, Vec::new()),
        None => match unanswerable(&steps, &request.messages) {
            Some(text) => (text, Vec::new()),
            None => act(&steps, &turn, request),
        },
    };
    if calls.is_empty()
        && let Some(input) = shape::due(request, &turn, &text)
    {
        calls.push(PlannedCall { tool: shape::TOOL.to_owned(), input });
    }
    if calls.is_empty() && !text.contains(NOTE) && !has_said(&request.messages, NOTE) {
        text = format!("{text}\n\n{NOTE}");
    }

    let number = number(request);
    let calls = calls.into_iter().enumerate().map(|(index, call)| {
        ContentBlock::ToolUse(build!(ToolUseBlock {
            id: format!("toolu_offline_{number}_{}", index + 1).into(),
            name: call.tool,
            input: call.input
        }))
    });
    let blocks: Vec<ContentBlock> = [ContentBlock::text(text)].into_iter().chain(calls).collect();
    let stop_reason = if blocks.len() > 1 { StopReason::ToolUse } else { StopReason::EndTurn };
    let usage = build!(Usage {
        input_tokens: Some(tokens(&serde_json::to_string(request).unwrap_or_default())),
        output_tokens: Some(tokens(&serde_json::to_string(&blocks).unwrap_or_default()))
    });
    OfflineResponse { id: format!("msg_offline_{number}"), blocks, stop_reason, usage }
}

/// A call that the answer will make.
struct PlannedCall {
    tool: String,
    input: Value,
}

/// The answer to the engine's notice about a background task.
fn notice(turn: &TurnProgress) -> Option<String> {
    let text = turn.text.strip_prefix(TASK_NOTICE);
    let text = text.or_else(|| turn.text.strip_prefix(AGENT_NOTICE))?;
    Some(format!("Something ended in the background: {}", text.trim_end_matches(']')))
}

/// The answer to texts that the demo does not understand. No step starts unless the whole text is understood.
fn unanswerable(steps: &[Intent], messages: &[ChatMessage]) -> Option<String> {
    let unknown = steps.iter().find_map(|step| match step {
        Intent::Unknown(text) => Some(text),
        _ => None,
    });
    let Some(unknown) = unknown else {
        return steps.iter().all(|step| *step == Intent::Help).then(|| HELP.to_owned());
    };
    let help = if has_said(messages, HELP) { SHORT_HELP } else { HELP };
    let sorry = match steps.len() {
        1 => "I did not understand that.".to_owned(),
        _ => format!("I did not understand “{}”, so I did none of it.", report::clipped(unknown)),
    };
    Some(format!("{sorry}\n\n{help}"))
}

/// The next text and calls.
fn act(steps: &[Intent], turn: &TurnProgress, request: &Request) -> (String, Vec<PlannedCall>) {
    match position(steps, &turn.rounds) {
        Position::Done { round } => {
            (report::success(&steps[steps.len() - 1], &turn.rounds[round]), Vec::new())
        }
        Position::Failed { step, round } => {
            let n_left = steps.len() - step - 1;
            (report::failure(&steps[step], &turn.rounds[round], n_left), Vec::new())
        }
        Position::Due { step, stage, finished } => {
            let intent = &steps[step];
            let mut parts: Vec<String> = Vec::new();
            if let (Some(done), Some(round)) = (finished, turn.rounds.last()) {
                parts.push(report::success(&steps[done], round));
            }
            let calls = calls(intent, stage, request);
            match calls.iter().find(|call| !offers(request, &call.tool)) {
                Some(call) => {
                    parts.push(format!(
                        "I would need the tool {} for that, and it is not offered here.",
                        call.tool
                    ));
                    (parts.join("\n\n"), Vec::new())
                }
                None => {
                    parts.push(report::lead(intent, stage));
                    (parts.join("\n\n"), calls)
                }
            }
        }
    }
}

fn calls(intent: &Intent, stage: Stage, request: &Request) -> Vec<PlannedCall> {
    let one = |tool: &str, input: Value| vec![PlannedCall { tool: tool.to_owned(), input }];
    let read =
        |path: &String| PlannedCall { tool: "Read".to_owned(), input: json!({"file_path": path}) };
    match (intent, stage) {
        (Intent::Write { path, .. }, Stage::ReadBack)
        | (Intent::Edit { path, .. }, Stage::First) => {
            vec![read(path)]
        }
        (Intent::List { pattern, path }, _) => {
            one("Glob", with_path(json!({"pattern": pattern}), path))
        }
        (Intent::Count { path }, _) => one("Glob", with_path(json!({"pattern": "*"}), path)),
        (Intent::Read { paths }, _) => paths.iter().map(read).collect(),
        (Intent::Write { path, content }, _) => {
            one("Write", json!({"file_path": path, "content": content}))
        }
        (Intent::Edit { path, old, new, all }, _) => {
            let mut input = json!({"file_path": path, "old_string": old, "new_string": new});
            if *all {
                input["replace_all"] = json!(true);
            }
            one("Edit", input)
        }
        (Intent::Run { command, background }, _) => {
            let mut input = json!({"command": command, "description": "Run what the user typed"});
            if *background {
                input["run_in_background"] = json!(true);
            }
            one("Bash", input)
        }
        (Intent::Search { pattern, path }, _) => {
            one("Grep", with_path(json!({"pattern": pattern, "output_mode": "content"}), path))
        }
        (Intent::Ask { about }, _) => {
            one("AskUserQuestion", Question::about(about.as_deref()).input())
        }
        (Intent::Delegate { prompt }, _) => {
            // Older peers call it `Task`.
            let tool =
                if offers(request, "Task") && !offers(request, "Agent") { "Task" } else { "Agent" };
            let description = prompt.split_whitespace().take(5).collect::<Vec<_>>().join(" ");
            one(
                tool,
                json!({
                    "description": description, "prompt": prompt, "subagent_type": "general-purpose",
                    "run_in_background": false,
                }),
            )
        }
        (Intent::Call { tool, input }, _) => one(&called(request, tool), input.clone()),
        (Intent::Help | Intent::Unknown(_), _) => Vec::new(),
    }
}

/// The full name of a tool. Tools of servers have a prefix with the server's name, which users leave out.
fn called(request: &Request, tool: &str) -> String {
    let is_meant = |name: &str| {
        name == tool || name.starts_with("mcp__") && name.ends_with(&format!("__{tool}"))
    };
    let names = request.tools.iter().map(|spec| &spec.name);
    names.into_iter().find(|name| is_meant(name)).map_or_else(|| tool.to_owned(), Clone::clone)
}

fn with_path(mut input: Value, path: &Option<String>) -> Value {
    if let Some(path) = path {
        input["path"] = json!(path);
    }
    input
}

fn offers(request: &Request, tool: &str) -> bool {
    request.tools.iter().any(|spec| spec.name == tool)
}

fn has_said(messages: &[ChatMessage], words: &str) -> bool {
    let said =
        messages.iter().filter(|said| said.role == Role::Assistant).flat_map(|said| &said.content);
    said.filter_map(ContentBlock::as_text).any(|text| text.contains(words))
}

/// An id for a response: a hash of the conversation's beginning, then its length.
///
/// The beginning is part of it because a subagent's conversation can be as long as its parent's was, and a host that
/// identifies calls by their ids would confuse the two. They may begin with the same prompt, but as different agents.
fn number(Request { system, messages, .. }: &Request) -> String {
    let first =
        messages.iter().find(|said| said.role == Role::User).map(instruction).unwrap_or_default();
    // FNV-1a: short, and the same on every machine.
    let hash = system
        .bytes()
        .chain(first.bytes())
        .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    format!("{}{:03}", hash % 100_000, messages.len())
}

fn tokens(text: &str) -> u64 {
    u64::try_from(text.chars().count().div_ceil(4)).unwrap_or(u64::MAX)
}
