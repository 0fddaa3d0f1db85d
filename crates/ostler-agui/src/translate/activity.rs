//! The agent's to-do list, as an activity that clients show next to the conversation.

use ostler_proto::tool::{TaskCreateOutput, TaskUpdateInput, TodoWriteInput};
use serde_json::{Value, json};

use super::{Speaker, Translator};
use crate::event::Body;
use crate::patch::diff;

/// The lists as the client last saw them, one per speaker.
#[derive(Debug, Default)]
pub(super) struct TodoLists(Vec<(Speaker, Value)>);

const ACTIVITY: &str = "todos";

impl Translator {
    /// Updates the list after a successful call.
    pub(super) fn update_todos(&mut self, speaker: &Speaker, id: &str, output: Option<&Value>) {
        let Some(call) = self.calls.get(id) else { return };
        let input = call.input();
        let known = self.things_to_do.0.iter().find(|(owner, _)| owner == speaker);
        let before = known.map(|(_, list)| list.clone());
        let list = before.clone().unwrap_or_else(|| json!([]));
        let after = match call.name.as_str() {
            "TodoWrite" => whole_list(input),
            "TaskCreate" => with_new(list, &input, output),
            "TaskUpdate" => with_change(list, input),
            _ => return,
        };
        let Some(after) = after.filter(|after| before.as_ref() != Some(after)) else { return };
        self.things_to_do.0.retain(|(owner, _)| owner != speaker);
        self.things_to_do.0.push((speaker.clone(), after.clone()));
        self.send_todos(speaker, before, after);
    }

    fn send_todos(&mut self, speaker: &Speaker, before: Option<Value>, after: Value) {
        let suffix = self.run_of(speaker).map(|run| format!("-{run}")).unwrap_or_default();
        let message_id = format!("{ACTIVITY}-{}{suffix}", self.settings.run_id);
        let activity_type = ACTIVITY.to_owned();
        let body = match before {
            Some(before) => {
                let patch = diff(&json!({"todos": before}), &json!({"todos": after}));
                Body::ActivityDelta { message_id, activity_type, patch }
            }
            None => {
                let content = serde_json::Map::from_iter([("todos".to_owned(), after)]);
                Body::ActivitySnapshot { message_id, activity_type, content, replace: None }
            }
        };
        self.emit(speaker, body);
    }
}

fn whole_list(input: Value) -> Option<Value> {
    let input: TodoWriteInput = serde_json::from_value(input).ok()?;
    let entry = |todo: ostler_proto::tool::Todo| json!({"content": todo.content, "status": todo.status, "activeForm": todo.active_form});
    Some(input.todos.into_iter().map(entry).collect())
}

fn with_new(mut list: Value, input: &Value, output: Option<&Value>) -> Option<Value> {
    let output: TaskCreateOutput = serde_json::from_value(output?.clone()).ok()?;
    let mut entry =
        json!({"id": output.task.id, "content": output.task.subject, "status": "pending"});
    if let Some(form) = input.get("activeForm").and_then(Value::as_str) {
        entry["activeForm"] = json!(form);
    }
    list.as_array_mut()?.push(entry);
    Some(list)
}

fn with_change(mut list: Value, input: Value) -> Option<Value> {
    let input: TaskUpdateInput = serde_json::from_value(input).ok()?;
    let entries = list.as_array_mut()?;
    let index = entries.iter().position(|entry| entry["id"] == json!(input.task_id))?;
    if input.status == Some(ostler_proto::tool::TaskStatus::Deleted) {
        entries.remove(index);
        return Some(list);
    }
    let entry = &mut entries[index];
    if let Some(status) = &input.status {
        entry["status"] = serde_json::to_value(status).ok()?;
    }
    if let Some(subject) = &input.subject {
        entry["content"] = json!(subject);
    }
    if let Some(form) = &input.active_form {
        entry["activeForm"] = json!(form);
    }
    Some(list)
}
