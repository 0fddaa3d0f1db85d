//! Starts programs of `ostler-process` in a sandbox, and keeps their environment away from what builds it.
//!
//! A variable such as `LD_PRELOAD` would also hold for the programs that build the sandbox, which run outside. So all
//! variables get a prefix on their way, and the helper inside removes it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;

use ostler_process::{Confine, ConfinedProgram, InsideProgram};

use crate::sandbox::{Sandbox, SandboxedCommand};

/// Precedes the name of a variable on its way into the sandbox.
const PREFIX: &str = "OSTLER_INSIDE_";

impl Confine for Sandbox {
    fn confine(&self, inside: InsideProgram<'_>) -> io::Result<ConfinedProgram> {
        let InsideProgram { program, arguments, folder, mut environment } = inside;
        let changes = &self.boundary().environment;
        environment
            .retain(|name, _| !changes.removed.iter().any(|removed| name == removed.as_str()));
        let set = changes.set.iter().map(|(name, value)| (name.into(), value.into()));
        environment.extend(set);
        let command = self.command(program, arguments, folder).map_err(io::Error::other)?;
        let SandboxedCommand { program, arguments, guard } = command;
        let environment = environment.into_iter().map(with_prefix).collect();
        Ok(ConfinedProgram { program, arguments, environment, guard: Box::new(guard) })
    }
}

fn with_prefix((name, value): (OsString, OsString)) -> (OsString, OsString) {
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
