//! The result of a tool call, for servers and the client.

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
    /// For the model.
    pub content: Vec<Content>,
    /// For programs: a JSON object.
    pub structured: Option<Value>,
    /// Whether the call failed; the content has the reason for the model.
    pub is_error: bool,
    /// Metadata for programs, not for the model.
    pub meta: Option<Value>,
}

impl Output {
    /// An empty result.
    pub fn new() -> Self {
        Self::default()
    }

    /// One block of text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::new().block(Content::text(text))
    }

    /// A failure, with a message for the model.
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

    /// Sets the structured content, for programs.
    #[must_use]
    pub fn structured(mut self, object: Map<String, Value>) -> Self {
        self.structured = Some(Value::Object(object));
        self
    }

    /// All text blocks, one per line.
    pub fn joined_text(&self) -> String {
        self.content.iter().filter_map(Content::as_text).collect::<Vec<_>>().join("\n")
    }

    /// Converts to MCP's JSON.
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

    /// Reads MCP's JSON.
    ///
    /// # Errors
    /// Names what is malformed.
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

/// The return value of a tool: an [`Output`], or anything serializable.
///
/// A string becomes text; `()` becomes `ok`; everything else becomes JSON text, and an object is also added as
/// structured content.
pub trait IntoOutput {
    /// Converts the value.
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
            // Not an empty text, which the Messages API refuses.
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
    fn serializable_values_become_results() {
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
    fn a_value_that_cannot_be_serialized_is_an_error_for_the_model() {
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
    fn malformed_results_are_refused() {
        assert_eq!(Output::from_value(json!({})), Ok(Output::new()));
        assert!(Output::from_value(json!("text")).is_err());
        assert!(Output::from_value(json!({"content": "text"})).is_err());
        assert!(Output::from_value(json!({"content": [{"type": "text"}]})).is_err());
    }
}
