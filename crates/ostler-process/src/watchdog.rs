//! A process that briefly outlives this one and ends what it left running.
//!
//! A library is not notified of `exit`, of a signal or of a crash. A pipe is: the system closes its other end. So a
//! shell waits for that, in its own process group that no Ctrl-C reaches.

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{ChildStdin, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::process::Pid;

use crate::marker;

const SCRIPT: &str = include_str!("watchdog.sh");
/// Its name in a list of processes.
const NAME: &str = "ostler-watchdog";

/// What the watchdog learns about a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum News {
    /// It runs.
    Started,
    /// It and everything it started are gone.
    Over,
    /// It got SIGTERM; kill it and everything it started if it does not end.
    Terminate,
    /// Its input is closed; send SIGTERM if it does not end, then kill it and everything it started.
    Close,
}

#[derive(Default)]
struct Watchdog {
    input: Option<ChildStdin>,
    /// Its children and their numbers, for the next watchdog if this one is killed.
    children: BTreeMap<i32, u64>,
    /// The descendants it was last sent.
    tracked: String,
    /// The files and folders to remove, each with the number of its users.
    placeholders: BTreeMap<String, usize>,
}

fn watchdog() -> MutexGuard<'static, Watchdog> {
    // One per process, however many engines it has.
    static WATCHDOG: Mutex<Watchdog> = Mutex::new(Watchdog {
        input: None,
        children: BTreeMap::new(),
        tracked: String::new(),
        placeholders: BTreeMap::new(),
    });
    WATCHDOG.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Makes sure that a watchdog runs before anything is started.
pub(crate) fn prepare() -> io::Result<()> {
    let mut watchdog = watchdog();
    if watchdog.input.is_none() {
        watchdog.start()?;
    }
    Ok(())
}

/// Sends the watchdog news about a child.
pub(crate) fn tell(group: Pid, number: u64, news: News) -> io::Result<()> {
    let mut watchdog = watchdog();
    let verb = match news {
        News::Started => "+",
        News::Over => "-",
        News::Terminate => "terminate",
        News::Close => "close",
    };
    match news {
        News::Started => _ = watchdog.children.insert(group.as_raw_pid(), number),
        _ => _ = watchdog.children.remove(&group.as_raw_pid()),
    }
    let line = format!("{verb} {group} {number}\n");
    if watchdog.write(&line).is_ok() {
        return Ok(());
    }
    // The watchdog was killed.
    watchdog.start()?;
    watchdog.write(&line)
}

/// Sends the watchdog the processes to end in addition, as ` ID:START …`.
pub(crate) fn tell_tracked(list: &str) {
    let mut watchdog = watchdog();
    if watchdog.tracked != list {
        list.clone_into(&mut watchdog.tracked);
        // If the watchdog was killed, the next one gets the list.
        let _ = watchdog.write(&format!("tracked{list}\n"));
    }
}

/// Has the watchdog remove an empty file or folder when this process is gone.
pub(crate) fn add_placeholder(path: &str) -> io::Result<()> {
    prepare()?;
    let mut watchdog = watchdog();
    let users = watchdog.placeholders.entry(path.to_owned()).or_default();
    *users += 1;
    if *users > 1 {
        return Ok(());
    }
    let line = format!("placeholder {path}.\n");
    if watchdog.write(&line).is_ok() {
        return Ok(());
    }
    // The watchdog was killed; the next one gets the whole list.
    watchdog.start()
}

/// Takes it back, once for each time it was added.
pub(crate) fn remove_placeholder(path: &str) {
    let mut watchdog = watchdog();
    let Some(users) = watchdog.placeholders.get_mut(path) else { return };
    *users -= 1;
    if *users == 0 {
        watchdog.placeholders.remove(path);
        // If the watchdog was killed, the next one gets a list without it.
        let _ = watchdog.write(&format!("removed {path}.\n"));
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
        // A file of a project on PATH must not replace the tools of the watchdog.
        command.env("PATH", "/usr/bin:/bin").current_dir("/");
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut process = command.process_group(0).spawn()?;
        self.input = process.stdin.take();
        let children: Vec<_> =
            self.children.iter().map(|(id, it)| format!("+ {id} {it}\n")).collect();
        let placeholders: Vec<_> =
            self.placeholders.keys().map(|path| format!("placeholder {path}.\n")).collect();
        let (children, placeholders) = (children.concat(), placeholders.concat());
        self.write(&format!("{children}{placeholders}tracked{}\n", self.tracked))
    }
}
