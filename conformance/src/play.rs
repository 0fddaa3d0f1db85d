//! Runs one scenario with one SDK: prepares the folders, performs the steps, answers questions, and records
//! everything.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use ostler_testkit::{Script, ScriptedApi, reply, when};
use rustix::process::{Pid, Signal, kill_process};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tempfile::TempDir;
use tokio::task::JoinHandle;

use crate::driver::{Driver, Run};
use crate::fill::{Saved, fill};
use crate::pattern::{fits, short};
use crate::scenario::{Answer, Scenario, Session, Step};
use crate::sdk::Sdk;
use crate::watch::{self, Report};

/// A model that programs of both levels know.
const MODEL: &str = "claude-sonnet-4-5";

/// The events that are questions.
const QUESTIONS: [&str; 4] = ["ask", "hook", "tool", "elicitation"];

/// The record of a run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Log {
    /// `{kind: payload}` each.
    pub(crate) events: Vec<Value>,
    /// Failures of the run, whatever the scenario expects.
    pub(crate) faults: Vec<String>,
    /// The values of placeholders, including the folders of the run.
    pub(crate) saved: Saved,
}

impl Log {
    /// The payloads of one kind, in order.
    pub(crate) fn of<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Value> {
        self.events.iter().filter_map(move |event| event.get(kind))
    }
}

/// Runs the scenario to its end. Failures are in the log.
pub(crate) async fn play(
    scenario: &Scenario,
    sdk: Sdk,
    driver: &Driver,
    program: &Path,
) -> Result<Log> {
    let mut stage = Stage::set(scenario, sdk, program).await?;
    for session in &scenario.sessions {
        if let Err(error) = stage.session(session, driver).await {
            stage.log.faults.push(format!("{error:#}"));
            break;
        }
    }
    stage.close()
}

struct Stage<'a> {
    scenario: &'a Scenario,
    sdk: Sdk,
    program: &'a Path,
    api: ScriptedApi,
    home: TempDir,
    folder: TempDir,
    answers: Vec<Answer>,
    log: Log,
}

impl<'a> Stage<'a> {
    async fn set(scenario: &'a Scenario, sdk: Sdk, program: &'a Path) -> Result<Self> {
        // Some programs also ask a small model; no scenario tests that.
        let aside = Script::new().rule(when().model("claude-haiku*"), reply().text("none"));
        let api = ScriptedApi::start(aside).await;
        let (home, folder) = (tempfile::tempdir()?, tempfile::tempdir()?);
        let paths = [(folder.path(), "cwd"), (home.path(), "home")];
        let saved = paths.map(|(path, name)| (name.to_owned(), json!(path))).into();
        api.append(scenario.script(&saved)?);
        let log = Log { saved, ..Log::default() };
        let answers = scenario.answers.clone();
        let stage = Self { scenario, sdk, program, api, home, folder, answers, log };
        stage.write(&scenario.files)?;
        Ok(stage)
    }

    fn write(&self, files: &std::collections::BTreeMap<String, String>) -> Result<()> {
        for (name, content) in files {
            let path = self.folder.path().join(name);
            std::fs::create_dir_all(path.parent().context("a file is in a folder")?)?;
            std::fs::write(&path, content).with_context(|| format!("writing {name}"))?;
        }
        Ok(())
    }

    /// The start command for the driver.
    fn start(&self, session: &Session, report: &TcpListener) -> Result<Value> {
        let mut options = session.options.clone();
        options.extend(session.options_for.get(&self.sdk).cloned().unwrap_or_default());
        options.entry("model").or_insert_with(|| MODEL.into());
        let options = fill(&Value::Object(options), &self.log.saved, &Value::Null);
        let env = self.environment(report)?;
        Ok(json!({
            "cli": std::env::current_exe()?, "cwd": self.folder.path(), "env": env, "options": options,
            "prompt": session.prompt, "iterable": session.iterable, "ask": session.ask,
            "hooks": session.hooks, "mcp": session.mcp, "elicitation": session.elicitation,
        }))
    }

    fn environment(&self, report: &TcpListener) -> Result<Map<String, Value>> {
        let mut env = Map::new();
        let mut set = |name: &str, value: &str| env.insert(name.to_owned(), value.into());
        set("PATH", &std::env::var("PATH")?);
        set("HOME", &self.home.path().display().to_string());
        set("ANTHROPIC_BASE_URL", &self.api.base_url());
        set("ANTHROPIC_API_KEY", "any");
        set("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1");
        set("DISABLE_TELEMETRY", "1");
        set("DISABLE_AUTOUPDATER", "1");
        set("IS_SANDBOX", "1");
        set(watch::PROGRAM, &self.program.display().to_string());
        set(watch::REPORT, &report.local_addr()?.to_string());
        for (name, value) in &self.scenario.env {
            set(name, value);
        }
        Ok(env)
    }

    async fn session(&mut self, session: &Session, driver: &Driver) -> Result<()> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let start = self.start(session, &listener)?;
        let address = listener.local_addr()?;
        let watcher = hear(listener);
        let mut scene = Scene {
            run: driver.run(start),
            start: self.log.events.len(),
            cursor: self.log.events.len(),
            open: Vec::new(),
            calls: 0,
        };
        let (sdk, mut played) = (self.sdk, Ok(()));
        for step in session.steps.iter().filter(|step| step.concerns(sdk)) {
            played = self.step(step, &mut scene).await;
            if played.is_err() {
                break;
            }
        }
        if played.is_ok() {
            if session.prompt.is_none() {
                scene.run.tell(json!({"do": "end"}));
            }
            played = self.ended(&mut scene).await;
        }
        drop(scene);
        self.read_report(session, watcher, address, played.is_ok()).await?;
        played
    }

    /// Reads how the program ended.
    async fn read_report(
        &mut self,
        session: &Session,
        watcher: Heard,
        address: std::net::SocketAddr,
        ended: bool,
    ) -> Result<()> {
        let heard = tokio::time::timeout(Duration::from_secs(15), watcher).await;
        let Ok(heard) = heard else {
            // No watcher connected: ends the thread that waits for it.
            drop(std::net::TcpStream::connect(address));
            bail!("the program was not started, or does not end");
        };
        let (pid, report) = heard?;
        let Some(Report { code: Some(code), left }) = report else {
            if let Some(pid) = pid.and_then(Pid::from_raw) {
                let _ = kill_process(pid, Signal::KILL);
            }
            bail!("the program had to be killed");
        };
        self.log.events.push(json!({"exit": {"code": code}}));
        if !left.is_empty() {
            self.log.faults.push(format!("left running: {}", left.join(" · ")));
        }
        if ended && !session.exit.allows(self.sdk, code) {
            self.log.faults.push(format!("exit code {code}, not {:?}", session.exit));
        }
        Ok(())
    }

    async fn step(&mut self, step: &Step, scene: &mut Scene<'_>) -> Result<()> {
        let saved = self.log.saved.clone();
        let filled = |value: &Value| fill(value, &saved, &Value::Null);
        if let Some(message) = &step.send {
            scene.run.tell(json!({"do": "send", "message": user_message(&filled(message))}));
        } else if let Some(count) = step.send_letters {
            let message = user_message(&"x".repeat(count).into());
            scene.run.tell(json!({"do": "send", "message": message}));
        } else if let Some(line) = &step.line {
            scene.run.tell(json!({"do": "line", "line": filled(&json!(line))}));
        } else if let Some(pattern) = &step.wait {
            self.wait(&filled(pattern), &step.save, scene).await?;
        } else if let Some(gate) = &step.reached {
            self.reached(gate, scene).await?;
        } else if let Some(gate) = &step.release {
            self.api.gate(gate).release();
        } else if let Some(method) = &step.call {
            let args: Vec<Value> = step.args.iter().map(filled).collect();
            self.call(method, args, scene).await?;
        } else if let Some(pattern) = &step.answer {
            let value = step.value.clone().context("an answer has a value")?;
            self.answer(&filled(pattern), &value, scene).await?;
        } else if let Some(name) = &step.file {
            let content = std::fs::read_to_string(self.folder.path().join(name)).ok();
            self.log.events.push(json!({"file": {"name": name, "content": content}}));
        } else if let Some(name) = &step.wait_file {
            self.wait_file(name, scene).await?;
        } else if let Some(files) = &step.write {
            self.write(files)?;
        } else if let Some(signal) = &step.signal {
            scene.run.tell(json!({"do": "signal", "signal": signal}));
        } else if step.abort.is_some() {
            scene.run.tell(json!({"do": "abort"}));
        } else if step.end.is_some() {
            scene.run.tell(json!({"do": "end"}));
        }
        Ok(())
    }

    fn limit(&self) -> Duration {
        Duration::from_secs(self.scenario.limit)
    }

    async fn wait(
        &mut self,
        pattern: &Value,
        save: &std::collections::BTreeMap<String, String>,
        scene: &mut Scene<'_>,
    ) -> Result<()> {
        let seen = |log: &Log, from: usize| {
            log.events[from..].iter().position(|event| fits(pattern, event)).map(|at| from + at)
        };
        while seen(&self.log, scene.cursor).is_none() {
            self.advance(scene, &pattern.to_string()).await?;
        }
        let found = seen(&self.log, scene.cursor).context("the loop has seen it")?;
        scene.cursor = found + 1;
        for (name, pointer) in save {
            let value = self.log.events[found].pointer(pointer);
            let value = value
                .with_context(|| format!("{} has no {pointer}", short(&self.log.events[found])))?;
            self.log.saved.insert(name.clone(), value.clone());
        }
        Ok(())
    }

    async fn ended(&mut self, scene: &mut Scene<'_>) -> Result<()> {
        while !self.log.events[scene.start..].iter().any(|event| event.get("ended").is_some()) {
            self.advance(scene, "the end").await?;
        }
        Ok(())
    }

    async fn reached(&mut self, gate: &str, scene: &mut Scene<'_>) -> Result<()> {
        let there = self.api.gate(gate);
        self.watch_for(&format!("a response at the gate {gate}"), scene, || there.arrivals() > 0)
            .await
    }

    async fn wait_file(&mut self, name: &str, scene: &mut Scene<'_>) -> Result<()> {
        let path = self.folder.path().join(name);
        self.watch_for(&format!("the file {name}"), scene, || path.exists()).await
    }

    /// Waits for something other than an event; questions that arrive meanwhile are answered.
    async fn watch_for(
        &mut self,
        what: &str,
        scene: &mut Scene<'_>,
        there: impl Fn() -> bool,
    ) -> Result<()> {
        let deadline = Instant::now() + self.limit();
        while !there() {
            ensure!(Instant::now() < deadline, "{what} did not happen in time");
            let event = tokio::time::timeout(Duration::from_millis(10), scene.run.next()).await;
            if let Ok(event) = event {
                self.record(event.context("the driver is gone")?, scene)?;
            }
        }
        Ok(())
    }

    async fn call(&mut self, method: &str, args: Vec<Value>, scene: &mut Scene<'_>) -> Result<()> {
        scene.calls += 1;
        let id = scene.calls;
        scene.run.tell(json!({"do": "call", "id": id, "method": method, "args": args}));
        let returned = json!({"returned": {"id": id}});
        while !self.log.events.iter().rev().any(|event| fits(&returned, event)) {
            self.advance(scene, &format!("the return of {method}")).await?;
        }
        Ok(())
    }

    async fn answer(
        &mut self,
        pattern: &Value,
        value: &Value,
        scene: &mut Scene<'_>,
    ) -> Result<()> {
        loop {
            if let Some(at) = scene.open.iter().position(|question| fits(pattern, question)) {
                let question = scene.open.remove(at);
                return self.give(&question, Some(value), None, scene);
            }
            self.advance(scene, &format!("a question like {pattern}")).await?;
        }
    }

    /// Receives one more event.
    async fn advance(&mut self, scene: &mut Scene<'_>, awaited: &str) -> Result<()> {
        let Ok(event) = tokio::time::timeout(self.limit(), scene.run.next()).await else {
            let open: Vec<String> = scene.open.iter().map(short).collect();
            let last = self.log.events.last().map(short).unwrap_or_default();
            bail!("{awaited} did not happen in time; open questions: {open:?}; last: {last}");
        };
        let event = event.context("the driver is gone")?;
        let over = event.get("ended").is_some() && awaited != "the end";
        self.record(event, scene)?;
        // The awaited event may have arrived already, but no more will.
        ensure!(!over || awaited.contains("ended"), "the session ended before {awaited}");
        Ok(())
    }

    fn record(&mut self, event: Value, scene: &mut Scene<'_>) -> Result<()> {
        self.log.events.push(event.clone());
        if !QUESTIONS.iter().any(|kind| event.get(kind).is_some()) {
            return Ok(());
        }
        let rule =
            self.answers.iter_mut().find(|rule| rule.times != Some(0) && fits(&rule.to, &event));
        let Some(rule) = rule else {
            scene.open.push(event);
            return Ok(());
        };
        rule.times = rule.times.map(|times| times - 1);
        let (value, error) = (rule.value.clone(), rule.error.clone());
        self.give(&event, value.as_ref(), error, scene)
    }

    fn give(
        &self,
        question: &Value,
        value: Option<&Value>,
        error: Option<String>,
        scene: &Scene<'_>,
    ) -> Result<()> {
        let payload = question.as_object().and_then(|event| event.values().next());
        let payload = payload.context("a question has a payload")?;
        let mut answer = json!({"do": "answer", "id": payload["id"]});
        match (value, error) {
            (_, Some(error)) => answer["error"] = error.into(),
            (value, None) => {
                answer["value"] = fill(value.unwrap_or(&Value::Null), &self.log.saved, payload);
            }
        }
        scene.run.tell(answer);
        Ok(())
    }

    /// Records the requests to the model, and the files in the folder.
    fn close(mut self) -> Result<Log> {
        for request in self.api.requests() {
            if !request.model().contains("haiku") {
                let mut body = request.body.clone();
                body["tools"] = json!(request.tool_names());
                body["system"] = json!(request.system_text());
                self.log.events.push(json!({"request": body}));
            }
        }
        for failure in self.api.take_failures() {
            let report = failure.report;
            self.log
                .faults
                .push(format!("the model got an invalid or uncovered request: {report}"));
        }
        for (name, content) in files_in(self.folder.path())? {
            self.log.events.push(json!({"left": {"name": name, "content": content}}));
        }
        Ok(self.log)
    }
}

/// A session in progress.
struct Scene<'a> {
    run: Run<'a>,
    /// The first event of this session; earlier ones belong to earlier sessions.
    start: usize,
    /// The events before this were waited for already.
    cursor: usize,
    /// Unanswered questions.
    open: Vec<Value>,
    calls: usize,
}

type Heard = JoinHandle<(Option<i32>, Option<Report>)>;

/// Waits for the watcher's complete report.
fn hear(listener: TcpListener) -> Heard {
    tokio::task::spawn_blocking(move || match listener.accept() {
        Ok((watcher, _)) => watch::hear(watcher),
        Err(_) => (None, None),
    })
}

/// A user message of which the scenario gives the text, the content, or any fields.
fn user_message(given: &Value) -> Value {
    let content = if given.is_object() { &given["content"] } else { given };
    let mut message = json!({
        "type": "user", "message": {"role": "user", "content": content},
        "parent_tool_use_id": null, "session_id": "",
    });
    let extra = given.as_object().into_iter().flatten().filter(|(name, _)| *name != "content");
    for (name, value) in extra {
        message[name.as_str()] = value.clone();
    }
    message
}

/// The text files of a folder, apart from the program's own.
fn files_in(folder: &Path) -> Result<Vec<(String, String)>> {
    let mut found = Vec::new();
    let mut folders: Vec<PathBuf> = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(&next)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if let Ok(content) = std::fs::read_to_string(&path) {
                let name = path.strip_prefix(folder)?.display().to_string();
                found.push((name, content));
            }
        }
    }
    found.sort();
    Ok(found)
}
