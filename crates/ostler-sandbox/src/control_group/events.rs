//! Whether the processes of a group have reached its limits.

use std::fs;
use std::path::Path;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Events {
    /// A process could not be started.
    pub(super) processes: bool,
    /// A process was ended because there was no memory left.
    pub(super) memory: bool,
}

/// The events of a group so far.
pub(super) fn of(group: &Path) -> Events {
    let read = |name: &str| fs::read_to_string(group.join(name)).unwrap_or_default();
    Events {
        processes: count(&read("pids.events"), "max") > 0,
        memory: count(&read("memory.events"), "oom_kill") > 0,
    }
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
        assert_eq!(
            of(folder.path()),
            Events::default(),
            "memory that was freed again does not count"
        );
        write("memory.events", "low 0\nhigh 0\nmax 17\noom 1\noom_kill 2\n");
        assert_eq!(of(folder.path()), Events { memory: true, processes: false });
        write("pids.events", "max 5\n");
        assert_eq!(of(folder.path()), Events { memory: true, processes: true });
    }
}
