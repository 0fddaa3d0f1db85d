//! `engine`: a prompt with one Bash call, compared with the vendor's native program, on the same scripted API.
//!
//! Both get the same arguments, environment and permission, and take turns. A run counts only if the work was
//! done: the command's output reached the model, and the result says success.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use ostler_testkit::{RecordedRequest, Script, ScriptedApi, reply, when};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::process::{self, Ran};
use crate::{measure, size, table};

/// How often each program runs, after one warm-up run.
const ROUNDS: usize = 11;

/// The promises: ours divided by theirs.
const WALL_LIMIT: f64 = 1.0 / 20.0;
const PEAK_LIMIT: f64 = 1.0 / 10.0;

/// A model that both know by the same name. For the newest ones the vendor's program uses a preview of the API.
pub(crate) const MODEL: &str = "claude-sonnet-4-5";
const PROMPT: &str = "How much is six times seven? Ask the shell.";
const COMMAND: &str = "echo bench-$((6 * 7))";
const OUTPUT: &str = "bench-42";
// The rule is for the whole tool: `Bash(echo:*)` does not cover a command with an expansion.
const SETTINGS: &str = r#"{"permissions":{"allow":["Bash"]}}"#;

/// The environment of both programs, in addition to their home: the vendor's must not be slowed down by unreachable
/// hosts or its own updates.
pub(crate) const ENVIRONMENT: [(&str, &str); 5] = [
    ("SHELL", "/bin/bash"),
    ("ANTHROPIC_API_KEY", "key"),
    ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
    ("DISABLE_TELEMETRY", "1"),
    ("DISABLE_AUTOUPDATER", "1"),
];

pub(crate) fn run() -> Result<Vec<String>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut candidates =
        [Candidate::new(size::program()?, &runtime)?, Candidate::new(vendor()?, &runtime)?];
    for round in 0..=ROUNDS {
        for candidate in &mut candidates {
            let run = candidate.run().with_context(|| candidate.program.display().to_string())?;
            if round > 0 {
                candidate.runs.push(run);
            }
        }
    }
    let [ours, theirs] = candidates.map(|candidate| Figures::of(&candidate.runs));
    println!("engine: two model calls and one Bash call, median of {ROUNDS} runs each");
    print!("{}", render(&ours, &theirs));
    Ok(broken(&ours, &theirs))
}

/// The vendor's program, which npm has installed for this kind of machine.
pub(crate) fn vendor() -> Result<PathBuf> {
    let peers = std::env::var_os("OSTLER_PEERS")
        .context("OSTLER_PEERS is not set: run this through `cargo xtask bench`")?;
    let packages = Path::new(&peers).join("node_modules/@anthropic-ai");
    let entries = std::fs::read_dir(&packages)
        .with_context(|| format!("reading {}", packages.display()))?
        .collect::<Result<Vec<_>, _>>()?;
    let found = entries.iter().map(|entry| entry.path().join("claude")).find(|path| path.is_file());
    found.with_context(|| format!("npm found no native program for this machine in {peers:?}"))
}

/// A program, its home, and its API.
struct Candidate {
    program: PathBuf,
    home: TempDir,
    api: ScriptedApi,
    runs: Vec<Run>,
}

struct Run {
    ran: Ran,
    n_requests: usize,
    first_request_bytes: u64,
}

impl Candidate {
    fn new(program: PathBuf, runtime: &Runtime) -> Result<Self> {
        let call = json!({"command": COMMAND, "description": "Multiply"});
        let script = Script::new()
            .rule(when().tool_result_of("Bash"), reply().text("The shell says {{tool_result}}"))
            .rule(
                when().prompt_contains(PROMPT).offers_tool("Bash"),
                reply().text("Asking.").tool_use("Bash", call),
            )
            // Other requests of a program to its model, such as for a title.
            .rule(when(), reply().text("{}"));
        let home = tempfile::tempdir()?;
        std::fs::create_dir(home.path().join("work"))?;
        let api = runtime.block_on(ScriptedApi::bind(0, script))?;
        Ok(Self { program, home, api, runs: Vec::new() })
    }

    fn run(&self) -> Result<Run> {
        let seen = self.api.all_requests().len();
        let home = self.home.path().to_str().context("the folder's name is text")?;
        let path = std::env::var("PATH")?;
        let base_url = self.api.base_url();
        let own = [("PATH", path.as_str()), ("HOME", home), ("ANTHROPIC_BASE_URL", &base_url)];
        let variables = [&own[..], &ENVIRONMENT].concat();
        let args = [
            "-p",
            "--output-format",
            "stream-json",
            "--verbose",
            "--model",
            MODEL,
            "--settings",
            SETTINGS,
            PROMPT,
        ];
        let work = self.home.path().join("work");
        let ran = process::run(&self.program, &args, &work, &variables)?;
        let requests = &self.api.all_requests()[seen..];
        check(&ran.stdout, requests)?;
        let length = requests.first().and_then(|one| one.headers.get("content-length"));
        let first_request_bytes = length.and_then(|text| text.parse().ok()).unwrap_or(0);
        Ok(Run { ran, n_requests: requests.len(), first_request_bytes })
    }
}

/// Whether the work was done.
fn check(stdout: &str, requests: &[RecordedRequest]) -> Result<()> {
    let results: Vec<_> = requests.iter().flat_map(RecordedRequest::tool_results).collect();
    ensure!(
        results.iter().any(|result| !result.is_error && result.text.contains(OUTPUT)),
        "the output of the command did not reach the model: {results:?}\n{stdout}"
    );
    let frames = stdout.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let result = frames.rev().find(|frame| frame["type"] == "result");
    let result = result.with_context(|| format!("there is no result:\n{stdout}"))?;
    ensure!(
        result["subtype"] == "success"
            && result["is_error"] == false
            && result["result"].as_str().is_some_and(|text| text.contains(OUTPUT)),
        "the result is not a success: {result}"
    );
    Ok(())
}

/// The medians of one program.
struct Figures {
    wall: Duration,
    cpu: Duration,
    peak_bytes: u64,
    n_requests: usize,
    first_request_bytes: u64,
}

impl Figures {
    fn of(runs: &[Run]) -> Self {
        Self {
            wall: measure::median(runs.iter().map(|run| run.ran.wall).collect()),
            cpu: measure::median(runs.iter().map(|run| run.ran.cpu).collect()),
            peak_bytes: measure::median(runs.iter().map(|run| run.ran.peak_bytes).collect()),
            n_requests: measure::median(runs.iter().map(|run| run.n_requests).collect()),
            first_request_bytes: measure::median(
                runs.iter().map(|run| run.first_request_bytes).collect(),
            ),
        }
    }

    /// The rows of the table.
    fn rows(&self) -> [(&'static str, f64); 5] {
        [
            ("wall time, ms", milliseconds(self.wall)),
            ("processor time, ms", milliseconds(self.cpu)),
            ("peak memory of a process, MiB", self.peak_bytes as f64 / f64::from(1 << 20)),
            ("requests", self.n_requests as f64),
            ("first request, kB", self.first_request_bytes as f64 / 1e3),
        ]
    }
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn render(ours: &Figures, theirs: &Figures) -> String {
    let mut rows = vec![["", "ostler", "claude", "ratio"].map(str::to_owned)];
    for ((name, ours), (_, theirs)) in ours.rows().into_iter().zip(theirs.rows()) {
        let ratio = format!("1/{:.1}", theirs / ours);
        rows.push([name.to_owned(), format!("{ours:.1}"), format!("{theirs:.1}"), ratio]);
    }
    table::render(&rows)
}

fn broken(ours: &Figures, theirs: &Figures) -> Vec<String> {
    let wall = ours.wall.as_secs_f64() / theirs.wall.as_secs_f64();
    let peak = ours.peak_bytes as f64 / theirs.peak_bytes as f64;
    let judge = |what: &str, reached: f64, limit: f64| {
        (reached > limit).then(|| {
            let (reached, limit) = (1.0 / reached, 1.0 / limit);
            format!("{what} is 1/{reached:.1} of the vendor's program; the promise is 1/{limit:.0}")
        })
    };
    let wall = judge("the wall time", wall, WALL_LIMIT);
    let peak = judge("the peak memory", peak, PEAK_LIMIT);
    wall.into_iter().chain(peak).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(wall_ms: u64, peak_bytes: u64) -> Figures {
        let wall = Duration::from_millis(wall_ms);
        Figures { wall, cpu: wall, peak_bytes, n_requests: 2, first_request_bytes: 1000 }
    }

    #[test]
    fn wall_time_and_peak_memory_have_limits() {
        let theirs = figures(2000, 1000);
        assert_eq!(broken(&figures(100, 100), &theirs), [""; 0]);
        assert_eq!(broken(&figures(101, 101), &theirs).len(), 2);
        assert!(broken(&figures(101, 100), &theirs)[0].contains("wall time is 1/19.8"));
        assert!(broken(&figures(100, 101), &theirs)[0].contains("peak memory is 1/9.9"));
    }

    #[test]
    fn a_run_that_did_not_do_the_work_does_not_count() {
        let result = |subtype: &str| {
            json!({"type": "result", "subtype": subtype,
            "is_error": false, "result": format!("The shell says {OUTPUT}")})
        };
        let error = check(&result("success").to_string(), &[]).unwrap_err().to_string();
        assert!(error.contains("did not reach the model"), "{error}");
    }
}
