//! A program with pipes on all sides.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::Stdio;

use tokio::process::Command;

use crate::confine::Confine;
use crate::spawn;

/// A program with pipes for its stdin, stdout and stderr: the cheapest child to start, for
/// [`Group::spawn_piped`](crate::Group::spawn_piped).
#[derive(Clone, Debug)]
pub struct PipedCommand<'a> {
    /// Its full path.
    pub program: &'a Path,
    /// Its arguments, without its name.
    pub arguments: &'a [&'a OsStr],
    /// Its working directory.
    pub folder: &'a Path,
    /// All of its variables.
    pub environment: BTreeMap<OsString, OsString>,
    /// The boundary that it stays inside. Then `program` may also be a name, which is looked up inside.
    pub boundary: Option<&'a dyn Confine>,
}

impl PipedCommand<'_> {
    /// The same for systems where it has no cheaper way to start.
    pub(crate) fn to_command(&self) -> Command {
        let mut command = spawn::command(self.program);
        command.args(self.arguments).current_dir(self.folder);
        command.env_clear().envs(&self.environment).kill_on_drop(false);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }
}
