//! `scripted-api`: the scripted Messages API as a program, for tests in other languages.
//!
//! This file has the flags, the line on standard output, the end of the program and its exit code. The library has
//! everything else.

use std::io::{self, IsTerminal, Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use clap::Parser;
use ostler_testkit::{Failure, Script, ScriptedApi};
use tokio::sync::oneshot;

/// Invalid flags and invalid scripts; clap uses the same code.
const USAGE_ERROR: u8 = 2;
/// A request was invalid, or no rule covered it.
const FAILURES: u8 = 1;

/// Serve a scripted Anthropic Messages API on the loopback interface.
///
/// Prints one line, `listening on http://127.0.0.1:PORT`, once it accepts connections. Ends on SIGINT or SIGTERM, and
/// when standard input closes (or, if that is /dev/null, when its parent ends), so that it ends with the test run.
/// Exits with 1 and a report on standard error if a request was not valid or no rule covered it; with 2 if it could not
/// start.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// Port to listen on; 0 for a free one
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// JSON file with the script; without it, send one to /__scripted/script
    #[arg(long, value_name = "FILE")]
    script: Option<PathBuf>,
    /// Do not end with the parent: run until SIGINT or SIGTERM
    #[arg(long)]
    keep: bool,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(failures) if failures.is_empty() => ExitCode::SUCCESS,
        Ok(failures) => {
            for failure in failures {
                complain(&failure.report);
            }
            ExitCode::from(FAILURES)
        }
        Err(reason) => {
            complain(&reason);
            ExitCode::from(USAGE_ERROR)
        }
    }
}

fn run(arguments: &Arguments) -> Result<Vec<Failure>, String> {
    let script = match &arguments.script {
        Some(path) => {
            Script::from_file(path).map_err(|error| format!("{}: {error}", path.display()))?
        }
        None => Script::new(),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("cannot start: {error}"))?;
    runtime.block_on(serve(arguments, script)).map_err(|error| error.to_string())
}

async fn serve(arguments: &Arguments, script: Script) -> io::Result<Vec<Failure>> {
    // Set up before the line is printed: after it a signal must not end the program without a report, and the parent
    // may end.
    let mut signals = Signals::new()?;
    let parent = parent_id();
    let server = ScriptedApi::bind(arguments.port, script).await?;
    writeln!(io::stdout(), "listening on {}", server.base_url())?;
    io::stdout().flush()?;
    tokio::select! {
        () = signals.received() => {}
        () = owner_left(parent), if !arguments.keep => {}
    }
    Ok(server.take_failures())
}

/// Resolves when the program that started this one has ended: it has closed standard input or, if standard input is
/// like `/dev/null`, its process has ended. `parent` is its process id at the start.
async fn owner_left(parent: Option<u32>) {
    if input_is_a_dead_end() { ended(parent).await } else { input_closed().await }
}

/// Resolves when the parent process has changed.
async fn ended(parent: Option<u32>) {
    let mut ticks = tokio::time::interval(Duration::from_millis(500));
    // If the parent is unknown, only a signal ends the program.
    while parent.is_none() || parent_id() == parent {
        ticks.tick().await;
    }
}

#[cfg(unix)]
fn parent_id() -> Option<u32> {
    Some(std::os::unix::process::parent_id())
}

#[cfg(not(unix))]
fn parent_id() -> Option<u32> {
    None
}

/// Resolves when standard input reaches its end or fails.
async fn input_closed() {
    let (closed, wait) = oneshot::channel::<()>();
    // Uses a separate thread, because the runtime would wait for its own read before the program could end.
    thread::spawn(move || {
        let mut ignored = [0; 1024];
        while matches!(io::stdin().read(&mut ignored), Ok(1..)) {}
        drop(closed);
    });
    let _ = wait.await;
}

/// Whether standard input is like `/dev/null`, which is at its end even while the parent runs.
#[cfg(unix)]
fn input_is_a_dead_end() -> bool {
    use std::os::fd::AsFd;
    use std::os::unix::fs::FileTypeExt;

    let input = io::stdin();
    let Ok(copy) = input.as_fd().try_clone_to_owned() else { return true };
    let is_device =
        std::fs::File::from(copy).metadata().is_ok_and(|data| data.file_type().is_char_device());
    is_device && !input.is_terminal()
}

#[cfg(not(unix))]
fn input_is_a_dead_end() -> bool {
    false
}

#[cfg(unix)]
struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    fn new() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    async fn received(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

#[cfg(not(unix))]
struct Signals;

#[cfg(not(unix))]
impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Self)
    }

    async fn received(&mut self) {
        // Without the signal, standard input still ends the program.
        let _ = tokio::signal::ctrl_c().await;
    }
}

fn complain(text: &str) {
    // If standard error is closed, the message is lost.
    let _ = writeln!(io::stderr(), "scripted-api: {text}");
}
