//! Tools of a prompt: those of the SDK, with the run they are called in.

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

/// The name of the MCP server that offers the tools of a prompt: the model calls them `mcp__ostler__<tool>`.
pub const TOOL_SERVER: &str = "ostler";

/// A tool that also knows the run it is called in.
///
/// Tools of prompts are tools of the SDK: one made by [`mcp::tool`] works in a prompt, and one made here works on any
/// [`mcp::Server`], where its context is that of no run. It differs from [`mcp::tool_with_context`] in two things: its
/// handler gets a [`ToolContext`], and what it returns is shown as [`ToolResult`](crate::ToolResult) says.
///
/// Its arguments are a struct whose fields and comments become the schema; what the model sends is read into it first,
/// and what does not fit goes back to the model, with the name of the field. An error and a panic are shown to the model too,
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
/// If `A` is neither a struct, a map nor `()`: arguments have names.
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

/// The server that offers tools to an agent; `None` if none of them has a handler.
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
    /// The run of a tool that is not called in one.
    fn nowhere() -> Self {
        Self { session: Session::new(), prompt_name: "".into(), deadline: None, budget: None }
    }
}

/// What a tool may know about its run. On a server that does not belong to a prompt there is no run: the session is a new
/// one, the prompt has no name, and there is neither a deadline nor a budget.
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
    ///     deadline.map_or("as much as you like".to_owned(), |it| format!("{} s", it.remaining().as_secs()))
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
