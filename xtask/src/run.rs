//! `run`: builds the product and starts it: the server, unless its arguments say something else.

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::Result;

use crate::{cargo, setup};

pub(crate) fn run(args: &[OsString]) -> Result<ExitCode> {
    setup::linker()?;
    eprintln!("building ostler (the first time takes a few minutes)…");
    let mut command = cargo::cargo(&["run", "--quiet", "--package", "ostler-cli"]);
    command.args(["--bin", "ostler", "--manifest-path"]).arg(cargo::root().join("Cargo.toml"));
    command.arg("--").args(args);
    if args.is_empty() {
        command.args(["serve", "--show-token"]);
    }
    // The agent works where it is called, not at the top of this repository.
    command.current_dir(std::env::current_dir()?);
    replace(command)
}

/// Becomes the command, so that signals and the exit code need no passing on.
#[cfg(unix)]
fn replace(mut command: std::process::Command) -> Result<ExitCode> {
    use std::os::unix::process::CommandExt;

    let error = command.exec();
    Err(anyhow::Error::new(error).context(format!("starting {}", command.get_program().display())))
}

#[cfg(not(unix))]
fn replace(mut command: std::process::Command) -> Result<ExitCode> {
    Ok(cargo::exit_code(cargo::status(&mut command)?))
}
