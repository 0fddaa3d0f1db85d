//! `resume`: a session of 300 MB that was compacted is resumed within 100 MB, as shipped.
//!
//! The file is made from a real session: its lines follow the boundary that a compaction writes, and 300 MB of earlier
//! messages precede it, which the conversation does not need any more. A run counts only if the model gets the messages
//! after the boundary and none before it.

use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use ostler_testkit::{Script, ScriptedApi, reply, when};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::process::{self, Ran};
use crate::{engine, size, table};

const BYTES: usize = 300_000_000;
/// Text of one earlier message.
const MESSAGE: usize = 20_000;
/// The promise, in bytes.
const LIMIT: u64 = 100_000_000;
const EARLIER: &str = "earlier-message";
const KEPT: &str = "Remember the word elderberry.";

pub(crate) fn run() -> Result<Vec<String>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let script = Script::new().rule(when(), reply().text("Fine."));
    let place = Place::new(runtime.block_on(ScriptedApi::bind(0, script))?)?;
    let session = place.begin()?;
    let small = place.resume(&session)?;
    place.grow(&session)?;
    let large = place.resume(&session)?;
    println!("resume: a compacted session, with little and with 300 MB before the boundary");
    let row = |name: &str, ran: &Ran| {
        let (ms, mb) = (ran.wall.as_secs_f64() * 1e3, ran.peak_bytes as f64 / 1e6);
        [name.to_owned(), format!("{ms:.0}"), format!("{mb:.0}")]
    };
    let heading = ["", "wall time, ms", "peak memory, MB"].map(str::to_owned);
    print!("{}", table::render(&[heading, row("little", &small), row("300 MB", &large)]));
    Ok(broken(large.peak_bytes).into_iter().collect())
}

fn broken(peak: u64) -> Option<String> {
    (peak > LIMIT).then(|| {
        format!("resume: a session of 300 MB takes {} MB; the promise is 100 MB", peak / 1_000_000)
    })
}

struct Place {
    home: TempDir,
    api: ScriptedApi,
}

impl Place {
    fn new(api: ScriptedApi) -> Result<Self> {
        let home = tempfile::tempdir()?;
        fs::create_dir(home.path().join("work"))?;
        Ok(Self { home, api })
    }

    fn start(&self, args: &[&str]) -> Result<Ran> {
        let home = self.home.path().to_str().context("the folder's name is text")?;
        let (path, base_url) = (std::env::var("PATH")?, self.api.base_url());
        let own = [("PATH", path.as_str()), ("HOME", home), ("ANTHROPIC_BASE_URL", &base_url)];
        let args = [&["-p", "--output-format", "json", "--model", engine::MODEL], args].concat();
        let variables = [&own[..], &engine::ENVIRONMENT].concat();
        process::run(&size::program()?, &args, &self.home.path().join("work"), &variables)
    }

    /// Makes a session of one prompt and returns its id.
    fn begin(&self) -> Result<String> {
        let result: Value = serde_json::from_str(&self.start(&[KEPT])?.stdout)?;
        Ok(result["session_id"].as_str().context("a result names its session")?.to_owned())
    }

    fn resume(&self, session: &str) -> Result<Ran> {
        let ran = self.start(&["--resume", session, "Which word was it?"])?;
        let requests = self.api.all_requests();
        let request = requests.last().context("the model is asked")?.body.to_string();
        ensure!(
            request.contains(KEPT),
            "the messages after the boundary are resumed: {request:.2000}"
        );
        ensure!(!request.contains(EARLIER), "the messages before the boundary are not resumed");
        Ok(ran)
    }

    fn file(&self, session: &str) -> Result<PathBuf> {
        let projects = self.home.path().join(".claude/projects");
        let folder = fs::read_dir(projects)?.next().context("there is a folder of sessions")??;
        Ok(folder.path().join(format!("{session}.jsonl")))
    }

    /// Inserts earlier messages and a boundary at the start.
    fn grow(&self, session: &str) -> Result<()> {
        let path = self.file(session)?;
        let text = fs::read_to_string(&path)?;
        let mut lines: Vec<Value> =
            text.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
        let (earlier, boundary) = (Earlier::of(&lines)?, "00000000-0000-4000-8000-0000000000ff");
        let first = lines.iter_mut().find(|line| line["uuid"].is_string());
        let first = first.context("a session has messages")?;
        let last = earlier.write(&path, session)?;
        let mut compacted = json!({"type": "system", "subtype": "compact_boundary", "parentUuid": null,
            "logicalParentUuid": last, "uuid": boundary, "sessionId": session, "isSidechain": false,
            "content": "Conversation compacted", "level": "info", "isMeta": false,
            "compactMetadata": {"trigger": "auto", "preTokens": 100_000}});
        compacted["timestamp"] = first["timestamp"].clone();
        first["parentUuid"] = json!(boundary);
        let mut file = BufWriter::new(File::options().append(true).open(&path)?);
        writeln!(file, "{compacted}")?;
        for line in &lines {
            writeln!(file, "{line}")?;
        }
        file.flush()?;
        Ok(())
    }
}

/// A user's and an assistant's message of the session, to be repeated.
struct Earlier {
    pair: [Value; 2],
}

impl Earlier {
    fn of(lines: &[Value]) -> Result<Self> {
        let find = |kind: &str| {
            let line = lines.iter().find(|line| line["type"] == kind && line["uuid"].is_string());
            line.cloned().with_context(|| format!("a session has a message of the {kind}"))
        };
        Ok(Self { pair: [find("user")?, find("assistant")?] })
    }

    /// Writes a new file of them and returns the id of the last.
    fn write(&self, path: &Path, session: &str) -> Result<Value> {
        let mut file = BufWriter::new(File::create(path)?);
        let (mut written, mut parent) = (0, Value::Null);
        for number in 0_usize.. {
            if written >= BYTES {
                break;
            }
            let mut line = self.pair[number % 2].clone();
            let uuid = json!(format!("00000000-0000-4000-9000-{number:012}"));
            let text = format!("{EARLIER} {number} {}", "x".repeat(MESSAGE));
            line["message"]["content"] = json!([{"type": "text", "text": text}]);
            line["sessionId"] = json!(session);
            line["parentUuid"] = std::mem::replace(&mut parent, uuid.clone());
            line["uuid"] = uuid;
            let line = line.to_string();
            written += line.len() + 1;
            writeln!(file, "{line}")?;
        }
        file.flush()?;
        Ok(parent)
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_hundred_megabytes_are_within_the_limit_and_more_is_not() {
        assert_eq!(super::broken(100_000_000), None);
        assert!(super::broken(101_000_000).is_some_and(|promise| promise.contains("101 MB")));
    }
}
