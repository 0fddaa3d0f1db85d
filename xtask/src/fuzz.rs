//! `fuzz`: builds the stable fuzz driver and runs it.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::{Command, ExitCode, ExitStatus};

use anyhow::Result;

use crate::{cargo, conformance};

pub(crate) fn command(args: &[OsString]) -> Result<ExitCode> {
    // Cargo is started at the top of the repository; file names are relative to the current folder.
    let here = std::env::current_dir()?;
    let args: Vec<_> = args.iter().map(|arg| from_here(&here, arg)).collect();
    Ok(cargo::exit_code(run(&args)?))
}

/// Runs the driver as the tests built it: a release build would take longer than it saves in so short a run.
pub(crate) fn briefly(args: &[OsString]) -> Result<Command> {
    let mut fuzzer = Command::new(conformance::built("ostler-fuzz")?);
    fuzzer.args(args);
    Ok(fuzzer)
}

fn run(args: &[OsString]) -> Result<ExitStatus> {
    let mut command = cargo::cargo(&["run", "--release", "--locked", "--package", "ostler-fuzz"]);
    cargo::status(command.arg("--").args(args))
}

fn from_here(here: &Path, arg: &OsStr) -> OsString {
    let path = here.join(arg);
    if path.is_file() { path.into_os_string() } else { arg.to_owned() }
}
