//! `bench`: builds the benchmarks and what they measure, fetches what they compare with, and runs them.

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::{Result, ensure};

use crate::{cargo, peers, setup};

/// The benchmarks that measure the program as it is shipped.
const OF_THE_PROGRAM: &[&str] = &["engine", "size"];
/// The benchmarks that run the vendor's program beside it.
const WITH_PEERS: &[&str] = &["engine"];

pub(crate) fn bench(names: &[OsString]) -> Result<ExitCode> {
    setup::linker()?;
    let mut command = cargo::cargo(&["run", "--release", "--locked", "--package", "ostler-bench"]);
    command.arg("--").args(names);
    if concerns(names, OF_THE_PROGRAM) {
        eprintln!("building ostler as it is shipped (the first time takes some minutes)…");
        let build = ["build", "--profile", "dist", "--locked", "--package", "ostler-cli"];
        let status = cargo::status(&mut cargo::cargo(&build))?;
        ensure!(status.success(), "cargo build ended with {status}");
    }
    if concerns(names, WITH_PEERS) {
        eprintln!("installing the vendor's program, unless it is there (some hundred megabytes)…");
        command.env("OSTLER_PEERS", peers::install(peers::NATIVE)?);
    }
    Ok(cargo::exit_code(cargo::status(&mut command)?))
}

/// Whether one of these will run; without names all do.
fn concerns(names: &[OsString], benchmarks: &[&str]) -> bool {
    names.is_empty() || names.iter().any(|name| benchmarks.iter().any(|known| name == known))
}

#[cfg(test)]
mod tests {
    use super::{WITH_PEERS, concerns};

    #[test]
    fn a_benchmark_that_needs_nothing_gets_nothing() {
        assert!(concerns(&[], WITH_PEERS));
        assert!(concerns(&["decode".into(), "engine".into()], WITH_PEERS));
        assert!(!concerns(&["decode".into(), "size".into()], WITH_PEERS));
    }
}
