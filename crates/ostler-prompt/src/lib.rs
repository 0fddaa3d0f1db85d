//! Typed prompts: unattended agents with deadlines, budgets, workspaces, events and typed answers.
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
pub use self::prompt::{Prompt, PromptBuilder, PromptError};
pub use self::render::{IntoToolResult, Render, ToolResult};
pub use self::response::Response;
pub use self::section::{Markdown, Section, Tools};
pub use self::session::Session;
pub use self::tool::{TOOL_SERVER, Tool, ToolContext};
pub use self::workspace::{HostMount, Workspace, WorkspaceError};
