//! Background commands, and the tools that manage them.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read as _};
use std::time::Duration;

use serde_json::{Value, json};

use crate::session::{Session, make_pipe};

/// Starts a background command and returns its task.
async fn start(session: &Session, command: &str) -> String {
    let input = json!({"command": command, "run_in_background": true, "description": "a test"});
    let output = session.structured("Bash", input).await;
    assert_eq!((&output["stdout"], &output["interrupted"]), (&json!(""), &json!(false)));
    output["backgroundTaskId"].as_str().unwrap().to_owned()
}

async fn look(session: &Session, task: &str, more: Value) -> Value {
    let mut input = json!({"task_id": task});
    input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    session.structured("TaskOutput", input).await["task"].clone()
}

#[tokio::test]
async fn a_background_command_continues_and_its_output_can_be_read() {
    let session = Session::new();
    make_pipe(&session.path("gate"));
    let task = start(&session, "echo before; cat gate; echo after >&2; exit 3").await;
    assert!(task.starts_with('b'), "{task}");
    let now = look(&session, &task, json!({"block": false})).await;
    assert_eq!((&now["status"], &now["task_type"]), (&json!("running"), &json!("local_bash")));

    fs::write(session.path("gate"), "through\n").unwrap();
    let end = look(&session, &task, json!({"timeout": 600_000})).await;
    assert_eq!(end["output"], "before\nthrough\nafter\n");
    assert_eq!(end["status"], "failed");
    let text = session.text("TaskOutput", json!({"task_id": task})).await;
    assert!(text.starts_with(&format!("[task {task}: \"a test\" failed (exit code 3)]")), "{text}");
}

#[tokio::test]
async fn a_wait_that_times_out_reports_that_the_task_still_runs() {
    let session = Session::new();
    let task = start(&session, "echo so far; sleep 1000").await;
    let text = session.text("TaskOutput", json!({"task_id": task, "timeout": 1})).await;
    assert!(text.starts_with(&format!("[task {task}: it still runs]")), "{text}");
}

// Mutant: a dropped `Group` ends nothing.
#[tokio::test]
async fn stopping_a_task_ends_its_children() {
    let session = Session::new();
    make_pipe(&session.path("alive"));
    let command = "exec 3>alive; echo up >&3; sleep 1000 & sleep 1000";
    let task = start(&session, command).await;
    let pipe = session.path("alive");
    let opened = tokio::task::spawn_blocking(move || {
        let mut pipe = BufReader::new(File::open(pipe).unwrap());
        pipe.read_line(&mut String::new()).unwrap();
        pipe
    });
    let mut pipe = opened.await.unwrap();
    let stopped = session.structured("TaskStop", json!({"task_id": task})).await;
    assert_eq!((&stopped["task_id"], &stopped["task_type"]), (&json!(task), &json!("local_bash")));
    assert_eq!(stopped["command"], command);
    // Ends once no process holds the other end.
    let gone = tokio::task::spawn_blocking(move || pipe.read_to_string(&mut String::new()));
    tokio::time::timeout(Duration::from_secs(60), gone)
        .await
        .expect("a process still runs")
        .unwrap()
        .unwrap();
    assert_eq!(look(&session, &task, json!({})).await["status"], "stopped");
    let error = session.error("TaskStop", json!({"task_id": task})).await;
    assert_eq!(error, format!("task {task} has ended already"));
}

// Mutant: they are not killed, and the pipes are read to their end.
#[tokio::test]
async fn processes_left_by_a_command_do_not_delay_the_end_of_its_task() {
    let session = Session::new();
    let task = start(&session, "sleep 1000 & echo done").await;
    let end = look(&session, &task, json!({"timeout": 600_000})).await;
    assert_eq!((&end["status"], &end["output"]), (&json!("completed"), &json!("done\n")));
}

#[tokio::test]
async fn the_end_of_a_long_output_is_shown() {
    let session = Session::new();
    let task = start(&session, "seq 1 20000").await;
    let text = session.text("TaskOutput", json!({"task_id": task, "timeout": 600_000})).await;
    assert!(text.ends_with("\n20000"), "{text}");
    assert!(text.contains("[the end of 108894 bytes; all of it is in "), "{text}");
    assert!(text.len() < 31_000, "{}", text.len());
}

// Mutant: `make_room` does not count.
#[tokio::test]
async fn the_number_of_background_tasks_is_limited() {
    let session = Session::new();
    let mut tasks = Vec::new();
    for _ in 0..32 {
        tasks.push(start(&session, "sleep 1000").await);
    }
    let input = json!({"command": "sleep 1000", "run_in_background": true});
    let error = session.error("Bash", input).await;
    assert!(error.starts_with("32 background tasks run already"), "{error}");
    session.text("TaskStop", json!({"task_id": tasks[0]})).await;
    start(&session, "true").await;
}

#[tokio::test]
async fn a_task_that_does_not_exist_is_named() {
    let session = Session::new();
    for tool in ["TaskOutput", "TaskStop"] {
        let error = session.error(tool, json!({"task_id": "b0"})).await;
        assert_eq!(error, "there is no task b0");
    }
}
