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
/// How many folders to clean up it knows before the unused ones are taken back. The next command mostly needs the same
/// ones again, and each line takes time.
const FOLDERS: usize = 500;

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
    /// The folders to clean up, each with the number of its users.
    folders: BTreeMap<String, usize>,
    /// How many of them were in use when the others were last taken back.
    used_folders: usize,
    /// The program that cleans them up.
    sweeper: String,
}

fn watchdog() -> MutexGuard<'static, Watchdog> {
    // One per process, however many engines it has.
    static WATCHDOG: Mutex<Watchdog> = Mutex::new(Watchdog {
        input: None,
        children: BTreeMap::new(),
        tracked: String::new(),
        folders: BTreeMap::new(),
        used_folders: 0,
        sweeper: String::new(),
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

/// Has the watchdog clean up a folder when this process is gone.
pub(crate) fn add_folder(sweeper: &str, folder: &str) -> io::Result<()> {
    prepare()?;
    let mut watchdog = watchdog();
    let mut lines = String::new();
    if watchdog.sweeper != sweeper {
        sweeper.clone_into(&mut watchdog.sweeper);
        lines.push_str(&format!("sweeper {sweeper}.\n"));
    }
    if let Some(users) = watchdog.folders.get_mut(folder) {
        *users += 1;
    } else {
        lines.push_str(&watchdog.forget_unused_folders());
        watchdog.folders.insert(folder.to_owned(), 1);
        lines.push_str(&format!("folder {folder}.\n"));
    }
    if lines.is_empty() || watchdog.write(&lines).is_ok() {
        return Ok(());
    }
    // The watchdog was killed; the next one gets the whole list.
    watchdog.start()
}

/// Takes it back, once for each time it was added. The watchdog learns it later.
pub(crate) fn remove_folder(folder: &str) {
    if let Some(users) = watchdog().folders.get_mut(folder) {
        *users = users.saturating_sub(1);
    }
}

impl Watchdog {
    /// Forgets the unused folders if there are many. Returns the lines for the watchdog.
    fn forget_unused_folders(&mut self) -> String {
        if self.folders.len() < FOLDERS.max(2 * self.used_folders) {
            return String::new();
        }
        let unused = self.folders.extract_if(.., |_, users| *users == 0);
        let lines = unused.map(|(folder, _)| format!("clean {folder}.\n")).collect();
        self.used_folders = self.folders.len();
        lines
    }

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
        let folders: Vec<_> = self.folders.keys().map(|it| format!("folder {it}.\n")).collect();
        let (children, folders) = (children.concat(), folders.concat());
        let Self { sweeper, tracked, .. } = &*self;
        self.write(&format!("{children}sweeper {sweeper}.\n{folders}tracked{tracked}\n"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Mutants: unused folders are never forgotten; folders in use are.
    #[test]
    fn unused_folders_are_forgotten_when_there_are_many() {
        let mut watchdog = Watchdog::default();
        let folder = |number: usize| (format!("/w/{number:04}"), number % 2);
        watchdog.folders = (1..FOLDERS).map(folder).collect();
        assert_eq!(watchdog.forget_unused_folders(), "");
        watchdog.folders.insert("/w/a b".to_owned(), 0);
        let lines = watchdog.forget_unused_folders();
        assert_eq!(lines.lines().count(), FOLDERS / 2);
        assert!(lines.starts_with("clean /w/0002.\n"), "{lines}");
        assert!(lines.ends_with("clean /w/a b.\n"), "{lines}");
        assert!(watchdog.folders.values().all(|users| *users == 1));
        assert_eq!(watchdog.used_folders, watchdog.folders.len());
    }
}
