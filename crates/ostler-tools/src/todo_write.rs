//! `TodoWrite`: replaces the session's to-do list.

use parking_lot::Mutex;

use ostler_engine::tool::{Effect, Tool, ToolCx, ToolError, ToolOutput};
use ostler_proto::build;
use ostler_proto::tool::{TaskStatus, Todo, TodoWriteOutput};
use schemars::JsonSchema;
use serde::Deserialize;

#[derive(Default)]
pub(crate) struct TodoWrite {
    todos: Mutex<Vec<Todo>>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Args {
    /// The whole list; it replaces the one before.
    todos: Vec<Item>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Item {
    /// What to do, as an order: "Run the tests".
    content: String,
    status: Status,
    /// The same while it is being done: "Running the tests".
    active_form: String,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Status {
    Pending,
    InProgress,
    Completed,
}

const MAX_TODOS: usize = 200;

impl Tool for TodoWrite {
    const NAME: &'static str = "TodoWrite";
    const DESCRIPTION: &'static str = "Keeps a list of the steps of a larger task, which the user sees. Send the \
        whole list whenever a step begins or is done; one step at a time is in progress.";
    type Args = Args;

    fn effect(&self, _: &ToolCx, _: &Args) -> Effect {
        Effect::Nothing
    }

    async fn run(&self, _: &ToolCx, args: Args) -> Result<ToolOutput, ToolError> {
        if args.todos.len() > MAX_TODOS {
            return Err(ToolError::Refused(format!(
                "the list may have {MAX_TODOS} entries at most"
            )));
        }
        let new_todos: Vec<Todo> = args.todos.into_iter().map(Todo::from).collect();
        let mut kept = self.todos.lock();
        let old_todos = std::mem::replace(&mut *kept, new_todos.clone());
        let count = |status| new_todos.iter().filter(|todo| todo.status == status).count();
        let text = format!(
            "The list is saved: {} done, {} in progress, {} to do.",
            count(TaskStatus::Completed),
            count(TaskStatus::InProgress),
            count(TaskStatus::Pending),
        );
        Ok(ToolOutput::new(text, build!(TodoWriteOutput { old_todos, new_todos })))
    }
}

impl From<Item> for Todo {
    fn from(item: Item) -> Self {
        let status = match item.status {
            Status::Pending => TaskStatus::Pending,
            Status::InProgress => TaskStatus::InProgress,
            Status::Completed => TaskStatus::Completed,
        };
        build!(Self { active_form: item.active_form, ..Self::new(item.content, status) })
    }
}
