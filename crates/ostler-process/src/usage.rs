//! What processes with all their descendants use: how many they are, processor time, memory, and what they have written. Read
//! from `/proc`.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::time::Duration;

use crate::processes::{self, Process};

/// A process and all its descendants. Complete if orphans among them stay descendants, as in a process namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TreeUsage {
    /// The processes that are alive.
    pub members: Vec<Member>,
}

/// One process of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its id.
    pub id: i32,
    /// When it started, in clock ticks since the system did: ids are used again.
    pub started: u64,
    /// Its threads, the first one included.
    pub threads: u64,
    /// The processor time of its own threads.
    pub own_time: Duration,
    /// The processor time of children that it has waited for.
    pub waited_time: Duration,
}

impl TreeUsage {
    /// The number of processes and threads.
    pub fn threads(&self) -> u64 {
        self.members.iter().map(|it| it.threads).sum()
    }

    /// Memory that belongs to these processes alone, in bytes, without files. Memory that several of them share is counted for
    /// each, unless `is_exact`, which takes longer.
    pub fn memory(&self, is_exact: bool) -> u64 {
        let of = |it: &Member| match is_exact {
            true => shared_out(it.id).unwrap_or_else(|| resident(it.id)),
            false => resident(it.id),
        };
        self.members.iter().map(of).sum()
    }

    /// What they, and children that they have waited for, have written to file systems on disks, in bytes. 0 where that cannot
    /// be known.
    pub fn written(&self) -> u64 {
        self.members.iter().map(|it| written(it.id)).sum()
    }
}

/// The trees of these processes, in their order. Reads about every process of the system once.
pub fn of_trees(roots: &[i32]) -> Vec<TreeUsage> {
    trees(roots, &processes::all())
}

fn trees(roots: &[i32], all: &[Process]) -> Vec<TreeUsage> {
    let mut children: HashMap<i32, Vec<&Process>> = HashMap::new();
    for process in all {
        children.entry(process.parent).or_default().push(process);
    }
    let of_root = |root: &i32| tree(all.iter().find(|it| it.id == *root), &children);
    roots.iter().map(of_root).collect()
}

fn tree(root: Option<&Process>, children: &HashMap<i32, Vec<&Process>>) -> TreeUsage {
    let mut members = Vec::new();
    let mut seen: HashSet<i32> = root.iter().map(|it| it.id).collect();
    let mut queue: Vec<&Process> = root.into_iter().collect();
    while let Some(process) = queue.pop() {
        // One that has ended may still have children.
        if !process.is_zombie {
            members.push(member(process));
        }
        let children = children.get(&process.id).into_iter().flatten();
        queue.extend(children.filter(|it| seen.insert(it.id)));
    }
    TreeUsage { members }
}

fn member(process: &Process) -> Member {
    let &Process { id, started, threads, own_ticks, waited_ticks, .. } = process;
    let (own_time, waited_time) = (duration(own_ticks), duration(waited_ticks));
    Member { id, started, threads, own_time, waited_time }
}

/// The kernel's clock ticks are hundredths of a second on every system that Linux runs on today.
fn duration(ticks: u64) -> Duration {
    Duration::from_millis(ticks.saturating_mul(10))
}

/// Memory that is not that of files, in bytes; 0 if the process is gone.
fn resident(id: i32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    kilobytes(&status, &["RssAnon:", "RssShmem:"]).unwrap_or_default()
}

/// The same, with a part only of what it shares with others. `None` if the system does not say.
fn shared_out(id: i32) -> Option<u64> {
    let rollup = fs::read_to_string(format!("/proc/{id}/smaps_rollup")).ok()?;
    kilobytes(&rollup, &["Pss_Anon:", "Pss_Shmem:"])
}

/// The sum of these lines, in bytes; `None` if the text has none of them.
fn kilobytes(text: &str, names: &[&str]) -> Option<u64> {
    let of = |name: &&str| -> Option<u64> {
        let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
        rest.split_whitespace().next()?.parse().ok()
    };
    let found: Vec<u64> = names.iter().filter_map(of).collect();
    (!found.is_empty()).then(|| found.iter().sum::<u64>() * 1024)
}

fn written(id: i32) -> u64 {
    let io = fs::read_to_string(format!("/proc/{id}/io")).unwrap_or_default();
    let number = |name: &str| -> u64 {
        let rest = io.lines().find_map(|line| line.strip_prefix(name));
        rest.and_then(|rest| rest.trim().parse().ok()).unwrap_or_default()
    };
    number("write_bytes:").saturating_sub(number("cancelled_write_bytes:"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(id: i32, parent: i32) -> Process {
        Process {
            id,
            parent,
            group: 1,
            session: 1,
            started: 7,
            is_zombie: false,
            is_kernel: false,
            threads: 2,
            own_ticks: 50,
            waited_ticks: 100,
        }
    }

    // Mutants: only children count, not their children; processes that have ended count.
    #[test]
    fn a_tree_has_all_descendants_that_are_alive_and_no_others() {
        let ended = Process { is_zombie: true, ..process(12, 10) };
        let all = [process(10, 1), process(11, 10), ended, process(13, 12), process(20, 1)];
        let tree = &trees(&[10], &all)[0];
        let mut ids: Vec<i32> = tree.members.iter().map(|it| it.id).collect();
        ids.sort_unstable();
        assert_eq!(ids, [10, 11, 13]);
        assert_eq!(tree.threads(), 6);
        assert_eq!(tree.members[0].own_time, Duration::from_millis(500));
        assert_eq!(tree.members[0].waited_time, Duration::from_secs(1));
    }

    #[test]
    fn memory_without_files_is_counted() {
        let status = "VmRSS:\t  900 kB\nRssAnon:\t  100 kB\nRssFile:\t 700 kB\nRssShmem:\t 20 kB\n";
        assert_eq!(kilobytes(status, &["RssAnon:", "RssShmem:"]), Some(120 * 1024));
        assert_eq!(kilobytes("Rss: 4 kB\n", &["Pss_Anon:"]), None);
    }

    #[test]
    fn this_process_is_a_tree() {
        let own = std::process::id().cast_signed();
        let trees = of_trees(&[own, i32::MAX]);
        assert!(trees[0].members.iter().any(|it| it.id == own) && trees[0].threads() > 0);
        let (shared, exact) = (trees[0].memory(false), trees[0].memory(true));
        // Other tests of this process need memory between the two looks.
        let growth = 64 << 20;
        assert!(shared > 0 && exact > 0 && exact <= shared + growth, "{shared} {exact}");
        assert_eq!(trees[1], TreeUsage::default());
    }
}
