//! Which parts of the traffic this version only passed through without knowing them.
//!
//! Peers grow faster than this crate. Nothing is lost when they do, but one wants to know: wrap decoding in
//! [`observe`] and look at the list. The tests do so over recorded traffic of every supported version.

use std::cell::RefCell;
use std::collections::BTreeSet;

thread_local! {
    // Per thread and only while `observe` runs: decoding goes through serde, which has no room for a context.
    static SEEN: RefCell<Option<BTreeSet<String>>> = const { RefCell::new(None) };
}

/// Runs `decode` and returns its value with everything it met that is not known: fields as `Struct.field`,
/// enum values and object tags as `Enum = value`.
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
