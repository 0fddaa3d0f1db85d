//! `TodoWrite` and what follows it in newer peers: `TaskCreate`, `TaskGet`, `TaskUpdate`, `TaskList`.

use ostler_proto_derive::Wire;
use serde_json::Value;

use crate::Extra;

/// The whole to-do list.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct TodoWriteInput {
    /// The list.
    pub todos: Vec<Todo>,
    /// Unknown fields.
    pub extra: Extra,
}

/// One entry of the to-do list.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase", new(content, status))]
#[non_exhaustive]
pub struct Todo {
    /// What to do.
    pub content: String,
    /// Its status.
    pub status: TaskStatus,
    /// The text to show while it is in progress.
    pub active_form: String,
    /// Unknown fields.
    pub extra: Extra,
}

/// The status of an entry.
#[derive(Clone, Debug, Default, PartialEq, Eq, Wire)]
#[non_exhaustive]
pub enum TaskStatus {
    /// Not started.
    #[default]
    Pending,
    /// Being done.
    InProgress,
    /// Done.
    Completed,
    /// Removes it from the list; only in [`TaskUpdateInput`].
    Deleted,
    /// A value this version does not know.
    #[wire(other)]
    Other(Box<str>),
}

/// The list was changed.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
#[non_exhaustive]
pub struct TodoWriteOutput {
    /// The list before.
    pub old_todos: Vec<Todo>,
    /// The list now.
    pub new_todos: Vec<Todo>,
    /// Unknown fields.
    pub extra: Extra,
}

/// A new entry for the task list.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
#[non_exhaustive]
pub struct TaskCreateInput {
    /// Its title.
    pub subject: String,
    /// The work to do.
    pub description: String,
    /// The text to show while it is in progress.
    pub active_form: Option<String>,
    /// Metadata of the model.
    pub metadata: Option<Value>,
    /// Unknown fields.
    pub extra: Extra,
}

/// An entry was added.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct TaskCreateOutput {
    /// The entry.
    pub task: CreatedTask,
    /// Unknown fields.
    pub extra: Extra,
}

/// An entry that was just added.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct CreatedTask {
    /// Its id.
    pub id: String,
    /// Its title.
    pub subject: String,
    /// The work to do.
    pub description: Option<String>,
    /// Unknown fields.
    pub extra: Extra,
}

/// An entry to look up.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
#[non_exhaustive]
pub struct TaskGetInput {
    /// The entry.
    pub task_id: String,
    /// Unknown fields.
    pub extra: Extra,
}

/// An entry, if there is one.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct TaskGetOutput {
    /// The entry.
    #[wire(nullable)]
    pub task: Option<TaskDetails>,
    /// Unknown fields.
    pub extra: Extra,
}

/// An entry of the task list.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
#[non_exhaustive]
pub struct TaskDetails {
    /// Its id.
    pub id: String,
    /// Its title.
    pub subject: String,
    /// The work to do.
    pub description: String,
    /// Its status.
    pub status: TaskStatus,
    /// Entries that wait for it.
    pub blocks: Vec<String>,
    /// Entries it waits for.
    pub blocked_by: Vec<String>,
    /// Unknown fields.
    pub extra: Extra,
}

/// A change to an entry; absent fields stay as they are.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
#[non_exhaustive]
pub struct TaskUpdateInput {
    /// The entry.
    pub task_id: String,
    /// Its title.
    pub subject: Option<String>,
    /// The work to do.
    pub description: Option<String>,
    /// The text to show while it is in progress.
    pub active_form: Option<String>,
    /// Its status.
    pub status: Option<TaskStatus>,
    /// More entries that wait for it.
    pub add_blocks: Option<Vec<String>>,
    /// More entries it waits for.
    pub add_blocked_by: Option<Vec<String>>,
    /// Who does it.
    pub owner: Option<String>,
    /// Metadata of the model.
    pub metadata: Option<Value>,
    /// Unknown fields.
    pub extra: Extra,
}

/// An entry was changed.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
#[non_exhaustive]
pub struct TaskUpdateOutput {
    /// Whether it succeeded.
    pub success: bool,
    /// The entry.
    pub task_id: String,
    /// What changed.
    pub updated_fields: Vec<String>,
    /// What went wrong.
    pub error: Option<String>,
    /// How its status changed.
    pub status_change: Option<StatusChange>,
    /// Unknown fields.
    pub extra: Extra,
}

/// A change of status.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct StatusChange {
    /// Before.
    pub from: String,
    /// Now.
    pub to: String,
    /// Unknown fields.
    pub extra: Extra,
}

/// Asks for the whole task list.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct TaskListInput {
    /// Unknown fields.
    pub extra: Extra,
}

/// The whole task list.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree)]
#[non_exhaustive]
pub struct TaskListOutput {
    /// The entries.
    pub tasks: Vec<TaskSummary>,
    /// Unknown fields.
    pub extra: Extra,
}

/// An entry of the task list, in short.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[wire(tree, rename_all = "camelCase")]
#[non_exhaustive]
pub struct TaskSummary {
    /// Its id.
    pub id: String,
    /// Its title.
    pub subject: String,
    /// Its status.
    pub status: TaskStatus,
    /// Who does it.
    pub owner: Option<String>,
    /// Entries it waits for.
    pub blocked_by: Vec<String>,
    /// Unknown fields.
    pub extra: Extra,
}
