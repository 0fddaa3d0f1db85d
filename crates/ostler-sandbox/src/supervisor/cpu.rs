//! The processor time of a command, from looks at its processes now and then.

use std::collections::HashMap;
use std::time::Duration;

use ostler_process::usage::TreeUsage;

/// The processor time of a command so far. Never more than it really used.
#[derive(Debug, Default)]
pub(super) struct CpuTime {
    /// Processes at the last look, by id and start, with their own time.
    living: HashMap<(i32, u64), Duration>,
    /// The time of processes that are gone, as it was when they were last seen.
    gone: Duration,
    total: Duration,
}

impl CpuTime {
    /// The time so far, after a look at the processes.
    pub(super) fn update(&mut self, tree: &TreeUsage) -> Duration {
        let now: HashMap<(i32, u64), Duration> =
            tree.members.iter().map(|it| ((it.id, it.started), it.own_time)).collect();
        let gone = self.living.iter().filter(|(process, _)| !now.contains_key(process));
        self.gone += gone.map(|(_, time)| *time).sum::<Duration>();
        // The time of children is added to the process that waits for them, unless it ignores their end. So either sum may
        // be the larger one, and both are at most the truth.
        let seen = self.gone + now.values().sum::<Duration>();
        let waited = tree.members.iter().map(|it| it.own_time + it.waited_time).sum();
        self.living = now;
        self.total = self.total.max(seen).max(waited);
        self.total
    }

    pub(super) fn total(&self) -> Duration {
        self.total
    }
}

#[cfg(test)]
mod tests {
    use ostler_process::usage::Member;

    use super::*;

    fn tree(members: &[(i32, u64, u64)]) -> TreeUsage {
        let member = |&(id, own, waited): &(i32, u64, u64)| Member {
            id,
            started: 1,
            threads: 1,
            own_time: Duration::from_secs(own),
            waited_time: Duration::from_secs(waited),
        };
        TreeUsage { members: members.iter().map(member).collect() }
    }

    // Mutants: the time of processes that are gone is lost; it is counted twice if their parent waited for them.
    #[test]
    fn time_counts_once_whether_or_not_a_parent_waits() {
        let seconds = |cpu: &mut CpuTime, now: &[_]| cpu.update(&tree(now)).as_secs();
        let mut ignored = CpuTime::default();
        assert_eq!(seconds(&mut ignored, &[(1, 1, 0), (2, 5, 0)]), 6);
        assert_eq!(seconds(&mut ignored, &[(1, 2, 0)]), 7, "nothing waited for process 2");
        let mut waited = CpuTime::default();
        assert_eq!(seconds(&mut waited, &[(1, 1, 0), (2, 5, 0)]), 6);
        assert_eq!(seconds(&mut waited, &[(1, 1, 6)]), 7, "process 1 waited for process 2");
        assert_eq!(seconds(&mut waited, &[]), 7, "it never falls");
        let mut unseen = CpuTime::default();
        assert_eq!(seconds(&mut unseen, &[(1, 0, 9)]), 9, "children between two looks");
    }
}
