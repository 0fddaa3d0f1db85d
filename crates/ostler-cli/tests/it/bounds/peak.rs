//! The memory of a process under attack, and the table of all attacks.
//!
//! Every attack is a row: its name, its result, the seconds, the peak, the limit. Rows are appended to the file that [`TABLE`]
//! names; `cargo xtask test` sets it, prints the table, and fails if an attack of `tests/attacks.txt` is missing.

use std::collections::HashMap;
use std::fs;
use std::io::Write as _;
use std::process::Child;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::run::Ran;

/// The most memory that one engine may use, in kilobytes. A debug build uses some 45 MB before it has read anything.
pub(crate) const ENGINE_LIMIT: u64 = 200_000;
/// The most memory that a server may use, in kilobytes.
pub(crate) const SERVER_LIMIT: u64 = 400_000;
/// Longer than any attack takes on the slowest machine; a program that takes longer does not end.
const TIME_LIMIT: Duration = Duration::from_secs(120);
/// The variable with the file that rows are appended to.
const TABLE: &str = "OSTLER_ATTACK_TABLE";

/// The full size with `OSTLER_FULL=1`; otherwise a smaller one that shows the same bound sooner.
pub(crate) fn sized(full: u64, quick: u64) -> u64 {
    if std::env::var_os("OSTLER_FULL").is_some() { full } else { quick }
}

/// Runs a program to its end and adds a row for it. Fails if it must be killed or uses too much memory.
pub(crate) fn measure(name: &str, child: Child) -> Ran {
    measure_sized(name, "", child)
}

/// The same for an attack whose size depends on [`sized`]; the row contains the size.
pub(crate) fn measure_sized(name: &str, size: &str, child: Child) -> Ran {
    let begun = Instant::now();
    let peak = Peak::of(child.id());
    let ran = Ran::of(child);
    let kilobytes = peak.end();
    let took = begun.elapsed();
    let size = if size.is_empty() { String::new() } else { format!("{size}: ") };
    add_row(name, &format!("{size}{}", summary(&ran)), took, kilobytes, ENGINE_LIMIT);
    assert!(!ran.stderr.contains("panicked at"), "{name}: {:.2000}", ran.stderr);
    ran
}

/// The exit code, and the beginning of the output.
fn summary(ran: &Ran) -> String {
    let code = ran.code.map_or_else(|| "killed".to_owned(), |code| format!("exit {code}"));
    let text = if ran.stdout.trim().is_empty() { &ran.stderr } else { &ran.stdout };
    let line = text.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let line: String = line.chars().filter(|char| !char.is_control()).take(60).collect();
    format!("{code}: {line}")
}

/// Adds a row to the table. Fails if the attack took longer than [`TIME_LIMIT`], or if the peak is above the limit, or
/// unknown.
pub(crate) fn add_row(name: &str, result: &str, took: Duration, peak: u64, limit: u64) {
    let row = format!("{name}\t{result}\t{:.1}\t{peak}\t{limit}\n", took.as_secs_f64());
    print!("{row}");
    if let Some(table) = std::env::var_os(TABLE) {
        let mut table = fs::OpenOptions::new().create(true).append(true).open(table).unwrap();
        // One write, so that rows of parallel tests do not mix.
        table.write_all(row.as_bytes()).unwrap();
    }
    assert!(took < TIME_LIMIT, "{name} took {took:?}, more than {TIME_LIMIT:?}; {result}");
    assert!(peak > 0, "the memory of {name} was never measured");
    assert!(peak < limit, "{name} took {peak} kB, more than {limit} kB; {result}");
}

/// Measures the memory of a process and of those it starts, until [`Self::end`]. Kills the process after
/// [`TIME_LIMIT`].
pub(crate) struct Peak {
    done: mpsc::Sender<()>,
    watcher: JoinHandle<u64>,
}

impl Peak {
    pub(crate) fn of(id: u32) -> Self {
        // At once: a process with little to do may end before the thread begins.
        let first = own(id);
        let (done, over) = mpsc::channel();
        Self { done, watcher: std::thread::spawn(move || first.max(watch(id, &over))) }
    }

    /// The peak resident memory of one of the processes, in kilobytes.
    pub(crate) fn end(self) -> u64 {
        // The watcher has already ended if it had to kill the process.
        let _ = self.done.send(());
        self.watcher.join().unwrap()
    }
}

fn watch(id: u32, over: &mpsc::Receiver<()>) -> u64 {
    let begun = Instant::now();
    let mut peak = current(id);
    for round in 0_u64.. {
        if over.recv_timeout(Duration::from_millis(5)) != Err(mpsc::RecvTimeoutError::Timeout) {
            break;
        }
        // Finding the other processes means reading every process of the machine.
        peak = peak.max(if round.is_multiple_of(5) { current(id) } else { own(id) });
        if begun.elapsed() > TIME_LIMIT {
            let id = Pid::from_raw(id.cast_signed()).expect("a process has an id");
            let _ = kill_process(id, Signal::KILL);
            break;
        }
    }
    peak.max(current(id))
}

/// The kernel's peak of a process (`VmHWM`), in kilobytes; zero if the process does not exist.
fn own(id: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    peak.and_then(|text| text.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
}

/// The largest peak of a process and of all processes that it started, directly or not, in kilobytes.
pub(crate) fn current(id: u32) -> u64 {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let parents: HashMap<u32, u32> = entries
        .filter_map(|entry| {
            let id = entry.file_name().to_str()?.parse().ok()?;
            let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
            let parent = stat.rsplit(')').next()?.split_whitespace().nth(1)?.parse().ok()?;
            Some((id, parent))
        })
        .collect();
    let is_started_by_it = |other: &&u32| {
        let mut ancestors = std::iter::successors(Some(**other), |id| parents.get(id).copied());
        // The first process has no parent; no chain is as long as this.
        ancestors.by_ref().take(1_000).any(|ancestor| ancestor == id)
    };
    parents.keys().filter(is_started_by_it).map(|id| own(*id)).fold(own(id), u64::max)
}
