//! Tools of a prompt: tools of the SDK with access to the run in which they are called.

use std::fmt::Display;
use std::sync::Arc;

use ostler_sdk::mcp;
pub use ostler_sdk::mcp::Tool;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

use crate::budget::BudgetTracker;
use crate::deadline::Deadline;
use crate::prompt_error::PromptError;
use crate::render::IntoToolResult;
use crate::session::Session;

/// The name of the MCP server with the tools of a prompt: the model calls them as `mcp__ostler__<tool>`.
pub const TOOL_SERVER: &str = "ostler";

/// A tool whose handler gets the run in which it is called.
///
/// Tools of prompts are tools of the SDK: a tool of [`mcp::tool`] works in a prompt, and a tool of this function works
/// on any [`mcp::Server`], with a context without a run. It differs from [`mcp::tool_with_context`] in two ways: its
/// handler gets a [`ToolContext`], and its return value is rendered as [`ToolResult`](crate::ToolResult) describes.
///
/// The arguments are a struct whose fields and comments become the schema. If the arguments of the model do not match,
/// the model reads an error with the name of the field. The model also reads about errors and panics of the handler,
/// and the run continues.
///
/// ```
/// use ostler_prompt::{Markdown, ToolContext, tool_with_context};
/// use ostler_sdk::mcp;
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Count {
///     /// What to count.
///     word: String,
/// }
///
/// let count = tool_with_context("count", "Counts characters", |args: Count, run: ToolContext| async move {
///     let n_characters = args.word.chars().count();
///     Ok::<_, String>(format!("{n_characters}, for {}", run.prompt_name()))
/// });
/// let short = mcp::tool("short", "Says whether a word is short", |args: Count| args.word.len() < 5);
/// let section = Markdown::new("Task", "task", "Count.").tool(count).tool(short);
/// ```
///
/// # Panics
/// If `A` is neither a struct, a map nor `()`, because arguments must have names.
pub fn tool_with_context<A, R, E, F, Fut>(
    name: impl Into<String>,
    description: impl Into<String>,
    handler: F,
) -> Tool
where
    A: DeserializeOwned + JsonSchema,
    R: IntoToolResult + 'static,
    E: Display + 'static,
    F: Fn(A, ToolContext) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<R, E>> + Send + 'static,
{
    mcp::tool_with_context(name, description, move |arguments: A, call| {
        let answer = handler(arguments, ToolContext::of(call));
        async move { answer.await.map(|result| result.into_output()) }
    })
}

/// Checks the name of a tool.
pub(crate) fn check(tool: &Tool) -> Result<(), PromptError> {
    let is_plain =
        |character: char| character.is_ascii_alphanumeric() || matches!(character, '_' | '-');
    let name = tool.name();
    match !name.is_empty() && name.len() <= 48 && name.chars().all(is_plain) {
        true => Ok(()),
        false => Err(PromptError::ToolName { name: name.to_owned() }),
    }
}

/// The server with these tools for an agent; `None` if no tool has a handler.
pub(crate) fn server(tools: &[Tool], run: &Run) -> Option<mcp::Server> {
    let server = || mcp::Server::new(TOOL_SERVER, env!("CARGO_PKG_VERSION"));
    tools
        .iter()
        .any(Tool::has_handler)
        .then(|| server().tools(tools.iter().cloned()).extension(run.clone()))
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
    /// The value for a tool that is called without a run.
    fn nowhere() -> Self {
        Self { session: Session::new(), prompt_name: "".into(), deadline: None, budget: None }
    }
}

/// Information about the run in which a tool is called. On a server that does not belong to a prompt there is no run:
/// the session is new, the name of the prompt is empty, and there is neither a deadline nor a budget.
#[derive(Clone, Debug)]
pub struct ToolContext {
    run: Run,
    call: mcp::Context,
}

impl ToolContext {
    /// The run in which a tool of [`mcp::tool_with_context`] is called.
    ///
    /// ```
    /// use ostler_prompt::ToolContext;
    /// use ostler_sdk::mcp;
    ///
    /// let left = mcp::tool_with_context("left", "Says how much time is left", |(): (), context| {
    ///     let deadline = ToolContext::of(context).deadline();
    ///     deadline.map_or("no limit".to_owned(), |it| format!("{} s", it.remaining().as_secs()))
    /// });
    /// ```
    pub fn of(call: mcp::Context) -> Self {
        let run = call.extension::<Run>().cloned().unwrap_or_else(Run::nowhere);
        Self { run, call }
    }

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
