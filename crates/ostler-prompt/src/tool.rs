//! Tools of a prompt: functions with typed arguments and a context, offered to the agent over MCP.

use std::fmt::{self, Display};
use std::sync::Arc;

use ostler_sdk::mcp;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::budget::BudgetTracker;
use crate::deadline::Deadline;
use crate::prompt_error::PromptError;
use crate::render::IntoToolResult;
use crate::session::Session;

/// The name of the MCP server that offers the tools of a prompt: the model calls them `mcp__ostler__<tool>`.
pub const TOOL_SERVER: &str = "ostler";

/// A tool of a prompt.
///
/// Tools of the SDK ([`ostler_sdk::mcp::tool`]) are tools of prompts as they are: sections take both. A tool made here can
/// also ask for the run it is called in ([`ToolContext`]).
///
/// Its arguments are a struct whose fields and comments become the schema; what the model sends is read into it first,
/// and what does not fit goes back to the model, with the name of the field. What the handler returns is shown as
/// [`ToolResult`](crate::ToolResult) says; an error and a panic are shown too, and the run continues.
///
/// ```
/// use ostler_prompt::{Tool, ToolContext};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Count {
///     /// What to count.
///     word: String,
/// }
///
/// let tool = Tool::new("count", "Counts the characters of a word", |args: Count, _: ToolContext| async move {
///     Ok::<_, String>(args.word.chars().count())
/// });
/// assert_eq!(tool.wire_name(), "mcp__ostler__count");
///
/// let same = ostler_sdk::mcp::tool("count", "Counts the letters of a word", |args: Count| args.word.chars().count());
/// assert_eq!(Tool::from(same).wire_name(), "mcp__ostler__count");
/// ```
#[derive(Clone)]
pub struct Tool {
    name: String,
    description: String,
    make: Option<Make>,
}

/// Makes the tool for a run.
type Make = Arc<dyn Fn(&str, &str, Run) -> mcp::Tool + Send + Sync>;

impl Tool {
    /// A tool with a handler.
    ///
    /// # Panics
    /// If `A` is neither a struct, a map nor `()`: arguments have names.
    pub fn new<A, R, E, F, Fut>(
        name: impl Into<String>,
        description: impl Into<String>,
        handler: F,
    ) -> Self
    where
        A: DeserializeOwned + JsonSchema,
        R: IntoToolResult + 'static,
        E: Display + 'static,
        F: Fn(A, ToolContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, E>> + Send + 'static,
    {
        let handler = Arc::new(handler);
        let make = move |name: &str, description: &str, run: Run| {
            let handler = Arc::clone(&handler);
            mcp::tool_with_context(name, description, move |arguments: A, call| {
                let answer = handler(arguments, ToolContext { run: run.clone(), call });
                async move { answer.await.map(|result| result.into_output()) }
            })
        };
        let tool =
            Self { name: name.into(), description: description.into(), make: Some(Arc::new(make)) };
        // Checks the type of the arguments here instead of during a run.
        drop(tool.for_run(&Run::nowhere()));
        tool
    }

    /// A tool with a description only. Without a handler it is not offered to the agent.
    pub fn without_handler(name: impl Into<String>, description: impl Into<String>) -> Self {
        Self { name: name.into(), description: description.into(), make: None }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its description for the model.
    pub fn description(&self) -> &str {
        &self.description
    }

    /// Whether it is offered to the agent.
    pub fn has_handler(&self) -> bool {
        self.make.is_some()
    }

    /// Its name for the model.
    pub fn wire_name(&self) -> String {
        format!("mcp__{TOOL_SERVER}__{}", self.name)
    }

    pub(crate) fn check(&self) -> Result<(), PromptError> {
        let is_plain =
            |character: char| character.is_ascii_alphanumeric() || matches!(character, '_' | '-');
        match !self.name.is_empty() && self.name.len() <= 48 && self.name.chars().all(is_plain) {
            true => Ok(()),
            false => Err(PromptError::ToolName { name: self.name.clone() }),
        }
    }

    pub(crate) fn for_run(&self, run: &Run) -> Option<mcp::Tool> {
        self.make.as_ref().map(|make| make(&self.name, &self.description, run.clone()))
    }
}

impl From<mcp::Tool> for Tool {
    fn from(tool: mcp::Tool) -> Self {
        Self {
            name: tool.name().to_owned(),
            description: tool.description().to_owned(),
            make: Some(Arc::new(move |_: &str, _: &str, _: Run| tool.clone())),
        }
    }
}

impl fmt::Debug for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tool").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The server that offers tools to an agent; `None` if none of them has a handler.
pub(crate) fn server(tools: &[Tool], run: &Run) -> Option<mcp::Server> {
    let tools: Vec<mcp::Tool> = tools.iter().filter_map(|tool| tool.for_run(run)).collect();
    (!tools.is_empty())
        .then(|| mcp::Server::new(TOOL_SERVER, env!("CARGO_PKG_VERSION")).tools(tools))
}

/// What the tools of a run share.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    pub(crate) session: Session,
    pub(crate) prompt_name: Arc<str>,
    pub(crate) deadline: Option<Deadline>,
    pub(crate) budget: Option<BudgetTracker>,
}

impl Run {
    /// A placeholder run, for building tools outside of one.
    fn nowhere() -> Self {
        Self { session: Session::new(), prompt_name: "".into(), deadline: None, budget: None }
    }
}

/// What a tool may know about its run.
#[derive(Clone, Debug)]
pub struct ToolContext {
    run: Run,
    call: mcp::Context,
}

impl ToolContext {
    /// The session.
    pub fn session(&self) -> &Session {
        &self.run.session
    }

    /// The prompt.
    pub fn prompt_name(&self) -> &str {
        &self.run.prompt_name
    }

    /// The deadline of the run.
    pub fn deadline(&self) -> Option<Deadline> {
        self.run.deadline
    }

    /// The budget of the run, and what was spent.
    pub fn budget(&self) -> Option<&BudgetTracker> {
        self.run.budget.as_ref()
    }

    /// The call: its id, progress reports, and cancellation.
    pub fn call(&self) -> &mcp::Context {
        &self.call
    }
}
