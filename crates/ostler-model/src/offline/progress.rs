//! The progress of a conversation: the user's last prompt, and the calls and results since.
//!
//! Every round of calls advances the work, whatever its results are. That is why the demo cannot loop.

use ostler_proto::ToolUseId;
use ostler_proto::api::{ContentBlock, Role};

use super::intent::Intent;
use super::report::is_refusal;
use crate::ChatMessage;

/// The beginning of the engine's notice about the end of a background task.
pub(super) const TASK_NOTICE: &str = "[Background task ";
/// The same for a subagent.
pub(super) const AGENT_NOTICE: &str = "[Background agent ";

/// What has happened since the user's last prompt.
#[derive(Debug, Default)]
pub(super) struct TurnProgress {
    /// The user's prompt.
    pub(super) text: String,
    /// The results of the calls, response by response.
    pub(super) rounds: Vec<RoundResults>,
}

/// The results of the calls of one response, in their order.
pub(super) type RoundResults = Vec<StepResult>;

/// The result of one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StepResult {
    pub(super) text: String,
    pub(super) failed: bool,
}

impl TurnProgress {
    /// Reads a conversation.
    pub(super) fn of(messages: &[ChatMessage]) -> Self {
        let mut turn = Self::default();
        let mut open: Vec<ToolUseId> = Vec::new();
        let mut answered = true;
        for said in messages {
            match said.role {
                Role::Assistant => {
                    let calls = said.content.iter().filter_map(ContentBlock::as_tool_use);
                    let calls: Vec<ToolUseId> = calls.map(|call| call.id.clone()).collect();
                    if calls.is_empty() {
                        continue;
                    }
                    if answered {
                        turn.rounds.push(RoundResults::new());
                        open.clear();
                        answered = false;
                    }
                    if let Some(round) = turn.rounds.last_mut() {
                        round.extend(calls.iter().map(|_| StepResult::missing()));
                    }
                    open.extend(calls);
                }
                Role::User => {
                    answered = true;
                    if let Some(round) = turn.rounds.last_mut() {
                        fill(round, &open, said);
                    }
                    let text = instruction(said);
                    // A text next to results that only repeats the prompt under way (a hook may add one each time) must
                    // not start it again.
                    let repeats = has_results(said) && text == turn.text;
                    if !text.is_empty() && !repeats {
                        turn = Self { text, rounds: Vec::new() };
                    }
                }
                _ => {}
            }
        }
        turn
    }
}

impl StepResult {
    fn missing() -> Self {
        Self { text: "no result came back".to_owned(), failed: true }
    }
}

fn fill(round: &mut RoundResults, open: &[ToolUseId], said: &ChatMessage) {
    for block in &said.content {
        let ContentBlock::ToolResult(result) = block else { continue };
        let call = open.iter().position(|id| *id == result.tool_use_id);
        if let Some(outcome) = call.and_then(|index| round.get_mut(index)) {
            *outcome = StepResult {
                text: result.content.as_ref().map(|content| content.text()).unwrap_or_default(),
                failed: result.is_error == Some(true),
            };
        }
    }
}

fn has_results(said: &ChatMessage) -> bool {
    said.content.iter().any(|block| matches!(block, ContentBlock::ToolResult(_)))
}

/// The user's text, without text that the engine added.
pub(super) fn instruction(said: &ChatMessage) -> String {
    // Next to results, a notice about a task does not end the work under way.
    let is_under_way = has_results(said);
    let typed = |text: &&str| {
        let text = text.trim_start();
        let is_notice = text.starts_with(TASK_NOTICE) || text.starts_with(AGENT_NOTICE);
        let is_news = is_under_way && is_notice;
        let is_told = text.starts_with("<system-reminder>");
        !is_news && !is_told && !text.starts_with("[Request interrupted")
    };
    let texts: Vec<&str> = said
        .content
        .iter()
        .filter_map(ContentBlock::as_text)
        .filter(typed)
        .map(str::trim)
        .collect();
    texts.join("\n").trim().to_owned()
}

/// The stage within a step. Most steps are a single call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// The first call.
    First,
    /// Reading a file because a write without reading it first was refused.
    ReadBack,
    /// The call that needed the file read.
    Again,
}

/// The position in the work.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Position {
    /// A call is due; if a step was just finished, this is its number.
    Due { step: usize, stage: Stage, finished: Option<usize> },
    /// A step failed in this round.
    Failed { step: usize, round: usize },
    /// The last step was finished in this round.
    Done { round: usize },
}

/// Finds the position by assigning the rounds to the steps.
pub(super) fn position(steps: &[Intent], rounds: &[RoundResults]) -> Position {
    let (mut step, mut stage, mut finished) = (0, Stage::First, None);
    for (index, round) in rounds.iter().enumerate() {
        let Some(intent) = steps.get(step) else { break };
        let failure = round.iter().find(|outcome| outcome.failed);
        finished = None;
        match (intent, stage, failure) {
            (Intent::Write { content, .. }, Stage::First, Some(failure))
                // Only to create a file: an existing one is never emptied.
                if wants_reading(&failure.text) && !content.is_empty() =>
            {
                stage = Stage::ReadBack;
            }
            (_, _, Some(_)) => return Position::Failed { step, round: index },
            (Intent::Write { .. }, Stage::ReadBack, None) | (Intent::Edit { .. }, Stage::First, None) => {
                stage = Stage::Again;
            }
            _ => {
                finished = Some(step);
                (step, stage) = (step + 1, Stage::First);
            }
        }
        if step == steps.len() {
            return Position::Done { round: index };
        }
    }
    Position::Due { step, stage, finished }
}

/// Whether a failed write says that the file must be read first. A user's "no" does not.
fn wants_reading(failure: &str) -> bool {
    let lower = failure.to_lowercase();
    // Ostler's own texts come first: the path in them may contain a word such as "permission".
    if lower.contains("read it first") || lower.contains("read it again") {
        return true;
    }
    let has =
        |key: &str| lower.split(|letter: char| !letter.is_alphanumeric()).any(|word| word == key);
    !is_refusal(failure) && has("read") && ["first", "before", "not", "again"].into_iter().any(has)
}
