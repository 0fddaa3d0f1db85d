//! A command line that runs a program in a sandbox, and what must exist meanwhile.

use std::ffi::OsString;
use std::fmt::Debug;
use std::path::PathBuf;

#[cfg(target_os = "linux")]
use crate::supervisor::Watch;

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
    /// Dropped first: it reads what the others remove.
    #[cfg(target_os = "linux")]
    watch: Option<Watch>,
    /// Dropped in this order.
    _parts: Vec<Box<dyn Part>>,
}

/// Something that must exist while a program runs.
pub(crate) trait Part: Debug + Send + Sync {}

impl<T: Debug + Send + Sync> Part for T {}

impl Guard {
    #[cfg(target_os = "linux")]
    pub(crate) fn new(watch: Option<Watch>, parts: Vec<Box<dyn Part>>) -> Self {
        Self { watch, _parts: parts }
    }

    /// Call it when the program has started, as this child of this process, and before its exit status is collected. Until
    /// then nothing counts what it uses, so limits of the session have no effect on it.
    pub fn started(&self, child: u32) {
        #[cfg(target_os = "linux")]
        if let Some(watch) = &self.watch {
            watch.started(child);
        }
        #[cfg(not(target_os = "linux"))]
        let _ = child;
    }
}

impl ostler_process::Guard for Guard {
    fn started(&self, child: u32) {
        Self::started(self, child);
    }
}
