//! `sdk`: the cost for a host of reading a long streamed answer, compared with the official Python and TypeScript
//! SDKs.
//!
//! All three read the same stream from the same fake engine through their public `query`, add up the text, and take
//! turns. Measured is the processor time of the host alone, from the call of `query` to the end of its stream, without
//! the engine and the start of an interpreter.

mod fake_engine;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use ostler_sdk::{Message, Options};
use serde_json::{Value, json};

use crate::{measure, process, table};

pub(crate) use self::fake_engine::VARIABLE as FAKE_ENGINE;

/// The first argument that makes this program read the stream.
pub(crate) const CONSUME: &str = "--consume";

/// How many text deltas there are.
const DELTAS: usize = 100_000;
/// The recorded deltas are "Hello", " from", " mock."; the last round is cut short.
const CHARACTERS: usize = DELTAS / 3 * 16 + 5;

/// How often each SDK reads it, after one warm-up run.
const ROUNDS: usize = 7;

/// The promise: ours divided by the better of the others.
const LIMIT: f64 = 1.0 / 5.0;

pub(crate) fn run() -> Result<Vec<String>> {
    let mut readers = [Reader::ours()?, Reader::python()?, Reader::typescript()?];
    for round in 0..=ROUNDS {
        for reader in &mut readers {
            let cost = reader.read().with_context(|| format!("reading with {}", reader.name))?;
            if round > 0 {
                reader.costs.push(cost);
            }
        }
    }
    let costs = readers.map(|reader| (reader.name, measure::median(reader.costs)));
    println!("sdk: {DELTAS} partial messages, processor time of the host, median of {ROUNDS} runs");
    print!("{}", render(&costs));
    Ok(broken(costs.map(|(_, cost)| cost)))
}

/// A host.
struct Reader {
    name: &'static str,
    program: PathBuf,
    args: Vec<PathBuf>,
    variables: Vec<(&'static str, String)>,
    costs: Vec<Duration>,
}

impl Reader {
    fn new(name: &'static str, program: PathBuf, args: Vec<PathBuf>) -> Self {
        Self { name, program, args, variables: Vec::new(), costs: Vec::new() }
    }

    fn ours() -> Result<Self> {
        let this = std::env::current_exe().context("finding this program")?;
        Ok(Self::new("ostler-sdk", this, vec![CONSUME.into()]))
    }

    fn python() -> Result<Self> {
        let folder = folder("OSTLER_PYTHON")?;
        Ok(Self::new("Python 0.2.182", folder.join("bin/python"), vec![script("consume.py")]))
    }

    fn typescript() -> Result<Self> {
        let module = folder("OSTLER_PEERS")?.join("node_modules/@anthropic-ai/claude-agent-sdk");
        let mut reader =
            Self::new("TypeScript 0.3.325", "node".into(), vec![script("consume.mjs")]);
        reader.variables.push(("SDK_MODULE", module.join("sdk.mjs").display().to_string()));
        Ok(reader)
    }

    /// Reads the stream once; returns the cost. A run that missed data is an error.
    fn read(&self) -> Result<Duration> {
        let home = tempfile::tempdir()?;
        let engine = std::env::current_exe().context("finding this program")?;
        let mut variables = vec![
            ("PATH", std::env::var("PATH")?),
            ("HOME", home.path().display().to_string()),
            ("FAKE_ENGINE", engine.display().to_string()),
            (FAKE_ENGINE, DELTAS.to_string()),
            ("CLAUDE_AGENT_SDK_SKIP_VERSION_CHECK", "1".to_owned()),
        ];
        variables.extend(self.variables.iter().cloned());
        let variables: Vec<(&str, &str)> =
            variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let args = self.args.iter().map(|arg| arg.to_str().context("the path is text"));
        let args = args.collect::<Result<Vec<_>>>()?;
        let ran = process::run(&self.program, &args, home.path(), &variables)?;
        let figures: Value = serde_json::from_str(ran.stdout.trim()).context(ran.stdout.clone())?;
        let expected = json!({"deltas": DELTAS, "letters": CHARACTERS, "results": 1});
        for (what, number) in expected.as_object().into_iter().flatten() {
            ensure!(figures[what] == *number, "read {} {what} instead of {number}", figures[what]);
        }
        Ok(Duration::from_micros(figures["cpu_us"].as_u64().context("no cpu_us")?))
    }
}

pub(crate) fn folder(variable: &str) -> Result<PathBuf> {
    let folder = std::env::var_os(variable);
    let folder = folder
        .with_context(|| format!("{variable} is not set: run this through `cargo xtask bench`"))?;
    Ok(folder.into())
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/sdk").join(name)
}

/// Acts as the fake engine.
pub(crate) fn speak(n_deltas: &str) -> ExitCode {
    let n_deltas = n_deltas.parse().with_context(|| format!("{FAKE_ENGINE} is not a number"));
    ended(n_deltas.and_then(fake_engine::speak))
}

/// Reads the stream once with our SDK, as the scripts do with theirs, and prints the cost.
pub(crate) fn consume() -> ExitCode {
    // The same runtime as `#[tokio::main]`.
    let runtime = tokio::runtime::Runtime::new().context("starting a runtime");
    ended(runtime.and_then(|runtime| {
        println!("{}", runtime.block_on(read())?);
        Ok(())
    }))
}

async fn read() -> Result<Value> {
    let options = Options::new().executable(folder("FAKE_ENGINE")?).partial_messages();
    let (mut deltas, mut letters, mut results) = (0, 0, 0);
    let start = process::own_time()?;
    let mut messages = ostler_sdk::query("Say hello", options);
    while let Some(message) = messages.next().await {
        let message = message?;
        if let Some(piece) = message.text_delta() {
            deltas += 1;
            letters += piece.len();
        } else if let Message::Result(_) = message {
            results += 1;
        }
    }
    let cost = u64::try_from((process::own_time()? - start).as_micros())?;
    Ok(json!({"cpu_us": cost, "deltas": deltas, "letters": letters, "results": results}))
}

fn ended(outcome: Result<()>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn render(costs: &[(&str, Duration); 3]) -> String {
    let ours = costs[0].1.as_secs_f64();
    let mut rows = vec![["", "ms", "µs/message", "ratio"].map(str::to_owned)];
    for (name, cost) in costs {
        let cost = cost.as_secs_f64();
        rows.push([
            (*name).to_owned(),
            format!("{:.0}", cost * 1e3),
            format!("{:.2}", cost * 1e6 / DELTAS as f64),
            format!("{:.1}", cost / ours),
        ]);
    }
    table::render(&rows)
}

fn broken([ours, theirs @ ..]: [Duration; 3]) -> Vec<String> {
    let faster = theirs.into_iter().min().unwrap_or_default();
    let reached = ours.as_secs_f64() / faster.as_secs_f64();
    let text = || {
        let (reached, limit) = (1.0 / reached, 1.0 / LIMIT);
        format!(
            "reading a stream costs 1/{reached:.1} of the faster SDK; the promise is 1/{limit:.0}"
        )
    };
    (reached > LIMIT).then(text).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_faster_sdk_is_compared() {
        let times = |ours, python, typescript| {
            broken([ours, python, typescript].map(Duration::from_millis))
        };
        assert_eq!(times(100, 900, 500), [""; 0]);
        assert_eq!(times(101, 900, 500).len(), 1);
        assert!(times(101, 500, 900)[0].contains("1/5.0"));
    }
}
