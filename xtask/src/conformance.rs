//! `conformance`: the official SDKs run the scenarios of `conformance/` with `ostler`, or any other program.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, ensure};

use crate::{cargo, peers, python, setup};

/// Builds and runs the scenarios; all arguments are the runner's. Without `--cli` it tests `ostler`.
pub(crate) fn command(args: &[OsString]) -> Result<ExitCode> {
    setup::linker()?;
    let build = ["build", "--locked", "--package", "ostler-conformance", "--package", "ostler-cli"];
    let status = cargo::status(&mut cargo::cargo(&build))?;
    ensure!(status.success(), "cargo build ended with {status}");
    let mut runner = runner()?;
    if !args.iter().any(|arg| arg == "--cli") {
        runner.arg("--cli").arg(built("ostler")?);
    }
    Ok(cargo::exit_code(cargo::status(runner.args(args))?))
}

/// Where the vendor's packages are, as environment variables.
pub(crate) type Peers = [(&'static str, PathBuf); 7];

/// Installs what is missing.
pub(crate) fn peers() -> Result<Peers> {
    Ok([
        ("OSTLER_PEERS", peers::install(peers::FOR_TESTS)?),
        ("OSTLER_NATIVE_PEERS", peers::install(peers::NATIVE)?),
        ("OSTLER_AGUI_PEERS", peers::install(peers::AGUI)?),
        ("OSTLER_MCP_PEERS", peers::install(peers::MCP_SERVERS)?),
        ("OSTLER_MCP_PYTHON", python::install(python::MCP)?),
        ("OSTLER_PYTHON", python::install(python::SDK)?),
        ("OSTLER_SERVER_PYTHON", python::install(python::SERVER)?),
    ])
}

/// The runner, with the SDKs it uses.
pub(crate) fn runner() -> Result<Command> {
    let mut runner = Command::new(built("ostler-conformance")?);
    runner.envs(peers()?);
    Ok(runner)
}

/// A program of this workspace from the last build: it is next to this one.
pub(crate) fn built(name: &str) -> Result<PathBuf> {
    let path = std::env::current_exe().context("finding this program")?.with_file_name(name);
    ensure!(path.is_file(), "{} was not built", path.display());
    Ok(path)
}
