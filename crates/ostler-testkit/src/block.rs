//! The content blocks of a reply, and how a stream splits them into deltas.

use serde::Deserialize;
use serde_json::{Value, json};

/// The default number of deltas for a text or a tool input.
const DEFAULT_PIECES: usize = 3;

/// One content block of a reply, in JSON tagged by its `type`.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub enum Block {
    /// Text to the user.
    Text {
        /// The text, whole or in the pieces in which it is streamed.
        text: Text,
        /// The number of deltas for a whole text.
        #[serde(default = "default_pieces")]
        split: usize,
    },
    /// Thinking, closed by a signature.
    Thinking {
        /// The thinking, whole or in the pieces in which it is streamed.
        thinking: Text,
        /// The signature with which the real API checks the thinking.
        signature: String,
        /// The number of deltas for whole thinking.
        #[serde(default = "default_pieces")]
        split: usize,
    },
    /// Thinking that the API redacts.
    RedactedThinking {
        /// The opaque content.
        data: String,
    },
    /// A call of one of the client's tools.
    ToolUse(ToolUse),
    /// A call of a tool that the API runs itself.
    ServerToolUse(ToolUse),
    /// Any other block, sent unchanged in `content_block_start`.
    Raw {
        /// The block, with its own `type`.
        block: Value,
    },
}

impl Block {
    /// Text, streamed in a few pieces.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: Text::Whole(text.into()), split: DEFAULT_PIECES }
    }

    /// Text, streamed in exactly these pieces.
    pub fn text_pieces<T: Into<String>>(pieces: impl IntoIterator<Item = T>) -> Self {
        let pieces = pieces.into_iter().map(Into::into).collect();
        Self::Text { text: Text::Pieces(pieces), split: DEFAULT_PIECES }
    }

    /// Thinking with its signature.
    pub fn thinking(thinking: impl Into<String>, signature: impl Into<String>) -> Self {
        let thinking = Text::Whole(thinking.into());
        Self::Thinking { thinking, signature: signature.into(), split: DEFAULT_PIECES }
    }

    /// A tool call with an id made by the server; [`ToolUse`] has more options.
    pub fn tool_use(name: impl Into<String>, input: Value) -> Self {
        Self::ToolUse(ToolUse::new(name, input))
    }
}

/// A tool call.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolUse {
    /// The name of the tool.
    pub name: String,
    /// The arguments. An empty object is streamed as one empty delta, as in the real API.
    #[serde(default = "empty_input")]
    pub input: Value,
    /// The id of the call; if absent, the server makes a unique one.
    #[serde(default)]
    pub id: Option<String>,
    /// The number of deltas for the arguments.
    #[serde(default = "default_pieces")]
    pub split: usize,
    /// Text to stream instead of the arguments, to imitate a model that writes invalid JSON.
    #[serde(default)]
    pub raw_input: Option<String>,
}

impl ToolUse {
    /// A call whose arguments are streamed in a few pieces.
    pub fn new(name: impl Into<String>, input: Value) -> Self {
        Self { name: name.into(), input, id: None, split: DEFAULT_PIECES, raw_input: None }
    }

    /// Sets the id of the call.
    pub fn id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    /// Splits the arguments into this many deltas.
    pub fn split(mut self, pieces: usize) -> Self {
        self.split = pieces;
        self
    }

    /// Streams this text in place of the arguments.
    pub fn raw_input(mut self, text: impl Into<String>) -> Self {
        self.raw_input = Some(text.into());
        self
    }
}

impl From<ToolUse> for Block {
    fn from(call: ToolUse) -> Self {
        Self::ToolUse(call)
    }
}

/// Text, whole or in the pieces in which it is streamed.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged, expecting = "expected a text or a list of its pieces")]
pub enum Text {
    /// The server splits it.
    Whole(String),
    /// The script has split it.
    Pieces(Vec<String>),
}

impl Text {
    /// The pieces to stream, after `fill` has replaced the templates in them.
    pub(crate) fn pieces(&self, split: usize, fill: impl Fn(&str) -> String) -> Vec<String> {
        match self {
            Self::Whole(text) => split_text(&fill(text), split),
            Self::Pieces(pieces) => pieces.iter().map(|piece| fill(piece)).collect(),
        }
    }
}

/// Splits a text into `pieces` parts with nearly the same number of characters. A shorter text is split into its
/// characters, an empty one into no parts.
pub(crate) fn split_text(text: &str, pieces: usize) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    let pieces = pieces.clamp(1, characters.len().max(1));
    let cut = |number: usize| characters.len() * number / pieces;
    let parts = (0..pieces)
        .map(|number| characters[cut(number)..cut(number + 1)].iter().collect::<String>());
    parts.filter(|part| !part.is_empty()).collect()
}

fn default_pieces() -> usize {
    DEFAULT_PIECES
}

fn empty_input() -> Value {
    json!({})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_split_between_characters_and_nothing_is_lost() {
        let text = "añ日本🎉x";
        for pieces in 0..10 {
            let parts = split_text(text, pieces);
            assert_eq!(parts.concat(), text);
            assert_eq!(parts.len(), pieces.clamp(1, 6));
        }
    }

    #[test]
    fn an_empty_text_has_no_pieces() {
        assert!(split_text("", 3).is_empty());
    }

    #[test]
    fn pieces_given_by_the_script_are_kept() {
        let text: Text = serde_json::from_value(json!(["a", "bc"])).unwrap();
        assert_eq!(text.pieces(9, str::to_owned), ["a", "bc"]);
    }
}
