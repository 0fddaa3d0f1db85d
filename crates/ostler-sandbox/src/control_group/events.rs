//! Whether the processes of a group have reached its limits.

use std::fs;
use std::path::Path;
use std::time::Duration;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Events {
    /// A process could not be started.
    pub(super) processes: bool,
    /// A process was ended because there was no memory left.
    pub(super) memory: bool,
    /// The group itself was full: otherwise the memory of a group around it was.
    pub(super) is_own_memory: bool,
}

/// The events of a group so far.
pub(super) fn of(group: &Path) -> Events {
    let read = |name: &str| fs::read_to_string(group.join(name)).unwrap_or_default();
    Events {
        processes: count(&read("pids.events"), "max") > 0,
        memory: count(&read("memory.events"), "oom_kill") > 0,
        is_own_memory: count(&read("memory.events"), "max") > 0,
    }
}

/// How many processes the limit of this group itself has refused to start. Older kernels count them in the group that they
/// would have been in.
pub(super) fn refused_processes(group: &Path) -> u64 {
    let read = |name: &str| fs::read_to_string(group.join(name));
    let text = read("pids.events.local").or_else(|_| read("pids.events"));
    count(&text.unwrap_or_default(), "max")
}

/// The processor time that a group has used.
pub(crate) fn cpu_time(group: &Path) -> Duration {
    let text = fs::read_to_string(group.join("cpu.stat")).unwrap_or_default();
    Duration::from_micros(count(&text, "usage_usec"))
}

/// The number after a name, in lines of a name and a number each.
fn count(text: &str, name: &str) -> u64 {
    let lines = text.lines().filter_map(|line| line.split_once(' '));
    let found = lines.filter(|(key, _)| *key == name).find_map(|(_, number)| number.parse().ok());
    found.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    // Mutant: every line counts.
    #[test]
    fn only_refused_processes_and_ended_ones_count() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
        assert_eq!(of(folder.path()), Events::default());
        write("memory.events", "low 0\nhigh 3\nmax 17\noom 1\noom_kill 0\noom_group_kill 0\n");
        write("pids.events", "max 0\n");
        let full = Events { is_own_memory: true, ..Events::default() };
        assert_eq!(of(folder.path()), full, "memory that was freed again does not count");
        write("memory.events", "low 0\nhigh 0\nmax 17\noom 1\noom_kill 2\n");
        assert_eq!(of(folder.path()), Events { memory: true, ..full });
        write("pids.events", "max 5\n");
        assert_eq!(
            of(folder.path()),
            Events { memory: true, processes: true, is_own_memory: true }
        );
        write("cpu.stat", "usage_usec 1500000\nuser_usec 1\n");
        assert_eq!(cpu_time(folder.path()), Duration::from_millis(1500));
    }
}
