//! One group: its limits, and its end.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::Controllers;
use crate::limits::{Limits, SessionLimits};

/// How often, and after which pause, to look whether the processes of a group are gone.
const TRIES: usize = 1000;
const PAUSE: Duration = Duration::from_millis(2);

/// A group. Dropping it ends everything in it, and removes it.
#[derive(Debug)]
pub(crate) struct Group(PathBuf);

impl Group {
    /// Makes a group with those limits for which there are controllers.
    pub(super) fn make(path: &Path, controllers: Controllers, limits: &Limits) -> io::Result<Self> {
        fs::create_dir(path)?;
        // From now on it is removed whatever happens.
        let group = Self(path.to_owned());
        group.limit(controllers, limits)?;
        Ok(group)
    }

    /// Makes the group of a session, in which its commands have theirs.
    pub(super) fn make_for_session(
        path: &Path,
        controllers: Controllers,
        limits: &SessionLimits,
    ) -> io::Result<Self> {
        fs::create_dir(path)?;
        let group = Self(path.to_owned());
        group.limit_together(controllers, limits.processes, limits.memory)?;
        for (is_there, name) in [(controllers.processes, "+pids"), (controllers.memory, "+memory")]
        {
            if is_there {
                group.set("cgroup.subtree_control", name)?;
            }
        }
        Ok(group)
    }

    fn limit(&self, controllers: Controllers, limits: &Limits) -> io::Result<()> {
        self.limit_together(controllers, limits.processes, limits.memory)?;
        // One process that is left of many only confuses. Older kernels have no such file. The commands of a session do not
        // all end with one of them.
        let is_limited =
            controllers.memory && (limits.memory.is_some() || limits.session.memory.is_some());
        match is_limited && self.0.join("memory.oom.group").exists() {
            true => self.set("memory.oom.group", "1"),
            false => Ok(()),
        }
    }

    /// Limits everything in it.
    fn limit_together(
        &self,
        controllers: Controllers,
        processes: Option<u64>,
        memory: Option<u64>,
    ) -> io::Result<()> {
        if let (true, Some(most)) = (controllers.processes, processes) {
            self.set("pids.max", &most.to_string())?;
        }
        if let (true, Some(most)) = (controllers.memory, memory) {
            self.set("memory.max", &most.to_string())?;
            // Kernels without swap have no such file.
            if self.0.join("memory.swap.max").exists() {
                self.set("memory.swap.max", "0")?;
            }
        }
        Ok(())
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    fn set(&self, name: &str, value: &str) -> io::Result<()> {
        fs::write(self.0.join(name), value)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // What is left is removed by the watchdog, or by the next process.
        let _ = end(&self.0);
    }
}

/// Ends everything in a group and in the groups inside, and removes them.
pub(super) fn end(group: &Path) -> io::Result<()> {
    for _ in 0..TRIES {
        kill(group)?;
        for inner in fs::read_dir(group).into_iter().flatten().flatten() {
            if inner.file_type().is_ok_and(|kind| kind.is_dir()) {
                end(&inner.path())?;
            }
        }
        // Fails as long as a process is in it.
        match fs::remove_dir(group) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => std::thread::sleep(PAUSE),
            removed => return removed,
        }
    }
    Err(io::ErrorKind::TimedOut.into())
}

fn kill(group: &Path) -> io::Result<()> {
    let all = group.join("cgroup.kill");
    if all.exists() {
        return fs::write(all, "1");
    }
    // Linux before 5.14.
    let list = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    for process in list.lines().filter_map(|line| Pid::from_raw(line.parse().ok()?)) {
        // Fails if it is gone.
        let _ = kill_process(process, Signal::KILL);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    // Mutants: memory may move to swap; a limit without a controller is written.
    #[test]
    fn limits_are_written_where_there_are_controllers() {
        let limits = Limits { processes: Some(40), memory: Some(1 << 20), ..Limits::NONE };
        for (processes, memory) in [(true, true), (true, false), (false, true)] {
            let folder = tempfile::tempdir().unwrap();
            let path = |name: &str| folder.path().join(name);
            for name in ["memory.swap.max", "memory.oom.group"] {
                fs::write(path(name), "unchanged").unwrap();
            }
            let group = Group(folder.path().to_owned());
            group.limit(Controllers { processes, memory }, &limits).unwrap();
            // Nothing to end in a folder of files.
            std::mem::forget(group);
            let read = |name: &str| fs::read_to_string(path(name)).ok();
            assert_eq!(read("pids.max"), processes.then(|| "40".to_owned()));
            assert_eq!(read("memory.max"), memory.then(|| "1048576".to_owned()));
            let (swap, all) = if memory { ("0", "1") } else { ("unchanged", "unchanged") };
            assert_eq!(read("memory.swap.max").unwrap(), swap);
            assert_eq!(read("memory.oom.group").unwrap(), all);
        }
    }

    // Mutants: the groups of commands get no controllers; the limits of a command are those of the session.
    #[test]
    fn the_group_of_a_session_limits_its_commands_together() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("session");
        let controllers = Controllers { processes: true, memory: true };
        let limits = Limits {
            processes: Some(40),
            session: SessionLimits { processes: Some(90), ..SessionLimits::NONE },
            ..Limits::NONE
        };
        let session = Group::make_for_session(&path, controllers, &limits.session).unwrap();
        let read = |name: &str| fs::read_to_string(path.join(name)).unwrap_or_default();
        assert_eq!((read("pids.max").as_str(), read("memory.max").as_str()), ("90", ""));
        assert_eq!(read("cgroup.subtree_control"), "+memory", "the last one written");
        // Nothing to end in a folder of files.
        std::mem::forget(session);
    }

    // Mutant: groups inside are not removed.
    #[test]
    fn a_group_is_removed_with_those_inside() {
        let parent = tempfile::tempdir().unwrap();
        let session = parent.path().join("session");
        fs::create_dir_all(session.join("command")).unwrap();
        end(&session).unwrap();
        assert!(!session.exists());
    }
}
