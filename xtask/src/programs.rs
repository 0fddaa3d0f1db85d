//! The workspace's test programs: cargo builds them all, then they run next to each other, the slow ones first.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::processor;
use crate::tally::{MOST_FLAKY, Tally};

/// The packages whose tests take longest, longest first. Another order only costs time.
const SLOWEST: [&str; 5] =
    ["ostler-cli", "ostler-server", "ostler-prompt", "ostler-engine", "ostler-sdk"];

/// A program with tests in it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Program {
    path: PathBuf,
    /// The package's folder, where its tests expect to be started.
    folder: PathBuf,
}

impl Program {
    /// From a JSON message of cargo; most are about something else.
    fn from_message(line: &[u8]) -> Option<Self> {
        let message: Value = serde_json::from_slice(line).ok()?;
        if message["reason"] != "compiler-artifact" || message["profile"]["test"] != true {
            return None;
        }
        let path = PathBuf::from(message["executable"].as_str()?);
        let folder = Path::new(message["manifest_path"].as_str()?).parent()?.to_owned();
        Some(Self { path, folder })
    }

    /// Whether it belongs to a package with a large share of the whole time.
    pub(crate) fn is_slow(&self) -> bool {
        SLOWEST[..2].contains(&self.package())
    }

    fn package(&self) -> &str {
        self.folder.file_name().and_then(|name| name.to_str()).unwrap_or_default()
    }

    fn command(&self, args: &[std::ffi::OsString]) -> Command {
        let mut command = Command::new(&self.path);
        command.args(args).current_dir(&self.folder).env("CARGO_MANIFEST_DIR", &self.folder);
        // Times per test are not stable yet. The test harness only checks that this variable is set; with this value
        // it does not affect a compiler.
        command.args(["-Zunstable-options", "--report-time"]).env("RUSTC_BOOTSTRAP", "0");
        command
    }
}

/// What cargo has built, with the compiler's diagnostics.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Build {
    pub(crate) programs: Vec<Program>,
    /// Warnings and errors, each once.
    pub(crate) diagnostics: BTreeSet<String>,
}

impl Build {
    /// Handles a JSON message of cargo. Returns a new diagnostic.
    fn line(&mut self, line: &[u8]) -> Option<String> {
        self.programs.extend(Program::from_message(line));
        let message: Value = serde_json::from_slice(line).ok()?;
        let level = message["message"]["level"].as_str()?;
        // The compiler also sends a count of its warnings, which has no place in the code.
        let is_placed =
            message["message"]["spans"].as_array().is_some_and(|spans| !spans.is_empty());
        let counts = message["reason"] == "compiler-message"
            && (level.starts_with("error") || level == "warning" && is_placed);
        let text = message["message"]["rendered"].as_str().filter(|_| counts)?.to_owned();
        // A library and its tests are compiled from the same lines.
        self.diagnostics.insert(text.clone()).then_some(text)
    }
}

/// Builds the tests with a cargo that writes JSON messages. Warnings do not stop it; the caller handles them.
pub(crate) fn build(cargo: &mut Command, tally: &mut Tally) -> Result<Build> {
    let start = Instant::now();
    let mut child = cargo.stdout(Stdio::piped()).spawn().context("starting cargo")?;
    let mut build = Build::default();
    for line in BufReader::new(child.stdout.take().context("the output is a pipe")?).split(b'\n') {
        if let Some(diagnostic) = build.line(&line.context("reading cargo's output")?) {
            eprintln!("{diagnostic}");
        }
    }
    tally.took("building and linting the tests", start, processor::time_of_ended(&child));
    let status = child.wait().context("waiting for cargo")?;
    ensure!(status.success(), "building the tests ended with {status}");
    ensure!(!build.programs.is_empty(), "cargo named no test program");
    let rank = |program: &Program| SLOWEST.iter().position(|name| *name == program.package());
    build.programs.sort_by_key(|program| rank(program).unwrap_or(SLOWEST.len()));
    Ok(build)
}

/// Tests to run once more, alone.
#[derive(Debug, Default)]
pub(crate) struct Repeats {
    /// Those that failed, if they were few enough.
    pub(crate) failed: Vec<OneTest>,
    /// Those that took too long.
    pub(crate) slow: Vec<OneTest>,
}

impl Repeats {
    pub(crate) fn add(&mut self, other: Self) {
        self.failed.extend(other.failed);
        self.slow.extend(other.slow);
    }
}

/// Runs a program. Its output is printed as a whole when it has ended.
pub(crate) fn run(
    program: &Program,
    args: &[std::ffi::OsString],
    prepare: impl Fn(&mut Command),
) -> (Tally, Repeats) {
    let mut command = program.command(args);
    prepare(&mut command);
    let mut tally = Tally::default();
    let output =
        processor::output(program.package(), &mut command, &mut tally).context("starting it");
    if let Err(error) = output.and_then(|output| count(program.package(), &output, &mut tally)) {
        tally.fail(format!("{}: {error:#}", program.path.display()));
    }
    let of_it = |test| OneTest { program: program.clone(), test };
    let slow = tally.too_slow().into_iter().map(of_it).collect();
    // Many failures have one cause, which is not load.
    let few = tally.failures.len() <= MOST_FLAKY;
    let failed = tally.failures.iter().filter(|_| few).cloned().map(of_it).collect();
    (tally, Repeats { failed, slow })
}

/// A test, and the program that it is in.
#[derive(Debug)]
pub(crate) struct OneTest {
    program: Program,
    test: String,
}

impl OneTest {
    /// Runs a failed test once more, alone. A test that passes now failed because of load or of another test, which is a
    /// defect too: it is listed, and only a few are tolerated.
    pub(crate) fn run_again(&self, prepare: impl Fn(&mut Command), tally: &mut Tally) {
        eprintln!("{} failed and runs once more, alone", self.test);
        let text = self.run(prepare);
        // A program without a test of that name also succeeds.
        tally.ran_again(&self.test, text.is_some_and(|text| text.contains("1 passed; 0 failed")));
    }

    /// Runs a slow test once more, alone: other tests may have slowed it down.
    pub(crate) fn time_alone(&self, prepare: impl Fn(&mut Command), tally: &mut Tally) {
        eprintln!("{} took long and runs once more, alone", self.test);
        let mut alone = Tally::default();
        self.run(prepare).iter().flat_map(|text| text.lines()).for_each(|line| alone.line(line));
        tally.ran_alone(&self.test, &alone);
    }

    /// What it printed, if it passed.
    fn run(&self, prepare: impl Fn(&mut Command)) -> Option<String> {
        let args = ["--exact", &self.test, "--include-ignored"].map(Into::into);
        let mut command = self.program.command(&args);
        prepare(&mut command);
        let output = command.stderr(Stdio::inherit()).output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        eprint!("{text}");
        output.status.success().then_some(text)
    }
}

/// Prints the output of a test program, and counts its tests.
fn count(package: &str, output: &Output, tally: &mut Tally) -> Result<()> {
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "\n     {package}").and_then(|()| stdout.write_all(&output.stdout))?;
    let failed_before = tally.failed;
    for line in output.stdout.split(|&byte| byte == b'\n') {
        // Tests may print anything; lines that are not UTF-8 do not count.
        tally.line(String::from_utf8_lossy(line).trim_end());
    }
    // It ended before it printed its counts.
    let counted = output.status.success() || tally.failed > failed_before;
    ensure!(counted, "ended with {}", output.status);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::{Build, Program};

    // Mutant: `line` counts no warnings.
    #[test]
    fn every_warning_and_every_error_counts_once() {
        let mut build = Build::default();
        for (level, spans, text, counts) in [
            ("warning", "[{}]", "unused", true),
            ("warning", "[{}]", "unused", false),
            ("error", "[]", "no main", true),
            ("warning", "[]", "1 warning emitted", false),
            ("note", "[{}]", "aside", false),
        ] {
            let line = format!(
                r#"{{"reason":"compiler-message","message":{{"level":"{level}","spans":{spans},"rendered":"{text}"}}}}"#
            );
            assert_eq!(build.line(line.as_bytes()).is_some(), counts, "{level} {text}");
        }
        assert_eq!(build.diagnostics.len(), 2);
    }

    #[test]
    fn cargo_names_the_programs_and_their_folders() {
        let line = br#"{"reason":"compiler-artifact","manifest_path":"/p/crates/a/Cargo.toml","profile":{"test":true},"executable":"/p/target/debug/deps/it-1"}"#;
        let program = Program::from_message(line).expect("a program");
        assert_eq!(program.path, PathBuf::from("/p/target/debug/deps/it-1"));
        assert_eq!((program.package(), program.folder.to_str()), ("a", Some("/p/crates/a")));
    }

    #[test]
    fn libraries_and_programs_without_tests_are_skipped() {
        let library = br#"{"reason":"compiler-artifact","manifest_path":"/p/Cargo.toml","profile":{"test":true},"executable":null}"#;
        let program = br#"{"reason":"compiler-artifact","manifest_path":"/p/Cargo.toml","profile":{"test":false},"executable":"/p/a"}"#;
        for line in [&library[..], &program[..], br#"{"reason":"build-finished"}"#, b"", b"words"] {
            assert_eq!(Program::from_message(line), None);
        }
    }
}
