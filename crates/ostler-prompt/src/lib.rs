//! Typed prompts: unattended agents with deadlines, budgets, workspaces, events and typed answers.
//!
//! A [`Prompt`] is a value that is checked when it is built. An [`Adapter`] lets an agent answer it. The answer has the
//! requested type, or there is an [`Error`] with the reason. During the run, hooks enforce a [`Deadline`] and a
//! [`Budget`], and publish events on the bus of a [`Session`]. The agent works in a [`Workspace`], on copies of files.
//!
//! ```no_run
//! use std::time::Duration;
//! use ostler_prompt::{Adapter, Budget, Deadline, HostMount, Markdown, Prompt, Session, ToolInvoked, Workspace};
//!
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Review { score: u8, findings: Vec<String> }
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let workspace = Workspace::builder()
//!     .mount(HostMount::new("src").mount_path("project/src").max_bytes(1_000_000))
//!     .allowed_host_roots(["."])
//!     .open()?;
//! let prompt = Prompt::<Review>::builder("review", "code")
//!     .section(Markdown::new("Task", "task", "Review the code."))
//!     .section(&workspace)
//!     .build()?;
//! let session = Session::new();
//! session.bus().subscribe(|call: &ToolInvoked| println!("{}", call.name)).keep();
//!
//! let review = Adapter::new(ostler::Options::new())
//!     .evaluate(&prompt, &session)
//!     .deadline(Deadline::after(Duration::from_secs(600)))
//!     .budget(Budget::tokens(500_000).max_usd(2.0))
//!     .await?;
//! println!("{} for {} $", review.output.score, review.cost_usd);
//! println!("{}", workspace.changes()?.to_patch());
//! # Ok(()) }
//! ```
//!
//! | for | use |
//! |---|---|
//! | messages as they arrive | [`Evaluate::stream`] |
//! | several runs on one budget | [`BudgetTracker`], [`Evaluate::budget_tracker`] |
//! | functions of this program as tools | [`Tool`], [`tool_with_context`], [`Markdown::tool`], [`Tools`] |
//! | limits and events without prompts | [`HookContext::attach`] |
//! | the agent's changes of files | [`Workspace::changes`], [`workspace::Changes::apply`] |
//! | another engine | the `Options` of [`Adapter::new`] |
//! | spans for OpenTelemetry | any `tracing` subscriber: runs are `invoke_agent`, tools `execute_tool` |
//!
//! `docs/prompts.md` in the repository is for readers who know the Python original, `weakincentives`.
#![warn(missing_docs)]

mod adapter;
mod budget;
mod bus;
mod config;
mod context;
mod deadline;
mod error;
mod evaluation;
mod event;
mod hooks;
mod meter;
mod output;
mod prompt;
mod prompt_error;
mod render;
mod response;
mod section;
mod session;
mod spans;
mod template;
mod tool;
pub mod workspace;

pub use self::adapter::{ADAPTER_NAME, Adapter, Evaluate};
pub use self::budget::{Budget, BudgetTracker, Exhausted, Spent, Usage};
pub use self::bus::{EventBus, Listener, Subscription};
pub use self::config::{ClientConfig, ConfigError, DEFAULT_MODEL, ModelConfig, ModelSettings};
pub use self::context::HookContext;
pub use self::deadline::Deadline;
pub use self::error::{Category, Error};
pub use self::evaluation::Evaluation;
pub use self::event::{Event, HookCost, Kind, PromptExecuted, PromptRendered, ToolInvoked};
pub use self::output::Output;
pub use self::prompt::{Prompt, PromptBuilder};
pub use self::prompt_error::PromptError;
pub use self::render::{IntoToolResult, Render, ToolResult};
pub use self::response::Response;
pub use self::section::{Markdown, Section, Tools};
pub use self::session::Session;
pub use self::tool::{TOOL_SERVER, Tool, ToolContext, tool_with_context};
pub use self::workspace::{HostMount, Workspace, WorkspaceError};
