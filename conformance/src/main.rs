//! The conformance kit's runner: runs scenarios with the official SDKs on any program with their protocol, and prints
//! a table. `cargo xtask conformance` installs the SDKs and starts it; `README.md` describes the scenarios.

mod against;
mod differ;
mod driver;
mod fill;
mod judge;
mod known;
mod normal;
mod pattern;
mod play;
mod scenario;
mod sdk;
mod suite;
mod table;
mod watch;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;

use crate::sdk::Sdk;

/// Runs scenarios with the official SDKs on a program with their protocol.
#[derive(Debug, Parser)]
struct Args {
    /// The program to test: a path, `vendor` for the vendor's own at the level of each SDK, or a folder of saved runs.
    #[arg(long, required_unless_present = "list")]
    cli: Option<PathBuf>,
    /// Only scenarios whose name contains this; may be repeated.
    #[arg(long)]
    only: Vec<String>,
    /// Only with this SDK; may be repeated.
    #[arg(long)]
    sdk: Vec<Sdk>,
    /// Only list the scenarios.
    #[arg(long)]
    list: bool,
    /// The number of concurrent runs.
    #[arg(long, default_value_t = 4)]
    jobs: usize,
    /// Also print every run as a line of a test program, for counting.
    #[arg(long)]
    as_tests: bool,
    /// Compare message by message with this program, named as for `--cli`.
    #[arg(long)]
    against: Option<PathBuf>,
    /// Save every run in this folder, for later comparisons.
    #[arg(long)]
    save: Option<PathBuf>,
    /// Print all events of the runs.
    #[arg(long)]
    verbose: bool,
    /// The folder with `scenarios/` and `drivers/`.
    #[arg(long, default_value = env!("CARGO_MANIFEST_DIR"))]
    kit: PathBuf,
}

fn main() -> ExitCode {
    if let Some(program) = std::env::var_os(watch::PROGRAM) {
        return watch::watch(program.as_ref());
    }
    let args = Args::parse();
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("conformance: starting a runtime: {error}");
            return ExitCode::FAILURE;
        }
    };
    match runtime.block_on(suite::run(&args)) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("conformance: {error:#}");
            ExitCode::from(2)
        }
    }
}
