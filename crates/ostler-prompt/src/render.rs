//! Renders a tool's result for the model: with its own rendering, else as JSON, else as a message.

use std::collections::{BTreeMap, HashMap};

use ostler_sdk::mcp::Output;
use serde::Serialize;
use serde_json::Value;

/// A value that a tool returns to the model.
///
/// A type may render itself as text. With an empty implementation it is rendered as JSON:
///
/// ```
/// use ostler_prompt::Render;
///
/// #[derive(serde::Serialize)]
/// struct Count { words: usize }
/// impl Render for Count {}
///
/// #[derive(serde::Serialize)]
/// struct Table { rows: Vec<String> }
/// impl Render for Table {
///     fn render(&self) -> Option<String> {
///         Some(self.rows.join("\n"))
///     }
/// }
/// ```
pub trait Render: Serialize {
    /// The text for the model; `None` for JSON.
    fn render(&self) -> Option<String> {
        None
    }
}

macro_rules! as_json {
    ($($kind:ty)*) => { $(impl Render for $kind {})* };
}

as_json! { () bool i8 i16 i32 i64 isize u8 u16 u32 u64 usize f32 f64 Value }

impl Render for String {
    fn render(&self) -> Option<String> {
        Some(self.clone())
    }
}

impl Render for &str {
    fn render(&self) -> Option<String> {
        Some((*self).to_owned())
    }
}

impl<T: Serialize> Render for Vec<T> {}
impl<T: Serialize> Render for Option<T> {}
impl<K: Serialize + Ord, V: Serialize> Render for BTreeMap<K, V> {}
impl<K: Serialize, V: Serialize, S> Render for HashMap<K, V, S> {}

/// The result of a tool: a value, a message, and whether it succeeded.
///
/// The model reads the value's own rendering or, without one, its JSON. If that is empty, or there is no value, it
/// reads the message.
///
/// ```
/// use ostler_prompt::ToolResult;
///
/// assert_eq!(ToolResult::new(vec![1, 2]).message("two numbers").text(), "[1,2]");
/// assert_eq!(ToolResult::new("").message("nothing found").text(), "nothing found");
/// assert_eq!(ToolResult::<()>::failed("no such table").text(), "no such table");
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ToolResult<T> {
    value: Option<T>,
    message: String,
    success: bool,
}

impl<T: Render> ToolResult<T> {
    /// A successful result with a value.
    pub fn new(value: T) -> Self {
        Self { value: Some(value), message: String::new(), success: true }
    }

    /// A successful result without a value.
    pub fn done(message: impl Into<String>) -> Self {
        Self { value: None, message: message.into(), success: true }
    }

    /// A failure, with a message for the model.
    pub fn failed(message: impl Into<String>) -> Self {
        Self { value: None, message: message.into(), success: false }
    }

    /// Sets the text for a value whose rendering is empty.
    #[must_use]
    pub fn message(mut self, message: impl Into<String>) -> Self {
        self.message = message.into();
        self
    }

    /// The text for the model.
    pub fn text(&self) -> String {
        self.rendered().unwrap_or_else(|error| error)
    }

    fn rendered(&self) -> Result<String, String> {
        let rendered = match &self.value {
            None => String::new(),
            Some(value) => match value.render() {
                Some(text) => text,
                None => match serde_json::to_value(value) {
                    Ok(Value::Null) => String::new(),
                    Ok(value) => value.to_string(),
                    Err(error) => return Err(format!("the result cannot be serialized: {error}")),
                },
            },
        };
        // The Messages API refuses an empty text.
        let texts = [rendered, self.message.clone()];
        Ok(texts
            .into_iter()
            .find(|text| !text.trim().is_empty())
            .unwrap_or_else(|| "ok".to_owned()))
    }
}

/// Converts a handler's result.
fn output(text: String, success: bool) -> Output {
    match success {
        true => Output::text(text),
        false => Output::error(text),
    }
}

/// The return type of a handler: anything that [renders](Render), or a [`ToolResult`] of it.
pub trait IntoToolResult {
    /// Converts to the result for the model.
    #[doc(hidden)]
    fn into_output(self) -> Output;
}

impl<T: Render> IntoToolResult for T {
    fn into_output(self) -> Output {
        ToolResult::new(self).into_output()
    }
}

impl<T: Render> IntoToolResult for ToolResult<T> {
    fn into_output(self) -> Output {
        match self.rendered() {
            Ok(text) => output(text, self.success),
            Err(error) => output(error, false),
        }
    }
}
