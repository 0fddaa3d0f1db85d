//! An environment variable of every child. Everything the child starts inherits it, whatever its session, group or
//! parent, so that it can be found.

use std::ffi::OsString;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// The variable. Its value is a list: a command that is itself an agent adds its markers to the inherited ones.
pub(crate) const VARIABLE: &str = "OSTLER_COMMAND_ID";

/// Marks the children of this process only: random, because process ids are reused.
pub(crate) fn of_this_process() -> &'static str {
    static MARKER: OnceLock<String> = OnceLock::new();
    MARKER.get_or_init(|| {
        let random = || RandomState::new().build_hasher().finish();
        format!("{:016x}{:016x}.", random(), random())
    })
}

/// A unique number for each child.
pub(crate) fn next_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Marks one child. It has a terminator, so that the marker of child 1 does not match child 12.
pub(crate) fn of_child(number: u64) -> String {
    format!("{}{number};", of_this_process())
}

/// The variable of a child that is about to start: its marker, after this process's own markers.
pub(crate) fn of_new_child(number: u64) -> (OsString, OsString) {
    let mut value = std::env::var_os(VARIABLE).unwrap_or_default();
    value.push(of_child(number));
    (VARIABLE.into(), value)
}
