//! The environment of a program on its way into a sandbox.
//!
//! A variable such as `LD_PRELOAD` would also hold for the programs that build the sandbox, which run outside. So all
//! variables get a prefix on their way, and the helper inside removes it.

use std::collections::BTreeMap;
use std::ffi::OsString;

/// Precedes the name of a variable on its way into the sandbox.
const PREFIX: &str = "OSTLER_INSIDE_";

pub(crate) fn with_prefix((name, value): (OsString, OsString)) -> (OsString, OsString) {
    let mut prefixed = OsString::from(PREFIX);
    prefixed.push(name);
    (prefixed, value)
}

/// The environment of the program, inside: without the prefix. Variables that had none stay as they are.
#[cfg(target_os = "linux")]
pub(crate) fn restored() -> BTreeMap<OsString, OsString> {
    use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
    let restore =
        |(name, value): (OsString, OsString)| match name.as_bytes().strip_prefix(PREFIX.as_bytes())
        {
            Some(own) => (OsString::from_vec(own.to_vec()), value),
            None => (name, value),
        };
    std::env::vars_os().map(restore).collect()
}
