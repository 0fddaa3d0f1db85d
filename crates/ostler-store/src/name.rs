//! Validation of stream names.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

const LONGEST: usize = 128;

/// The name of a stream: 1 to 128 ASCII letters, digits, and any of `. _ : -`. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct StreamId(Arc<str>);

impl StreamId {
    /// Fails if the name breaks the rules above.
    pub fn new(name: impl AsRef<str>) -> Result<Self, InvalidName> {
        let name = name.as_ref();
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._:-".contains(&byte);
        if name.is_empty() || name.len() > LONGEST || !name.bytes().all(allowed) {
            return Err(InvalidName { name: name.chars().take(LONGEST).collect() });
        }
        Ok(Self(name.into()))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A name that is not valid for a stream.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{name:?} is not a valid stream name: use 1 to 128 ASCII letters, digits, and any of . _ : -"
)]
pub struct InvalidName {
    /// The beginning of the refused name.
    pub name: String,
}

impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for StreamId {
    type Err = InvalidName;

    fn from_str(name: &str) -> Result<Self, InvalidName> {
        Self::new(name)
    }
}

impl TryFrom<String> for StreamId {
    type Error = InvalidName;

    fn try_from(name: String) -> Result<Self, InvalidName> {
        Self::new(name)
    }
}

impl From<StreamId> for String {
    fn from(stream: StreamId) -> Self {
        stream.as_str().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::StreamId;

    #[test]
    fn a_stream_name_has_at_most_128_plain_characters() {
        for name in ["a", "run:7", "0b1c.session_2-x", &"x".repeat(128)] {
            assert_eq!(StreamId::new(name).unwrap().as_str(), name);
        }
        for name in ["", " ", "a/b", "a b", "ä", "a\n", "../x", "a\0", &"x".repeat(129)] {
            assert!(StreamId::new(name).is_err(), "{name:?}");
            assert!(serde_json::from_value::<StreamId>(name.into()).is_err(), "{name:?}");
        }
    }
}
