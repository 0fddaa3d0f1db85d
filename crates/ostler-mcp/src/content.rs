//! Content blocks and resource contents, shared by servers and the client.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// One block of a tool's result or of a prompt.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Content {
    /// Text.
    Text(String),
    /// An image.
    Image(Media),
    /// Audio.
    Audio(Media),
    /// The contents of a resource.
    Resource(ResourceContents),
    /// The address of a resource.
    Link(ResourceLink),
    /// An unknown type, unchanged.
    Unknown(Value),
}

impl Content {
    /// Text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// An image; `data` is base64.
    pub fn image(data: impl Into<String>, mime_type: impl Into<String>) -> Self {
        Self::Image(Media { data: data.into(), mime_type: mime_type.into() })
    }

    /// Audio; `data` is base64.
    pub fn audio(data: impl Into<String>, mime_type: impl Into<String>) -> Self {
        Self::Audio(Media { data: data.into(), mime_type: mime_type.into() })
    }

    /// The text, if it is text.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Converts to MCP's JSON.
    pub fn to_value(&self) -> Value {
        match self {
            Self::Text(text) => json!({"type": "text", "text": text}),
            Self::Image(media) => tagged("image", media),
            Self::Audio(media) => tagged("audio", media),
            Self::Resource(contents) => json!({"type": "resource", "resource": contents}),
            Self::Link(link) => tagged("resource_link", link),
            Self::Unknown(value) => value.clone(),
        }
    }

    /// Reads MCP's JSON. An invalid block of a known type is an error; an unknown type is kept.
    ///
    /// # Errors
    /// Names the type of the malformed block and the reason.
    pub fn from_value(value: Value) -> Result<Self, String> {
        let kind = value.get("type").and_then(Value::as_str).map(str::to_owned);
        let kind = kind.ok_or_else(|| format!("content without a type: {value}"))?;
        match kind.as_str() {
            "text" => match value.get("text") {
                Some(Value::String(text)) => Ok(Self::Text(text.clone())),
                _ => Err("content of type `text` has no text".to_owned()),
            },
            "image" => read(&kind, value).map(Self::Image),
            "audio" => read(&kind, value).map(Self::Audio),
            "resource_link" => read(&kind, value).map(Self::Link),
            "resource" => {
                read(&kind, value.get("resource").cloned().unwrap_or_default()).map(Self::Resource)
            }
            _ => Ok(Self::Unknown(value)),
        }
    }
}

fn tagged(kind: &str, body: &impl Serialize) -> Value {
    let mut object = Map::new();
    object.insert("type".to_owned(), kind.into());
    if let Ok(Value::Object(body)) = serde_json::to_value(body) {
        object.extend(body);
    }
    Value::Object(object)
}

fn read<T: serde::de::DeserializeOwned>(kind: &str, value: Value) -> Result<T, String> {
    serde_path_to_error::deserialize(value)
        .map_err(|error| format!("content of type `{kind}` is malformed: {error}"))
}

/// An image or audio.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Media {
    /// The bytes in base64.
    pub data: String,
    /// Their MIME type, such as `image/png`.
    pub mime_type: String,
}

/// Contents of a resource: its address, and either text or bytes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceContents {
    /// The address.
    pub uri: String,
    /// The MIME type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// The text, if it is text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The bytes in base64, if it is not text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub blob: Option<String>,
    /// The server's own metadata.
    #[serde(default, rename = "_meta", skip_serializing_if = "Option::is_none")]
    pub meta: Option<Value>,
}

impl ResourceContents {
    /// Text.
    pub fn text(uri: impl Into<String>, text: impl Into<String>) -> Self {
        Self { uri: uri.into(), text: Some(text.into()), ..Self::default() }
    }

    /// Bytes, in base64.
    pub fn blob(uri: impl Into<String>, blob: impl Into<String>) -> Self {
        Self { uri: uri.into(), blob: Some(blob.into()), ..Self::default() }
    }

    /// Sets the MIME type.
    #[must_use]
    pub fn mime_type(mut self, mime_type: impl Into<String>) -> Self {
        self.mime_type = Some(mime_type.into());
        self
    }
}

/// A reference to a resource.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceLink {
    /// The address.
    pub uri: String,
    /// A name for programs.
    #[serde(default)]
    pub name: String,
    /// Its display name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Its format.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
    /// How many bytes it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(value: Value) -> Content {
        let content = Content::from_value(value.clone()).unwrap();
        assert_eq!(content.to_value(), value);
        content
    }

    #[test]
    fn every_kind_of_content_is_written_as_it_was_read() {
        check(json!({"type": "text", "text": "hi"}));
        check(json!({"type": "image", "data": "aGk=", "mimeType": "image/png"}));
        check(json!({"type": "audio", "data": "aGk=", "mimeType": "audio/wav"}));
        check(json!({"type": "resource", "resource": {"uri": "a:b", "text": "hi"}}));
        check(json!({"type": "resource_link", "uri": "a:b", "name": "b", "size": 3}));
    }

    #[test]
    fn unknown_content_is_kept_and_malformed_content_is_named() {
        let unknown = check(json!({"type": "hologram", "depth": 3}));
        assert!(matches!(unknown, Content::Unknown(_)));
        let error = Content::from_value(json!({"type": "image", "data": 7})).unwrap_err();
        assert!(error.contains("`image`") && error.contains("data"), "{error}");
        assert!(Content::from_value(json!({"type": "text"})).is_err());
        assert!(Content::from_value(json!({"text": "hi"})).is_err());
        assert!(Content::from_value(json!({"type": "resource"})).is_err());
    }
}
