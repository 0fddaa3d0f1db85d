//! Ostler's built-in tools, one file each. This file is the list of them.

#[cfg(feature = "web")]
mod address;
mod ask_user_question;
mod background;
mod bash;
mod blocking;
mod edit;
mod enter_plan_mode;
mod exit_plan_mode;
mod file;
mod glob;
mod grep;
mod notebook;
mod notebook_edit;
mod output;
pub mod patch;
mod path;
#[cfg(feature = "pdf")]
mod pdf;
#[cfg(not(feature = "pdf"))]
#[path = "no_pdf.rs"]
mod pdf;
pub mod picture;
mod process;
mod read;
mod read_files;
mod shell;
mod similar;
mod target;
mod task_create;
mod task_entries;
mod task_get;
mod task_list;
mod task_output;
mod task_stop;
mod task_update;
mod text;
mod todo_write;
mod walk;
#[cfg(feature = "web")]
mod web_fetch;
mod web_search;
mod write;

use std::sync::Arc;

use ostler_engine::tool::{AnyTool, erase};

#[cfg(feature = "pdf")]
pub use self::pdf::child::run_if_called;
#[cfg(not(feature = "pdf"))]
pub use self::pdf::run_if_called;

/// The tools of one session. They share its state: which files it has read, and the shell's folder.
pub fn session_tools() -> Vec<Arc<dyn AnyTool>> {
    let read_files = read_files::ReadFiles::default();
    vec![
        erase(ask_user_question::AskUserQuestion),
        erase(bash::Bash::default()),
        erase(edit::Edit::new(read_files.clone())),
        erase(enter_plan_mode::EnterPlanMode),
        erase(exit_plan_mode::ExitPlanMode),
        erase(glob::Glob),
        erase(grep::Grep),
        erase(notebook_edit::NotebookEdit::new(read_files.clone())),
        erase(read::Read::new(read_files.clone())),
        erase(task_output::TaskOutput),
        erase(task_stop::TaskStop),
        erase(todo_write::TodoWrite::default()),
        #[cfg(feature = "web")]
        erase(web_fetch::WebFetch::default()),
        erase(web_search::WebSearch),
        erase(write::Write::new(read_files)),
    ]
}

/// A task list instead of `TodoWrite`: entries are created and changed one by one, and hooks may object.
pub fn task_tools() -> Vec<Arc<dyn AnyTool>> {
    let entries = task_entries::TaskEntries::default();
    vec![
        erase(task_create::TaskCreate(entries.clone())),
        erase(task_get::TaskGet(entries.clone())),
        erase(task_list::TaskList(entries.clone())),
        erase(task_update::TaskUpdate(entries)),
    ]
}
