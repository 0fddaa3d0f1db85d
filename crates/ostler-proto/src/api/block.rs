//! Content blocks, and the two shapes in which content is written: a string or a list of blocks.

use std::fmt;

use ostler_proto_derive::Wire;
use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::{Extra, ToolUseId, UnknownObject};

/// One block of a message.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(tag = "type")]
#[non_exhaustive]
pub enum ContentBlock {
    /// Plain text.
    Text(TextBlock),
    /// The model's reasoning.
    Thinking(ThinkingBlock),
    /// Reasoning the API returned encrypted.
    RedactedThinking(RedactedThinkingBlock),
    /// The model calls a tool.
    ToolUse(ToolUseBlock),
    /// The result of the tool.
    ToolResult(ToolResultBlock),
    /// The model calls a tool that the API runs itself.
    ServerToolUse(ToolUseBlock),
    /// What a web search of the API found.
    WebSearchToolResult(ServerToolResultBlock),
    /// What a web fetch of the API found.
    WebFetchToolResult(ServerToolResultBlock),
    /// An image.
    Image(ImageBlock),
    /// A document, such as a PDF.
    Document(DocumentBlock),
    /// A block this version does not know.
    #[wire(other)]
    Unknown(UnknownObject),
}

impl ContentBlock {
    /// A text block.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(TextBlock { text: text.into(), ..TextBlock::default() })
    }

    /// The text of a text block.
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(block) => Some(&block.text),
            _ => None,
        }
    }

    /// The call in a `tool_use` block.
    pub fn as_tool_use(&self) -> Option<&ToolUseBlock> {
        match self {
            Self::ToolUse(block) => Some(block),
            _ => None,
        }
    }
}

/// `text`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
pub struct TextBlock {
    /// The text.
    pub text: String,
    /// Sources the model cited.
    pub citations: Option<Value>,
    /// A prompt-cache breakpoint.
    pub cache_control: Option<Value>,
    /// Unknown fields.
    pub extra: Extra,
}

/// `thinking`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[non_exhaustive]
pub struct ThinkingBlock {
    /// The reasoning; empty when its display is disabled.
    pub thinking: String,
    /// Proves to the API that the block is its own. The Python SDK requires it in `assistant` frames.
    pub signature: Option<String>,
    /// Unknown fields.
    pub extra: Extra,
}

/// `redacted_thinking`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[non_exhaustive]
pub struct RedactedThinkingBlock {
    /// Opaque; returned to the API unchanged.
    pub data: String,
    /// Unknown fields.
    pub extra: Extra,
}

/// `tool_use` and `server_tool_use`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[non_exhaustive]
pub struct ToolUseBlock {
    /// The call's id; the answer refers to it.
    pub id: ToolUseId,
    /// The tool. MCP tools are named `mcp__<server>__<tool>`.
    pub name: String,
    /// The arguments. In `assistant` frames they are normalised, in stream events raw.
    pub input: Value,
    /// Who called, when a server-side tool did.
    pub caller: Option<Value>,
    /// A prompt-cache breakpoint.
    pub cache_control: Option<Value>,
    /// Unknown fields.
    pub extra: Extra,
}

/// `tool_result`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[non_exhaustive]
pub struct ToolResultBlock {
    /// The call this answers.
    pub tool_use_id: ToolUseId,
    /// What the model reads.
    pub content: Option<Content>,
    /// Whether the call failed. Absent for some tools when it did not.
    pub is_error: Option<bool>,
    /// A prompt-cache breakpoint.
    pub cache_control: Option<Value>,
    /// Unknown fields.
    pub extra: Extra,
}

/// Results of tools that the API ran.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
#[non_exhaustive]
pub struct ServerToolResultBlock {
    /// The call this answers.
    pub tool_use_id: ToolUseId,
    /// Hits, a page, or an error object.
    pub content: Value,
    /// Who called, when another server-side tool did.
    pub caller: Option<Value>,
    /// Unknown fields.
    pub extra: Extra,
}

/// `image`.
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct ImageBlock {
    /// Where the picture is.
    pub source: Source,
    /// A prompt-cache breakpoint.
    pub cache_control: Option<Value>,
    /// Unknown fields.
    pub extra: Extra,
}

/// `document`.
#[derive(Clone, Debug, PartialEq, Wire)]
pub struct DocumentBlock {
    /// Where the document is.
    pub source: Source,
    /// Its title.
    #[wire(name = "title")]
    pub title: Option<String>,
    /// Context about it for the model.
    pub context: Option<String>,
    /// Whether the model may cite from it.
    pub citations: Option<Value>,
    /// A prompt-cache breakpoint.
    pub cache_control: Option<Value>,
    /// Unknown fields.
    pub extra: Extra,
}

/// Where an image or document comes from.
#[derive(Clone, Debug, PartialEq, Wire)]
#[wire(tag = "type")]
#[non_exhaustive]
pub enum Source {
    /// The bytes themselves.
    Base64(Base64Source),
    /// An address the API fetches.
    Url(UrlSource),
    /// Plain text as a document.
    Text(TextSource),
    /// A file uploaded to the API before.
    File(FileSource),
    /// A source this version does not know.
    #[wire(other)]
    Unknown(UnknownObject),
}

/// `base64`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
pub struct Base64Source {
    /// For instance `image/png`.
    pub media_type: String,
    /// The bytes in base 64.
    pub data: String,
    /// Unknown fields.
    pub extra: Extra,
}

/// `url`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
pub struct UrlSource {
    /// The address.
    pub url: String,
    /// Unknown fields.
    pub extra: Extra,
}

/// `text`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
pub struct TextSource {
    /// Always `text/plain`.
    pub media_type: String,
    /// The text.
    pub data: String,
    /// Unknown fields.
    pub extra: Extra,
}

/// `file`.
#[derive(Clone, Debug, Default, PartialEq, Wire)]
pub struct FileSource {
    /// The file's id at the API.
    pub file_id: String,
    /// Unknown fields.
    pub extra: Extra,
}

/// Content as the API allows it to be written: one string, or blocks.
#[derive(Clone, Debug, PartialEq)]
pub enum Content {
    /// Short for a single text block.
    Text(String),
    /// Blocks in order.
    Blocks(Vec<ContentBlock>),
}

impl Content {
    /// All text in it, blocks joined with newlines.
    pub fn text(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Blocks(blocks) => {
                blocks.iter().filter_map(ContentBlock::as_text).collect::<Vec<_>>().join("\n")
            }
        }
    }
}

impl Default for Content {
    fn default() -> Self {
        Self::Text(String::new())
    }
}

impl From<&str> for Content {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<Vec<ContentBlock>> for Content {
    fn from(blocks: Vec<ContentBlock>) -> Self {
        Self::Blocks(blocks)
    }
}

impl Serialize for Content {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => serializer.serialize_str(text),
            Self::Blocks(blocks) => blocks.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ContentVisitor)
    }
}

struct ContentVisitor;

impl<'de> Visitor<'de> for ContentVisitor {
    type Value = Content;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string or a list of content blocks")
    }

    fn visit_str<E>(self, text: &str) -> Result<Content, E> {
        Ok(Content::Text(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<Content, E> {
        Ok(Content::Text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Content, A::Error> {
        let mut blocks = Vec::new();
        while let Some(block) = seq.next_element()? {
            blocks.push(block);
        }
        Ok(Content::Blocks(blocks))
    }
}
