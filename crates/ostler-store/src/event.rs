//! Events, what they carry, and the right to add them.

use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::{RawValue, to_raw_value};

use crate::{StreamId, Timestamp};

/// JSON as text, on one line: written once, then passed on to every reader without being parsed. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Body(Arc<RawValue>);

impl Body {
    /// What `value` is as JSON. Fails for what has no JSON, such as a map whose keys are no strings.
    pub fn of(value: &(impl Serialize + ?Sized)) -> Result<Self, serde_json::Error> {
        to_raw_value(value).map(|raw| Self(raw.into()))
    }

    /// Text that is JSON already. Line breaks around its values become spaces.
    pub fn from_text(mut text: String) -> Result<Self, serde_json::Error> {
        // Inside of strings they are always escaped.
        if text.contains(['\n', '\r']) {
            text = text.replace(['\n', '\r'], " ");
        }
        RawValue::from_string(text).map(|raw| Self(raw.into()))
    }

    /// The JSON.
    pub fn as_str(&self) -> &str {
        self.0.get()
    }

    /// The JSON as a value of a type.
    pub fn to<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.as_str())
    }
}

impl PartialEq for Body {
    /// The same text; `1.0` and `1` are not.
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl From<&serde_json::Value> for Body {
    fn from(value: &serde_json::Value) -> Self {
        Self::of(value).expect("a JSON value has JSON")
    }
}

impl From<serde_json::Value> for Body {
    fn from(value: serde_json::Value) -> Self {
        Self::from(&value)
    }
}

impl Serialize for Body {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Body {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Self::from_text(String::from(Box::<str>::from(raw))).map_err(serde::de::Error::custom)
    }
}

/// Something that happened, to be added to a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct NewEvent {
    /// What happened, in one word such as `message` or `approval.answered`.
    pub kind: String,
    /// The particulars.
    pub body: Body,
    /// Whoever adds it again under the same key gets the event that is there. In one append all events have a key, or
    /// none has.
    pub key: Option<String>,
    /// Whether [`crate::Store::append`] returns only when nothing can take it away any more. Pieces of text that will be
    /// repeated as a whole do not need that; everything somebody relies on does. Readers see neither kind before it is
    /// on disk, and should not be shown it in another way: after a crash its number may belong to another event, which
    /// a reader who believes to have seen it would miss.
    pub durable: bool,
    /// For a part of something that comes whole later, such as a text delta: what it is a part of. It has a number and
    /// is read like any event until an event drops it; then its number stays unused. It cannot have a key.
    pub draft: Option<String>,
    /// The drafts that end with this event: those whose name of a whole begins like this.
    pub drops: Option<String>,
}

impl NewEvent {
    /// A durable event without a key.
    pub fn new(kind: impl Into<String>, body: impl Into<Body>) -> Self {
        let (kind, body) = (kind.into(), body.into());
        Self { kind, body, key: None, durable: true, draft: None, drops: None }
    }

    /// Added at most once under this key, however often that is tried.
    #[must_use]
    pub fn key(self, key: impl Into<String>) -> Self {
        Self { key: Some(key.into()), ..self }
    }

    /// The appender does not wait for the disk; a crash within some milliseconds may lose it.
    #[must_use]
    pub fn fleeting(self) -> Self {
        Self { durable: false, ..self }
    }

    /// A part of a whole that comes later, see [`NewEvent::draft`]. It is fleeting too.
    #[must_use]
    pub fn draft(self, whole: impl Into<String>) -> Self {
        Self { draft: Some(whole.into()), durable: false, ..self }
    }

    /// Drops the drafts of all wholes whose name begins like this; a draft may drop itself.
    #[must_use]
    pub fn drops(self, wholes: impl Into<String>) -> Self {
        Self { drops: Some(wholes.into()), ..self }
    }
}

/// Something that happened, at its place in a stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// Where.
    pub stream: StreamId,
    /// Its number: from 1, without gaps but for drafts that were dropped.
    pub seq: u64,
    /// When, by the clock of the store; in one stream never earlier than the event before.
    pub at: Timestamp,
    /// What, in one word.
    pub kind: String,
    /// The particulars.
    pub body: Body,
}

/// The right to add to a stream, for a while.
///
/// It is lost when somebody else has claimed the stream, which nobody can before `until`. So whoever cannot renew it
/// stops what it does for the stream *before* that, by a clock of its own that began when it asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// To what.
    pub stream: StreamId,
    /// Whose it is: one name per process that is started, never used again.
    pub owner: String,
    /// How often the stream has been claimed. A lease with a lower number than the latest is worth nothing.
    pub epoch: u64,
    /// When others may claim it, by the clock of the store.
    pub until: Timestamp,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Body;

    #[test]
    fn a_body_is_json_on_one_line() {
        let body = Body::from_text("{\n  \"a\": \"x\\ny\",\r\n \"b\": 1.0}".to_owned()).unwrap();
        assert!(!body.as_str().contains(['\n', '\r']), "{body:?}");
        assert_eq!(body.to::<serde_json::Value>().unwrap(), json!({"a": "x\ny", "b": 1.0}));
        for text in ["", "{", "1 2", "{\"a\":1}x", "nul"] {
            assert!(Body::from_text(text.to_owned()).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_body_inside_other_json_is_as_it_was_written() {
        let body: Body = serde_json::from_str("{ \"n\": 1.50 }").unwrap();
        assert_eq!(serde_json::to_string(&[&body]).unwrap(), "[{ \"n\": 1.50 }]");
        assert_eq!(Body::from(json!({"n": 1})).as_str(), "{\"n\":1}");
    }
}
