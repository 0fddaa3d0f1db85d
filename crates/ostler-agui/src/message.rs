//! Messages, their content and its parts.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::Metadata;
use crate::read::{InputError, Reader};

/// One message of a conversation.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Message {
    /// Unique in the thread.
    pub id: String,
    /// Its role and content.
    #[serde(flatten)]
    pub body: MessageBody,
    /// The name of the author.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Opaque data that the provider needs back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encrypted_value: Option<String>,
    /// Additional data by key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
    /// The subagent it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subagent_run_id: Option<String>,
}

/// Role and content of a message.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "role", rename_all = "lowercase", rename_all_fields = "camelCase")]
#[expect(missing_docs, reason = "the fields are the protocol's")]
pub enum MessageBody {
    /// From the author of the application.
    Developer { content: String },
    /// From the application.
    System { content: String },
    /// From the user.
    User { content: Content },
    /// From the model.
    Assistant {
        #[serde(skip_serializing_if = "Option::is_none")]
        content: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        tool_calls: Option<Vec<ToolCall>>,
    },
    /// The result of a tool call.
    Tool {
        content: Content,
        tool_call_id: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    /// The model's reasoning.
    Reasoning { content: String },
    /// An activity. Clients should not send it back.
    Activity { activity_type: String, content: Metadata },
}

impl Message {
    /// Makes a message with only an id and a body.
    pub fn new(id: impl Into<String>, body: MessageBody) -> Self {
        let id = id.into();
        Self { id, body, name: None, encrypted_value: None, metadata: None, subagent_run_id: None }
    }

    /// Reads a message; `None` for a role unknown to 1.0.
    pub(crate) fn read(reader: &Reader<'_>) -> Result<Option<Self>, InputError> {
        let role = reader.string("role")?;
        let body = match role.as_str() {
            "developer" => MessageBody::Developer { content: reader.string("content")? },
            "system" => MessageBody::System { content: reader.string("content")? },
            "reasoning" => MessageBody::Reasoning { content: reader.string("content")? },
            "user" => MessageBody::User { content: Content::read(reader)? },
            "assistant" => MessageBody::Assistant {
                content: reader.maybe_string("content")?,
                tool_calls: reader.maybe_list("toolCalls", ToolCall::read)?,
            },
            "tool" => MessageBody::Tool {
                content: Content::read(reader)?,
                tool_call_id: reader.string("toolCallId")?,
                error: reader.maybe_string("error")?,
            },
            "activity" => MessageBody::Activity {
                activity_type: reader.string("activityType")?,
                content: reader.object("content")?,
            },
            _ => {
                reader.warn("role", &format!("unknown role {role}; the message is left out"));
                return Ok(None);
            }
        };
        Ok(Some(Self {
            id: reader.string("id")?,
            body,
            name: reader.maybe_string("name")?,
            encrypted_value: reader.maybe_string("encryptedValue")?,
            metadata: reader.maybe_object("metadata")?,
            subagent_run_id: reader.maybe_string("subagentRunId")?,
        }))
    }
}

impl<'de> Deserialize<'de> for Message {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        let message = Reader::over(&value, "").and_then(|reader| Self::read(&reader));
        message
            .map_err(serde::de::Error::custom)?
            .ok_or_else(|| serde::de::Error::custom("a message with an unknown role"))
    }
}

/// A string, or a list of parts.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Content {
    /// Text.
    Text(String),
    /// Text, images, documents.
    Parts(Vec<Part>),
}

impl Content {
    fn read(reader: &Reader<'_>) -> Result<Self, InputError> {
        match reader.required("content")? {
            Value::String(text) => Ok(Self::Text(text.clone())),
            Value::Array(_) => {
                let parts = reader.list("content", Part::read)?;
                Ok(Self::Parts(parts.into_iter().flatten().collect()))
            }
            _ => Err(reader.wrong("content", "a string or a list of parts")),
        }
    }

    /// All text, parts joined with newlines.
    pub fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Parts(parts) => {
                let texts = parts.iter().filter_map(|part| match &part.body {
                    PartBody::Text { text } => Some(text.as_str()),
                    _ => None,
                });
                texts.collect::<Vec<_>>().join("\n")
            }
        }
    }

    /// Whether any part is not text.
    pub fn has_media(&self) -> bool {
        let Self::Parts(parts) = self else { return false };
        parts.iter().any(|part| !matches!(part.body, PartBody::Text { .. }))
    }
}

impl From<&str> for Content {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Content {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let object = serde_json::json!({"content": Value::deserialize(deserializer)?});
        let content = Reader::over(&object, "").and_then(|reader| Self::read(&reader));
        content.map_err(serde::de::Error::custom)
    }
}

/// One part of a content.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Part {
    /// Its type and data.
    #[serde(flatten)]
    pub body: PartBody,
    /// Its id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Additional data by key; `filename` is customary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Value>,
}

/// The type of a part, with its data.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
#[expect(missing_docs, reason = "the fields are the protocol's")]
pub enum PartBody {
    Text { text: String },
    Image { source: Source },
    Audio { source: Source },
    Video { source: Source },
    Document { source: Source },
}

impl Part {
    /// Makes a text part.
    pub fn text(text: impl Into<String>) -> Self {
        Self { body: PartBody::Text { text: text.into() }, id: None, metadata: None }
    }

    /// Makes an image part from base64.
    pub fn image(value: impl Into<String>, mime_type: impl Into<String>) -> Self {
        let source = Source::Data { value: value.into(), mime_type: mime_type.into() };
        Self { body: PartBody::Image { source }, id: None, metadata: None }
    }

    /// The file name in the metadata, if any.
    pub fn filename(&self) -> Option<&str> {
        self.metadata.as_ref()?.get("filename")?.as_str()
    }

    /// Reads a part; `None` for a type unknown to 1.0.
    fn read(reader: &Reader<'_>) -> Result<Option<Self>, InputError> {
        let kind = reader.string("type")?;
        if kind == "binary" {
            return Self::read_binary(reader);
        }
        let source = || Source::read(&reader.child("source")?);
        let body = match kind.as_str() {
            "text" => PartBody::Text { text: reader.string("text")? },
            "image" => PartBody::Image { source: source()? },
            "audio" => PartBody::Audio { source: source()? },
            "video" => PartBody::Video { source: source()? },
            "document" => PartBody::Document { source: source()? },
            _ => {
                reader.warn("type", &format!("unknown part {kind}; it is left out"));
                return Ok(None);
            }
        };
        let metadata = reader.maybe("metadata").cloned();
        Ok(Some(Self { body, id: reader.maybe_string("id")?, metadata }))
    }

    /// Reads a `binary` part, the only kind of attachment before 1.0.
    fn read_binary(reader: &Reader<'_>) -> Result<Option<Self>, InputError> {
        let mime_type = reader.string("mimeType")?;
        let data = reader.maybe_string("data")?;
        let url = reader.maybe_string("url")?;
        let source = match (data, url, reader.maybe_string("id")?) {
            (Some(value), _, _) => Source::Data { value, mime_type: mime_type.clone() },
            (_, Some(value), _) => Source::Url { value, mime_type: Some(mime_type.clone()) },
            (_, _, Some(value)) => {
                Source::File { value, provider: None, mime_type: Some(mime_type.clone()) }
            }
            _ => return Err(reader.wrong("data", "present, or else `url` or `id`")),
        };
        let body = match mime_type.split('/').next() {
            Some("image") => PartBody::Image { source },
            Some("audio") => PartBody::Audio { source },
            Some("video") => PartBody::Video { source },
            _ => PartBody::Document { source },
        };
        let filename = reader.maybe_string("filename")?;
        let metadata = filename.map(|name| serde_json::json!({"filename": name}));
        Ok(Some(Self { body, id: None, metadata }))
    }
}

/// Where a part's bytes are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "lowercase", rename_all_fields = "camelCase")]
#[expect(missing_docs, reason = "the fields are the protocol's")]
pub enum Source {
    /// Inline, as base64.
    Data { value: String, mime_type: String },
    /// At an address.
    Url {
        value: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        mime_type: Option<String>,
    },
    /// Uploaded to the provider before; the id is opaque.
    File {
        value: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        provider: Option<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        mime_type: Option<String>,
    },
}

impl Source {
    fn read(reader: &Reader<'_>) -> Result<Self, InputError> {
        let value = reader.string("value")?;
        match reader.string("type")?.as_str() {
            "data" => Ok(Self::Data { value, mime_type: reader.string("mimeType")? }),
            "url" => Ok(Self::Url { value, mime_type: reader.maybe_string("mimeType")? }),
            "file" => Ok(Self::File {
                value,
                provider: reader.maybe_string("provider")?,
                mime_type: reader.maybe_string("mimeType")?,
            }),
            _ => Err(reader.wrong("type", "`data`, `url` or `file`")),
        }
    }
}

/// A tool call in an assistant message.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolCall {
    /// The id of the call.
    pub id: String,
    /// Always `function`.
    pub r#type: FunctionType,
    /// The called function.
    pub function: FunctionCall,
    /// Opaque data that the provider needs back.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encrypted_value: Option<String>,
    /// Additional data by key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
}

/// The only type of call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the protocol's word")]
pub enum FunctionType {
    #[default]
    Function,
}

/// A function with its arguments.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FunctionCall {
    /// The tool.
    pub name: String,
    /// The arguments as JSON text.
    pub arguments: String,
}

impl ToolCall {
    fn read(reader: &Reader<'_>) -> Result<Self, InputError> {
        if reader.string("type")? != "function" {
            return Err(reader.wrong("type", "`function`"));
        }
        let function = reader.child("function")?;
        Ok(Self {
            id: reader.string("id")?,
            r#type: FunctionType::Function,
            function: FunctionCall {
                name: function.string("name")?,
                arguments: function.string("arguments")?,
            },
            encrypted_value: reader.maybe_string("encryptedValue")?,
            metadata: reader.maybe_object("metadata")?,
        })
    }
}
