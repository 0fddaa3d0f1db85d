//! Measures a program: the time until it ends, and its peak memory.
//!
//! A process is measured by a small one that starts nothing else: the kernel reports only the peak of all children
//! together, and attributes the parent's memory at the start to a new child.

use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

/// The first argument that makes this program the measuring process.
pub(crate) const WATCH: &str = "--watch";

/// A run of a program.
pub(crate) struct Ran {
    pub(crate) stdout: String,
    /// From its start to its end.
    pub(crate) wall: Duration,
    /// Of all its threads and of the children it waited for.
    pub(crate) cpu: Duration,
    /// The peak resident memory of one process: the program itself, or a child it waited for.
    pub(crate) peak_bytes: u64,
}

/// Runs a program to its end, with only the given environment.
pub(crate) fn run(
    program: &Path,
    args: &[&str],
    folder: &Path,
    variables: &[(&str, &str)],
) -> Result<Ran> {
    let figures = tempfile::NamedTempFile::new()?;
    let watcher = std::env::current_exe().context("finding this program")?;
    let output = Command::new(watcher)
        .arg(WATCH)
        .args([figures.path(), program])
        .args(args)
        .current_dir(folder)
        .env_clear()
        .envs(variables.iter().copied())
        .stdin(Stdio::null())
        .output()?;
    let stdout = String::from_utf8_lossy(&output.stdout).into_owned();
    let stderr = String::from_utf8_lossy(&output.stderr);
    ensure!(
        output.status.success(),
        "{} ended with {}\n{stdout}\n{stderr}",
        program.display(),
        output.status
    );
    let figures: Value = serde_json::from_slice(&std::fs::read(figures.path())?)?;
    let figure = |name: &str| figures[name].as_u64().with_context(|| format!("no {name}"));
    Ok(Ran {
        stdout,
        wall: Duration::from_micros(figure("wall_us")?),
        cpu: Duration::from_micros(figure("cpu_us")?),
        peak_bytes: figure("peak_bytes")?,
    })
}

/// The measuring process: `FIGURES PROGRAM ARGS…`. Ends with the program's exit code.
pub(crate) fn watch(words: &[String]) -> ExitCode {
    match watched(words) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("watching: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn watched(words: &[String]) -> Result<ExitCode> {
    let [figures, program, args @ ..] = words else {
        anyhow::bail!("the program to measure is missing")
    };
    let start = Instant::now();
    let status = Command::new(program).args(args).status().context("starting the program")?;
    let wall = start.elapsed();
    let (cpu, peak_bytes) = used(Whose::Children)?;
    let (wall, cpu) = (u64::try_from(wall.as_micros())?, u64::try_from(cpu.as_micros())?);
    let text = json!({"wall_us": wall, "cpu_us": cpu, "peak_bytes": peak_bytes}).to_string();
    std::fs::write(figures, text).context("writing the figures")?;
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX).into())
}

/// The processor time of this process so far.
pub(crate) fn own_time() -> Result<Duration> {
    Ok(used(Whose::Own)?.0)
}

enum Whose {
    Own,
    Children,
}

/// Processor time, and the peak memory of the largest process. Children count when they have ended.
#[cfg(unix)]
fn used(whose: Whose) -> Result<(Duration, u64)> {
    use nix::sys::resource::{UsageWho, getrusage};
    use nix::sys::time::TimeValLike;

    let usage = getrusage(match whose {
        Whose::Own => UsageWho::RUSAGE_SELF,
        Whose::Children => UsageWho::RUSAGE_CHILDREN,
    })
    .context("reading the resource usage")?;
    let cpu = usage.user_time().num_microseconds() + usage.system_time().num_microseconds();
    // All systems except Apple's count in kilobytes.
    let unit = if cfg!(target_vendor = "apple") { 1 } else { 1024 };
    Ok((Duration::from_micros(cpu.try_into()?), u64::try_from(usage.max_rss())? * unit))
}

#[cfg(not(unix))]
fn used(_: Whose) -> Result<(Duration, u64)> {
    anyhow::bail!("this system does not report the resource usage of a program")
}
