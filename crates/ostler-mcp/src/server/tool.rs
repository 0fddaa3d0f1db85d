//! A tool: its description for the model, its schema, and its function.

use std::fmt::{self, Debug};
use std::sync::Arc;

use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::reply::ToolReply;
use super::{Context, schema};
use crate::output::Output;

type Function = dyn Fn(Value, Context) -> BoxFuture<'static, Output> + Send + Sync;

/// A tool of a [`Server`](super::Server), made by [`tool`], [`tool_with_context`] or [`raw_tool`].
#[derive(Clone)]
pub struct Tool {
    name: String,
    /// The tool's description without its name, as MCP's JSON.
    listing: Map<String, Value>,
    annotations: Map<String, Value>,
    /// `None` if there is only the description.
    function: Option<Arc<Function>>,
}

/// A tool that is a function of typed arguments.
///
/// `A` is a struct (or `()`): its fields and their comments become the schema, and what the model sends is read into it
/// before the function is called. The function returns a value, a `Result`, or a future of either, see [`ToolReply`];
/// an error is shown to the model, and so is a panic.
///
/// ```
/// use ostler_mcp::tool;
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Repeat {
///     /// What to say.
///     text: String,
///     /// How often.
///     times: Option<usize>,
/// }
///
/// async fn repeat(args: Repeat) -> Result<String, std::convert::Infallible> {
///     Ok(args.text.repeat(args.times.unwrap_or(2)))
/// }
///
/// let tool = tool("repeat", "Says something again and again", repeat).read_only();
/// assert_eq!(tool.name(), "repeat");
///
/// let short = ostler_mcp::tool("count", "Counts characters", |args: Repeat| args.text.chars().count());
/// ```
///
/// # Panics
/// If `A` is neither a struct, a map nor `()`.
pub fn tool<A, R, F, K>(
    name: impl Into<String>,
    description: impl Into<String>,
    function: F,
) -> Tool
where
    A: DeserializeOwned + JsonSchema,
    R: ToolReply<K>,
    F: Fn(A) -> R + Send + Sync + 'static,
{
    tool_with_context(name, description, move |arguments, _| function(arguments))
}

/// Like [`tool`], for a function that also receives the [`Context`] of the call.
///
/// ```
/// use ostler_mcp::{Context, tool_with_context};
///
/// let tool = tool_with_context("count", "Counts to three", |(): (), context: Context| async move {
///     for step in 1..=3 {
///         context.progress(step.into(), Some(3.0), "counting");
///     }
///     Ok::<_, String>(format!("counted for {}", context.tool_use_id().unwrap_or("no call")))
/// });
/// ```
///
/// # Panics
/// If `A` is neither a struct, a map nor `()`.
pub fn tool_with_context<A, R, F, K>(
    name: impl Into<String>,
    description: impl Into<String>,
    function: F,
) -> Tool
where
    A: DeserializeOwned + JsonSchema,
    R: ToolReply<K>,
    F: Fn(A, Context) -> R + Send + Sync + 'static,
{
    let name = name.into();
    let called = name.clone();
    Tool::new(name, description.into(), schema::of::<A>(), move |arguments, context| {
        match schema::read(arguments) {
            Ok(arguments) => function(arguments, context).reply().into_future(),
            Err(reason) => {
                let output = Output::error(format!("invalid arguments for `{called}`: {reason}"));
                Box::pin(std::future::ready(output))
            }
        }
    })
}

/// A tool whose schema is given as JSON and whose arguments arrive as JSON: an object, otherwise unchecked.
///
/// ```
/// use ostler_mcp::raw_tool;
/// use serde_json::json;
///
/// let schema = json!({"type": "object", "properties": {"key": {"type": "string"}}});
/// let tool = raw_tool("look_up", "Looks a key up", schema, |arguments, _| async move {
///     arguments.get("key").cloned().ok_or("which key?")
/// });
/// ```
///
/// # Panics
/// If the schema is not a JSON object.
pub fn raw_tool<R, F, K>(
    name: impl Into<String>,
    description: impl Into<String>,
    schema: Value,
    function: F,
) -> Tool
where
    R: ToolReply<K>,
    F: Fn(Value, Context) -> R + Send + Sync + 'static,
{
    let name = name.into();
    let Value::Object(mut schema) = schema else {
        panic!("the schema of the tool `{name}` is not a JSON object: {schema}");
    };
    schema.entry("type").or_insert_with(|| "object".into());
    Tool::new(name, description.into(), schema, move |arguments, context| match arguments {
        Value::Object(_) => function(arguments, context).reply().into_future(),
        Value::Null => function(Map::new().into(), context).reply().into_future(),
        other => {
            let text = format!("the arguments must be a JSON object, not {other}");
            Box::pin(std::future::ready(Output::error(text)))
        }
    })
}

impl Tool {
    fn new(
        name: String,
        description: String,
        schema: Map<String, Value>,
        function: impl Fn(Value, Context) -> BoxFuture<'static, Output> + Send + Sync + 'static,
    ) -> Self {
        let listing = Map::from_iter([
            ("description".to_owned(), description.into()),
            ("inputSchema".to_owned(), schema.into()),
        ]);
        Self { name, listing, annotations: Map::new(), function: Some(Arc::new(function)) }
    }

    /// A tool with a name and a description only. A [`Server`](super::Server) does not offer it.
    pub fn without_handler(name: impl Into<String>, description: impl Into<String>) -> Self {
        let listing = Map::from_iter([("description".to_owned(), description.into().into())]);
        Self { name: name.into(), listing, annotations: Map::new(), function: None }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it has a function, so that a server offers it.
    pub fn has_handler(&self) -> bool {
        self.function.is_some()
    }

    /// Its name for the model, and in permission rules, if a server of this name offers it.
    ///
    /// ```
    /// let tool = ostler_mcp::tool("now", "Tells the time", |()| "noon");
    /// assert_eq!(tool.wire_name("clock"), "mcp__clock__now");
    /// ```
    pub fn wire_name(&self, server: &str) -> String {
        format!("mcp__{server}__{}", self.name)
    }

    /// The description for the model.
    pub fn description(&self) -> &str {
        self.listing.get("description").and_then(Value::as_str).unwrap_or_default()
    }

    /// Sets the display name.
    #[must_use]
    pub fn title(mut self, title: impl Into<String>) -> Self {
        self.listing.insert("title".to_owned(), title.into().into());
        self
    }

    /// Hints that the tool changes nothing.
    #[must_use]
    pub fn read_only(self) -> Self {
        self.hint("readOnlyHint", true)
    }

    /// Hints whether the tool may delete or overwrite data.
    #[must_use]
    pub fn destructive(self, destructive: bool) -> Self {
        self.hint("destructiveHint", destructive)
    }

    /// Hints that repeating a call has no further effect.
    #[must_use]
    pub fn idempotent(self) -> Self {
        self.hint("idempotentHint", true)
    }

    /// Hints whether the tool interacts with external systems.
    #[must_use]
    pub fn open_world(self, open_world: bool) -> Self {
        self.hint("openWorldHint", open_world)
    }

    /// Adds an entry to its `_meta`, which is for programs.
    #[must_use]
    pub fn meta(mut self, key: impl Into<String>, value: impl Into<Value>) -> Self {
        let meta = self.listing.entry("_meta").or_insert_with(|| Map::new().into());
        if let Value::Object(meta) = meta {
            meta.insert(key.into(), value.into());
        }
        self
    }

    fn hint(mut self, name: &str, value: bool) -> Self {
        self.annotations.insert(name.to_owned(), value.into());
        self
    }

    /// Its entry in `tools/list`.
    pub(super) fn to_value(&self) -> Value {
        let mut object = Map::from_iter([("name".to_owned(), self.name.clone().into())]);
        object.extend(self.listing.clone());
        if !self.annotations.is_empty() {
            object.insert("annotations".to_owned(), self.annotations.clone().into());
        }
        object.into()
    }

    pub(super) fn call(&self, arguments: Value, context: Context) -> BoxFuture<'static, Output> {
        match &self.function {
            Some(function) => function(arguments, context),
            // Servers do not take such tools.
            None => {
                let output = Output::error(format!("the tool `{}` cannot be called", self.name));
                Box::pin(std::future::ready(output))
            }
        }
    }
}

impl Debug for Tool {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Tool").field("name", &self.name).finish_non_exhaustive()
    }
}
