//! Events, their bodies, and leases on streams.

use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::{RawValue, to_raw_value};

use crate::{StreamId, Timestamp};

/// JSON on one line, as text: serialized once, then passed to every reader unparsed. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Body(Arc<RawValue>);

impl Body {
    /// Serializes `value`. Fails if it has no JSON form, such as a map whose keys are not strings.
    pub fn of(value: &(impl Serialize + ?Sized)) -> Result<Self, serde_json::Error> {
        to_raw_value(value).map(|raw| Self(raw.into()))
    }

    /// Takes text that is JSON already. Line breaks between its values become spaces.
    pub fn from_text(mut text: String) -> Result<Self, serde_json::Error> {
        // Inside strings they are always escaped.
        if text.contains(['\n', '\r']) {
            text = text.replace(['\n', '\r'], " ");
        }
        RawValue::from_string(text).map(|raw| Self(raw.into()))
    }

    /// The JSON text.
    pub fn as_str(&self) -> &str {
        self.0.get()
    }

    /// Deserializes the JSON.
    pub fn to<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.as_str())
    }
}

impl PartialEq for Body {
    /// Compares the text; `1.0` and `1` differ.
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

/// An event to append to a stream.
#[derive(Clone, Debug, PartialEq)]
pub struct NewEvent {
    /// Such as `message` or `approval.answered`.
    pub kind: String,
    /// The event's data.
    pub body: Body,
    /// Idempotency key: a second event with the same key is not added; the stored one is returned. In one append
    /// either all events have a key or none has.
    pub key: Option<String>,
    /// Whether [`crate::Store::append`] waits until the event is on disk. Text deltas, which are repeated in a
    /// complete message later, need not wait; everything a client relies on must. Readers see neither kind before it
    /// is on disk, and must not receive it in another way: after a crash its number may belong to another event,
    /// which a reader that saw the lost one would skip.
    pub durable: bool,
    /// For a part of something that arrives complete later, such as a text delta: the name of the whole. A draft has
    /// a number and is read like any event until an event drops it; its number then stays unused. It cannot have a
    /// key.
    pub draft: Option<String>,
    /// Drops all drafts whose `draft` name starts with this.
    pub drops: Option<String>,
}

impl NewEvent {
    /// Makes a durable event without a key.
    pub fn new(kind: impl Into<String>, body: impl Into<Body>) -> Self {
        let (kind, body) = (kind.into(), body.into());
        Self { kind, body, key: None, durable: true, draft: None, drops: None }
    }

    /// Sets the idempotency key.
    #[must_use]
    pub fn key(self, key: impl Into<String>) -> Self {
        Self { key: Some(key.into()), ..self }
    }

    /// The append does not wait for the disk; a crash within a few milliseconds may lose the event.
    #[must_use]
    pub fn fleeting(self) -> Self {
        Self { durable: false, ..self }
    }

    /// Marks the event as a draft of `whole`, see [`NewEvent::draft`]. A draft is fleeting too.
    #[must_use]
    pub fn draft(self, whole: impl Into<String>) -> Self {
        Self { draft: Some(whole.into()), durable: false, ..self }
    }

    /// Drops all drafts whose name starts with this; a draft may drop itself.
    #[must_use]
    pub fn drops(self, wholes: impl Into<String>) -> Self {
        Self { drops: Some(wholes.into()), ..self }
    }
}

/// A stored event.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    /// The stream it belongs to.
    pub stream: StreamId,
    /// Numbered from 1 without gaps, except for dropped drafts.
    pub seq: u64,
    /// When it was stored, by the store's clock; never earlier than the event before it in the stream.
    pub at: Timestamp,
    /// Such as `message` or `approval.answered`.
    pub kind: String,
    /// The event's data.
    pub body: Body,
}

/// The right to append to a stream, for a limited time.
///
/// It is lost when another owner claims the stream, which is impossible before `until`. An owner that cannot renew it
/// must stop working on the stream *before* that, measured by its own clock from when it sent the claim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// The stream it is for.
    pub stream: StreamId,
    /// One name per started process, never reused.
    pub owner: String,
    /// How often the stream has been claimed. A lease with a lower epoch than the latest is invalid.
    pub epoch: u64,
    /// When the lease expires, by the store's clock.
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
    fn a_body_embedded_in_other_json_is_unchanged() {
        let body: Body = serde_json::from_str("{ \"n\": 1.50 }").unwrap();
        assert_eq!(serde_json::to_string(&[&body]).unwrap(), "[{ \"n\": 1.50 }]");
        assert_eq!(Body::from(json!({"n": 1})).as_str(), "{\"n\":1}");
    }
}
