//! A command line that runs a program in a sandbox, and what must exist meanwhile.

use std::ffi::OsString;
use std::path::PathBuf;

/// A command line that runs a program in a sandbox. Keep it until the program has ended.
#[derive(Debug)]
#[non_exhaustive]
pub struct SandboxedCommand {
    /// The program to start, by its absolute path.
    pub program: PathBuf,
    /// Its arguments. They do not contain the environment, which other users could read there.
    pub arguments: Vec<OsString>,
    /// What must exist while the program runs.
    pub guard: Guard,
}

/// What must exist while a program runs in a sandbox. Dropping it ends what is left of the program, then removes the rest.
#[derive(Debug, Default)]
pub struct Guard {
    /// Dropped in this order.
    _parts: Vec<Box<dyn ostler_process::Guard>>,
}

impl Guard {
    #[cfg(target_os = "linux")]
    pub(crate) fn new(parts: Vec<Box<dyn ostler_process::Guard>>) -> Self {
        Self { _parts: parts }
    }
}
