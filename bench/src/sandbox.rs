//! `sandbox`: what a sandbox adds to a short command, what it holds while a command runs, and 200 of them at once.
//!
//! Everything is as in `ostler` when it is shipped: the small helper next to it, and how it starts and ends commands.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use ostler_process::{Confine, Group, PipedCommand};
use ostler_sandbox::{Boundary, Sandbox, Setup, usual};

use crate::{measure, sdk, size, table};

/// Commands of each kind, taking turns.
const RUNS: usize = 40;
/// Sandboxes at once.
const AT_ONCE: usize = 200;
/// The promise: what a sandbox adds to a command.
const MOST_ADDED: Duration = Duration::from_millis(15);
/// The promise: the memory of a sandbox around a command that waits, in kilobytes.
const MOST_MEMORY: u64 = 8 * 1024;

pub(crate) fn run() -> Result<Vec<String>> {
    ostler_sandbox::use_helper(size::program()?);
    ostler_process::adopt_orphans();
    ostler_process::separate_working_directory();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(measure())
}

async fn measure() -> Result<Vec<String>> {
    let folder = tempfile::tempdir()?;
    let work = folder.path().canonicalize()?;
    let mut boundary = Boundary::default();
    boundary.writable = vec![work.clone()];
    boundary.protected = usual::protected(&work);
    boundary.hidden = usual::homes();
    let sandbox = Sandbox::new(boundary, Setup::default())?;
    let (mut bare, mut inside) = (Vec::new(), Vec::new());
    for _ in 0..RUNS {
        bare.push(once(&work, None).await?);
        inside.push(once(&work, Some(&sandbox)).await?);
    }
    let (bare, inside) = (measure::median(bare), measure::median(inside));
    let added = inside.saturating_sub(bare);
    let vendor = of_vendor(&work)?;
    let memory = memory_of(&work, &sandbox).await?;
    let begun = Instant::now();
    let mut groups = Vec::new();
    for _ in 0..AT_ONCE {
        groups.push(start(&work, &["-c", "read _"], Some(&sandbox))?);
    }
    for group in &mut groups {
        drop(group.stdin());
    }
    for mut group in groups {
        // `read` fails at the end of the input.
        ensure!(group.wait().await?.code() == Some(1), "one of {AT_ONCE} sandboxes at once failed");
    }
    let at_once = begun.elapsed();
    let milliseconds = |time: Duration| format!("{:.1}", time.as_secs_f64() * 1e3);
    println!("sandbox: `true` in ms, medians of {RUNS}; kilobytes; {AT_ONCE} at once in s");
    let heading = ["bare", "inside", "added", "vendor's", "memory", "at once"].map(str::to_owned);
    let row = [
        milliseconds(bare),
        milliseconds(inside),
        milliseconds(added),
        milliseconds(vendor),
        memory.to_string(),
        format!("{:.1}", at_once.as_secs_f64()),
    ];
    print!("{}", table::render(&[heading, row]));
    let mut exceeded = Vec::new();
    if added > MOST_ADDED {
        exceeded
            .push(format!("a sandbox adds {added:?} to a command; the promise is {MOST_ADDED:?}"));
    }
    if memory > MOST_MEMORY {
        exceeded.push(format!("a sandbox holds {memory} kB; the promise is {MOST_MEMORY}"));
    }
    Ok(exceeded)
}

fn start(work: &Path, arguments: &[&str], boundary: Option<&dyn Confine>) -> Result<Group> {
    let arguments: Vec<_> = arguments.iter().map(AsRef::as_ref).collect();
    Ok(Group::spawn_piped(PipedCommand {
        program: Path::new("/bin/bash"),
        arguments: &arguments,
        folder: work,
        environment: std::env::vars_os().collect(),
        boundary,
    })?)
}

async fn once(work: &Path, boundary: Option<&dyn Confine>) -> Result<Duration> {
    let begun = Instant::now();
    let mut group = start(work, &["-c", "true"], boundary)?;
    ensure!(group.wait().await?.success(), "the command failed");
    drop(group);
    Ok(begun.elapsed())
}

/// The median of the same command in the vendor's sandbox.
fn of_vendor(work: &Path) -> Result<Duration> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/sandbox/vendor.mjs");
    let mut node = Command::new("node");
    node.arg(script).arg(sdk::folder("OSTLER_SANDBOX_PEERS")?).arg(RUNS.to_string()).arg(work);
    let output = node.current_dir(work).output().context("starting node")?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "the vendor's sandbox failed: {errors}");
    let times: Vec<u64> = serde_json::from_slice(&output.stdout)?;
    ensure!(times.len() == RUNS, "the vendor's sandbox ran {} commands", times.len());
    Ok(Duration::from_nanos(measure::median(times)))
}

/// The memory of all processes of a waiting sandbox, without the command itself; shared pages count in parts.
async fn memory_of(work: &Path, sandbox: &Sandbox) -> Result<u64> {
    let mut group = start(work, &["-c", "echo ready; read _"], Some(sandbox))?;
    let mut stdout = group.stdout().context("it has an output")?;
    tokio::io::AsyncReadExt::read_exact(&mut stdout, &mut [0; 5]).await?;
    let session = group.id().to_string();
    let mut total = 0;
    for entry in fs::read_dir("/proc")? {
        let process = entry?.path();
        let Ok(stat) = fs::read_to_string(process.join("stat")) else { continue };
        let fields: Vec<_> = stat.rsplit(')').next().unwrap_or_default().split(' ').collect();
        let is_command = stat.contains("(bash)");
        if fields.get(4) == Some(&session.as_str()) && !is_command {
            let rollup = fs::read_to_string(process.join("smaps_rollup")).unwrap_or_default();
            let line = rollup.lines().find_map(|line| line.strip_prefix("Pss:"));
            let number = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
            total += number.unwrap_or_default();
        }
    }
    ensure!(total > 0, "no process of the sandbox was found");
    Ok(total)
}
