//! Programs that run inside a boundary. What enforces it is up to the caller: `ostler-sandbox` on Linux.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt::Debug;
use std::io;
use std::path::{Path, PathBuf};

/// Changes how a program is started, so that it and everything it starts stay inside a boundary.
pub trait Confine: Debug + Send + Sync {
    /// The command line that runs the program inside. `folder` is as the program sees it; the environment is for the
    /// program alone, not for what starts it.
    ///
    /// # Errors
    /// If the boundary cannot be built. Then the program does not run.
    fn confine(&self, program: InsideProgram<'_>) -> io::Result<ConfinedProgram>;
}

/// A program to run inside a boundary.
#[derive(Debug)]
pub struct InsideProgram<'a> {
    /// Its absolute path, or a name to look up inside.
    pub program: &'a Path,
    /// Its arguments, without its name.
    pub arguments: &'a [&'a OsStr],
    /// Its working directory.
    pub folder: &'a Path,
    /// All of its variables.
    pub environment: BTreeMap<OsString, OsString>,
}

/// How to start a program inside a boundary.
#[derive(Debug)]
pub struct ConfinedProgram {
    /// What to start, by its absolute path.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Its variables.
    pub environment: BTreeMap<OsString, OsString>,
    /// Must live as long as the program runs.
    pub guard: Box<dyn Guard>,
}

/// Anything that must live as long as a program runs.
pub trait Guard: Debug + Send + Sync {
    /// The program has started: it is the child of this process with this id, and was not waited for yet, so the id means
    /// no other process.
    fn started(&self, _child: u32) {}
}

impl Guard for () {}
