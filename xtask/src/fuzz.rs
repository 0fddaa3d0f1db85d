//! `fuzz`: builds the stable fuzz driver for speed and runs it.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::{ExitCode, ExitStatus};

use anyhow::Result;

use crate::cargo;

pub(crate) fn command(args: &[OsString]) -> Result<ExitCode> {
    // Cargo is started at the top of the repository, and names of files are meant from here.
    let here = std::env::current_dir()?;
    let args: Vec<_> = args.iter().map(|arg| from_here(&here, arg)).collect();
    Ok(cargo::exit_code(fuzz(&args)?))
}

/// Runs the driver with these arguments.
pub(crate) fn fuzz(args: &[OsString]) -> Result<ExitStatus> {
    let mut command = cargo::cargo(&["run", "--release", "--locked", "--package", "ostler-fuzz"]);
    cargo::status(command.arg("--").args(args))
}

fn from_here(here: &Path, arg: &OsStr) -> OsString {
    let path = here.join(arg);
    if path.is_file() { path.into_os_string() } else { arg.to_owned() }
}
