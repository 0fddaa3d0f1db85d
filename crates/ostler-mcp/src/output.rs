//! The result of a tool call: what a tool of ours returns and what the client gets from somebody else's.

use std::any::TypeId;

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::content::{Content, ResourceContents};

/// The result of a tool call.
///
/// ```
/// use ostler_mcp::Output;
/// let output = Output::text("a chart").image("aGk=", "image/png");
/// assert_eq!(output.joined_text(), "a chart");
/// assert!(Output::error("no such chart").is_error);
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Output {
    /// What the model is shown.
    pub content: Vec<Content>,
    /// The same for programs: a JSON object.
    pub structured: Option<Value>,
    /// Whether the call failed, in a way the model should know about.
    pub is_error: bool,
    /// Remarks for programs, not for the model.
    pub meta: Option<Value>,
}

impl Output {
    /// Nothing at all.
    pub fn new() -> Self {
        Self::default()
    }

    /// One block of text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::new().block(Content::text(text))
    }

    /// A failure the model should read about.
    pub fn error(text: impl Into<String>) -> Self {
        Self { is_error: true, ..Self::text(text) }
    }

    /// Adds a block.
    #[must_use]
    pub fn block(mut self, content: Content) -> Self {
        self.content.push(content);
        self
    }

    /// Adds an image; `data` is base64.
    #[must_use]
    pub fn image(self, data: impl Into<String>, mime_type: impl Into<String>) -> Self {
        self.block(Content::image(data, mime_type))
    }

    /// Adds a resource.
    #[must_use]
    pub fn resource(self, contents: ResourceContents) -> Self {
        self.block(Content::Resource(contents))
    }

    /// Sets what programs read.
    #[must_use]
    pub fn structured(mut self, object: Map<String, Value>) -> Self {
        self.structured = Some(Value::Object(object));
        self
    }

    /// All text blocks, one per line.
    pub fn joined_text(&self) -> String {
        self.content.iter().filter_map(Content::as_text).collect::<Vec<_>>().join("\n")
    }

    /// As MCP writes it.
    pub fn to_value(&self) -> Value {
        let content: Vec<_> = self.content.iter().map(Content::to_value).collect();
        let mut object = Map::new();
        object.insert("content".to_owned(), content.into());
        if let Some(structured) = &self.structured {
            object.insert("structuredContent".to_owned(), structured.clone());
        }
        if self.is_error {
            object.insert("isError".to_owned(), true.into());
        }
        if let Some(meta) = &self.meta {
            object.insert("_meta".to_owned(), meta.clone());
        }
        Value::Object(object)
    }

    /// Reads what MCP writes.
    ///
    /// # Errors
    /// Says what is malformed.
    pub fn from_value(mut value: Value) -> Result<Self, String> {
        let Some(object) = value.as_object_mut() else {
            return Err(format!("the result of a tool call is not an object: {value}"));
        };
        let content = match object.remove("content") {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Array(blocks)) => {
                blocks.into_iter().map(Content::from_value).collect::<Result<_, _>>()?
            }
            Some(_) => return Err("`content` of a tool call's result is not a list".to_owned()),
        };
        let structured = object.remove("structuredContent").filter(|value| !value.is_null());
        Ok(Self {
            content,
            structured,
            is_error: object.get("isError").and_then(Value::as_bool).unwrap_or_default(),
            meta: object.remove("_meta"),
        })
    }
}

/// What a tool may return: an [`Output`], or anything that serialises.
///
/// A string becomes text; `()` becomes `ok`; everything else becomes JSON text, and an object is there for programs
/// as well, as structured content.
pub trait IntoOutput {
    /// Makes the result.
    fn into_output(self) -> Output;
}

impl IntoOutput for Output {
    fn into_output(self) -> Output {
        self
    }
}

impl<T: Serialize + 'static> IntoOutput for T {
    fn into_output(self) -> Output {
        if TypeId::of::<T>() == TypeId::of::<()>() {
            // Not an empty text: the Messages API refuses those.
            return Output::text("ok");
        }
        match serde_json::to_value(&self) {
            Ok(Value::String(text)) => Output::text(text),
            Ok(Value::Object(object)) => Output::text(json!(object).to_string()).structured(object),
            Ok(value) => Output::text(value.to_string()),
            Err(error) => Output::error(format!("the result could not be written: {error}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn check(output: impl IntoOutput, expected: Value) {
        assert_eq!(output.into_output().to_value(), expected);
    }

    fn text(text: &str) -> Value {
        json!({"content": [{"type": "text", "text": text}]})
    }

    #[test]
    fn what_serialises_becomes_a_result() {
        check("plain", text("plain"));
        check(String::from("owned"), text("owned"));
        check((), text("ok"));
        check(7, text("7"));
        check(Option::<u8>::None, text("null"));
        check(vec!["a", "b"], text(r#"["a","b"]"#));
        let object = json!({
            "content": [{"type": "text", "text": "{\"sum\":5}"}],
            "structuredContent": {"sum": 5},
        });
        check(json!({"sum": 5}), object.clone());
        check(BTreeMap::from([("sum", 5)]), object);
    }

    #[test]
    fn what_cannot_be_written_is_an_error_for_the_model() {
        let output = BTreeMap::from([((1, 2), 3)]).into_output();
        assert!(output.is_error, "{output:?}");
    }

    #[test]
    fn an_explicit_result_is_kept() {
        let output = Output::error("no").image("aGk=", "image/png");
        let value = json!({
            "content": [
                {"type": "text", "text": "no"},
                {"type": "image", "data": "aGk=", "mimeType": "image/png"},
            ],
            "isError": true,
        });
        check(output.clone(), value.clone());
        assert_eq!(Output::from_value(value), Ok(output));
    }

    #[test]
    fn results_of_others_are_read_with_care() {
        assert_eq!(Output::from_value(json!({})), Ok(Output::new()));
        assert!(Output::from_value(json!("text")).is_err());
        assert!(Output::from_value(json!({"content": "text"})).is_err());
        assert!(Output::from_value(json!({"content": [{"type": "text"}]})).is_err());
    }
}
