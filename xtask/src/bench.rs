//! `bench`: builds the benchmarks for speed and runs them.

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::Result;

use crate::cargo;

pub(crate) fn bench(names: &[OsString]) -> Result<ExitCode> {
    let mut command = cargo::cargo(&["run", "--release", "--locked", "--package", "ostler-bench"]);
    Ok(cargo::exit_code(cargo::status(command.arg("--").args(names))?))
}
