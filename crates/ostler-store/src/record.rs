//! Records: small documents that change, with a version.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Timestamp;

/// A document with a version: a task, an approval, a rule, a schedule, a user.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// What it is, in one word.
    pub kind: String,
    /// Which one of its kind.
    pub id: String,
    /// Grows with every change, and is never used twice for the same id, also when the record was removed in between.
    pub version: u64,
    /// The user it belongs to.
    pub owner: Option<String>,
    /// The document.
    pub body: Value,
    /// When it was changed last.
    pub updated: Timestamp,
}

/// A change: the whole new document, and what is expected to be there.
#[derive(Clone, Debug, PartialEq)]
pub struct Put {
    /// What it is, in one word.
    pub kind: String,
    /// Which one of its kind.
    pub id: String,
    /// The user it belongs to.
    pub owner: Option<String>,
    /// The document.
    pub body: Value,
    /// What must be there for the change to happen.
    pub expected: Expected,
}

impl Put {
    /// A document that is not there yet.
    pub fn new(kind: impl Into<String>, id: impl Into<String>, body: Value) -> Self {
        Self { kind: kind.into(), id: id.into(), owner: None, body, expected: Expected::Absent }
    }

    /// A record as it was read, and changed since; only if nobody else changed it.
    pub fn update(record: Record) -> Self {
        let Record { kind, id, version, owner, body, .. } = record;
        Self { kind, id, owner, body, expected: Expected::Version(version) }
    }

    /// Belonging to this user.
    #[must_use]
    pub fn owner(self, owner: impl Into<String>) -> Self {
        Self { owner: Some(owner.into()), ..self }
    }

    /// Only if this is there.
    #[must_use]
    pub fn expected(self, expected: Expected) -> Self {
        Self { expected, ..self }
    }
}

/// What must be there for a change to happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// No such record.
    Absent,
    /// This version of it.
    Version(u64),
    /// Whatever is there, or nothing. The last one wins.
    Any,
}

/// Which records of a kind; all conditions that are given must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Those of this user.
    pub owner: Option<String>,
    /// Those whose id begins like this.
    pub prefix: Option<String>,
    /// Those whose body has this field, on top, with this string in it. Looking for `state` is fast.
    pub field: Option<(String, String)>,
    /// Those whose body has this field, on top, with one of these strings in it. Looking for `state` is fast.
    pub any_of: Option<(String, Vec<String>)>,
    /// Those whose body has this field, on top, with a string that has this one in it, letter by letter.
    pub contains: Option<(String, String)>,
}

/// Which part of a list, ordered by id unless it says otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// Only what comes after this id; whether there is a record of that id does not matter.
    pub after: Option<String>,
    /// At most so many; a store may return fewer when they are large, but never none while there are some.
    pub limit: usize,
    /// From the last id to the first.
    pub descending: bool,
    /// Ordered by this field of the body, on top, in place of the id; `after` is then a value of it. It has strings that no
    /// two records of the kind share. Records without it are left out. Order by `place` is fast.
    pub by: Option<String>,
}

impl Default for Page {
    fn default() -> Self {
        Self { after: None, limit: 100, descending: false, by: None }
    }
}
