//! `turns`: a prompt that takes 50 Bash calls, one per turn, next to the vendor's native program.
//!
//! Like `engine`, with the same environment, permission and check of the work, but for the cost of a turn rather than
//! of a start.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use ostler_testkit::{RecordedRequest, Script, ScriptedApi, Usage, reply, when};
use serde_json::json;
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::process::{self, Ran};
use crate::{engine, measure, size, table};

const TURNS: usize = 50;
/// How often each program runs, after one warm-up run.
const ROUNDS: usize = 5;
/// The promise: our wall time divided by theirs.
const LIMIT: f64 = 1.0 / 15.0;
const PROMPT: &str = "Count to fifty with the shell.";
const SETTINGS: &str = r#"{"permissions":{"allow":["Bash(echo:*)"]}}"#;

pub(crate) fn run() -> Result<Vec<String>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let candidates =
        [Candidate::new(size::program()?, &runtime)?, Candidate::new(engine::vendor()?, &runtime)?];
    let mut runs = [Vec::new(), Vec::new()];
    for round in 0..=ROUNDS {
        for (candidate, runs) in candidates.iter().zip(&mut runs) {
            let run = candidate.run().with_context(|| candidate.program.display().to_string())?;
            if round > 0 {
                runs.push(run);
            }
        }
    }
    let [ours, theirs] =
        runs.map(|runs| measure::median(runs.iter().map(|run| run.wall).collect()));
    println!("turns: {TURNS} Bash calls in as many turns, median of {ROUNDS} runs each");
    let ms = |time: Duration| format!("{:.0}", time.as_secs_f64() * 1e3);
    let ratio = ours.as_secs_f64() / theirs.as_secs_f64();
    let rows = [
        ["", "ostler", "claude", "ratio"].map(str::to_owned),
        ["wall time, ms".to_owned(), ms(ours), ms(theirs), format!("1/{:.1}", 1.0 / ratio)],
    ];
    print!("{}", table::render(&rows));
    Ok(broken(ratio).into_iter().collect())
}

fn broken(ratio: f64) -> Option<String> {
    (ratio > LIMIT).then(|| {
        let (reached, limit) = (1.0 / ratio, 1.0 / LIMIT);
        format!("turns: the wall time is 1/{reached:.1} of the vendor's program; the promise is 1/{limit:.0}")
    })
}

/// A program, its home, and its API.
struct Candidate {
    program: PathBuf,
    home: TempDir,
    api: ScriptedApi,
}

impl Candidate {
    fn new(program: PathBuf, runtime: &Runtime) -> Result<Self> {
        let mut script = Script::new();
        for turn in 0..TURNS {
            let input = json!({"command": format!("echo turn-{turn}"), "description": "Count"});
            let condition = when().any_text_contains(PROMPT).offers_tool("Bash").turn(turn);
            // Given, because the server would otherwise count the tokens of every request: its time, not the programs'.
            script = script
                .rule(condition, reply().tool_use("Bash", input).usage(Usage::tokens(1_000, 50)));
        }
        let script = script
            .rule(when().tool_result_of("Bash"), reply().text("The last one is {{tool_result}}"))
            // Other requests of a program to its model, such as for a title.
            .rule(when(), reply().text("{}"));
        let home = tempfile::tempdir()?;
        std::fs::create_dir(home.path().join("work"))?;
        let api = runtime.block_on(ScriptedApi::bind(0, script))?;
        Ok(Self { program, home, api })
    }

    fn run(&self) -> Result<Ran> {
        let seen = self.api.all_requests().len();
        let home = self.home.path().to_str().context("the folder's name is text")?;
        let (path, base_url) = (std::env::var("PATH")?, self.api.base_url());
        let own = [("PATH", path.as_str()), ("HOME", home), ("ANTHROPIC_BASE_URL", &base_url)];
        let format = ["-p", "--output-format", "stream-json", "--verbose"];
        let rest = ["--model", engine::MODEL, "--settings", SETTINGS, PROMPT];
        let ran = process::run(
            &self.program,
            &[&format[..], &rest].concat(),
            &self.home.path().join("work"),
            &[&own[..], &engine::ENVIRONMENT].concat(),
        )?;
        check(&ran.stdout, &self.api.all_requests()[seen..])?;
        Ok(ran)
    }
}

/// Whether every command ran and the last one's output is in the result.
fn check(stdout: &str, requests: &[RecordedRequest]) -> Result<()> {
    for turn in 0..TURNS {
        let output = format!("turn-{turn}");
        let results = requests.iter().flat_map(RecordedRequest::tool_results);
        // The vendor's program appends reminders to some results.
        let ran =
            results.into_iter().any(|it| !it.is_error && it.text.lines().next() == Some(&*output));
        ensure!(ran, "the output of command {turn} did not reach the model\n{stdout}");
    }
    let last = format!("The last one is turn-{}", TURNS - 1);
    ensure!(stdout.contains(&last), "the result does not contain {last:?}:\n{stdout}");
    Ok(())
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_fifteenth_is_within_the_limit_and_more_is_not() {
        assert_eq!(super::broken(1.0 / 15.0), None);
        assert!(super::broken(1.0 / 14.0).is_some());
    }

    #[test]
    fn a_run_that_did_not_do_the_work_does_not_count() {
        assert!(super::check("The last one is turn-49", &[]).is_err());
    }
}
