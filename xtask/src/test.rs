//! `test`: everything, from nothing. Ends with one line on standard output: `N passed, N failed`.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use crate::conformance::Peers;
use crate::tally::Tally;
use crate::{Misuse, cargo, conformance, fuzz, setup, tidy, web};

/// How long the fuzz targets run: enough for some hundred thousand inputs, not enough to be waited for.
const FUZZ_SECONDS: &str = "20";

/// How many commands the permission judge is tried with, always the same ones: about twenty seconds.
const JUDGED_COMMANDS: &str = "20000";

/// How often the server is killed under load, about a second each.
const KILLS: &str = "100";

pub(crate) fn test(args: &[OsString]) -> Result<ExitCode> {
    let plan = Plan::parse(args)?;
    let mut tally = Tally::default();
    perform(&plan, &mut tally);
    for failure in &tally.failures {
        eprintln!("failed: {failure}");
    }
    println!("{}", tally.closing_line());
    Ok(if tally.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// What to run.
#[derive(Debug, PartialEq)]
struct Plan {
    peers: bool,
    /// With a filter somebody works on one thing, and wants to see that and nothing else.
    filter: Vec<OsString>,
}

impl Plan {
    fn parse(args: &[OsString]) -> Result<Self> {
        let mut plan = Self { peers: true, filter: Vec::new() };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            match arg.to_str() {
                Some("--no-peers") => plan.peers = false,
                Some("--") => plan.filter = args.by_ref().cloned().collect(),
                _ => {
                    let message = format!("test knows no option {}", arg.display());
                    return Err(Misuse(message).into());
                }
            }
        }
        Ok(plan)
    }
}

/// Runs the steps. A failure is noted and the next step runs all the same, unless it could not but fail too.
fn perform(plan: &Plan, tally: &mut Tally) {
    if let Err(error) = step("set-up and dependencies", prepare) {
        return tally.fail(format!("set-up: {error:#}"));
    }
    // Without it only the tests that type into a terminal fail.
    if let Err(error) = setup::tmux() {
        tally.fail(format!("set-up: {error:#}"));
    }
    if plan.filter.is_empty() {
        let tidy = step("tidy", tidy::tidy);
        count_step(tally, "tidy", tidy);
    }
    let mut folder = None;
    if plan.peers {
        match step("the vendor's programs", conformance::peers) {
            Ok(installed) => folder = Some(installed),
            Err(error) => tally.fail(format!("peers: {error:#}")),
        }
    }
    // First, so that the program that the tests build has it.
    let has_page = plan.peers && plan.filter.is_empty();
    if has_page && let Err(error) = step("the web page", || page(tally)) {
        tally.fail(format!("web: {error:#}"));
    }
    if let Err(error) = step("cargo test", || cargo_test(plan, folder, tally)) {
        tally.fail(format!("cargo test: {error:#}"));
    }
    if plan.peers && plan.filter.is_empty() {
        // With the programs that the tests before were built with.
        if let Err(error) = step("conformance", || conform(tally)) {
            tally.fail(format!("conformance: {error:#}"));
        }
    }
    if has_page
        && let Err(error) =
            step("the web page in a browser", || count_tests(&mut web::browser_tests()?, tally))
    {
        tally.fail(format!("web: {error:#}"));
    }
    if plan.filter.is_empty() {
        let fuzz =
            step("fuzz", || Ok(fuzz::fuzz(&["--seconds".into(), FUZZ_SECONDS.into()])?.success()));
        count_step(tally, "fuzz", fuzz);
        let args = ["judge", "--count", JUDGED_COMMANDS, "--seed", "1"].map(OsString::from);
        let judge = step("fuzz judge", || Ok(fuzz::fuzz(&args)?.success()));
        count_step(tally, "fuzz judge", judge);
        let args = ["judge", "--matrix"].map(OsString::from);
        let matrix = step("fuzz judge --matrix", || Ok(fuzz::fuzz(&args)?.success()));
        count_step(tally, "fuzz judge --matrix", matrix);
    }
}

fn prepare() -> Result<()> {
    setup::linker()?;
    // Once and first: the registry does not like many downloads at the same time, and retries are cheap here.
    let status = cargo::status(&mut cargo::cargo(&["fetch", "--locked"]))?;
    ensure!(status.success(), "cargo fetch ended with {status}");
    Ok(())
}

fn page(tally: &mut Tally) -> Result<()> {
    web::build()?;
    count_tests(&mut web::unit_tests(), tally)
}

fn cargo_test(plan: &Plan, peers: Option<Peers>, tally: &mut Tally) -> Result<()> {
    let mut command = cargo::cargo(&["test", "--workspace", "--locked", "--no-fail-fast", "--"]);
    // Plain `cargo test` is content with a few.
    command.env("OSTLER_KILLS", KILLS);
    if let Some(peers) = peers {
        // Ignored tests are exactly those that need the peers.
        command.arg("--include-ignored").envs(peers);
    }
    count_tests(command.args(&plan.filter), tally)
}

/// Every scenario with every SDK counts as one test.
fn conform(tally: &mut Tally) -> Result<()> {
    let mut runner = conformance::runner()?;
    runner.arg("--cli").arg(conformance::built("ostler")?).arg("--as-tests");
    count_tests(&mut runner, tally)
}

/// Runs a test program, or cargo with many of them, and counts what it says.
fn count_tests(command: &mut Command, tally: &mut Tally) -> Result<()> {
    let program = command.get_program().display().to_string();
    let mut child =
        command.stdout(Stdio::piped()).spawn().with_context(|| format!("starting {program}"))?;
    let output = child.stdout.take().context("the output is a pipe")?;
    let failed_before = tally.failed;
    for line in BufReader::new(output).split(b'\n') {
        let line = line.context("reading the tests' output")?;
        // Tests may print anything; what is not UTF-8 is none of the lines that count.
        tally.line(String::from_utf8_lossy(&line).trim_end());
        let mut stdout = std::io::stdout();
        stdout.write_all(&line).and_then(|()| stdout.write_all(b"\n")).context("printing")?;
    }
    let status = child.wait().with_context(|| format!("waiting for {program}"))?;
    // Nothing was built, or a test program died before it could count.
    ensure!(status.success() || tally.failed > failed_before, "ended with {status}");
    Ok(())
}

fn count_step(tally: &mut Tally, name: &str, outcome: Result<bool>) {
    match outcome {
        Ok(passed) => tally.step(name, passed),
        Err(error) => tally.fail(format!("{name}: {error:#}")),
    }
}

/// Runs a step under a heading and tells how long it took.
fn step<T>(heading: &str, perform: impl FnOnce() -> Result<T>) -> Result<T> {
    eprintln!("==> {heading}");
    let start = Instant::now();
    let outcome = perform();
    eprintln!("==> {heading}: {:.1} s", start.elapsed().as_secs_f64());
    outcome
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;

    use super::Plan;

    fn parse(line: &str) -> anyhow::Result<Plan> {
        Plan::parse(&line.split_whitespace().map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn options_come_before_the_filter() {
        assert_eq!(parse("").unwrap(), Plan { peers: true, filter: vec![] });
        let plan = parse("--no-peers -- codec --nocapture").unwrap();
        assert_eq!(plan, Plan { peers: false, filter: vec!["codec".into(), "--nocapture".into()] });
    }

    #[test]
    fn a_filter_without_dashes_is_a_misuse() {
        assert!(parse("codec").unwrap_err().is::<crate::Misuse>());
    }
}
