//! Background tasks as a host sees them, and the turns that notify the model of their end.

use std::fs;
use std::time::Duration;

use ostler_engine::scratch::Scratch;
use ostler_engine::tasks::{Task, TaskResult, Tasks};
use ostler_proto::TaskId;
use ostler_proto::control::{AskEngine, GetTaskOutput, StopTask};
use ostler_proto::frame::ToHost;
use ostler_proto::message::system::TaskOutcome;
use ostler_proto::message::{Origin, System};
use ostler_testkit::{Script, reply, when};
use serde_json::json;
use tempfile::TempDir;

use crate::host::TestHost;

struct Started {
    host: TestHost,
    folder: TempDir,
}

/// A session in which a task runs and the first turn is over.
async fn started() -> Started {
    let folder = tempfile::tempdir().unwrap();
    let word = folder.path().join("go").display().to_string();
    let script = Script::new()
        .rule(when().prompt_contains("Background task"), reply().text("I see."))
        .rule(
            when().prompt_contains("start").turn(0),
            reply().tool_use("Later", json!({"word": word})),
        )
        .rule(when().has_tool_result(true), reply().text("It runs."));
    let mut host = TestHost::start(script).await;
    host.prompt("start").await;
    let result = host.result().await;
    assert_eq!((result.result.as_deref(), result.origin), (Some("It runs."), None));
    Started { host, folder }
}

impl Started {
    fn finish_task(&self) {
        fs::write(self.folder.path().join("go"), "").unwrap();
    }

    fn task(&self) -> TaskId {
        let id = self.host.seen.iter().find_map(|frame| match frame {
            ToHost::System(System::TaskStarted(started)) => Some(started.task_id.clone()),
            _ => None,
        });
        id.unwrap()
    }
}

#[tokio::test]
async fn the_end_of_a_task_is_reported_to_the_host_and_in_a_turn_to_the_model() {
    let mut it = started().await;
    let first = it.host.story();
    assert_eq!(
        first[2..5],
        ["system background_tasks_changed", "system task_started", "user: = started"]
    );
    it.finish_task();
    let result = it.host.result().await;
    assert!(matches!(result.origin, Some(Origin::TaskNotification(_))), "{:?}", result.origin);
    assert_eq!(
        it.host.story()[first.len()..],
        [
            "system task_updated",
            "system task_notification",
            "system background_tasks_changed",
            "system init",
            "assistant: I see.",
            "result success: I see."
        ]
    );
    let notice = it.host.api.requests()[2].last_user_text();
    let id = it.task();
    assert!(
        notice.starts_with(&format!(
            "[Background task {id}: \"Wait for it\" is done. Its output is in"
        )),
        "{notice}"
    );
}

#[tokio::test]
async fn tasks_continue_after_the_host_has_left_and_are_answered() {
    let mut it = started().await;
    it.host.leave();
    it.finish_task();
    assert_eq!(it.host.result().await.result.as_deref(), Some("I see."));
    assert!(it.host.next().await.is_none());
}

#[tokio::test]
async fn the_session_does_not_wait_for_tasks_for_ever() {
    let folder = tempfile::tempdir().unwrap();
    let word = folder.path().join("never").display().to_string();
    let script = Script::new()
        .rule(when().turn(0), reply().tool_use("Later", json!({"word": word})))
        .rule(when(), reply().text("It runs."));
    let wait = Some(Duration::from_millis(1));
    let mut host = TestHost::with(script, |options| options.background_wait = wait).await;
    host.prompt("start").await;
    host.leave();
    host.result().await;
    assert!(host.next().await.is_none());
}

#[tokio::test]
async fn a_host_can_look_at_a_task_and_stop_it() {
    let mut it = started().await;
    let task_id = it.task();
    let get = GetTaskOutput { task_id: task_id.clone(), ..GetTaskOutput::default() };
    it.host.ask("get", AskEngine::GetTaskOutput(get)).await;
    let answer = serde_json::to_value(it.host.until("control_response").await).unwrap();
    assert_eq!(
        answer["response"]["response"],
        json!({"output": "what it wrote\n", "total_bytes": 14, "truncated": false})
    );

    let before = it.host.seen.len();
    for id in ["stop", "again"] {
        let stop = StopTask { task_id: task_id.clone(), ..StopTask::default() };
        it.host.ask(id, AskEngine::StopTask(stop)).await;
        it.host.until("control_response success").await;
    }
    let story = it.host.story();
    assert_eq!(
        story[before..],
        [
            "system task_updated",
            "system task_notification",
            "system background_tasks_changed",
            "control_response success",
            "control_response success"
        ]
    );
    let unknown = StopTask { task_id: "b0".into(), ..StopTask::default() };
    it.host.ask("unknown", AskEngine::StopTask(unknown)).await;
    // The task may have been removed by now, and does not run in any case.
    it.host.until("control_response success").await;
    it.host.leave();
    assert!(it.host.next().await.is_none(), "there is no notice for a task that the host stopped");
}

/// Starts a task and waits for its end.
async fn run_to_its_end(
    tasks: &Tasks,
    work: impl Future<Output = TaskResult> + Send + 'static,
) -> (TaskId, TaskResult) {
    let task = Task::command(&"call".into(), &Scratch::default(), "x", "Some work").unwrap();
    tasks.start(task.clone(), work).await.unwrap();
    let ended = tokio::time::timeout(Duration::from_secs(30), tasks.wait(&task.id)).await;
    (task.id, ended.expect("the task ends").expect("the task is known"))
}

// Mutants: `make_room` that removes nothing; that removes the newest.
#[tokio::test]
async fn only_the_last_finished_tasks_are_remembered() {
    let tasks = Tasks::default();
    let mut ids = Vec::new();
    for _ in 0..200 {
        let done = async { TaskResult::new(TaskOutcome::Completed, "done") };
        ids.push(run_to_its_end(&tasks, done).await.0);
    }
    let known: Vec<bool> = ids.iter().map(|id| tasks.get(id).is_some()).collect();
    assert_eq!(known.iter().filter(|it| **it).count(), 64);
    assert!(known[200 - 64..].iter().all(|it| *it), "the oldest are forgotten first");
}

// Mutant: `run` without `catch_unwind`: the task runs for ever, as the host and the model see it.
#[tokio::test]
async fn a_task_that_panics_has_failed() {
    let tasks = Tasks::default();
    let (_, ended) = run_to_its_end(&tasks, async { panic!("boom") }).await;
    assert_eq!(ended.outcome, TaskOutcome::Failed);
    assert!(ended.summary.contains("Some work") && ended.summary.contains("panic"), "{ended:?}");
}
