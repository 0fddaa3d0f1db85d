//! When a session is quiet: every prompt is answered and nothing goes on in the background.
//!
//! Only then may the engine's input be closed without taking something away from it (an answer it waits for, a turn
//! that a background task is about to cause). Pure.

use std::collections::HashSet;

use ostler_proto::TaskId;
use ostler_proto::frame::ToHost;
use ostler_proto::message::System;
use ostler_proto::message::system::{SessionState, TaskOutcome};

/// What is going on.
#[derive(Debug, Default)]
pub(super) struct Quiet {
    /// A prompt has not had its result yet.
    has_prompt: bool,
    /// The end of a task has not had its turn yet.
    has_news: bool,
    /// Background tasks that run.
    tasks: HashSet<TaskId>,
    /// What the engine says about itself; older ones say nothing.
    state: Option<SessionState>,
}

impl Quiet {
    pub(super) fn prompted(&mut self) {
        self.has_prompt = true;
        // What the engine said before does not count any more.
        if self.state.is_some() {
            self.state = Some(SessionState::Running);
        }
    }

    pub(super) fn heard(&mut self, frame: &ToHost) {
        match frame {
            ToHost::Result(_) => {
                self.has_prompt = false;
                self.has_news = false;
            }
            ToHost::System(System::SessionStateChanged(changed)) => {
                self.state = Some(changed.state.clone());
            }
            ToHost::System(System::TaskStarted(task)) if task.is_backgrounded != Some(false) => {
                self.tasks.insert(task.task_id.clone());
            }
            ToHost::System(System::TaskNotification(task)) => {
                // The end of a task is told to the model, unless somebody ended it on purpose.
                if self.tasks.remove(&task.task_id) && task.status != TaskOutcome::Stopped {
                    self.has_news = true;
                }
                if self.state.is_some() {
                    self.state = Some(SessionState::Running);
                }
            }
            ToHost::System(System::BackgroundTasksChanged(changed)) => {
                self.tasks = changed.tasks.iter().map(|task| task.task_id.clone()).collect();
            }
            _ => {}
        }
    }

    pub(super) fn is_quiet(&self) -> bool {
        let is_idle = match &self.state {
            // An engine that tells its state knows best: it need not run a turn for every task.
            Some(state) => *state == SessionState::Idle,
            None => !self.has_news,
        };
        !self.has_prompt && is_idle && self.tasks.is_empty()
    }
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
}
