//! Records: small documents with a version.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Timestamp;

/// A document with a version: a task, an approval, a rule, a schedule, a user.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Such as `task`.
    pub kind: String,
    /// Unique within its kind.
    pub id: String,
    /// Grows with every change and is never used twice for the same id, even after the record was removed.
    pub version: u64,
    /// The user it belongs to.
    pub owner: Option<String>,
    /// The document.
    pub body: Value,
    /// When it was changed last.
    pub updated: Timestamp,
}

/// A write of a whole document, with the version it expects to replace.
#[derive(Clone, Debug, PartialEq)]
pub struct Put {
    /// Such as `task`.
    pub kind: String,
    /// Unique within its kind.
    pub id: String,
    /// The user it belongs to.
    pub owner: Option<String>,
    /// The document.
    pub body: Value,
    /// What must be stored for the write to happen.
    pub expected: Expected,
}

impl Put {
    /// Creates a record; it must not exist yet.
    pub fn new(kind: impl Into<String>, id: impl Into<String>, body: Value) -> Self {
        Self { kind: kind.into(), id: id.into(), owner: None, body, expected: Expected::Absent }
    }

    /// Writes back a record that was read and changed; refused if another writer changed it meanwhile.
    pub fn update(record: Record) -> Self {
        let Record { kind, id, version, owner, body, .. } = record;
        Self { kind, id, owner, body, expected: Expected::Version(version) }
    }

    /// Sets the owner.
    #[must_use]
    pub fn owner(self, owner: impl Into<String>) -> Self {
        Self { owner: Some(owner.into()), ..self }
    }

    /// Sets what must be stored for the write to happen.
    #[must_use]
    pub fn expected(self, expected: Expected) -> Self {
        Self { expected, ..self }
    }
}

/// What must be stored for a change to happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// The record must not exist.
    Absent,
    /// The record must have this version.
    Version(u64),
    /// No condition. The last write wins.
    Any,
}

/// Selects records of a kind; all given conditions must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Owned by this user.
    pub owner: Option<String>,
    /// The id starts with this.
    pub prefix: Option<String>,
    /// This field of the body is this string; `a.b` is the field `b` of the field `a`. `state`, `session`, `run`, `digest`,
    /// `folder` of an owner, `setup.space`, `start.session` and `execution.session` are indexed.
    pub field: Option<(String, String)>,
    /// This top-level field of the body is one of these strings. `state` is indexed, also next to `session` in
    /// [`Self::field`].
    pub any_of: Option<(String, Vec<String>)>,
    /// This top-level field of the body contains this string; case matters.
    pub contains: Option<(String, String)>,
}

/// Selects a part of a list. The default order is by id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// Start after this id; a record with it need not exist.
    pub after: Option<String>,
    /// The maximum number of records to return. A store may return fewer if they are large, but at least one if any is
    /// left.
    pub limit: usize,
    /// Reverses the order.
    pub descending: bool,
    /// Order by this top-level field of the body instead of the id; `after` is then a value of it. Its values are
    /// strings, unique within the kind. Records without it are left out. `place` is indexed, also
    /// next to an owner or the field `session`; so is `begun` next to the field `setup.space`.
    pub by: Option<String>,
}

impl Default for Page {
    fn default() -> Self {
        Self { after: None, limit: 100, descending: false, by: None }
    }
}
