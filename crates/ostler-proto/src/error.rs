//! Errors in a line.

use serde_json::Value;

use crate::frame::Frame;
use crate::quirks;

/// Why a line could not be read. Every variant carries (the beginning of) the text at fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// The line is not JSON.
    #[error("not JSON: {reason}; the line was: {text}")]
    #[non_exhaustive]
    NotJson {
        /// The parser's message.
        reason: String,
        /// The line, shortened.
        text: String,
    },
    /// The line is JSON, but not an object.
    #[error("expected a JSON object, found {found}; the line was: {text}")]
    #[non_exhaustive]
    NotAnObject {
        /// The type that was found.
        found: &'static str,
        /// The line, shortened.
        text: String,
    },
    /// The type is known, but a field is missing or of the wrong type.
    #[error("malformed {kind}: {reason}; the line was: {text}")]
    #[non_exhaustive]
    Malformed {
        /// The type, as on the wire.
        kind: String,
        /// Which field, and what is wrong with it.
        reason: String,
        /// The line, shortened.
        text: String,
    },
    /// The line is not UTF-8.
    #[error("not UTF-8 at byte {at}; the line was: {text}")]
    #[non_exhaustive]
    NotUtf8 {
        /// Position of the first bad byte.
        at: usize,
        /// The line, shortened, bad bytes replaced.
        text: String,
    },
    /// The line is longer than the reader allows. The rest of it was skipped.
    #[error("line longer than {limit} bytes; it begins: {text}")]
    #[non_exhaustive]
    TooLong {
        /// The limit.
        limit: usize,
        /// The beginning.
        text: String,
    },
}

impl DecodeError {
    /// Decodes a failed line again, more slowly: repairs what is repairable, and reports the rest.
    #[cold]
    pub(crate) fn look_closer<F: Frame>(line: &str, error: &serde_json::Error) -> Result<F, Self> {
        let value: Value = match serde_json::from_str(line) {
            Ok(value) => value,
            Err(syntax) => {
                return match quirks::replace_lone_surrogates(line) {
                    Some(repaired) => F::from_line(&repaired),
                    None => {
                        Err(Self::NotJson { reason: syntax.to_string(), text: shortened(line) })
                    }
                };
            }
        };
        let found = match &value {
            Value::Object(_) => {
                let kind = value.get("type").and_then(Value::as_str).unwrap_or("frame").to_owned();
                return Err(Self::malformed(kind, error.to_string(), line));
            }
            Value::Null => "null",
            Value::Bool(_) => "a boolean",
            Value::Number(_) => "a number",
            Value::String(_) => "a string",
            Value::Array(_) => "an array",
        };
        Err(Self::NotAnObject { found, text: shortened(line) })
    }

    /// The error for a line that is longer than `limit` bytes.
    pub fn too_long(limit: usize, line: &[u8]) -> Self {
        // Only the start is quoted; replacement characters at the cut are harmless.
        let beginning = &line[..line.len().min(1024)];
        Self::TooLong { limit, text: shortened(&String::from_utf8_lossy(beginning)) }
    }

    pub(crate) fn malformed(kind: String, reason: String, text: &str) -> Self {
        Self::Malformed {
            kind: shortened(&kind),
            reason: shortened(&reason),
            text: shortened(text),
        }
    }
}

/// The most of a line an error quotes, in bytes.
const QUOTED: usize = 400;

/// The beginning of a text, with a note about how much is missing.
pub(crate) fn shortened(text: &str) -> String {
    let text = text.trim_end();
    if text.len() <= QUOTED {
        return text.to_owned();
    }
    let beginning = &text[..text.floor_char_boundary(QUOTED)];
    format!("{beginning}… ({} bytes in all)", text.len())
}

#[cfg(test)]
mod tests {
    use super::{DecodeError, QUOTED};
    use crate::frame::{Frame, ToHost};

    #[test]
    fn errors_name_the_problem_and_its_place() {
        for (line, expected) in [
            ("hello", "not JSON: expected value at line 1 column 1; the line was: hello"),
            ("[1]", "expected a JSON object, found an array; the line was: [1]"),
            ("null", "expected a JSON object, found null; the line was: null"),
            (
                r#"{"type":"assistant","message":{"role":"assistant","model":"m","content":[{"type":"text"}]}}"#,
                "malformed assistant: at assistant.message.content.text: missing field `text` at line 1 column 88",
            ),
            (
                r#"{"type":"system"}"#,
                "malformed system: at system: missing field `subtype` at line 1 column 17",
            ),
            (
                r#"{"num_turns":"two","type":"result"}"#,
                "malformed result: at result.num_turns: invalid type: string \"two\", expected u64",
            ),
        ] {
            let error = ToHost::from_line(line).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }

    #[test]
    fn quoted_text_is_bounded_and_cut_between_characters() {
        let line = format!("x{}", "é".repeat(QUOTED));
        let Err(DecodeError::NotJson { text, .. }) = ToHost::from_line(&line) else {
            panic!("expected an error")
        };
        assert!(text.len() < QUOTED + 40, "{}", text.len());
        assert!(text.ends_with(&format!("({} bytes in all)", line.len())));
    }
}
