//! `cargo xtask <command>`: the tasks of this repository, in plain Rust, so that a fresh machine needs no other tool.
//! One file per command; this one dispatches.

mod attacks;
mod bench;
mod cargo;
mod checksum;
mod conformance;
mod fuzz;
mod lanes;
mod mcp;
mod packages;
mod peers;
mod processor;
mod programs;
mod python;
mod run;
mod rustdoc;
mod setup;
mod tally;
mod test;
mod tidy;
mod web;

use std::ffi::OsString;
use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask <command>

  run                               build ostler and start the server, offline if there is no key
  run chat [ARGS…]                  the same with a conversation in this folder
  run ARGS…                         the same with these arguments
  test [--no-peers] [--full] [--nightly] [-- FILTER…]
                                    run all tests; with a filter, only tests of that name. --full: start the vendor's
                                    programs for every scenario, instead of comparing with their recorded results.
                                    --nightly: kills, faults and measurements of full size, which takes hours
  web [--pictures]                  build the page that the server shows, for the next build of ostler; or take the
                                    README's pictures of it again
  tidy [--quick]                    check format, lints, house rules, and licences and vulnerabilities of packages; --quick:
                                    only what needs no compilation
  advisories FOLDER                 take the known vulnerabilities from a clone of rustsec/advisory-db
  bench [NAME…]                     run the benchmarks
  conformance [--cli PATH|vendor] [--only NAME] [--sdk NAME] [--against vendor]
                                    drive ostler, or another program, with the official SDKs
  mcp                               examine the MCP client with the official conformance suite
  fuzz [--seconds N] [--seed S]     run the fuzz targets on damaged traffic
  fuzz FILE…                        run the fuzz targets on these inputs
  fuzz judge [--count N] [--seed S] [--show N] [--stop]
                                    generate shell commands, and run in a sandbox those that need no approval
  fuzz judge COMMAND… | --matrix    the same with these commands, or with every program, option and form of a path
";

/// The command line is invalid; the usage is shown.
#[derive(Debug)]
struct Misuse(String);

impl std::fmt::Display for Misuse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Misuse {}

fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().skip(1).collect();
    match rustdoc::as_rustdoc(&args).unwrap_or_else(|| dispatch(args)) {
        Ok(code) => code,
        Err(error) if error.is::<Misuse>() => {
            eprint!("{error}\n\n{USAGE}");
            ExitCode::from(2)
        }
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn dispatch(mut args: Vec<OsString>) -> anyhow::Result<ExitCode> {
    if args.is_empty() {
        return Err(Misuse("which command?".to_owned()).into());
    }
    let command = args.remove(0);
    match command.to_str() {
        Some("run") => run::run(&args),
        Some("test") => test::test(&args),
        Some("web") => web::command(&args),
        Some("tidy") => tidy::command(&args),
        Some("advisories") => tidy::advisories(&args),
        Some("bench") => bench::bench(&args),
        Some("conformance") => conformance::command(&args),
        Some("fuzz") => fuzz::command(&args),
        Some("mcp") => mcp::command(&args),
        _ => Err(Misuse(format!("there is no command {}", command.display())).into()),
    }
}
