//! Which commands have reached a limit. Pure.

use std::time::Duration;

use crate::limits::{Limits, SessionLimits};
use crate::reached::{ReachedLimit, Resource, Scope};

/// What a command uses at one time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CommandUse {
    /// Processes and threads.
    pub(super) processes: u64,
    pub(super) memory: u64,
    pub(super) cpu: Duration,
    /// At how many looks in a row it had all processes that it may have.
    pub(super) n_full: u32,
}

/// At how many looks in a row a command may have all processes that it may have. The system refuses more, and a program that
/// tries again and again would do nothing else until its time is over.
const MOST_FULL: u32 = 5;

/// The limit of a command that it has reached itself. Limits that control groups enforce are not given.
pub(super) fn of_command(limits: &Limits, usage: &CommandUse) -> Option<ReachedLimit> {
    let Limits { processes, memory, cpu_seconds, .. } = limits;
    if let (Some(most), true) = (*processes, usage.n_full >= MOST_FULL) {
        return Some(ReachedLimit { resource: Resource::Processes, scope: Scope::Command, most });
    }
    let all = [
        (Resource::Memory, *memory, usage.memory),
        (Resource::CpuSeconds, *cpu_seconds, usage.cpu.as_secs()),
    ];
    exceeded(all, Scope::Command)
}

/// The limit that all commands of a session have reached together. `earlier` is the time of those that are over.
pub(super) fn of_session(
    limits: &SessionLimits,
    usages: &[CommandUse],
    earlier: Duration,
) -> Option<ReachedLimit> {
    let sum = |of: fn(&CommandUse) -> u64| usages.iter().map(of).sum::<u64>();
    let cpu = earlier + usages.iter().map(|it| it.cpu).sum::<Duration>();
    let all = [
        (Resource::Processes, limits.processes, sum(|it| it.processes)),
        (Resource::Memory, limits.memory, sum(|it| it.memory)),
        (Resource::CpuSeconds, limits.cpu_seconds, cpu.as_secs()),
    ];
    exceeded(all, Scope::Session)
}

/// Which commands of a session end because of its limit: the one that uses most; all of them if the time is used up.
pub(super) fn ended(limit: &ReachedLimit, usages: &[CommandUse]) -> Vec<usize> {
    let most = |of: fn(&CommandUse) -> u64| {
        let largest = usages.iter().enumerate().max_by_key(|(_, usage)| of(usage));
        largest.map(|(position, _)| position).into_iter().collect()
    };
    match limit.resource {
        Resource::Processes => most(|it| it.processes),
        Resource::Memory => most(|it| it.memory),
        Resource::CpuSeconds | Resource::Disk | Resource::Files => (0..usages.len()).collect(),
    }
}

fn exceeded(
    all: impl IntoIterator<Item = (Resource, Option<u64>, u64)>,
    scope: Scope,
) -> Option<ReachedLimit> {
    all.into_iter().find_map(|(resource, most, used)| {
        let most = most?;
        // Time is cut off to whole seconds, so the limit itself is already too much.
        let is_over = used > most || (resource == Resource::CpuSeconds && used == most);
        is_over.then_some(ReachedLimit { resource, scope, most })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage(processes: u64, memory: u64, seconds: u64) -> CommandUse {
        CommandUse { processes, memory, cpu: Duration::from_secs(seconds), n_full: 0 }
    }

    // Mutants: the session's limits are compared with each command; the first command ends instead of the largest; the time of
    // earlier commands does not count.
    #[test]
    fn the_largest_command_of_a_session_ends_if_all_together_are_too_many() {
        let limits = SessionLimits {
            processes: Some(10),
            memory: Some(100),
            cpu_seconds: Some(60),
            ..SessionLimits::NONE
        };
        let two = [usage(3, 30, 20), usage(4, 60, 30)];
        assert_eq!(of_session(&limits, &two, Duration::ZERO), None);
        let reached = of_session(&limits, &two, Duration::from_secs(10)).unwrap();
        assert_eq!(reached.setting(), "sandbox.limits.session.cpuSeconds");
        assert_eq!(ended(&reached, &two), [0, 1]);
        let three = [usage(3, 30, 0), usage(4, 60, 0), usage(2, 11, 0)];
        let reached = of_session(&limits, &three, Duration::ZERO).unwrap();
        assert_eq!(
            (reached.setting(), reached.most),
            ("sandbox.limits.session.memory".to_owned(), 100)
        );
        assert_eq!(ended(&reached, &three), [1]);
        let many = [usage(8, 0, 0), usage(3, 0, 0)];
        let reached = of_session(&limits, &many, Duration::ZERO).unwrap();
        assert_eq!(reached.resource, Resource::Processes);
        assert_eq!(ended(&reached, &many), [0]);
        assert_eq!(of_session(&SessionLimits::NONE, &many, Duration::MAX / 2), None);
    }

    // Mutant: the limit itself is too much.
    #[test]
    fn a_command_ends_above_its_own_limit() {
        let limits = Limits { memory: Some(100), cpu_seconds: Some(2), ..Limits::NONE };
        assert_eq!(of_command(&limits, &usage(1, 100, 1)), None);
        let reached = of_command(&limits, &usage(1, 101, 1)).unwrap();
        assert_eq!((reached.resource, reached.scope), (Resource::Memory, Scope::Command));
        let reached = of_command(&limits, &usage(1, 0, 2)).unwrap();
        assert_eq!(reached.setting(), "sandbox.limits.cpuSeconds");
        let limits = Limits { processes: Some(9), ..Limits::NONE };
        let full = |n_full| of_command(&limits, &CommandUse { n_full, ..usage(9, 0, 0) });
        assert_eq!(full(MOST_FULL - 1), None);
        assert_eq!(full(MOST_FULL).unwrap().resource, Resource::Processes);
    }
}
