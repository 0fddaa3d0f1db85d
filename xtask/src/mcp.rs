//! `mcp`: the official conformance suite of MCP examines our client.
//!
//! The suite starts a server for every scenario, and the example `conformance_client` of `ostler-mcp` with its address.
//! Each scenario that a revision of MCP requires counts as one test.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, ensure};

use crate::tally::Tally;
use crate::{Misuse, cargo, conformance, peers, setup};

/// The revisions, the number of client scenarios that each requires, and how many the vendor's CLI 2.1.325 passes.
const REVISIONS: &[(&str, usize, usize)] = &[("2025-11-25", 18, 12), ("2026-07-28", 32, 24)];

/// Scenarios that may fail, and why. One that passes is an error.
const EXCEPTIONS: &[(&str, &str, &str)] = &[];

/// Builds the client and runs the suite.
pub(crate) fn command(args: &[OsString]) -> Result<ExitCode> {
    if let Some(arg) = args.first() {
        return Err(Misuse(format!("mcp knows no option {}", arg.display())).into());
    }
    setup::linker()?;
    let build = ["build", "--locked", "--package", "ostler-mcp", "--example", "conformance_client"];
    let status = cargo::status(&mut cargo::cargo(&build))?;
    ensure!(status.success(), "cargo build ended with {status}");
    let mut tally = Tally::default();
    count(&mut tally)?;
    println!("{}", tally.closing_line());
    Ok(if tally.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Runs the suite with the client of the last build.
pub(crate) fn count(tally: &mut Tally) -> Result<()> {
    let suite = peers::install(peers::MCP)?;
    let client = conformance::built("examples/conformance_client")?;
    for &(revision, required, of_vendor) in REVISIONS {
        let output = run(&suite, &client, revision)?;
        let scenarios = Scenarios::read(&output);
        ensure!(
            scenarios.required.len() == required,
            "the suite lists {} scenarios for {revision}, not {required}:\n{output}",
            scenarios.required.len()
        );
        let mut n_passed = 0;
        for (name, passed) in &scenarios.required {
            n_passed += usize::from(*passed);
            let is_excepted =
                EXCEPTIONS.iter().any(|(of, excepted, _)| (*of, *excepted) == (revision, name));
            let outcome = if *passed != is_excepted { "ok" } else { "FAILED" };
            println!("test mcp::{revision}::{name} ... {outcome}");
            tally.step(&format!("mcp {revision} {name}"), *passed != is_excepted);
        }
        eprintln!(
            "MCP {revision}: {n_passed} of {required} client scenarios pass (the vendor's CLI: {of_vendor}); \
             of {} that are not required: {}",
            scenarios.others.len(),
            scenarios.others.iter().filter(|(_, passed)| *passed).count(),
        );
        if n_passed < required {
            eprintln!("{output}");
        }
    }
    Ok(())
}

fn run(suite: &Path, client: &Path, revision: &str) -> Result<String> {
    let mut node = Command::new("node");
    node.arg("--import").arg(cargo::root().join("conformance/mcp/older-node.mjs"));
    node.arg(suite.join("node_modules/@modelcontextprotocol/conformance/dist/index.js"));
    node.args(["client", "--requirements", revision, "--timeout", "60000", "--command"]);
    node.arg(client);
    let output = node.output().context("starting node")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let error = String::from_utf8_lossy(&output.stderr);
    ensure!(
        text.contains("=== SUITE SUMMARY ==="),
        "the suite ended with {}: {error}",
        output.status
    );
    Ok(text)
}

/// The outcomes in the suite's summary.
#[derive(Debug, Default, PartialEq)]
struct Scenarios {
    required: Vec<(String, bool)>,
    others: Vec<(String, bool)>,
}

impl Scenarios {
    fn read(output: &str) -> Self {
        let summary = output.split("=== SUITE SUMMARY ===").nth(1).unwrap_or_default();
        let (summary, rest) = summary.split_once("Not scored for").unwrap_or((summary, ""));
        let others: BTreeSet<_> =
            rest.lines().filter_map(marked).map(|(_, rest)| name(rest)).collect();
        let mut scenarios = Self::default();
        for (is_good, rest) in summary.lines().filter_map(marked) {
            // A client that does nothing fails no check of some scenarios.
            let has_checks = !rest.contains(": 0 passed");
            let outcome = (name(rest).to_owned(), is_good && has_checks);
            match others.contains(name(rest)) {
                true => scenarios.others.push(outcome),
                false => scenarios.required.push(outcome),
            }
        }
        scenarios
    }
}

/// Whether a line reports success, and what follows the mark.
fn marked(line: &str) -> Option<(bool, &str)> {
    let line = line.trim();
    let good = line.strip_prefix('✓').map(|rest| (true, rest));
    let (is_good, rest) = good.or_else(|| Some((false, line.strip_prefix('✗')?)))?;
    Some((is_good, rest.trim()))
}

fn name(rest: &str) -> &str {
    rest.split([':', ' ']).next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::Scenarios;

    #[test]
    fn the_summary_of_the_suite_is_read() {
        let output = "\
=== SUITE SUMMARY ===

✓ initialize: 0 passed, 0 failed
✓ tools_call: 2 passed, 0 failed
✗ auth/metadata-default: 0 passed, 7 failed
✓ auth/dpop: 3 passed, 0 failed, 1 warnings

Total: 2 passed, 7 failed, 0 warnings

Not scored for 2025-11-25: 1 scenario(s) run, 0 failing. These do not affect conformance.
  ✓ auth/dpop (extension)
";
        let of = |list: &[(&str, bool)]| -> Vec<_> {
            list.iter().map(|(name, passed)| ((*name).to_owned(), *passed)).collect()
        };
        let required =
            of(&[("initialize", false), ("tools_call", true), ("auth/metadata-default", false)]);
        assert_eq!(
            Scenarios::read(output),
            Scenarios { required, others: of(&[("auth/dpop", true)]) }
        );
    }
}
