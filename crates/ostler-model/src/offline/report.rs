//! The texts before a call and after its results.

use super::intent::Intent;
use super::progress::{RoundResults, Stage, StepResult};
use super::question::Question;

/// Results are quoted up to this many lines of this many characters.
const MOST_LINES: usize = 20;
const LONGEST_LINE: usize = 200;

/// The text before a call.
pub(super) fn lead(intent: &Intent, stage: Stage) -> String {
    match (intent, stage) {
        (Intent::Write { path, .. }, Stage::ReadBack) => {
            format!("{path} exists, so I read it before I write it.")
        }
        (Intent::Write { path, .. }, Stage::Again) => format!("Now I write {path} again."),
        (Intent::Edit { path, .. }, Stage::Again) => format!("Now I edit {path}."),
        (Intent::List { path, .. }, _) => format!("I list the files{}.", place(path.as_deref())),
        (Intent::Count { path }, _) => format!("I count the files{}.", place(path.as_deref())),
        (Intent::Read { paths }, _) => format!("I read {}.", paths.join(" and ")),
        (Intent::Write { path, .. }, _) => format!("I write {path}."),
        (Intent::Edit { path, .. }, _) => format!("I read {path} before I edit it."),
        (Intent::Run { command, background: true }, _) => {
            format!("I start `{}` in the background.", clipped(command))
        }
        (Intent::Run { command, .. }, _) => format!("I run `{}`.", clipped(command)),
        (Intent::Search { pattern, path }, _) => {
            format!("I search for `{}`{}.", clipped(pattern), place(path.as_deref()))
        }
        (Intent::Ask { about }, _) => match Question::about(about.as_deref()).n_left_out {
            0 => "I have a question for you.".to_owned(),
            n => format!(
                "I have a question for you. It holds four answers at most, so {n} had to be left out."
            ),
        },
        (Intent::Delegate { prompt }, _) => format!("I ask a subagent: {}", clipped(prompt)),
        (Intent::Call { tool, .. }, _) => format!("I use {tool}."),
        (Intent::Help | Intent::Unknown(_), _) => String::new(),
    }
}

/// The text when a step is finished.
pub(super) fn success(intent: &Intent, round: &RoundResults) -> String {
    let result = round.last().map_or("", |outcome| outcome.text.as_str());
    match intent {
        Intent::List { path, .. } => {
            format!("Here is what I found{}:\n\n{}", place(path.as_deref()), quoted(result))
        }
        Intent::Count { path } => counted(result, &place(path.as_deref())),
        Intent::Read { paths } => {
            let each = paths.iter().zip(round);
            let each =
                each.map(|(path, outcome)| format!("Here is {path}:\n\n{}", quoted(&outcome.text)));
            each.collect::<Vec<_>>().join("\n\n")
        }
        Intent::Write { path, .. } => format!("I wrote {path}."),
        Intent::Edit { path, old, new, all } => {
            let every = if *all { " everywhere" } else { "" };
            format!("In {path} I replaced `{}` with `{}`{every}.", clipped(old), clipped(new))
        }
        Intent::Run { command, background: true } => {
            format!("`{}` runs in the background now.", clipped(command))
        }
        Intent::Run { command, .. } if ["", "[no output]"].contains(&result.trim()) => {
            format!("`{}` printed nothing.", clipped(command))
        }
        Intent::Run { command, .. } => {
            format!("`{}` printed:\n\n{}", clipped(command), quoted(result))
        }
        Intent::Search { pattern, .. } => {
            format!("The search for `{}` gave:\n\n{}", clipped(pattern), quoted(result))
        }
        Intent::Ask { about } => match Question::about(about.as_deref()).answer(result) {
            Some(answer) => format!("You chose {answer}."),
            None => format!("I got no answer. This came back:\n\n{}", quoted(result)),
        },
        Intent::Delegate { .. } => format!("The subagent reports:\n\n{}", bounded(result.trim())),
        Intent::Call { tool, .. } => format!("{tool} says: {}", bounded(result.trim())),
        Intent::Help | Intent::Unknown(_) => String::new(),
    }
}

/// The text when a step failed, with the number of steps that are not done.
pub(super) fn failure(intent: &Intent, round: &RoundResults, n_left: usize) -> String {
    let mut parts: Vec<String> = Vec::new();
    for (index, outcome) in round.iter().enumerate() {
        match intent {
            Intent::Read { paths } if !outcome.failed => {
                let path = paths.get(index).map_or("the file", String::as_str);
                parts.push(format!("Here is {path}:\n\n{}", quoted(&outcome.text)));
            }
            _ if outcome.failed => parts.push(failed(outcome)),
            _ => {}
        }
    }
    match n_left {
        0 => {}
        1 => parts.push("I stop here; one more step is not done.".to_owned()),
        n => parts.push(format!("I stop here; {n} more steps are not done.")),
    }
    parts.join("\n\n")
}

fn failed(outcome: &StepResult) -> String {
    let text = outcome.text.trim();
    let text = text.strip_prefix("<tool_use_error>").unwrap_or(text);
    let text = text.strip_suffix("</tool_use_error>").unwrap_or(text).trim();
    if text.is_empty() {
        return "That did not work, and no reason was given.".to_owned();
    }
    let what = if is_refusal(text) { "That was not allowed" } else { "That did not work" };
    format!("{what}: {}", bounded(text))
}

/// Whether a failure looks like a refusal. Hosts use any text for it, so this is a guess.
pub(super) fn is_refusal(failure: &str) -> bool {
    let lower = failure.to_lowercase();
    let words = [
        "denied",
        "deny",
        "not allowed",
        "permission",
        "doesn't want",
        "does not want",
        "rejected",
        "blocked",
        "forbid",
    ];
    // A command that ran and failed was allowed, whatever it printed.
    !lower.starts_with("exit code") && words.iter().any(|word| lower.contains(word))
}

fn counted(result: &str, place: &str) -> String {
    let lines = result.lines().filter(|line| !line.trim().is_empty());
    let (remarks, files): (Vec<&str>, Vec<&str>) =
        lines.partition(|line| line.starts_with("No files") || is_remark(line));
    let least = if remarks.iter().any(|line| is_remark(line)) { "at least " } else { "" };
    match files.len() {
        1 => format!("I found {least}1 file{place}."),
        n => format!("I found {least}{n} files{place}."),
    }
}

/// Whether a line of the result is not a file but a note that there are more.
fn is_remark(line: &str) -> bool {
    line.starts_with(['[', '(']) && line.trim_end().ends_with([']', ')'])
}

fn place(path: Option<&str>) -> String {
    path.map_or_else(|| " here".to_owned(), |path| format!(" in {path}"))
}

/// A result as a code block.
fn quoted(text: &str) -> String {
    if text.trim().is_empty() {
        return "(nothing)".to_owned();
    }
    let fence = if text.contains("```") { "`````" } else { "```" };
    format!("{fence}\n{}\n{fence}", bounded(text.trim_end()))
}

/// The first lines of a text, and how many more there are.
fn bounded(text: &str) -> String {
    let mut lines: Vec<String> =
        text.lines().take(MOST_LINES).map(|line| cut(line, LONGEST_LINE)).collect();
    match text.lines().count().saturating_sub(MOST_LINES) {
        0 => {}
        n => lines.push(format!("… ({n} more)")),
    }
    lines.join("\n")
}

/// The beginning of a user's text, on one line.
pub(super) fn clipped(text: &str) -> String {
    cut(&text.split_whitespace().collect::<Vec<_>>().join(" "), 80)
}

fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
