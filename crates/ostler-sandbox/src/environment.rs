//! The environment of a program on its way into a sandbox.
//!
//! A variable such as `LD_PRELOAD` would also hold for the programs that build the sandbox, which run outside. So all
//! variables get a prefix on their way, and the helper inside removes it.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

/// Precedes the name of a variable on its way into the sandbox.
const PREFIX: &str = "OSTLER_INSIDE_";

pub(crate) fn with_prefix((name, value): (OsString, OsString)) -> (OsString, OsString) {
    let mut prefixed = OsString::from(PREFIX);
    prefixed.push(name);
    (prefixed, value)
}

/// The variable that holds all others on their way into a container. Its value has one variable on each line.
pub(crate) const PACKED: &str = "OSTLER_PACKED_VARIABLES";

/// All variables in one.
pub(crate) fn packed(all: &BTreeMap<OsString, OsString>) -> (OsString, OsString) {
    let mut bytes = Vec::new();
    for (name, value) in all {
        for byte in [name.as_bytes(), b"=", value.as_bytes()].concat() {
            match byte {
                b'\\' => bytes.extend(b"\\\\"),
                b'\n' => bytes.extend(b"\\n"),
                byte => bytes.push(byte),
            }
        }
        bytes.push(b'\n');
    }
    (PACKED.into(), OsString::from_vec(bytes))
}

fn unpacked(packed: &OsStr) -> impl Iterator<Item = (OsString, OsString)> {
    packed.as_bytes().split(|byte| *byte == b'\n').filter_map(|line| {
        let mut bytes = Vec::new();
        let mut rest = line.iter();
        while let Some(byte) = rest.next() {
            match byte {
                b'\\' => bytes.push(if rest.next()? == &b'n' { b'\n' } else { b'\\' }),
                byte => bytes.push(*byte),
            }
        }
        let end = bytes.iter().position(|byte| *byte == b'=')?;
        let value = bytes.split_off(end + 1);
        bytes.truncate(end);
        Some((OsString::from_vec(bytes), OsString::from_vec(value)))
    })
}

/// The environment of the program, inside: without the prefix. Variables that had none stay as they are, unless one with it
/// has the same name.
pub(crate) fn restored() -> BTreeMap<OsString, OsString> {
    restore(std::env::vars_os())
}

fn restore(all: impl Iterator<Item = (OsString, OsString)>) -> BTreeMap<OsString, OsString> {
    let (mut own, mut inside) = (BTreeMap::new(), BTreeMap::new());
    for (name, value) in all {
        if name == PACKED {
            inside.extend(unpacked(&value));
        } else if let Some(name) = name.as_bytes().strip_prefix(PREFIX.as_bytes()) {
            inside.insert(OsString::from_vec(name.to_vec()), value);
        } else {
            own.insert(name, value);
        }
    }
    own.extend(inside);
    own
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(name: &str, value: &str) -> (OsString, OsString) {
        (name.into(), value.into())
    }

    #[test]
    fn variables_survive_the_way_inside_whatever_they_contain() {
        let mut all: BTreeMap<_, _> = [
            pair("HOME", "/home/a"),
            pair("LINES", "one\ntwo\\n=three\\"),
            pair("EMPTY", ""),
            pair("BASH_FUNC_x%%", "() {  echo hi\n}"),
        ]
        .into();
        all.insert("BYTES".into(), OsString::from_vec(vec![0xff, b'\n', 0xfe]));
        assert_eq!(restore([packed(&all)].into_iter()), all);
        assert_eq!(restore(all.clone().into_iter().map(with_prefix)), all);
    }

    // Mutant: the last one in the list counts.
    #[test]
    fn those_of_the_program_win_over_those_of_what_starts_it() {
        for order in [[0, 1], [1, 0]] {
            let both = [pair("HOME", "/image"), with_prefix(pair("HOME", "/mine"))];
            let found = restore(order.into_iter().map(|index| both[index].clone()));
            assert_eq!(found, [pair("HOME", "/mine")].into());
        }
    }
}
