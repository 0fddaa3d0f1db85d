//! When a session is quiet: every prompt is answered and nothing goes on in the background.
//!
//! Only then may the engine's input be closed without taking something away from it (an answer it waits for, a turn
//! that a background task is about to cause). Pure.

use std::collections::{HashMap, HashSet};

use ostler_proto::api::{Content, ContentBlock};
use ostler_proto::frame::ToHost;
use ostler_proto::message::system::{SessionState, TaskOutcome};
use ostler_proto::message::{System, TurnResult, User};
use ostler_proto::{TaskId, ToolUseId};

/// What is going on.
#[derive(Debug, Default)]
pub(super) struct Quiet {
    /// Prompts that have not had their result yet.
    n_prompts: usize,
    /// The end of a task has not had its turn yet.
    has_news: bool,
    /// Background tasks that run, and the call that started each.
    tasks: HashMap<TaskId, Option<ToolUseId>>,
    /// Calls of this turn that left nothing running. Older engines tell of every subagent as of a task, late, and do not
    /// tell of its end unless it really runs in the background.
    over: HashSet<ToolUseId>,
    /// What the engine says about itself; older ones say nothing.
    state: Option<SessionState>,
}

impl Quiet {
    pub(super) fn prompted(&mut self) {
        self.n_prompts += 1;
        // What the engine said before does not count any more.
        if self.state.is_some() {
            self.state = Some(SessionState::Running);
        }
    }

    pub(super) fn heard(&mut self, frame: &ToHost) {
        match frame {
            ToHost::Result(result) => {
                self.n_prompts = match &self.state {
                    // It answers prompts that wait together in one turn, and is idle when there are no more.
                    Some(_) => 0,
                    // Claude Code 2.1.50 gives every prompt a result of its own.
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
                // The end of a task is told to the model, unless somebody ended it on purpose.
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

    /// A call has its result.
    fn answered(&mut self, user: &User) {
        let runs_on = user.tool_use_result.as_ref().is_some_and(|result| {
            result["isAsync"] == true || !result["backgroundTaskId"].is_null()
        });
        // Engines that tell their state tell of background tasks as well.
        if runs_on || self.state.is_some() {
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
            // An engine that tells its state knows best: it need not run a turn for every task.
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

    /// What happens, and whether it is quiet afterwards.
    fn story(events: &[&str]) -> String {
        let mut quiet = Quiet::default();
        let mut marks = String::new();
        for event in events {
            let id = r#""uuid":"u","session_id":"s""#;
            let (word, rest) = event.split_once(' ').unwrap_or((event, ""));
            let frame = match word {
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
    fn a_result_is_enough_when_nothing_else_goes_on() {
        assert_eq!(story(&["prompt", "result"]), "-q");
        assert_eq!(story(&["prompt", "result", "prompt", "result"]), "-q-q");
        assert_eq!(story(&["state idle", "prompt", "state idle", "result", "state idle"]), "q--qq");
    }

    // Mutant: a result answers all prompts, also of an engine that does not tell its state.
    #[test]
    fn every_prompt_of_an_engine_that_tells_no_state_has_a_result_of_its_own() {
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
    fn an_engine_that_tells_its_state_is_believed() {
        // As recorded: the state is idle while a task runs, and once more at the very end.
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
        // A turn that the engine does not find necessary is not waited for.
        let events =
            ["prompt", "start b", "state running", "result", "completed b", "set ", "state idle"];
        assert_eq!(story(&events), "------q");
    }

    /// Where a recorded session is quiet: after which of its results, and at its end.
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
            // The newer program says when it is idle, which is after the result.
            ("ts325-text", "- q"),
            ("ts325-agent", "-- q"),
            ("ts325-agent-perm", "-- q"),
            ("ts325-bgbash", "-- q"),
        ] {
            assert_eq!(recorded(name), expected, "{name}");
        }
    }
}
