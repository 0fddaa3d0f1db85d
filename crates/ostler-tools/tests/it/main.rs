//! The tools as the engine uses them: prepared from JSON, then run.
#![allow(clippy::unwrap_used, reason = "helpers of tests may panic too")]

mod ask_user_question;
mod background;
mod bash;
mod definitions;
mod edit;
mod glob;
mod grep;
mod names;
mod notebook_edit;
mod pdf;
mod plan_mode;
mod race;
mod read;
mod rules;
mod session;
mod shapes;
mod task_list;
mod todo_write;
mod web_search;
mod whole;
mod write;
