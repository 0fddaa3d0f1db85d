//! `test`: builds and tests everything. Ends with one line on standard output: `N passed, N failed`.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use crate::conformance::Peers;
use crate::lanes::{self, Job};
use crate::programs::{self, Repeats};
use crate::tally::{self, MOST_FLAKY, Tally};
use crate::{
    Misuse, attacks, cargo, conformance, fuzz, mcp, packages, processor, rustdoc, setup, tidy, web,
};

/// How long the fuzz targets run: enough for some hundred thousand inputs.
const FUZZ_SECONDS: &str = "20";

/// How many jobs run at once, each of which starts several processes. On two cores a third one only makes tests time out.
const LANES: usize = 2;

/// How many commands the fuzzer of permission decisions tries, always the same ones; and how many with `--full`.
const JUDGED_COMMANDS: [&str; 2] = ["8000", "20000"];

/// The matrix tries one of so many options of every program; and with `--full`.
const MATRIX_EVERY: [&str; 2] = ["6", "1"];

pub(crate) fn test(args: &[OsString]) -> Result<ExitCode> {
    let plan = Plan::parse(args)?;
    let mut tally = Tally::default();
    perform(&plan, &mut tally);
    let limit = (!plan.nightly).then_some(tally::LIMIT);
    tally.judge_times(limit).iter().chain(&tally.steps()).for_each(|line| eprintln!("{line}"));
    if tally.flaky.len() > MOST_FLAKY {
        tally.fail(format!("{} flaky tests, more than {MOST_FLAKY}", tally.flaky.len()));
    }
    for test in &tally.flaky {
        eprintln!("flaky: {test} failed, and passed when it ran again alone");
    }
    for failure in &tally.failures {
        eprintln!("failed: {failure}");
    }
    println!("{}", tally.closing_line());
    Ok(if tally.failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The variables that give tests their full size, with `--nightly`.
const NIGHTLY: [(&str, &str); 6] = [
    ("OSTLER_ABANDONED", "1000"),
    ("OSTLER_KILLS", "500"),
    ("OSTLER_PRINT_KILLS", "200"),
    ("OSTLER_FAULT_SECONDS", "60"),
    ("OSTLER_SANDBOX_KILLS", "100"),
    ("OSTLER_MEASURE", "1"),
];

/// What to run.
#[derive(Debug, PartialEq)]
struct Plan {
    peers: bool,
    /// Whether the vendor's programs are started for every scenario, instead of only for those that changed.
    full: bool,
    /// Whether kills, faults and measurements have their full size, which takes hours.
    nightly: bool,
    /// With a filter only the matching tests run, without the other steps.
    filter: Vec<OsString>,
}

impl Plan {
    fn parse(args: &[OsString]) -> Result<Self> {
        let mut plan = Self { peers: true, full: false, nightly: false, filter: Vec::new() };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            match arg.to_str() {
                Some("--no-peers") => plan.peers = false,
                Some("--full") => plan.full = true,
                Some("--nightly") => (plan.full, plan.nightly) = (true, true),
                Some("--") => plan.filter = args.by_ref().cloned().collect(),
                _ => {
                    let message = format!("test knows no option {}", arg.display());
                    return Err(Misuse(message).into());
                }
            }
        }
        Ok(plan)
    }

    /// Whether nothing is left out by a filter.
    fn is_whole(&self) -> bool {
        self.filter.is_empty()
    }
}

/// Runs the steps. A failure is recorded and the next step runs anyway, unless it must fail too.
fn perform(plan: &Plan, tally: &mut Tally) {
    if let Err(error) = step("set-up and dependencies", prepare) {
        return tally.fail(format!("set-up: {error:#}"));
    }
    // Without them only some tests fail.
    for provide in [setup::tmux, setup::bubblewrap, setup::python] {
        if let Err(error) = provide() {
            tally.fail(format!("set-up: {error:#}"));
        }
    }
    if plan.peers
        && let Err(error) = setup::podman()
    {
        tally.fail(format!("set-up: {error:#}"));
    }
    let has_page = plan.peers && plan.is_whole();
    // Built before the tests, so that the program that they build has it.
    if has_page && let Err(error) = step("building the web page", web::build) {
        tally.fail(format!("web: {error:#}"));
    }
    // One waits for the network and the other for the processor.
    let ((peers, page), build) = concurrently(
        || {
            let peers = plan.peers.then(|| step("the vendor's programs", || install(plan)));
            (peers, has_page.then(page_tests))
        },
        || step("building and linting the tests", || build_tests(tally)),
    );
    page.into_iter().for_each(|page| tally.add(page));
    let peers = match peers.transpose() {
        Ok(peers) => peers,
        Err(error) => {
            tally.fail(format!("peers: {error:#}"));
            None
        }
    };
    match build {
        Ok(build) => tests(plan, build, peers, tally),
        Err(error) => tally.fail(format!("building the tests: {error:#}")),
    }
}

/// Runs everything that needs the build, in a few lanes: most of it waits for other processes.
fn tests(plan: &Plan, build: programs::Build, peers: Option<Peers>, tally: &mut Tally) {
    if plan.is_whole() {
        tally.step("lints", build.diagnostics.is_empty());
    }
    let table = match attacks::begin() {
        Ok(table) => table,
        Err(error) => return tally.fail(format!("attacks: {error:#}")),
    };
    let prepare = |command: &mut Command| {
        command.envs(peers.iter().flatten().cloned()).envs([table.clone()]);
        if plan.full {
            command.env("OSTLER_FULL", "1");
        }
        if plan.nightly {
            command.envs(NIGHTLY);
        }
    };
    let mut repeats = Repeats::default();
    for (counted, again) in
        step("all tests", || Ok(lanes::run(LANES, jobs(plan, &build, peers.is_some(), &prepare))))
            .unwrap_or_default()
    {
        tally.add(counted);
        repeats.add(again);
    }
    if !plan.is_whole() {
        return;
    }
    repeats.failed.iter().for_each(|test| test.run_again(prepare, tally));
    if !plan.nightly {
        repeats.slow.iter().for_each(|test| test.time_alone(prepare, tally));
    }
    let attacks = step("hostile input: every attack, with its time and memory", attacks::check);
    count_step(tally, "attacks", attacks);
}

/// A job with tests, and the tests to run once more.
type TestJob<'a> = Job<'a, (Tally, Repeats)>;

/// The jobs, in the order in which they start: the longest first.
fn jobs<'a>(
    plan: &'a Plan,
    build: &'a programs::Build,
    has_peers: bool,
    prepare: &'a (impl Fn(&mut Command) + Sync),
) -> Vec<TestJob<'a>> {
    let mut args = plan.filter.clone();
    if has_peers {
        // Ignored tests are exactly those that need the peers.
        args.push("--include-ignored".into());
    }
    let mut jobs: Vec<TestJob<'a>> = Vec::new();
    for program in &build.programs {
        let args = args.clone();
        jobs.push(Box::new(move || programs::run(program, &args, prepare)));
    }
    let mut others: Vec<Job<'a, Tally>> = vec![Box::new(move || documentation(plan))];
    if plan.is_whole() {
        if plan.peers {
            others.insert(0, Box::new(browser_tests));
            others.insert(1, Box::new(conform));
            others.insert(2, Box::new(mcp_conformance));
        }
        let full = usize::from(plan.full);
        let (count, every) = (JUDGED_COMMANDS[full], MATRIX_EVERY[full]);
        others.push(Box::new(|| {
            let mut tally = Tally::default();
            count_step(&mut tally, "tidy", step("tidy", tidy::quick));
            tally
        }));
        others.push(Box::new(move || {
            fuzz("fuzz judge --matrix", &["judge", "--matrix", "--every", every])
        }));
        others.push(Box::new(move || {
            fuzz("fuzz judge", &["judge", "--count", count, "--seed", "1"])
        }));
        others.push(Box::new(move || fuzz("fuzz", &["--seconds", FUZZ_SECONDS])));
    }
    let counted =
        others.into_iter().map(|job| Box::new(move || (job(), Repeats::default())) as TestJob<'a>);
    // After the programs that take longest, which come first.
    let place = build.programs.iter().take_while(|program| program.is_slow()).count();
    jobs.splice(place..place, counted);
    jobs
}

/// Runs two functions concurrently.
fn concurrently<A: Send, B>(one: impl FnOnce() -> A + Send, other: impl FnOnce() -> B) -> (A, B) {
    std::thread::scope(|scope| {
        let one = scope.spawn(one);
        let other = other();
        (one.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), other)
    })
}

/// The page in a browser, on the program that the tests were built with.
fn browser_tests() -> Tally {
    let mut tally = Tally::default();
    let heading = "the web page in a browser";
    let outcome = step(heading, || {
        count_tests(heading, &mut web::browser_tests(None)?, &mut tally)?;
        let failed = tally.failures.clone();
        for test in failed.iter().filter(|_| failed.len() <= MOST_FLAKY) {
            eprintln!("{test} failed and runs once more, alone");
            let passed = cargo::status(web::browser_tests(Some(test))?.stdout(std::io::stderr()))?;
            tally.ran_again(test, passed.success());
        }
        Ok(())
    });
    if let Err(error) = outcome {
        tally.fail(format!("web: {error:#}"));
    }
    tally
}

fn fuzz(heading: &str, args: &[&str]) -> Tally {
    let mut tally = Tally::default();
    let args: Vec<_> = args.iter().map(OsString::from).collect();
    let outcome = step(heading, || {
        let start = Instant::now();
        let mut child = fuzz::briefly(&args)?.spawn().context("starting the fuzzer")?;
        tally.took(heading, start, processor::time_of_ended(&child));
        Ok(child.wait().context("waiting for the fuzzer")?.success())
    });
    count_step(&mut tally, heading, outcome);
    tally
}

fn prepare() -> Result<()> {
    setup::linker()?;
    // Once and first: the registry limits concurrent downloads, and retries are cheap here.
    let status = cargo::status(&mut cargo::cargo(&["fetch", "--locked"]))?;
    ensure!(status.success(), "cargo fetch ended with {status}");
    Ok(())
}

/// Installs external packages.
fn install(plan: &Plan) -> Result<Peers> {
    if plan.is_whole() {
        // Needed later; a missing one is reported then.
        setup::chromium().ok();
    }
    conformance::peers()
}

/// The tests of the page without a browser.
fn page_tests() -> Tally {
    let mut tally = Tally::default();
    let heading = "the web page";
    let count = || count_tests(heading, &mut web::unit_tests(), &mut tally);
    if let Err(error) = step(heading, count) {
        tally.fail(format!("web: {error:#}"));
    }
    tally
}

fn build_tests(tally: &mut Tally) -> Result<programs::Build> {
    const BUILD: [&str; 5] =
        ["build", "--workspace", "--all-targets", "--locked", "--message-format=json"];
    setup::components()?;
    // Without them the build only takes longer.
    match packages::restore() {
        Ok(true) => eprintln!("using compiled packages from the cache folder"),
        Ok(false) => {}
        Err(error) => eprintln!("compiling all packages: {error:#}"),
    }
    let build = programs::build(&mut cargo::linting(&BUILD), tally)?;
    if let Err(error) = packages::keep() {
        eprintln!("the compiled packages are not kept: {error:#}");
    }
    Ok(build)
}

/// Runs the examples in the documentation, and checks its links.
fn documentation(plan: &Plan) -> Tally {
    let mut tally = Tally::default();
    let heading = "the documentation and its examples";
    let run = |tally: &mut Tally| {
        let doc = ["test", "--workspace", "--locked", "--no-fail-fast", "--doc", "--"];
        let mut cargo = cargo::linting(&doc);
        if plan.is_whole() {
            rustdoc::stand_in_for(&mut cargo)?;
        }
        count_tests(heading, cargo.args(&plan.filter), tally)
    };
    if let Err(error) = step(heading, || run(&mut tally)) {
        tally.fail(format!("{heading}: {error:#}"));
    }
    tally
}

/// Every scenario with every SDK counts as one test.
fn conform() -> Tally {
    let mut tally = Tally::default();
    let heading = "conformance";
    let outcome = step(heading, || {
        let mut runner = conformance::runner()?;
        runner.arg("--cli").arg(conformance::built("ostler")?).arg("--as-tests");
        count_tests(heading, &mut runner, &mut tally)
    });
    if let Err(error) = outcome {
        tally.fail(format!("conformance: {error:#}"));
    }
    tally
}

/// Every scenario of the official suite of MCP counts as one test.
fn mcp_conformance() -> Tally {
    let mut tally = Tally::default();
    let heading = "the official conformance suite of MCP";
    if let Err(error) = step(heading, || mcp::count(&mut tally)) {
        tally.fail(format!("mcp: {error:#}"));
    }
    tally
}

/// Runs a test program, or cargo with many of them, and counts the results.
fn count_tests(heading: &str, command: &mut Command, tally: &mut Tally) -> Result<()> {
    let program = command.get_program().display().to_string();
    let mut child =
        command.stdout(Stdio::piped()).spawn().with_context(|| format!("starting {program}"))?;
    let output = child.stdout.take().context("the output is a pipe")?;
    let failed_before = tally.failed;
    let start = Instant::now();
    for line in BufReader::new(output).split(b'\n') {
        let line = line.context("reading the tests' output")?;
        // Tests may print anything; lines that are not UTF-8 do not count.
        tally.line(String::from_utf8_lossy(&line).trim_end());
        let mut stdout = std::io::stdout();
        stdout.write_all(&line).and_then(|()| stdout.write_all(b"\n")).context("printing")?;
    }
    tally.took(heading, start, processor::time_of_ended(&child));
    let status = child.wait().with_context(|| format!("waiting for {program}"))?;
    // Nothing was built, or a test program ended before it printed its counts.
    ensure!(status.success() || tally.failed > failed_before, "ended with {status}");
    Ok(())
}

fn count_step(tally: &mut Tally, name: &str, outcome: Result<bool>) {
    match outcome {
        Ok(passed) => tally.step(name, passed),
        Err(error) => tally.fail(format!("{name}: {error:#}")),
    }
}

/// Runs a step under a heading and prints how long it took.
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
        let whole = |full, nightly| Plan { peers: true, full, nightly, filter: vec![] };
        assert_eq!(parse("").unwrap(), whole(false, false));
        assert_eq!(parse("--full").unwrap(), whole(true, false));
        assert_eq!(parse("--nightly").unwrap(), whole(true, true));
        let plan = parse("--no-peers -- codec --nocapture").unwrap();
        let filter = vec!["codec".into(), "--nocapture".into()];
        assert_eq!(plan, Plan { peers: false, full: false, nightly: false, filter });
    }

    #[test]
    fn a_filter_without_dashes_is_a_misuse() {
        assert!(parse("codec").unwrap_err().is::<crate::Misuse>());
    }
}
