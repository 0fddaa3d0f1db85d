//! Shows a conversation: text as it arrives, one line per tool call with its result, and the usage of each turn.

use std::collections::{HashMap, HashSet};
use std::io;
use std::time::{Duration, Instant};

use ostler::Message;
use ostler_proto::ToolUseId;
use ostler_proto::api::{Content, ContentBlock, Delta, StreamEvent, ToolResultBlock, ToolUseBlock};
use ostler_proto::message::{Assistant, System, TurnResult, User};
use serde_json::Value;

use crate::diff::{self, Long};
use crate::screen::{BOLD, CYAN, DIM, GREEN, RED, Screen};
use crate::spinner::{Spinner, elapsed};
use crate::status;
use crate::text::{clean, clipped, width};

/// How many lines of a tool's output are shown.
const SHOWN_LINES: usize = 8;
/// How many lines of a diff are shown.
const SHOWN_DIFF_LINES: usize = 40;
/// The duration of a call is shown if it is longer than this.
const WORTH_TELLING: Duration = Duration::from_secs(1);

/// What the screen shows, and the calls still running.
pub(crate) struct Show<'a> {
    pub(crate) screen: &'a mut Screen,
    spinner: Spinner,
    calls: HashMap<ToolUseId, Call>,
    /// Calls whose diff was already shown as a preview.
    previewed: HashSet<ToolUseId>,
    /// The cost of the conversation so far.
    dollars: f64,
}

#[derive(Clone)]
struct Call {
    name: String,
    subject: String,
    parent: Option<ToolUseId>,
    /// How many subagents the call is nested in.
    depth: usize,
    /// Whether its line is already written.
    is_shown: bool,
}

impl<'a> Show<'a> {
    pub(crate) fn new(screen: &'a mut Screen) -> Self {
        let spinner = Spinner::new(Instant::now());
        let (calls, previewed) = (HashMap::new(), HashSet::new());
        Self { screen, spinner, calls, previewed, dollars: 0.0 }
    }

    pub(crate) fn begin(&mut self) -> io::Result<()> {
        self.calls.clear();
        self.previewed.clear();
        self.spinner = Spinner::new(Instant::now());
        self.beat()
    }

    /// Moves the spinner.
    pub(crate) fn beat(&mut self) -> io::Result<()> {
        if !self.screen.is_live() || self.screen.is_in_line() {
            return Ok(());
        }
        let line = self.spinner.beat(Instant::now(), self.screen.columns());
        self.screen.draw(&[line])
    }

    /// Shows a message of the engine.
    pub(crate) fn message(&mut self, message: &Message) -> io::Result<()> {
        match message {
            Message::StreamEvent(event) => self.stream(&event.event),
            Message::Assistant(assistant) => self.calls(assistant),
            Message::User(user) => self.results(user),
            Message::System(system) => self.system(system),
            _ => Ok(()),
        }
    }

    /// Shows an event of the response. Text of a subagent is not shown until it reports.
    fn stream(&mut self, event: &StreamEvent) -> io::Result<()> {
        match event {
            StreamEvent::ContentBlockDelta(delta) => {
                if let Delta::TextDelta(delta) = &delta.delta {
                    self.screen.text(&delta.text)?;
                }
            }
            StreamEvent::ContentBlockStop(_) => {
                self.spinner.waiting(Instant::now());
                self.screen.end_line()?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Shows what the user should know while waiting, or that the session is not saved.
    fn system(&mut self, system: &System) -> io::Result<()> {
        let text = match system {
            System::ApiRetry(retry) => {
                let seconds = retry.retry_delay_ms.get() / 1000.0;
                let (attempt, of) = (retry.attempt, retry.max_retries);
                format!(
                    "the model does not answer ({}); trying again in {seconds:.1} s ({attempt} of {of})",
                    retry.error
                )
            }
            System::ModelFallback(fallback) => fallback.content.clone(),
            System::Informational(remark) => remark.content.clone(),
            System::SessionWritesLost(lost) => {
                format!("this session is not being saved ({})", lost.error_code)
            }
            _ => return Ok(()),
        };
        self.screen.remark(&text)
    }

    /// Shows tool calls. Where lines can be redrawn, a call has a spinner until its result arrives.
    fn calls(&mut self, assistant: &Assistant) -> io::Result<()> {
        let parent = assistant.parent_tool_use_id.as_ref();
        let depth = parent.and_then(|call| self.calls.get(call)).map_or(0, |call| call.depth + 1);
        for call in assistant.message.content.iter().filter_map(ContentBlock::as_tool_use) {
            self.called(call, parent.cloned(), depth)?;
        }
        Ok(())
    }

    fn called(
        &mut self,
        call: &ToolUseBlock,
        parent: Option<ToolUseId>,
        depth: usize,
    ) -> io::Result<()> {
        let name = clean(&call.name);
        let room = self.screen.columns().saturating_sub(2 * depth + 3 + width(&name));
        let subject = subject(&call.input, room);
        let label = format!("{name} {subject}");
        self.spinner.begin(&call.id, label.trim_end(), Instant::now());
        self.calls.insert(call.id.clone(), Call { name, subject, parent, depth, is_shown: false });
        if self.screen.is_live() { self.beat() } else { self.line_of(&call.id, None, "") }
    }

    /// Whether a subagent made the call.
    pub(crate) fn is_nested(&self, id: Option<&ToolUseId>) -> bool {
        id.and_then(|id| self.calls.get(id)).is_some_and(|call| call.depth > 0)
    }

    /// The user is asked about a call; the preview shows its change.
    pub(crate) fn asked(&mut self, id: Option<&ToolUseId>) {
        let Some(id) = id else { return };
        self.previewed.insert(id.clone());
    }

    /// The user has answered: from here on the call runs.
    pub(crate) fn answered(&mut self, id: Option<&ToolUseId>) -> io::Result<()> {
        if let Some((id, call)) = id.and_then(|id| Some((id, self.calls.get(id)?))) {
            let label = format!("{} {}", call.name, call.subject);
            self.spinner.begin(id, label.trim_end(), Instant::now());
        }
        self.beat()
    }

    /// Shows the results of tools, shortened.
    fn results(&mut self, user: &User) -> io::Result<()> {
        let Some(Content::Blocks(blocks)) = &user.message.content else { return Ok(()) };
        for block in blocks {
            if let ContentBlock::ToolResult(result) = block {
                self.result(result, user.tool_use_result.as_ref())?;
            }
        }
        self.beat()
    }

    fn result(&mut self, result: &ToolResultBlock, structured: Option<&Value>) -> io::Result<()> {
        let id = &result.tool_use_id;
        let failed = result.is_error == Some(true);
        let took = self.spinner.end(id, Instant::now()).filter(|took| *took >= WORTH_TELLING);
        let (name, depth) = match self.calls.get(id) {
            Some(call) => (call.name.as_str(), call.depth),
            None => ("", 0),
        };
        // The answer already stands where the question was.
        if name == "AskUserQuestion" && self.screen.is_live() && !failed {
            return Ok(());
        }
        self.line_of(id, Some(failed), &took.map(elapsed).unwrap_or_default())?;
        let indent = "  ".repeat(depth + 1);
        let room = self.screen.columns().saturating_sub(indent.len());
        let was_seen = self.previewed.contains(id);
        let made = structured.filter(|_| !failed && !was_seen).and_then(diff::made);
        let (lines, most) = match made {
            Some(hunks) => (diff::lines(&hunks, room, Long::Clip), SHOWN_DIFF_LINES),
            None => {
                let text = result.content.as_ref().map(Content::text).unwrap_or_default();
                let style = if failed { RED } else { DIM };
                let line = |line: &str| format!("{style}{}{style:#}", clipped(&clean(line), room));
                (text.lines().map(line).collect(), SHOWN_LINES)
            }
        };
        for line in lines.iter().take(most) {
            self.screen.line(&format!("{indent}{line}"))?;
        }
        match lines.len().saturating_sub(most) {
            0 => Ok(()),
            more => self.screen.line(&format!("{indent}{DIM}… {more} more lines{DIM:#}")),
        }
    }

    /// Writes the line of a call once, after the lines of the calls it is nested in.
    fn line_of(&mut self, id: &ToolUseId, failed: Option<bool>, took: &str) -> io::Result<()> {
        let Some(call) = self.calls.get_mut(id).filter(|call| !call.is_shown) else {
            return Ok(());
        };
        call.is_shown = true;
        let call = call.clone();
        if let Some(parent) = &call.parent {
            self.line_of(parent, None, "")?;
        }
        let style = match failed {
            None => CYAN,
            Some(false) => GREEN,
            Some(true) => RED,
        };
        let indent = "  ".repeat(call.depth);
        let Call { name, subject, .. } = call;
        let used = width(&indent) + 3 + width(&name);
        let room = self.screen.columns().saturating_sub(used + width(took) + 1);
        let subject = clipped(&subject, room);
        let line = format!("{indent}{style}•{style:#} {BOLD}{name}{BOLD:#} {subject}");
        let took = if took.is_empty() { String::new() } else { format!(" {DIM}{took}{DIM:#}") };
        self.screen.line(&format!("{}{took}", line.trim_end()))
    }

    /// Shows how a turn ended, and its usage.
    pub(crate) fn finish(&mut self, result: &TurnResult) -> io::Result<()> {
        self.screen.end_line()?;
        // Calls that were stopped have no result that would write their line.
        while let Some(id) = self.spinner.running() {
            self.spinner.end(&id, Instant::now());
            self.line_of(&id, Some(true), "stopped")?;
        }
        match &result.errors {
            Some(errors) => self.screen.error(&errors.join("; "))?,
            None if result.is_error => {
                self.screen.error(result.result.as_deref().unwrap_or("the turn failed"))?
            }
            None => {}
        }
        if let Some(text) = stopped_by_hook(result) {
            self.screen.remark(&text)?;
        }
        let line = status::line(result, self.dollars);
        self.dollars = result.total_cost_usd.get();
        self.screen.remark(&line)
    }
}

/// Why a hook ended the turn, for the user.
pub(crate) fn stopped_by_hook(result: &TurnResult) -> Option<String> {
    let reason = result.hook_stop_reason.as_ref()?;
    Some(format!("stopped by a hook: {reason}"))
}

/// The most telling argument of a call.
pub(crate) fn subject(input: &Value, columns: usize) -> String {
    let first = ["command", "file_path", "pattern", "description", "prompt", "url"];
    let known = first.iter().find_map(|name| input.get(name)?.as_str());
    let text = match known {
        Some(text) => text.lines().next().unwrap_or_default().to_owned(),
        None if input.get("questions").is_some() => String::new(),
        None => input.to_string(),
    };
    clipped(&clean(&text), columns)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_subject_of_a_call_is_its_most_telling_argument() {
        assert_eq!(subject(&json!({"description": "d", "command": "ls\nrm"}), 80), "ls");
        assert_eq!(subject(&json!({"file_path": "a"}), 80), "a");
        assert_eq!(subject(&json!({"x": 1}), 80), r#"{"x":1}"#);
        assert_eq!(subject(&json!({"questions": []}), 80), "");
        assert_eq!(subject(&json!({"command": "abcdef"}), 4), "abc…");
    }
}
