//! `turns`: a prompt that takes 50 Bash calls, one per turn, next to the vendor's native program.
//!
//! Like `engine`, with the same environment, permission and check of the work, but for the cost of a turn rather than
//! of a start. The API answers with prepared bytes, because its time counts for both programs and says nothing about them.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::prepared_api::{PreparedApi, stream};
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
    let candidates = [Candidate::new(size::program()?)?, Candidate::new(engine::vendor()?)?];
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
    api: PreparedApi,
}

impl Candidate {
    fn new(program: PathBuf) -> Result<Self> {
        let home = tempfile::tempdir()?;
        std::fs::create_dir(home.path().join("work"))?;
        Ok(Self { program, home, api: PreparedApi::start(answers())? })
    }

    fn run(&self) -> Result<Ran> {
        self.api.take_requests();
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
        check(&ran.stdout, &self.api.take_requests())?;
        Ok(ran)
    }
}

/// The answers: a call for each turn, then a text. A turn is counted by the messages of the model before it.
fn answers() -> impl Fn(&[u8]) -> Vec<u8> {
    let text = |number, text: &str| {
        let (block, delta) =
            (json!({"type": "text", "text": ""}), json!({"type": "text_delta", "text": text}));
        stream(number, &block, &delta, "end_turn")
    };
    let call = |turn: usize| {
        let input = json!({"command": format!("echo turn-{turn}"), "description": "Count"});
        let id = format!("toolu_{turn:024}");
        let block = json!({"type": "tool_use", "id": id, "name": "Bash", "input": {}});
        let delta = json!({"type": "input_json_delta", "partial_json": input.to_string()});
        stream(turn, &block, &delta, "tool_use")
    };
    let mut prepared: Vec<_> = (0..TURNS).map(call).collect();
    prepared.push(text(TURNS, &format!("The last one is turn-{}", TURNS - 1)));
    // Other requests of a program to its model, such as for a title, offer no tool.
    let other = text(TURNS + 1, "{}");
    move |body| {
        let turn = count(body, br#""role":"assistant""#);
        let is_of_prompt = count(body, br#""name":"Bash""#) > 0;
        prepared.get(turn).filter(|_| is_of_prompt).unwrap_or(&other).clone()
    }
}

fn count(bytes: &[u8], part: &[u8]) -> usize {
    let first = part[0];
    let mut rest = bytes;
    let mut found = 0;
    while let Some(place) = rest.iter().position(|byte| *byte == first) {
        rest = &rest[place..];
        found += usize::from(rest.starts_with(part));
        rest = &rest[1..];
    }
    found
}

/// The first lines of the results of tools in a request.
fn results(request: &Value) -> Vec<String> {
    let messages = request["messages"].as_array().into_iter().flatten();
    let blocks = messages.flat_map(|message| message["content"].as_array().into_iter().flatten());
    let results = blocks.filter(|it| it["type"] == "tool_result" && it["is_error"] != true);
    let texts = results.map(|result| match &result["content"] {
        Value::String(text) => text.clone(),
        // The vendor's program appends reminders to some results.
        blocks => blocks[0]["text"].as_str().unwrap_or_default().to_owned(),
    });
    texts.filter_map(|text| text.lines().next().map(str::to_owned)).collect()
}

/// Whether every command ran and the last one's output is in the result.
fn check(stdout: &str, requests: &[Value]) -> Result<()> {
    let results: Vec<_> = requests.iter().flat_map(results).collect();
    for turn in 0..TURNS {
        let output = format!("turn-{turn}");
        let ran = results.contains(&output);
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
