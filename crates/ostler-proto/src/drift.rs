//! Reports which parts of the traffic this version does not know.
//!
//! Peers change faster than this crate. Unknown parts are kept, but should be noticed: wrap decoding in [`observe`]
//! and read the list. The tests do so with recorded traffic of every supported version.

use std::cell::RefCell;
use std::collections::BTreeSet;

thread_local! {
    // Per thread and only while `observe` runs, because serde has no context parameter.
    static SEEN: RefCell<Option<BTreeSet<String>>> = const { RefCell::new(None) };
}

/// Runs `decode` and returns its value with everything unknown it met: fields as `Struct.field`, enum values and
/// object tags as `Enum = value`.
///
/// ```
/// use ostler_proto::drift;
/// use ostler_proto::frame::{Frame, ToHost};
///
/// let line = r#"{"type":"keep_alive","mood":"fine"}"#;
/// let (frame, unknown) = drift::observe(|| ToHost::from_line(line));
/// assert!(frame.is_ok());
/// assert_eq!(unknown.into_iter().collect::<Vec<_>>(), ["KeepAlive.mood"]);
/// ```
pub fn observe<T>(decode: impl FnOnce() -> T) -> (T, BTreeSet<String>) {
    let outer = SEEN.replace(Some(BTreeSet::new()));
    let value = decode();
    let seen = SEEN.replace(outer).unwrap_or_default();
    (value, seen)
}

pub(crate) fn note_field(object: &str, field: &str) {
    note(|| format!("{object}.{field}"));
}

pub(crate) fn note_word(of: &str, word: &str) {
    note(|| format!("{of} = {word}"));
}

fn note(text: impl FnOnce() -> String) {
    SEEN.with_borrow_mut(|seen| {
        if let Some(seen) = seen {
            seen.insert(text());
        }
    });
}
