//! The watcher: the SDK starts this program in place of the program under test. It starts the real one with the same
//! arguments and pipes, forwards signals, and reports how it ended and which processes it left behind.
//!
//! It becomes the parent of every orphan, so leftover processes cannot hide.

use std::io::{Read, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, kill_process, wait};
use serde::{Deserialize, Serialize};
use tokio::process::Command;
use tokio::signal::unix::{SignalKind, signal};

/// The variable with the real program; if it is set, this program is the watcher.
pub(crate) const PROGRAM: &str = "CONFORMANCE_PROGRAM";
/// Where to report: an address on the loopback interface.
pub(crate) const REPORT: &str = "CONFORMANCE_REPORT";

/// How long processes of the program may take to end after it: killed processes are not gone at once.
const GRACE: Duration = Duration::from_secs(3);

/// How the program ended.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Report {
    /// Its exit code; of one ended by a signal, 128 and the signal's number.
    pub(crate) code: Option<i32>,
    /// The processes that were still running.
    pub(crate) left: Vec<String>,
}

/// Runs the real program to its end.
pub(crate) fn watch(program: &Path) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let watched = runtime
        .context("starting a runtime")
        .and_then(|runtime| runtime.block_on(watched(program)));
    match watched {
        Ok(code) => u8::try_from(code).unwrap_or(u8::MAX).into(),
        Err(error) => {
            eprintln!("conformance: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn watched(program: &Path) -> Result<i32> {
    let address = std::env::var(REPORT).with_context(|| format!("{REPORT} is not set"))?;
    let mut runner = TcpStream::connect(address).context("finding the runner")?;
    adopt_orphans()?;
    let is_script =
        program.extension().is_some_and(|extension| extension == "js" || extension == "mjs");
    let mut command = if is_script { Command::new("node") } else { Command::new(program) };
    if is_script {
        command.arg(program);
    }
    command.args(std::env::args_os().skip(1)).env_remove(PROGRAM).env_remove(REPORT);
    let mut signals = (
        signal(SignalKind::terminate())?,
        signal(SignalKind::interrupt())?,
        signal(SignalKind::hangup())?,
    );
    let mut child = command.spawn().with_context(|| format!("starting {}", program.display()))?;
    let pid = child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?));
    let pid = pid.context("a new child has an id")?;
    writeln!(runner, "{pid}")?;
    let status = loop {
        let signal = tokio::select! {
            status = child.wait() => break status?,
            _ = signals.0.recv() => Signal::TERM,
            _ = signals.1.recv() => Signal::INT,
            _ = signals.2.recv() => Signal::HUP,
        };
        // The process may be gone already.
        let _ = kill_process(pid, signal);
    };
    use std::os::unix::process::ExitStatusExt as _;
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    let report = Report { code, left: left_over() };
    writeln!(runner, "{}", serde_json::to_string(&report)?)?;
    Ok(code.unwrap_or(1))
}

#[cfg(target_os = "linux")]
fn adopt_orphans() -> Result<()> {
    let own = rustix::process::getpid();
    rustix::process::set_child_subreaper(Some(own)).context("adopting orphans")
}

#[cfg(not(target_os = "linux"))]
fn adopt_orphans() -> Result<()> {
    Ok(())
}

/// Waits for leftover processes to end; returns and kills those that do not.
fn left_over() -> Vec<String> {
    let deadline = Instant::now() + GRACE;
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(None) if Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(5));
            }
            Ok(None) => break,
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Err(_) => return Vec::new(),
        }
    }
    let own = std::process::id();
    let children = std::fs::read_to_string(format!("/proc/self/task/{own}/children"));
    let ids: Vec<i32> =
        children.unwrap_or_default().split_whitespace().filter_map(|id| id.parse().ok()).collect();
    let name = |id: &i32| {
        let line = std::fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        let words = line.split(|byte| *byte == 0).map(String::from_utf8_lossy);
        words.collect::<Vec<_>>().join(" ").trim().to_owned()
    };
    let names = ids.iter().map(name).collect();
    for id in ids.into_iter().filter_map(Pid::from_raw) {
        let _ = kill_process(id, Signal::KILL);
    }
    names
}

/// Reads a watcher's messages: the program's process id, and the report unless the watcher was killed.
pub(crate) fn hear(mut watcher: TcpStream) -> (Option<i32>, Option<Report>) {
    let mut said = String::new();
    // An error ends the report; the part before it counts.
    let _ = watcher.read_to_string(&mut said);
    let mut lines = said.lines();
    let pid = lines.next().and_then(|line| line.parse().ok());
    (pid, lines.next().and_then(|line| serde_json::from_str(line).ok()))
}
