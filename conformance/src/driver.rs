//! A driver process: one for each SDK, with many concurrent runs. One JSON object per line in both directions.

use std::collections::HashMap;
use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::Child;
use tokio::sync::mpsc;

use crate::sdk::Sdk;

/// The receivers of each run's events; `None` once the driver is gone.
type Routes = Option<HashMap<u64, mpsc::UnboundedSender<Value>>>;
type Runs = Arc<Mutex<Routes>>;

/// A running driver; it ends with this value.
pub(crate) struct Driver {
    commands: mpsc::UnboundedSender<Value>,
    runs: Runs,
    next: AtomicU64,
    _child: Child,
}

impl Driver {
    /// Its stderr has warnings about options that scenarios choose on purpose; `verbose` shows it.
    pub(crate) fn start(sdk: Sdk, drivers: &Path, verbose: bool) -> Result<Self> {
        let mut command = sdk.driver(drivers)?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        if !verbose {
            command.stderr(Stdio::null());
        }
        let mut child = command.spawn().with_context(|| format!("starting the driver of {sdk}"))?;
        let mut stdin = child.stdin.take().context("its input is a pipe")?;
        let stdout = child.stdout.take().context("its output is a pipe")?;
        let (commands, mut waiting) = mpsc::unbounded_channel::<Value>();
        tokio::spawn(async move {
            while let Some(command) = waiting.recv().await {
                if stdin.write_all(format!("{command}\n").as_bytes()).await.is_err() {
                    return;
                }
            }
        });
        let runs = Arc::new(Mutex::new(Some(HashMap::new())));
        let routed = Arc::clone(&runs);
        tokio::spawn(async move {
            let mut lines = BufReader::new(stdout).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                route(&routed, &line);
            }
            *lock(&routed) = None;
        });
        Ok(Self { commands, runs, next: AtomicU64::new(1), _child: child })
    }

    /// Starts a session and returns the run, which receives its events.
    pub(crate) fn run(&self, session: Value) -> Run<'_> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (sender, events) = mpsc::unbounded_channel();
        if let Some(routes) = lock(&self.runs).as_mut() {
            routes.insert(id, sender);
        }
        let run = Run { driver: self, id, events };
        run.tell(json!({"do": "start", "session": session}));
        run
    }
}

/// One session of an SDK. Dropping it aborts the session.
pub(crate) struct Run<'a> {
    driver: &'a Driver,
    id: u64,
    events: mpsc::UnboundedReceiver<Value>,
}

impl Run<'_> {
    /// Sends a command to the driver.
    pub(crate) fn tell(&self, mut command: Value) {
        command["run"] = self.id.into();
        // If the driver is gone, the events end.
        let _ = self.driver.commands.send(command);
    }

    /// The next event, as `{kind: payload}`; `None` when the driver is gone.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        self.events.recv().await
    }
}

impl Drop for Run<'_> {
    fn drop(&mut self) {
        self.tell(json!({"do": "forget"}));
        if let Some(routes) = lock(&self.driver.runs).as_mut() {
            routes.remove(&self.id);
        }
    }
}

fn route(runs: &Runs, line: &str) {
    let Ok(Value::Object(mut event)) = serde_json::from_str(line) else {
        eprintln!("conformance: the driver sent an invalid event: {line}");
        return;
    };
    let id = event.remove("run").and_then(|run| run.as_u64()).unwrap_or_default();
    if let Some(run) = lock(runs).as_ref().and_then(|routes| routes.get(&id)) {
        // The receiver may be gone.
        let _ = run.send(Value::Object(event));
    }
}

fn lock(runs: &Runs) -> MutexGuard<'_, Routes> {
    runs.lock().unwrap_or_else(PoisonError::into_inner)
}
