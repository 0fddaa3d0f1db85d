//! The server as a process: requests to it, and its memory.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use ostler_testkit::ScriptedApi;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::size;

const PATIENCE: Duration = Duration::from_secs(120);
const MOMENT: Duration = Duration::from_millis(10);

/// A server. Ends with this value.
pub(crate) struct Desk {
    child: Child,
    _folder: TempDir,
    pub(crate) address: SocketAddr,
    pub(crate) token: String,
    http: reqwest::Client,
}

impl Drop for Desk {
    fn drop(&mut self) {
        // It may have ended by itself, which the figures would show.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Desk {
    /// Starts the program as shipped, with its own engines or with a program's.
    pub(crate) async fn open(
        api: &ScriptedApi,
        engine: Option<&Path>,
        runs: usize,
    ) -> Result<Self> {
        let engine = engine.map(|engine| engine.to_str().context("the engine's path is text"));
        match engine.transpose()? {
            Some(engine) => Self::with(api, runs, &["--engine", engine]).await,
            None => Self::with(api, runs, &[]).await,
        }
    }

    /// Starts it with further options.
    pub(crate) async fn with(api: &ScriptedApi, runs: usize, options: &[&str]) -> Result<Self> {
        // Fails if another benchmark in this process has installed one already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let folder = tempfile::tempdir()?;
        let work = folder.path().join("work");
        std::fs::create_dir(&work)?;
        let mut command = Command::new(size::program()?);
        command.args(["--model", "claude-sonnet-4-5", "serve", "--listen", "127.0.0.1:0"]);
        command.args(["--show-token", "--max-runs", &runs.to_string(), "--data"]);
        command.arg(folder.path().join("data")).args(options);
        let path = std::env::var("PATH")?;
        command.current_dir(&work).env_clear().envs([
            ("PATH", path.as_str()),
            ("HOME", folder.path().to_str().context("the folder's name is text")?),
            ("SHELL", "/bin/bash"),
            ("ANTHROPIC_BASE_URL", &api.base_url()),
            ("ANTHROPIC_API_KEY", "key"),
            ("IS_SANDBOX", "1"),
            // The vendor's program must not be slowed down by unreachable hosts or its own updates.
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
            ("DISABLE_TELEMETRY", "1"),
            ("DISABLE_AUTOUPDATER", "1"),
        ]);
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let output = child.stdout.take().context("the output is a pipe")?;
        let mut lines = BufReader::new(output).lines();
        let mut said = |what: &str| -> Result<String> {
            for line in lines.by_ref() {
                if let Some(rest) = line?.strip_prefix(what) {
                    return Ok(rest.trim().to_owned());
                }
            }
            bail!("the server did not print {what:?}")
        };
        let address = said("listening on http://")?.parse()?;
        let token = said("token: ")?;
        let http = reqwest::Client::builder().no_proxy().build()?;
        Ok(Self { child, _folder: folder, address, token, http })
    }

    /// Sends a request. Retries after a short wait if the server limits the rate.
    async fn ask(&self, method: Method, path: &str, body: Option<Value>) -> Result<Value> {
        loop {
            let url = format!("http://{}{path}", self.address);
            let mut request = self.http.request(method.clone(), url).bearer_auth(&self.token);
            if let Some(body) = &body {
                request = request.json(body);
            }
            let answer = request.send().await.with_context(|| path.to_owned())?;
            let status = answer.status();
            let text = answer.text().await?;
            if status == StatusCode::TOO_MANY_REQUESTS {
                tokio::time::sleep(MOMENT).await;
                continue;
            }
            ensure!(status.is_success(), "{path}: {status} {text}");
            return Ok(serde_json::from_str(&text)?);
        }
    }

    pub(crate) async fn session(&self) -> Result<String> {
        let made = self.ask(Method::POST, "/api/sessions", Some(json!({}))).await?;
        Ok(made["id"].as_str().context("a session has an id")?.to_owned())
    }

    pub(crate) async fn prompt(&self, session: &str, text: &str) -> Result<()> {
        let path = format!("/api/sessions/{session}/runs");
        self.ask(Method::POST, &path, Some(json!({"prompt": text}))).await.map(drop)
    }

    pub(crate) async fn allow(&self, id: &str) -> Result<()> {
        let path = format!("/api/approvals/{id}/decision");
        self.ask(Method::POST, &path, Some(json!({"approved": true}))).await.map(drop)
    }

    async fn states(&self, session: &str) -> Result<Vec<String>> {
        let runs = self.ask(Method::GET, &format!("/api/sessions/{session}/runs"), None).await?;
        let state = |run: &Value| run["state"].as_str().unwrap_or_default().to_owned();
        Ok(runs["items"].as_array().context("runs are a list")?.iter().map(state).collect())
    }

    pub(crate) async fn runs(&self, session: &str) -> Result<usize> {
        Ok(self.states(session).await?.len())
    }

    pub(crate) async fn until_completed(&self, session: &str, count: usize) -> Result<()> {
        let completed = async {
            loop {
                let states = self.states(session).await?;
                ensure!(!states.iter().any(|state| state == "failed"), "a run of {session} failed");
                if states.iter().filter(|state| *state == "completed").count() >= count {
                    return Ok(());
                }
                tokio::time::sleep(MOMENT).await;
            }
        };
        tokio::time::timeout(PATIENCE, completed).await.context("runs take too long")?
    }

    /// When each event was added, since 1970.
    pub(crate) async fn times(&self, session: &str) -> Result<HashMap<u64, Duration>> {
        let path = format!("/api/sessions/{session}/log?limit=500");
        let log = self.ask(Method::GET, &path, None).await?;
        let time = |event: &Value| {
            Some((event["seq"].as_u64()?, Duration::from_millis(event["at"].as_u64()?)))
        };
        Ok(log["items"].as_array().into_iter().flatten().filter_map(time).collect())
    }

    /// How many events there were in all of these: their numbers have no gaps, but text deltas are removed from the log
    /// when their message is whole.
    pub(crate) async fn heads(&self, sessions: &[String]) -> Result<usize> {
        let mut count = 0;
        for session in sessions {
            let last = self.times(session).await?.into_keys().max().unwrap_or(0);
            count += usize::try_from(last)?;
        }
        Ok(count)
    }

    pub(crate) fn resident_kib(&self) -> Result<f64> {
        kib(&std::fs::read_to_string(format!("/proc/{}/status", self.child.id()))?, "VmRSS:")
    }

    /// The processor time of the server so far, without that of programs it started.
    pub(crate) fn processor_time(&self) -> Result<Duration> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        let after_name = stat.rsplit(')').next().context("the kernel's line has a name")?;
        let fields: Vec<_> = after_name.split_whitespace().collect();
        let ticks = |field: usize| -> Result<u64> {
            Ok(fields.get(field).context("the kernel's line is long enough")?.parse()?)
        };
        // Linux counts in hundredths of a second here, whatever its own clock is.
        Ok(Duration::from_millis(10 * (ticks(11)? + ticks(12)?)))
    }

    /// Memory of the server and of everything it has started; what they share counts once.
    pub(crate) fn tree_mib(&self) -> Result<f64> {
        let mut parents = HashMap::new();
        for entry in std::fs::read_dir("/proc")? {
            let Some(pid) = entry?.file_name().to_str().and_then(|name| name.parse::<u32>().ok())
            else {
                continue;
            };
            // A process may end during the scan.
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            let after_name = stat.rsplit(')').next().unwrap_or_default();
            let parent =
                after_name.split_whitespace().nth(1).and_then(|parent| parent.parse::<u32>().ok());
            parents.insert(pid, parent.unwrap_or(0));
        }
        let is_ours = |pid: &&u32| {
            let mut at = **pid;
            while at != self.child.id() {
                match parents.get(&at) {
                    Some(parent) if *parent != 0 => at = *parent,
                    _ => return false,
                }
            }
            true
        };
        let memory = parents.keys().filter(is_ours).map(|pid| {
            let text =
                std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap_or_default();
            kib(&text, "Pss:").unwrap_or(0.0)
        });
        Ok(memory.sum::<f64>() / 1024.0)
    }
}

fn kib(text: &str, name: &str) -> Result<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    let number = line.and_then(|line| line.split_whitespace().next());
    number.with_context(|| format!("there is no {name}"))?.parse().context("a number")
}
