//! The one process that outlives this one for a moment, and ends what this one left running.
//!
//! A library is not told of `exit`, of a signal or of a crash. A pipe is: its other end is closed by the system. So a
//! shell waits for that, in a process group of its own that no Ctrl-C reaches.

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use nix::unistd::Pid;

use crate::marker;

const SCRIPT: &str = include_str!("watchdog.sh");
/// What it is called in a list of processes.
const NAME: &str = "ostler-watchdog";

/// What the watchdog is told about a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum News {
    /// It runs.
    Started,
    /// It and all it started are gone.
    Over,
    /// It was asked to end; end it and all it started if it does not.
    Terminate,
    /// Its input has ended; ask it to end if it does not by itself, then end it and all it started.
    Close,
}

#[derive(Default)]
struct Watchdog {
    input: Option<ChildStdin>,
    /// Its children and their numbers, for the next watchdog should somebody kill this one.
    children: BTreeMap<i32, u64>,
    /// What its children started, as it was last told.
    tracked: String,
}

fn watchdog() -> MutexGuard<'static, Watchdog> {
    // One per process, however many engines there are in it: that is the point.
    static WATCHDOG: Mutex<Watchdog> =
        Mutex::new(Watchdog { input: None, children: BTreeMap::new(), tracked: String::new() });
    WATCHDOG.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sees to it that there is a watchdog before there is anything to watch.
pub(crate) fn prepare() -> io::Result<()> {
    let mut watchdog = watchdog();
    if watchdog.input.is_none() {
        watchdog.start()?;
    }
    Ok(())
}

/// Tells the watchdog about a child.
pub(crate) fn tell(group: Pid, number: u64, news: News) -> io::Result<()> {
    let mut watchdog = watchdog();
    let verb = match news {
        News::Started => "+",
        News::Over => "-",
        News::Terminate => "terminate",
        News::Close => "close",
    };
    match news {
        News::Started => _ = watchdog.children.insert(group.as_raw(), number),
        _ => _ = watchdog.children.remove(&group.as_raw()),
    }
    let line = format!("{verb} {group} {number}\n");
    if watchdog.write(&line).is_ok() {
        return Ok(());
    }
    // Somebody has killed it.
    watchdog.start()?;
    watchdog.write(&line)
}

/// Tells the watchdog which processes to end in addition, as ` ID:START …`.
pub(crate) fn tell_tracked(list: &str) {
    let mut watchdog = watchdog();
    if watchdog.tracked != list {
        list.clone_into(&mut watchdog.tracked);
        // If somebody has killed it, the next one is told.
        let _ = watchdog.write(&format!("tracked{list}\n"));
    }
}

impl Watchdog {
    fn write(&mut self, line: &str) -> io::Result<()> {
        let input = self.input.as_mut().ok_or(io::ErrorKind::NotConnected)?;
        input.write_all(line.as_bytes())
    }

    fn start(&mut self) -> io::Result<()> {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", SCRIPT, NAME, marker::of_this_process()]);
        // What a project puts on PATH shall not stand in for its tools.
        command.env("PATH", "/usr/bin:/bin").current_dir("/");
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut process = command.process_group(0).spawn()?;
        self.input = process.stdin.take();
        let children: Vec<_> =
            self.children.iter().map(|(id, it)| format!("+ {id} {it}\n")).collect();
        self.write(&format!("{}tracked{}\n", children.concat(), self.tracked))
    }
}
