//! The task list: entries are created and changed one by one, and hooks may object.

use std::path::Path;
use std::sync::{Arc, Mutex};

use futures::future::BoxFuture;
use ostler_engine::model::{ModelError, Request};
use ostler_engine::tool::{AnyTool, ToolCx, ToolEvent, ToolOutput, ToolSession};
use ostler_proto::api::Message;
use serde_json::{Value, json};

/// A session that records events, and objects to those that contain a word.
#[derive(Debug, Default)]
struct Strict {
    recorded: Mutex<Vec<ToolEvent>>,
}

impl ToolSession for Strict {
    fn may_show(&self, _: &Path) -> bool {
        true
    }

    fn names_host(&self, _: &str) -> bool {
        false
    }

    fn ask_model(&self, _: Request) -> BoxFuture<'static, Result<Message, ModelError>> {
        unreachable!("a list asks no model")
    }

    fn announce(&self, event: ToolEvent) -> BoxFuture<'static, Result<(), String>> {
        let text = format!("{event:?}");
        self.recorded.lock().unwrap().push(event);
        Box::pin(async move {
            if text.contains("forbidden") { Err("name a ticket".to_owned()) } else { Ok(()) }
        })
    }
}

struct Tasks {
    tools: Vec<Arc<dyn AnyTool>>,
    session: Arc<Strict>,
}

impl Tasks {
    fn new() -> Self {
        Self { tools: ostler_tools::task_tools(), session: Arc::default() }
    }

    async fn run(&self, tool: &str, input: Value) -> Result<ToolOutput, String> {
        let cx = ToolCx { session: Some(self.session.clone()), ..ToolCx::default() };
        let tool = self.tools.iter().find(|known| known.spec().name == tool).unwrap();
        let prepared = Arc::clone(tool).prepare(&cx, &input)?;
        (prepared.run)(cx).await.map_err(|error| error.to_string())
    }

    async fn structured(&self, tool: &str, input: Value) -> Value {
        self.run(tool, input).await.unwrap().structured.unwrap()
    }

    async fn create(&self, subject: &str) -> Value {
        let input = json!({"subject": subject, "description": format!("All of {subject}")});
        self.structured("TaskCreate", input).await
    }

    fn recorded(&self) -> Vec<String> {
        let recorded = self.session.recorded.lock().unwrap();
        recorded
            .iter()
            .map(|event| match event {
                ToolEvent::TaskCreated(task) => format!("created {} {}", task.id, task.subject),
                ToolEvent::TaskCompleted(task) => format!("completed {} {}", task.id, task.subject),
                other => panic!("{other:?}"),
            })
            .collect()
    }
}

#[tokio::test]
async fn a_task_is_created_started_and_completed() {
    let tasks = Tasks::new();
    let created = tasks.create("Build").await;
    let task = json!({"id": "1", "subject": "Build", "description": "All of Build"});
    assert_eq!(created, json!({"task": task}));
    for (status, from) in [("in_progress", "pending"), ("completed", "in_progress")] {
        let output = tasks.structured("TaskUpdate", json!({"taskId": "1", "status": status})).await;
        assert_eq!(
            output,
            json!({"success": true, "taskId": "1", "updatedFields": ["status"],
                "statusChange": {"from": from, "to": status}})
        );
    }
    assert_eq!(tasks.recorded(), ["created 1 Build", "completed 1 Build"]);
    let again = tasks.structured("TaskUpdate", json!({"taskId": "1", "status": "completed"})).await;
    assert_eq!(again["updatedFields"], json!([]));
    assert_eq!(tasks.recorded().len(), 2, "it was already completed");
}

#[tokio::test]
async fn hooks_can_refuse_to_create_and_to_complete_a_task() {
    let tasks = Tasks::new();
    let input = json!({"subject": "forbidden", "description": "d"});
    assert_eq!(tasks.run("TaskCreate", input).await.unwrap_err(), "name a ticket");
    assert_eq!(tasks.structured("TaskList", json!({})).await, json!({"tasks": []}));
    tasks.create("Build").await;
    let done = json!({"taskId": "2", "status": "completed", "subject": "forbidden"});
    assert_eq!(tasks.run("TaskUpdate", done).await.unwrap_err(), "name a ticket");
    let list = tasks.structured("TaskList", json!({})).await;
    let expected = json!([{"id": "2", "subject": "Build", "status": "pending", "blockedBy": []}]);
    assert_eq!(list["tasks"], expected, "nothing of the change was made");
}

#[tokio::test]
async fn tasks_wait_for_others_until_those_are_completed_or_deleted() {
    let tasks = Tasks::new();
    for subject in ["one", "two", "three"] {
        tasks.create(subject).await;
    }
    let output = tasks
        .structured("TaskUpdate", json!({"taskId": "3", "addBlockedBy": ["1", "2"], "owner": "me"}))
        .await;
    assert_eq!(output["updatedFields"], json!(["owner", "blockedBy"]));
    tasks.structured("TaskUpdate", json!({"taskId": "1", "addBlocks": ["2"]})).await;
    let get =
        async |id: &str| tasks.structured("TaskGet", json!({"taskId": id})).await["task"].clone();
    assert_eq!(get("1").await["blocks"], json!(["2", "3"]));
    assert_eq!(get("3").await["blockedBy"], json!(["1", "2"]));
    tasks.structured("TaskUpdate", json!({"taskId": "1", "status": "completed"})).await;
    assert_eq!(get("3").await["blockedBy"], json!(["2"]));
    tasks.structured("TaskUpdate", json!({"taskId": "2", "status": "deleted"})).await;
    assert_eq!(get("3").await["blockedBy"], json!([]));
    assert_eq!(get("2").await, Value::Null);
    let list = tasks.run("TaskList", json!({})).await.unwrap();
    assert_eq!(list.content.text(), "1 (completed): one\n3 (pending, me): three");
}

#[tokio::test]
async fn missing_tasks_are_reported_and_cannot_be_waited_for() {
    let tasks = Tasks::new();
    tasks.create("one").await;
    let output =
        tasks.structured("TaskUpdate", json!({"taskId": "9", "status": "completed"})).await;
    assert_eq!((&output["success"], &output["updatedFields"]), (&json!(false), &json!([])));
    assert!(output["error"].is_string());
    assert_eq!(tasks.structured("TaskGet", json!({"taskId": "9"})).await, json!({"task": null}));
    for other in ["9", "1"] {
        let wait = json!({"taskId": "1", "addBlockedBy": [other]});
        assert!(tasks.run("TaskUpdate", wait).await.unwrap_err().contains(other));
    }
    assert!(tasks.run("TaskUpdate", json!({"taskId": "1", "status": "blocked"})).await.is_err());
}

#[tokio::test]
async fn a_list_that_is_too_long_is_refused() {
    let tasks = Tasks::new();
    for n in 0..200 {
        tasks.create(&n.to_string()).await;
    }
    let more = json!({"subject": "more", "description": "d"});
    assert!(tasks.run("TaskCreate", more).await.unwrap_err().contains("200"));
}
