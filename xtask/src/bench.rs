//! `bench`: builds the benchmarks and the programs that they measure, fetches those to compare with, and runs them.

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::{Result, ensure};

use crate::{cargo, peers, python, setup};

/// The benchmarks that measure the program as it is shipped.
const OF_THE_PROGRAM: &[&str] = &[
    "concurrent",
    "dropin",
    "engine",
    "load",
    "mcp",
    "memory",
    "resume",
    "sandbox",
    "size",
    "turns",
];
/// The benchmarks that also run the vendor's programs.
const WITH_PEERS: &[&str] = &["dropin", "engine", "load", "mcp", "sdk", "turns"];
/// The benchmarks that also run the vendor's Python package.
const WITH_PYTHON: &[&str] = &["dropin", "sdk"];

pub(crate) fn bench(names: &[OsString]) -> Result<ExitCode> {
    setup::linker()?;
    let mut command = cargo::cargo(&["run", "--release", "--locked", "--package", "ostler-bench"]);
    command.arg("--").args(names);
    if concerns(names, OF_THE_PROGRAM) {
        eprintln!("building ostler as it is shipped (the first time takes some minutes)…");
        let build = ["build", "--profile", "dist", "--locked", "--package", "ostler-cli"];
        let mut build = cargo::cargo(&build);
        let status = cargo::status(build.args(["--package", "ostler-sandbox", "--bins"]))?;
        ensure!(status.success(), "cargo build ended with {status}");
    }
    if concerns(names, WITH_PEERS) {
        eprintln!(
            "installing the vendor's program, unless it is installed (some hundred megabytes)…"
        );
        command.env("OSTLER_PEERS", peers::install(peers::NATIVE)?);
    }
    if concerns(names, &["sandbox"]) {
        setup::bubblewrap()?;
        setup::needs_of_vendor_sandbox()?;
        command.env("OSTLER_SANDBOX_PEERS", peers::install(peers::SANDBOX)?);
    }
    if concerns(names, WITH_PYTHON) {
        eprintln!("installing the vendor's Python SDK, unless it is installed…");
        command.env("OSTLER_PYTHON", python::install(python::SDK)?);
    }
    Ok(cargo::exit_code(cargo::status(&mut command)?))
}

/// Whether one of these will run; without names all will.
fn concerns(names: &[OsString], benchmarks: &[&str]) -> bool {
    names.is_empty() || names.iter().any(|name| benchmarks.iter().any(|known| name == known))
}

#[cfg(test)]
mod tests {
    use super::{WITH_PEERS, concerns};

    #[test]
    fn a_benchmark_without_needs_installs_nothing() {
        assert!(concerns(&[], WITH_PEERS));
        assert!(concerns(&["decode".into(), "engine".into()], WITH_PEERS));
        assert!(!concerns(&["decode".into(), "size".into()], WITH_PEERS));
    }
}
