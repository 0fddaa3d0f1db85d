//! `dropin`: how long a user of the official SDKs waits, with `ostler` and with the vendor's own program.
//!
//! The same host program calls the public `query` of its SDK with each of the two programs as executable, alternately,
//! against a scripted API that answers at once. Measured is the time from that call to the first message
//! (`system`/`init`), to the result, and to the end of the stream. A run with another answer than the scripted one is
//! an error.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use ostler_testkit::{Script, ScriptedApi, reply, when};
use serde_json::Value;
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::sdk::folder;
use crate::{engine, measure, process, size, table};

/// How often each pair runs, after one warm-up run.
const ROUNDS: usize = 7;

/// The promise for the first message and for the result: ours divided by theirs.
const LIMIT: f64 = 1.0 / 10.0;

const ANSWER: &str = "Hello from the script.";

/// The measured times: the name in the hosts' output and the display name.
const SPANS: [(&str, &str); 3] =
    [("init_us", "to init"), ("result_us", "to result"), ("end_us", "to the end")];

/// The times of one run, or their medians.
type Times = [Duration; SPANS.len()];

pub(crate) fn run() -> Result<Vec<String>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let engines =
        [Engine::new(size::program()?, &runtime)?, Engine::new(engine::vendor()?, &runtime)?];
    let mut rows = vec![["", "", "ostler", "claude", "ratio"].map(str::to_owned)];
    let mut broken = Vec::new();
    for host in [Host::typescript()?, Host::python()?] {
        let [ours, theirs] = medians(&host, &engines)?;
        rows.extend(render(host.name, ours, theirs));
        broken.extend(judge(host.name, ours, theirs));
    }
    println!(
        "dropin: one prompt through the official SDKs, ms from the call, median of {ROUNDS} runs each"
    );
    print!("{}", table::render(&rows));
    Ok(broken)
}

fn medians(host: &Host, engines: &[Engine; 2]) -> Result<[Times; 2]> {
    let mut times: [Vec<Times>; 2] = [Vec::new(), Vec::new()];
    for round in 0..=ROUNDS {
        for (engine, times) in engines.iter().zip(&mut times) {
            let asked = host.ask(engine);
            let asked = asked
                .with_context(|| format!("{} with {}", engine.program.display(), host.name))?;
            if round > 0 {
                times.push(asked);
            }
        }
    }
    let median = |times: &Vec<Times>| {
        std::array::from_fn(|span| measure::median(times.iter().map(|one| one[span]).collect()))
    };
    Ok([median(&times[0]), median(&times[1])])
}

/// A program instead of the SDK's own, its home, and its API.
struct Engine {
    program: PathBuf,
    home: TempDir,
    api: ScriptedApi,
}

impl Engine {
    fn new(program: PathBuf, runtime: &Runtime) -> Result<Self> {
        let script = Script::new().rule(when(), reply().text(ANSWER));
        let home = tempfile::tempdir()?;
        Ok(Self { program, home, api: runtime.block_on(ScriptedApi::bind(0, script))? })
    }
}

/// A host program.
struct Host {
    name: &'static str,
    program: PathBuf,
    script: PathBuf,
    module: Option<PathBuf>,
}

impl Host {
    fn typescript() -> Result<Self> {
        let module =
            folder("OSTLER_PEERS")?.join("node_modules/@anthropic-ai/claude-agent-sdk/sdk.mjs");
        let (program, script) = ("node".into(), script("ask.mjs"));
        Ok(Self { name: "TypeScript 0.3.325", program, script, module: Some(module) })
    }

    fn python() -> Result<Self> {
        let program = folder("OSTLER_PYTHON")?.join("bin/python");
        Ok(Self { name: "Python 0.2.182", program, script: script("ask.py"), module: None })
    }

    /// Sends one prompt.
    fn ask(&self, engine: &Engine) -> Result<Times> {
        let text = |path: &Path| path.to_str().map(str::to_owned).context("the path is text");
        let variables = [
            ("PATH", std::env::var("PATH")?),
            ("HOME", text(engine.home.path())?),
            ("ENGINE", text(&engine.program)?),
            ("MODEL", engine::MODEL.to_owned()),
            ("SDK_MODULE", text(self.module.as_deref().unwrap_or(Path::new("")))?),
            ("ANTHROPIC_BASE_URL", engine.api.base_url()),
            ("ANTHROPIC_API_KEY", "key".to_owned()),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1".to_owned()),
            ("DISABLE_TELEMETRY", "1".to_owned()),
            ("DISABLE_AUTOUPDATER", "1".to_owned()),
        ];
        let variables = variables.each_ref().map(|(name, value)| (*name, value.as_str()));
        let ran =
            process::run(&self.program, &[&text(&self.script)?], engine.home.path(), &variables)?;
        let figures: Value = serde_json::from_str(ran.stdout.trim()).context(ran.stdout.clone())?;
        ensure!(figures["text"] == ANSWER, "the answer is {} and not {ANSWER:?}", figures["text"]);
        let mut times = Times::default();
        for (time, (name, _)) in times.iter_mut().zip(SPANS) {
            let span = figures[name].as_u64().with_context(|| format!("no {name} in {figures}"))?;
            *time = Duration::from_micros(span);
        }
        Ok(times)
    }
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/dropin").join(name)
}

fn render(host: &str, ours: Times, theirs: Times) -> Vec<[String; 5]> {
    let row = |(index, (_, name)): (usize, &(&str, &str))| {
        let [ours, theirs] = [ours[index], theirs[index]].map(|time| time.as_secs_f64() * 1e3);
        let host = if index == 0 { host } else { "" };
        let ratio = format!("1/{:.1}", theirs / ours);
        [host.to_owned(), (*name).to_owned(), format!("{ours:.1}"), format!("{theirs:.1}"), ratio]
    };
    SPANS.iter().enumerate().map(row).collect()
}

fn judge(host: &str, ours: Times, theirs: Times) -> Vec<String> {
    let spans = SPANS.iter().zip(ours).zip(theirs).take(2);
    let broken = spans.filter_map(|(((_, name), ours), theirs)| {
        let reached = ours.as_secs_f64() / theirs.as_secs_f64();
        let (is, promised) = (1.0 / reached, 1.0 / LIMIT);
        let text =
            || format!("{host} waits 1/{is:.1} of the time {name}; the promise is 1/{promised:.0}");
        (reached > LIMIT).then(text)
    });
    broken.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_message_and_the_result_have_limits() {
        let times = |init, result, end| [init, result, end].map(Duration::from_millis);
        let theirs = times(1000, 2000, 3000);
        assert_eq!(judge("X", times(100, 200, 3000), theirs), [""; 0]);
        let broken = judge("X", times(101, 201, 1), theirs);
        assert_eq!(broken.len(), 2);
        assert_eq!(broken[0], "X waits 1/9.9 of the time to init; the promise is 1/10");
    }
}
