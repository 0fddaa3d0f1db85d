//! Decides when a session is quiet: every prompt is answered, and nothing runs in the background.
//!
//! Only then can the engine's input be closed. Earlier the engine may still wait for an answer, or a background task
//! may be about to cause a turn. Pure.

use std::collections::{HashMap, HashSet};

use ostler_proto::api::{Content, ContentBlock};
use ostler_proto::frame::ToHost;
use ostler_proto::message::system::{SessionState, TaskOutcome};
use ostler_proto::message::{System, TurnResult, User};
use ostler_proto::{TaskId, ToolUseId};

/// The prompts and tasks that are not finished.
#[derive(Debug, Default)]
pub(super) struct Quiet {
    /// Prompts without a result.
    n_prompts: usize,
    /// Whether a task has ended and the turn about its end has not.
    has_news: bool,
    /// Running background tasks, and the call that started each.
    tasks: HashMap<TaskId, Option<ToolUseId>>,
    /// Calls of this turn that left nothing running. Older engines report every subagent as a task, but late, and
    /// report its end only if it really runs in the background.
    over: HashSet<ToolUseId>,
    /// The state that the engine reported last; older engines report none.
    state: Option<SessionState>,
}

impl Quiet {
    pub(super) fn prompted(&mut self) {
        self.n_prompts += 1;
        // The state that the engine reported before this prompt no longer counts.
        if self.state.is_some() {
            self.state = Some(SessionState::Running);
        }
    }

    pub(super) fn heard(&mut self, frame: &ToHost) {
        match frame {
            ToHost::Result(result) => {
                self.n_prompts = match &self.state {
                    // The engine answers waiting prompts together in one turn, and is idle when there are no more.
                    Some(_) => 0,
                    // Claude Code 2.1.50 sends a separate result for every prompt.
                    None => self.n_prompts.saturating_sub(n_answered(result)),
                };
                self.has_news = false;
                self.over.clear();
            }
            ToHost::User(user) => self.answered(user),
            ToHost::System(System::SessionStateChanged(changed)) => {
                self.state = Some(changed.state.clone());
            }
            ToHost::System(System::TaskStarted(task)) if task.is_backgrounded != Some(false) => {
                let is_over =
                    task.tool_use_id.as_ref().is_some_and(|call| self.over.contains(call));
                if !is_over {
                    self.tasks.insert(task.task_id.clone(), task.tool_use_id.clone());
                }
            }
            ToHost::System(System::TaskNotification(task)) => {
                // The model receives a notification about the end of a task, unless the task was stopped on purpose.
                if self.tasks.remove(&task.task_id).is_some() && task.status != TaskOutcome::Stopped
                {
                    self.has_news = true;
                }
                if self.state.is_some() {
                    self.state = Some(SessionState::Running);
                }
            }
            ToHost::System(System::BackgroundTasksChanged(changed)) => {
                self.tasks =
                    changed.tasks.iter().map(|task| (task.task_id.clone(), None)).collect();
            }
            _ => {}
        }
    }

    /// Notes that a call has its result.
    fn answered(&mut self, user: &User) {
        let is_in_background = user.tool_use_result.as_ref().is_some_and(|result| {
            result["isAsync"] == true || !result["backgroundTaskId"].is_null()
        });
        // Engines that report their state report background tasks as well.
        if is_in_background || self.state.is_some() {
            return;
        }
        let Some(Content::Blocks(blocks)) = &user.message.content else { return };
        for block in blocks {
            if let ContentBlock::ToolResult(result) = block {
                let call = &result.tool_use_id;
                self.tasks.retain(|_, started_by| started_by.as_ref() != Some(call));
                self.over.insert(call.clone());
            }
        }
    }

    pub(super) fn is_quiet(&self) -> bool {
        let is_idle = match &self.state {
            // The reported state decides: the engine does not run a turn for every task.
            Some(state) => *state == SessionState::Idle,
            None => !self.has_news,
        };
        self.n_prompts == 0 && is_idle && self.tasks.is_empty()
    }
}

/// How many prompts a result answers: those it names, or one.
fn n_answered(result: &TurnResult) -> usize {
    result.user_message_uuids.as_ref().map_or(1, Vec::len).max(1)
}

#[cfg(test)]
mod tests {
    use ostler_proto::frame::Frame as _;

    use super::*;

    /// One mark per event: `q` if the session is quiet after it, `-` if not.
    fn story(events: &[&str]) -> String {
        let mut quiet = Quiet::default();
        let mut marks = String::new();
        for event in events {
            let id = r#""uuid":"u","session_id":"s""#;
            let (kind, rest) = event.split_once(' ').unwrap_or((event, ""));
            let frame = match kind {
                "prompt" => {
                    quiet.prompted();
                    marks.push(if quiet.is_quiet() { 'q' } else { '-' });
                    continue;
                }
                "result" => format!(
                    r#"{{"type":"result","subtype":"success","is_error":false,"duration_ms":1,"duration_api_ms":1,"num_turns":1,"total_cost_usd":0,"usage":{{}},"modelUsage":{{}},"permission_denials":[],{id}}}"#
                ),
                "state" => format!(
                    r#"{{"type":"system","subtype":"session_state_changed","state":"{rest}",{id}}}"#
                ),
                "start" => format!(
                    r#"{{"type":"system","subtype":"task_started","task_id":"{rest}","description":"",{id}}}"#
                ),
                "set" => format!(
                    r#"{{"type":"system","subtype":"background_tasks_changed","tasks":[{rest}],{id}}}"#
                ),
                status => format!(
                    r#"{{"type":"system","subtype":"task_notification","task_id":"{rest}","status":"{status}","output_file":"","summary":"",{id}}}"#
                ),
            };
            quiet.heard(&ToHost::from_line(&frame).unwrap());
            marks.push(if quiet.is_quiet() { 'q' } else { '-' });
        }
        marks
    }

    #[test]
    fn a_session_is_quiet_after_its_result_if_nothing_else_runs() {
        assert_eq!(story(&["prompt", "result"]), "-q");
        assert_eq!(story(&["prompt", "result", "prompt", "result"]), "-q-q");
        assert_eq!(story(&["state idle", "prompt", "state idle", "result", "state idle"]), "q--qq");
    }

    // Mutant: a result answers all prompts, also of an engine that does not report its state.
    #[test]
    fn an_engine_that_does_not_report_its_state_sends_one_result_per_prompt() {
        assert_eq!(story(&["prompt", "prompt", "result", "result"]), "---q");
        assert_eq!(story(&["prompt", "result", "result", "prompt", "result"]), "-qq-q");
        let events = ["prompt", "state running", "prompt", "result", "state idle"];
        assert_eq!(story(&events), "----q");
    }

    #[test]
    fn a_task_and_the_turn_it_causes_are_waited_for() {
        assert_eq!(story(&["prompt", "start b", "result", "completed b", "result"]), "----q");
        assert_eq!(story(&["prompt", "start b", "result", "stopped b"]), "---q");
    }

    #[test]
    fn the_state_that_an_engine_reports_decides() {
        // As recorded: the state is idle while a task runs, and again at the end.
        let events = [
            "prompt",
            "state running",
            "set {\"task_id\":\"b\",\"task_type\":\"local_bash\",\"description\":\"\"}",
            "start b",
            "result",
            "state idle",
            "completed b",
            "set ",
            "state running",
            "result",
            "state idle",
        ];
        assert_eq!(story(&events), "----------q");
        // The session does not wait for a turn that the engine does not run.
        let events =
            ["prompt", "start b", "state running", "result", "completed b", "set ", "state idle"];
        assert_eq!(story(&events), "------q");
    }

    /// Marks as in [`story`]: one for each result of a recorded session, and one for its end.
    fn recorded(name: &str) -> String {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/wire");
        let text = std::fs::read_to_string(folder.join(format!("{name}.stdout.jsonl"))).unwrap();
        let (mut quiet, mut marks) = (Quiet::default(), String::new());
        quiet.prompted();
        for line in text.lines() {
            let frame = ToHost::from_line(line).unwrap();
            quiet.heard(&frame);
            if matches!(frame, ToHost::Result(_)) {
                marks.push(if quiet.is_quiet() { 'q' } else { '-' });
            }
        }
        marks + if quiet.is_quiet() { " q" } else { " -" }
    }

    #[test]
    fn recorded_sessions_are_quiet_when_they_should_be() {
        for (name, expected) in [
            ("ts050-text", "q q"),
            ("ts050-agent", "q q"),
            ("ts050-agent-perm", "q q"),
            ("ts050-agentwrite", "q q"),
            ("ts050-agentbg-string", "q q"),
            ("ts050-bgbash", "-q q"),
            // The newer program reports that it is idle after the result.
            ("ts325-text", "- q"),
            ("ts325-agent", "-- q"),
            ("ts325-agent-perm", "-- q"),
            ("ts325-bgbash", "-- q"),
        ] {
            assert_eq!(recorded(name), expected, "{name}");
        }
    }
}
