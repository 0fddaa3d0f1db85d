//! `mcp`: the official conformance suite of MCP examines our client and our server.
//!
//! For the client, the suite starts a server for every scenario, and the example `conformance_client` of `ostler-mcp` with
//! its address. For the server, the example `conformance_server` is started, and the suite is its client. Each scenario
//! that a revision of MCP requires counts as one test.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};

use anyhow::{Context, Result, ensure};

use crate::tally::Tally;
use crate::{Misuse, cargo, conformance, peers, processor, setup};

/// A part of the suite.
struct Part {
    revision: &'static str,
    /// `client` or `server`: what is examined.
    role: &'static str,
    /// How many scenarios the revision requires.
    n_required: usize,
    /// How many of them the vendor's CLI 2.1.325 passes. The suite cannot examine it as a server, because it does not serve over HTTP.
    n_of_vendor: Option<usize>,
}

const PARTS: &[Part] = &[
    Part { revision: "2025-11-25", role: "client", n_required: 18, n_of_vendor: Some(12) },
    Part { revision: "2026-07-28", role: "client", n_required: 32, n_of_vendor: Some(24) },
    Part { revision: "2025-11-25", role: "server", n_required: 30, n_of_vendor: None },
    Part { revision: "2026-07-28", role: "server", n_required: 37, n_of_vendor: None },
];

/// Scenarios that may fail: revision, role, name, and why. One that passes is an error.
const EXCEPTIONS: &[(&str, &str, &str, &str)] = &[];

/// Builds client and server, and runs the suite.
pub(crate) fn command(args: &[OsString]) -> Result<ExitCode> {
    if let Some(arg) = args.first() {
        return Err(Misuse(format!("mcp knows no option {}", arg.display())).into());
    }
    setup::linker()?;
    let build = ["build", "--locked", "--package", "ostler-mcp", "--examples"];
    let status = cargo::status(&mut cargo::cargo(&build))?;
    ensure!(status.success(), "cargo build ended with {status}");
    let mut tally = Tally::default();
    count(&mut tally)?;
    println!("{}", tally.closing_line());
    Ok(if tally.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Runs the suite with the client and the server of the last build.
pub(crate) fn count(tally: &mut Tally) -> Result<()> {
    let suite = peers::install(peers::MCP)?;
    for part in PARTS {
        let Part { revision, role, n_required, n_of_vendor } = *part;
        let output = run(&suite, part, tally)?;
        let scenarios = Scenarios::read(&output);
        ensure!(
            scenarios.required.len() == n_required,
            "the suite lists {} {role} scenarios for {revision}, not {n_required}:\n{output}",
            scenarios.required.len()
        );
        let mut n_passed = 0;
        for (name, passed) in &scenarios.required {
            n_passed += usize::from(*passed);
            let is_excepted = EXCEPTIONS
                .iter()
                .any(|(of, by, excepted, _)| (*of, *by, *excepted) == (revision, role, name));
            let outcome = if *passed != is_excepted { "ok" } else { "FAILED" };
            println!("test mcp::{role}::{revision}::{name} ... {outcome}");
            tally.step(&format!("mcp {role} {revision} {name}"), *passed != is_excepted);
        }
        let of_vendor =
            n_of_vendor.map(|n| format!(" (the vendor's CLI: {n})")).unwrap_or_default();
        eprintln!(
            "MCP {revision}: {n_passed} of {n_required} {role} scenarios pass{of_vendor}; of {} that are not required: {}",
            scenarios.others.len(),
            scenarios.others.iter().filter(|(_, passed)| *passed).count(),
        );
        if n_passed < n_required {
            eprintln!("{output}");
        }
    }
    Ok(())
}

fn run(suite: &Path, part: &Part, tally: &mut Tally) -> Result<String> {
    let mut node = Command::new("node");
    node.arg("--import").arg(cargo::root().join("conformance/mcp/older-node.mjs"));
    node.arg(suite.join("node_modules/@modelcontextprotocol/conformance/dist/index.js"));
    node.args([part.role, "--requirements", part.revision]);
    // Ends the server when it is dropped.
    let _server = match part.role {
        "server" => {
            let (server, address) = Server::start()?;
            node.arg("--url").arg(address);
            Some(server)
        }
        _ => {
            let client = conformance::built("examples/conformance_client")?;
            node.args(["--timeout", "60000", "--command"]).arg(client);
            None
        }
    };
    let heading = "the official conformance suite of MCP";
    let output = processor::output(heading, &mut node, tally).context("starting node")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    ensure!(summary(&text).is_some(), "the suite ended with {}:\n{text}", output.status);
    Ok(text)
}

/// The server that is examined.
struct Server(Child);

impl Server {
    fn start() -> Result<(Self, String)> {
        let program = conformance::built("examples/conformance_server")?;
        let mut server = Command::new(program)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .context("starting conformance_server")?;
        let output = server.stdout.take().context("the output of conformance_server")?;
        let server = Self(server);
        let mut address = String::new();
        BufReader::new(output).read_line(&mut address).context("reading the server's address")?;
        ensure!(address.starts_with("http://"), "conformance_server printed no address");
        Ok((server, address.trim().to_owned()))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already.
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// What follows the heading of the suite's summary.
fn summary(output: &str) -> Option<&str> {
    let headings = ["=== SUITE SUMMARY ===", "=== SUMMARY ==="];
    headings.into_iter().find_map(|heading| output.split_once(heading)).map(|(_, rest)| rest)
}

/// The outcomes in the suite's summary.
#[derive(Debug, Default, PartialEq)]
struct Scenarios {
    required: Vec<(String, bool)>,
    others: Vec<(String, bool)>,
}

impl Scenarios {
    fn read(output: &str) -> Self {
        let summary = summary(output).unwrap_or_default();
        let (summary, rest) = summary.split_once("Not scored for").unwrap_or((summary, ""));
        let others: BTreeSet<_> =
            rest.lines().filter_map(marked).map(|(_, rest)| name(rest)).collect();
        let mut scenarios = Self::default();
        for (is_good, rest) in summary.lines().filter_map(marked) {
            // Who does nothing fails no check of some scenarios.
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
        for heading in ["=== SUITE SUMMARY ===", "=== SUMMARY ==="] {
            check(heading);
        }
    }

    fn check(heading: &str) {
        let output = "\
HEADING

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
            Scenarios::read(&output.replace("HEADING", heading)),
            Scenarios { required, others: of(&[("auth/dpop", true)]) }
        );
    }
}
